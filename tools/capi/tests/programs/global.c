/* A global clock over MPI, and its wrong uses. Prints `rank 0 of N` once. */
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
  CHECK(downbeat_timesync(MPI_COMM_NULL) == DOWNBEAT_ERROR_MPI);
  CHECK(downbeat_clock_past(clock, ticks, NULL) == DOWNBEAT_ERROR_NULL);
  CHECK(downbeat_clock_past(NULL, ticks, &mine) == DOWNBEAT_ERROR_NULL);
}

/* A failure of one rank is one on all. */
static void failures_are_agreed_on(downbeat_clock *clock) {
  downbeat_clock *none = NULL;
  int last = size - 1;
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, rank == last ? "hca4" : "hca3", &none) == DOWNBEAT_ERROR_RANKS);
  CHECK(strstr(downbeat_error_message(), "there is no algorithm \"hca4\""));
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, NULL, rank == 0 ? NULL : &none) == DOWNBEAT_ERROR_RANKS);
  CHECK(strcmp(downbeat_error_message(), "rank 0: clock is NULL") == 0);
  CHECK(downbeat_synchronize_abi(MPI_COMM_WORLD, NULL, &none, rank == last ? 0 : DOWNBEAT_ABI) == DOWNBEAT_ERROR_RANKS);
  CHECK(downbeat_resynchronize(rank == 0 ? NULL : clock, MPI_COMM_WORLD) == DOWNBEAT_ERROR_RANKS);
  CHECK(strcmp(downbeat_error_message(), "rank 0: the handle is NULL") == 0);
  CHECK(downbeat_synchronize(MPI_COMM_NULL, NULL, &none) == DOWNBEAT_ERROR_MPI);
  CHECK(downbeat_resynchronize(clock, MPI_COMM_NULL) == DOWNBEAT_ERROR_MPI);
  if (size > 1) {
    CHECK(downbeat_synchronize(MPI_COMM_WORLD, rank == last ? "hca3" : "hca2", &none) == DOWNBEAT_ERROR_RANKS);
    CHECK(strstr(downbeat_error_message(), "different algorithms"));
  }
  CHECK(none == NULL);
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
  CHECK(downbeat_report_timers_over(MPI_COMM_WORLD, rank == 0 ? NULL : &report) == DOWNBEAT_ERROR_RANKS);
  CHECK(downbeat_report_timers_over(MPI_COMM_NULL, &report) == DOWNBEAT_ERROR_MPI);
}

static void inter_communicators_are_refused(void) {
  MPI_Comm half, inter;
  downbeat_clock *none = NULL;
  if (size < 2) return;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
  CHECK(downbeat_synchronize(inter, NULL, &none) == DOWNBEAT_ERROR_MPI);
  CHECK(strstr(downbeat_error_message(), "inter-communicator"));
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
  downbeat_clock *clock = NULL, *again = NULL, *current = NULL;
  double start;
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, NULL, &clock) == DOWNBEAT_ERROR_MPI);
  CHECK(strcmp(downbeat_error_message(), "MPI is not initialized") == 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(downbeat_timesync(MPI_COMM_WORLD) == DOWNBEAT_ERROR_RANKS);
  CHECK(strcmp(downbeat_error_message(), "rank 0: no clock was synchronized yet") == 0);
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, NULL, &clock) == DOWNBEAT_OK);
  times_agree(clock);
  the_past_is_known(clock);
  CHECK(downbeat_global_clock(&current) == DOWNBEAT_OK && current == clock);
  start = downbeat_wtime();
  CHECK(start > 0 && downbeat_wtime() >= start);
  CHECK(downbeat_resynchronize(clock, MPI_COMM_WORLD) == DOWNBEAT_OK);
  times_agree(clock);
  timers_are_merged();
  failures_are_agreed_on(clock);
  inter_communicators_are_refused();
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, "hca3/20/skampi/10", &again) == DOWNBEAT_OK);
  times_agree(again);
  CHECK(downbeat_global_clock(&current) == DOWNBEAT_OK && current == again);
  CHECK(downbeat_clock_close(again) == DOWNBEAT_OK);
  CHECK(downbeat_global_clock(&current) == DOWNBEAT_ERROR_NOT_SYNCHRONIZED);
  if (rank == 0) printf("rank 0 of %d: all checks passed\n", size);
  MPI_Finalize();
  CHECK(downbeat_clock_now(clock, &(int64_t){0}) == DOWNBEAT_OK);
  CHECK(downbeat_resynchronize(clock, MPI_COMM_WORLD) == DOWNBEAT_ERROR_MPI);
  CHECK(strcmp(downbeat_error_message(), "MPI is already finalized") == 0);
  CHECK(downbeat_clock_close(clock) == DOWNBEAT_OK);
  return 0;
}
