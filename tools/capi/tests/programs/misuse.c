/* Wrong uses of the library by an MPI program: each is an error on all ranks. Prints `rank 0 of N` once. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <downbeat.h>
#include <pthread.h>

#include "misuse.h"

static int rank, size;
static MPI_Comm inter = MPI_COMM_NULL;
static downbeat_clock *global;
static downbeat_team *team, *no_team;
static char *no_report;

static int is_last(void) { return rank == size - 1; }

/* A call while a variable of the environment of the last rank is wrong. */
static int with_variable(const char *name, const char *value, int (*call)(void)) {
  int status;
  if (is_last()) setenv(name, value, 1);
  status = call();
  unsetenv(name);
  return status;
}

CASE(synchronize_world, downbeat_synchronize(MPI_COMM_WORLD, NULL, &no_clock))
CASE(resynchronize_world, downbeat_resynchronize(global, MPI_COMM_WORLD))
CASE(timesync_world, downbeat_timesync(MPI_COMM_WORLD))
CASE(report_world, downbeat_report_timers_over(MPI_COMM_WORLD, &no_report))
CASE(timer_new, downbeat_get_timer("another", &no_timer))

CASE(team_open_world, downbeat_team_open(global, MPI_COMM_WORLD, &no_team))
CASE(keep_null, downbeat_keep(NULL, 1, NULL))
CASE(keep_clock, downbeat_keep((downbeat_team *)global, 1, NULL))
CASE(harmonize_null, downbeat_harmonize(NULL, 1, &number))
CASE(team_close_null, downbeat_team_close(NULL))

static const struct misuse before_init[] = {
    {"synchronize before MPI_Init", synchronize_world, DOWNBEAT_ERROR_MPI, "MPI is not initialized"},
    {"synchronize again before MPI_Init", resynchronize_world, DOWNBEAT_ERROR_MPI, "MPI is not initialized"},
    {"compare clocks before MPI_Init", timesync_world, DOWNBEAT_ERROR_MPI, "MPI is not initialized"},
    {"open a team before MPI_Init", team_open_world, DOWNBEAT_ERROR_MPI, "MPI is not initialized"},
    {"keep no team's clock", keep_null, DOWNBEAT_ERROR_NULL, "the handle is NULL"},
    {"return with no team", harmonize_null, DOWNBEAT_ERROR_NULL, "the handle is NULL"},
    {"close no team", team_close_null, DOWNBEAT_ERROR_NULL, "the handle is NULL"},
    {"report before MPI_Init", report_world, DOWNBEAT_ERROR_MPI, "MPI is not initialized"},
};

static const struct misuse before_synchronization[] = {
    {"synchronize NULL again", resynchronize_world, DOWNBEAT_ERROR_RANKS, "rank 0: the handle is NULL"},
    {"open a team of no clock", team_open_world, DOWNBEAT_ERROR_RANKS, "rank 0: the handle is NULL"},
    {"compare clocks, too early", timesync_world, DOWNBEAT_ERROR_RANKS, "no clock was synchronized yet"},
};

CASE(unknown_label, downbeat_synchronize(MPI_COMM_WORLD, "hca4", &no_clock))
CASE(unknown_label_of_one, downbeat_synchronize(MPI_COMM_WORLD, is_last() ? "hca4" : "hca3", &no_clock))
CASE(label_no_text, downbeat_synchronize(MPI_COMM_WORLD, "\xff", &no_clock))
CASE(empty_label, downbeat_synchronize(MPI_COMM_WORLD, "", &no_clock))
CASE(synchronize_nowhere, downbeat_synchronize(MPI_COMM_WORLD, NULL, rank == 0 ? NULL : &no_clock))
CASE(synchronize_version, downbeat_synchronize_abi(MPI_COMM_WORLD, NULL, &no_clock, is_last() ? 0 : DOWNBEAT_ABI))
CASE(synchronize_nobody, downbeat_synchronize(MPI_COMM_NULL, NULL, &no_clock))
CASE(resynchronize_closed, downbeat_resynchronize(is_last() ? closed_clock : global, MPI_COMM_WORLD))
CASE(resynchronize_timer, downbeat_resynchronize((downbeat_clock *)a_timer, MPI_COMM_WORLD))
CASE(resynchronize_nobody, downbeat_resynchronize(global, MPI_COMM_NULL))
CASE(timesync_nobody, downbeat_timesync(MPI_COMM_NULL))
CASE(team_nowhere_of_one, downbeat_team_open(global, MPI_COMM_WORLD, is_last() ? NULL : &no_team))
CASE(team_nobody, downbeat_team_open(global, MPI_COMM_NULL, &no_team))
CASE(keep_other, downbeat_keep(team, 1, NULL))
CASE(report_nowhere_of_one, downbeat_report_timers_over(MPI_COMM_WORLD, is_last() ? NULL : &no_report))
CASE(report_nobody, downbeat_report_timers_over(MPI_COMM_NULL, &no_report))
CASE(global_to_nowhere, downbeat_global_clock(NULL))
CASE(variable_algorithm, with_variable("DOWNBEAT_ALGORITHM", "hca9", synchronize_world))
CASE(variable_clock, with_variable("DOWNBEAT_CLOCK", "sundial", synchronize_world))
CASE(variable_skew, with_variable("DOWNBEAT_SKEW", "offset=1 parsec", synchronize_world))
CASE(variable_drift, with_variable("DOWNBEAT_MAX_DRIFT", "100%", synchronize_world))
CASE(variable_wander, with_variable("DOWNBEAT_MAX_WANDER", "-1ppm", synchronize_world))
CASE(variable_messages, with_variable("DOWNBEAT_SYNC_MAX_MESSAGES", "0", timesync_world))
CASE(variable_rule, with_variable("DOWNBEAT_SYNC_RULE", "highest", timesync_world))
CASE(variable_duration, with_variable("DOWNBEAT_SYNC_MAX_DURATION", "soon", timesync_world))

/* Of this process alone. */
static int variable_tick(void) {
  int status;
  setenv("DOWNBEAT_REGIONS_TICK", "0s", 1);
  status = timer_new();
  unsetenv("DOWNBEAT_REGIONS_TICK");
  return status;
}

/* MPI_THREAD_FUNNELED allows only the main thread to call MPI. */
static void *in_thread(void *call) {
  static int status;
  static char message[200];
  int (*function)(void);
  *(void **)&function = *(void **)call;
  status = function();
  strncpy(message, downbeat_error_message(), sizeof message - 1);
  CHECK(strstr(message, "thread"));
  return &status;
}

static int of_thread(int (*call)(void)) {
  pthread_t thread;
  void *status = NULL;
  CHECK(pthread_create(&thread, NULL, in_thread, &call) == 0 && pthread_join(thread, &status) == 0);
  return *(int *)status;
}

CASE(synchronize_in_thread, of_thread(synchronize_world))
CASE(resynchronize_in_thread, of_thread(resynchronize_world))
CASE(timesync_in_thread, of_thread(timesync_world))
CASE(report_in_thread, of_thread(report_world))
CASE(team_in_thread, of_thread(team_open_world))
CASE(keep_in_thread, of_thread(keep_other))

static const struct misuse collective[] = {
    {"an algorithm that does not exist", unknown_label, DOWNBEAT_ERROR_RANKS, "there is no algorithm \"hca4\""},
    {"the same on one rank", unknown_label_of_one, DOWNBEAT_ERROR_RANKS, "there is no algorithm \"hca4\""},
    {"a label that is no text", label_no_text, DOWNBEAT_ERROR_RANKS, "label is not UTF-8"},
    {"an empty label", empty_label, DOWNBEAT_ERROR_RANKS, "there is no algorithm"},
    {"synchronize, to nowhere on rank 0", synchronize_nowhere, DOWNBEAT_ERROR_RANKS, "rank 0: clock is NULL"},
    {"no header on one rank", synchronize_version, DOWNBEAT_ERROR_RANKS, "version 0.0 of downbeat.h"},
    {"synchronize nobody", synchronize_nobody, DOWNBEAT_ERROR_MPI, "MPI_COMM_NULL"},
    {"synchronize a closed clock on one rank", resynchronize_closed, DOWNBEAT_ERROR_RANKS, "the handle is closed"},
    {"synchronize a timer", resynchronize_timer, DOWNBEAT_ERROR_RANKS, "or is none"},
    {"synchronize again with nobody", resynchronize_nobody, DOWNBEAT_ERROR_MPI, "MPI_COMM_NULL"},
    {"compare clocks with nobody", timesync_nobody, DOWNBEAT_ERROR_MPI, "MPI_COMM_NULL"},
    {"open a team to nowhere on one rank", team_nowhere_of_one, DOWNBEAT_ERROR_RANKS, "team is NULL"},
    {"open a team of nobody", team_nobody, DOWNBEAT_ERROR_MPI, "MPI_COMM_NULL"},
    {"open a team in another thread", team_in_thread, DOWNBEAT_ERROR_MPI, ""},
    {"keep a clock in another thread", keep_in_thread, DOWNBEAT_ERROR_HANDLE, ""},
    {"keep a clock that is no team", keep_clock, DOWNBEAT_ERROR_HANDLE, "or is none"},
    {"report to nowhere on one rank", report_nowhere_of_one, DOWNBEAT_ERROR_RANKS, "report is NULL"},
    {"report of nobody", report_nobody, DOWNBEAT_ERROR_MPI, "MPI_COMM_NULL"},
    {"the global clock, to nowhere", global_to_nowhere, DOWNBEAT_ERROR_NULL, "clock is NULL"},
    {"DOWNBEAT_ALGORITHM", variable_algorithm, DOWNBEAT_ERROR_RANKS, "DOWNBEAT_ALGORITHM=hca9: there is no algorithm"},
    {"DOWNBEAT_CLOCK", variable_clock, DOWNBEAT_ERROR_RANKS, "DOWNBEAT_CLOCK=sundial: there is no clock"},
    {"DOWNBEAT_SKEW", variable_skew, DOWNBEAT_ERROR_RANKS, "DOWNBEAT_SKEW=offset=1 parsec: "},
    {"DOWNBEAT_MAX_DRIFT", variable_drift, DOWNBEAT_ERROR_RANKS, "DOWNBEAT_MAX_DRIFT=100%: must be above 0 % and below 100 %"},
    {"DOWNBEAT_MAX_WANDER", variable_wander, DOWNBEAT_ERROR_RANKS, "DOWNBEAT_MAX_WANDER=-1ppm: "},
    {"DOWNBEAT_SYNC_MAX_MESSAGES", variable_messages, DOWNBEAT_ERROR_RANKS, "DOWNBEAT_SYNC_MAX_MESSAGES=0: "},
    {"DOWNBEAT_SYNC_RULE", variable_rule, DOWNBEAT_ERROR_RANKS, "DOWNBEAT_SYNC_RULE=highest: there is no rule"},
    {"DOWNBEAT_SYNC_MAX_DURATION", variable_duration, DOWNBEAT_ERROR_RANKS, "DOWNBEAT_SYNC_MAX_DURATION=soon: "},
    {"DOWNBEAT_REGIONS_TICK", variable_tick, DOWNBEAT_ERROR_ARGUMENT, "DOWNBEAT_REGIONS_TICK: a tick is positive"},
    {"synchronize in another thread", synchronize_in_thread, DOWNBEAT_ERROR_MPI, ""},
    {"synchronize again in another thread", resynchronize_in_thread, DOWNBEAT_ERROR_MPI, ""},
    {"compare clocks in another thread", timesync_in_thread, DOWNBEAT_ERROR_MPI, ""},
    {"report in another thread", report_in_thread, DOWNBEAT_ERROR_MPI, ""},
};

CASE(different_labels, downbeat_synchronize(MPI_COMM_WORLD, is_last() ? "hca3" : "hca2", &no_clock))
CASE(synchronize_inter, downbeat_synchronize(inter, NULL, &no_clock))
CASE(resynchronize_inter, downbeat_resynchronize(global, inter))
CASE(timesync_inter, downbeat_timesync(inter))
CASE(report_inter, downbeat_report_timers_over(inter, &no_report))

static const struct misuse of_several[] = {
    {"different algorithms", different_labels, DOWNBEAT_ERROR_RANKS, "different algorithms"},
    {"synchronize two groups", synchronize_inter, DOWNBEAT_ERROR_MPI, "inter-communicator"},
    {"synchronize two groups again", resynchronize_inter, DOWNBEAT_ERROR_MPI, "inter-communicator"},
    {"compare clocks of two groups", timesync_inter, DOWNBEAT_ERROR_MPI, "inter-communicator"},
    {"report of two groups", report_inter, DOWNBEAT_ERROR_MPI, "inter-communicator"},
};

static const struct misuse after_finalize[] = {
    {"synchronize after MPI_Finalize", synchronize_world, DOWNBEAT_ERROR_MPI, "MPI is already finalized"},
    {"synchronize again after MPI_Finalize", resynchronize_world, DOWNBEAT_ERROR_MPI, "MPI is already finalized"},
    {"compare clocks after MPI_Finalize", timesync_world, DOWNBEAT_ERROR_MPI, "MPI is already finalized"},
    {"open a team after MPI_Finalize", team_open_world, DOWNBEAT_ERROR_MPI, "MPI is already finalized"},
    {"keep the clock of a closed team", keep_other, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"report after MPI_Finalize", report_world, DOWNBEAT_ERROR_MPI, "MPI is already finalized"},
};

int main(int argc, char **argv) {
  int made = 0, provided = 0;
  MPI_Comm half;
  prepare_local();
  made += make_all(local_cases, COUNT(local_cases));
  made += make_all(before_init, COUNT(before_init));
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  made += make_all(local_cases, COUNT(local_cases));
  made += make_all(before_synchronization, COUNT(before_synchronization));
  CHECK(downbeat_synchronize(MPI_COMM_WORLD, "hca3/20/skampi/10", &global) == DOWNBEAT_OK);
  CHECK(downbeat_team_open(global, MPI_COMM_WORLD, &team) == DOWNBEAT_OK);
  made += make_all(collective, COUNT(collective));
  if (size > 1) {
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
    made += make_all(of_several, COUNT(of_several));
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
  /* All of them left the clocks as they were. */
  CHECK(no_clock == NULL && no_timer == NULL && no_team == NULL && no_report == NULL);
  CHECK(downbeat_keep(team, 0, NULL) == DOWNBEAT_OK && downbeat_team_close(team) == DOWNBEAT_OK);
  CHECK(downbeat_resynchronize(global, MPI_COMM_WORLD) == DOWNBEAT_OK);
  CHECK(downbeat_clock_now(global, &number) == DOWNBEAT_OK && number > 0);
  if (rank == 0) printf("%d wrong uses\n", made + (int)COUNT(after_finalize));
  if (rank == 0) printf("rank 0 of %d: all checks passed\n", size);
  MPI_Finalize();
  make_all(after_finalize, COUNT(after_finalize));
  return 0;
}
