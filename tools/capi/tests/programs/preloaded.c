/* A program with libdownbeat, and libdownbeat_wtime before it: both use one library. */
#include <mpi.h>
#include <downbeat.h>
#include <string.h>

#include "check.h"

int main(int argc, char **argv) {
  downbeat_clock *clock = NULL, *mine = NULL;
  int rank, size;
  double before, between, after;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* The clock that MPI_Init synchronized. */
  CHECK(downbeat_global_clock(&clock) == DOWNBEAT_OK);
  before = MPI_Wtime();
  between = downbeat_wtime();
  after = MPI_Wtime();
  CHECK(before <= between && between <= after);
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, "hca3/20/skampi/10", &mine) == DOWNBEAT_OK && mine != clock);
  /* MPI_Wtime does not step. */
  CHECK(MPI_Wtime() >= after);
  CHECK(downbeat_clock_close(mine) == DOWNBEAT_OK && downbeat_clock_close(mine) == DOWNBEAT_ERROR_HANDLE);
  CHECK(strcmp(downbeat_error_message(), "the handle is closed, or is none") == 0);
  if (rank == 0) printf("rank 0 of %d: all checks passed\n", size);
  MPI_Finalize();
  return 0;
}
