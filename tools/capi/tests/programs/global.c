/* A global clock over MPI. Prints `rank 0 of N` once. */
#include <mpi.h>
#include <downbeat.h>
#include <string.h>

#include "check.h"

static int rank, size;

/* All ranks, which read one counter, show the same time at one reading, within their bounds. */
static void times_agree(downbeat_clock *clock) {
  uint64_t ticks = 0;
  int64_t mine = 0, first = 0, error = 0, start = 0, reached = 0;
  CHECK(downbeat_clock_ticks(clock, &ticks) == DOWNBEAT_OK);
  MPI_Bcast(&ticks, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  CHECK(downbeat_clock_convert(clock, ticks, &mine) == DOWNBEAT_OK);
  first = mine;
  MPI_Bcast(&first, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  CHECK(downbeat_clock_now_with_error(clock, &start, &error) == DOWNBEAT_OK);
  CHECK(mine - first <= error && first - mine <= error);
  CHECK(downbeat_clock_now_with_bounds(clock, &mine, &reached) == DOWNBEAT_OK);
  /* A clock can be certainly ahead of rank 0, by no more than its error. */
  CHECK(mine <= reached && reached - start >= -error);
  start += 100000;
  MPI_Bcast(&start, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  CHECK(downbeat_clock_wait_until(clock, start, &reached) == DOWNBEAT_OK && reached >= start);
}

/* Ranks, which read one counter, agree about the past at any reading of it. */
static void the_past_is_known(downbeat_clock *clock) {
  uint64_t ticks = 0;
  int64_t mine = 0, first = 0, error = 0, now = 0;
  int i;
  CHECK(downbeat_clock_ticks(clock, &ticks) == DOWNBEAT_OK);
  MPI_Bcast(&ticks, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  CHECK(downbeat_clock_past(clock, ticks, &mine) == DOWNBEAT_OK);
  CHECK(downbeat_clock_convert(clock, ticks, &now) == DOWNBEAT_OK && now == mine);
  for (i = 0; i < 3; i++) CHECK(downbeat_timesync(MPI_COMM_WORLD) == DOWNBEAT_OK);
  CHECK(downbeat_clock_past(clock, ticks, &mine) == DOWNBEAT_OK);
  first = mine;
  MPI_Bcast(&first, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  /* Ranks that share cores answer late. */
  CHECK(mine - first < 50000000 && first - mine < 50000000);
  CHECK(downbeat_clock_now_with_error(clock, &now, &error) == DOWNBEAT_OK && now > mine);
}

/* A team keeps its clock, which never runs backward, and its ranks return together. */
static void a_team_keeps_time(downbeat_clock *clock) {
  downbeat_team *team = NULL;
  int kept = -1, i;
  int64_t last = 0, now = 0, missed = -1;
  CHECK(downbeat_team_open(clock, MPI_COMM_WORLD, &team) == DOWNBEAT_OK);
  CHECK(downbeat_clock_now(clock, &last) == DOWNBEAT_OK);
  CHECK(downbeat_keep(team, 0, &kept) == DOWNBEAT_OK && kept == 1);
  CHECK(downbeat_keep(team, (int64_t)100 * 1000000000, &kept) == DOWNBEAT_OK && kept == 0);
  for (i = 0; i < 20; i++) {
    CHECK(downbeat_keep(team, i % 7 == 0 ? 0 : 1000000000, NULL) == DOWNBEAT_OK);
    CHECK(downbeat_harmonize(team, 1000000000 + rank, i % 2 == 0 ? NULL : &missed) == DOWNBEAT_OK);
    CHECK(i == 0 || missed >= 0 || i % 2 == 0);
    CHECK(downbeat_clock_now(clock, &now) == DOWNBEAT_OK && now >= last);
    last = now;
  }
  CHECK(downbeat_team_close(team) == DOWNBEAT_OK);
  CHECK(downbeat_keep(team, 0, &kept) == DOWNBEAT_ERROR_HANDLE);
}

/* Rank 0 gets one report about all ranks. */
static void timers_are_merged(void) {
  downbeat_timer *timer = NULL;
  char *report = NULL, expected[40];
  CHECK(downbeat_get_timer("solve", &timer) == DOWNBEAT_OK);
  CHECK(downbeat_start_timer(timer) == DOWNBEAT_OK && downbeat_stop_timer(timer) == DOWNBEAT_OK);
  CHECK(downbeat_report_timers_over(MPI_COMM_WORLD, &report) == DOWNBEAT_OK);
  CHECK((report != NULL) == (rank == 0));
  sprintf(expected, "*** profile for %d task", size);
  CHECK(rank > 0 || strstr(report, expected));
  CHECK(downbeat_free_text(report) == DOWNBEAT_OK);
}

int main(int argc, char **argv) {
  downbeat_clock *clock = NULL, *again = NULL, *current = NULL;
  double start;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, NULL, &clock) == DOWNBEAT_OK);
  times_agree(clock);
  the_past_is_known(clock);
  CHECK(downbeat_global_clock(&current) == DOWNBEAT_OK && current == clock);
  start = downbeat_wtime();
  CHECK(start > 0 && downbeat_wtime() >= start);
  CHECK(downbeat_resynchronize(clock, MPI_COMM_WORLD) == DOWNBEAT_OK);
  times_agree(clock);
  a_team_keeps_time(clock);
  times_agree(clock);
  timers_are_merged();
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, "hca3/20/skampi/10", &again) == DOWNBEAT_OK);
  times_agree(again);
  CHECK(downbeat_global_clock(&current) == DOWNBEAT_OK && current == again);
  CHECK(downbeat_clock_close(again) == DOWNBEAT_OK);
  CHECK(downbeat_global_clock(&current) == DOWNBEAT_ERROR_NOT_SYNCHRONIZED);
  if (rank == 0) printf("rank 0 of %d: all checks passed\n", size);
  MPI_Finalize();
  CHECK(downbeat_clock_now(clock, &(int64_t){0}) == DOWNBEAT_OK);
  CHECK(downbeat_clock_close(clock) == DOWNBEAT_OK);
  return 0;
}
