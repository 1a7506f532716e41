#include <mpi.h>
#include <downbeat.h>
#include <stdio.h>

int main(int argc, char **argv) {
  downbeat_clock *clock;
  MPI_Init(&argc, &argv);
  if (downbeat_synchronize(MPI_COMM_WORLD, NULL, &clock) != DOWNBEAT_OK) {
    fprintf(stderr, "%s\n", downbeat_error_message());
    return 1;
  }
  printf("%.9f s\n", downbeat_wtime());
  MPI_Finalize();
  return 0;
}
