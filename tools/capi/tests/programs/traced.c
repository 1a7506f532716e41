/* Regions and a session of a program under the tracer, which must find them, and none of the messages of libdownbeat: run
 * at 2 ranks. */
#include <mpi.h>
#include <downbeat.h>

#include "check.h"

int main(int argc, char **argv) {
  downbeat_timer *timer = NULL;
  downbeat_clock *clock = NULL;
  downbeat_team *team = NULL;
  char *report = NULL;
  int64_t missed_by;
  int i, kept, rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(downbeat_get_timer("solver phase", &timer) == DOWNBEAT_OK);
  for (i = 0; i < 5; i++) {
    CHECK(downbeat_start_timer(timer) == DOWNBEAT_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(downbeat_stop_timer(timer) == DOWNBEAT_OK);
  }
  /* A clock of the program's own, which begins now. */
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, "skampi/skampi/10", &clock) == DOWNBEAT_OK);
  CHECK(downbeat_timesync(MPI_COMM_WORLD) == DOWNBEAT_OK);
  CHECK(downbeat_team_open(clock, MPI_COMM_WORLD, &team) == DOWNBEAT_OK);
  for (i = 0; i < 3; i++) {
    CHECK(downbeat_keep(team, 0, &kept) == DOWNBEAT_OK);
    CHECK(downbeat_harmonize(team, 1000000, &missed_by) == DOWNBEAT_OK);
  }
  CHECK(downbeat_team_close(team) == DOWNBEAT_OK);
  CHECK(downbeat_resynchronize(clock, MPI_COMM_WORLD) == DOWNBEAT_OK);
  CHECK(downbeat_report_timers_over(MPI_COMM_WORLD, &report) == DOWNBEAT_OK);
  downbeat_free_text(report);
  CHECK(downbeat_clock_close(clock) == DOWNBEAT_OK);
  MPI_Finalize();
  if (rank == 0) printf("rank 0 of %d: all checks passed\n", size);
  return 0;
}
