/* Local clocks and timers, and their wrong uses. */
#include <downbeat.h>
#include <string.h>

#include "misuse.h"

/* Reads inside and outside of the library are in order. */
static void reads_agree(downbeat_clock *clock) {
  const downbeat_model *model = NULL;
  int64_t last = INT64_MIN;
  int i;
  CHECK(downbeat_clock_model(clock, &model) == DOWNBEAT_OK);
  for (i = 0; i < 1000; i++) {
    int64_t inside = 0, outside = downbeat_model_now(model);
    CHECK(downbeat_clock_now(clock, &inside) == DOWNBEAT_OK);
    CHECK(last <= outside && outside <= inside);
    last = inside;
  }
}

static void time_passes(downbeat_clock *clock) {
  int64_t now = 0, reached = 0, error = 0, day = 0;
  uint64_t ticks = 0;
  CHECK(downbeat_clock_now(clock, &now) == DOWNBEAT_OK && now >= 0);
  CHECK(downbeat_clock_wait_until(clock, now + 200000, &reached) == DOWNBEAT_OK);
  CHECK(reached >= now + 200000);
  CHECK(downbeat_clock_wait_until(clock, now, NULL) == DOWNBEAT_OK);
  CHECK(downbeat_clock_ticks(clock, &ticks) == DOWNBEAT_OK);
  CHECK(downbeat_clock_convert(clock, ticks, &now) == DOWNBEAT_OK && now >= reached);
  CHECK(downbeat_clock_now_with_error(clock, &now, &error) == DOWNBEAT_OK && error == 0);
  CHECK(downbeat_clock_now_with_bounds(clock, &error, &day) == DOWNBEAT_OK && error > now && day - error < 10);
  CHECK(downbeat_clock_time_of_day(clock, now, &day, &error) == DOWNBEAT_OK);
  CHECK(day > 1700000000LL * 1000000000 && error > 0 && error < 1000000);
}

/* Timers count their events, and tell of misuse. */
static void regions_are_timed(void) {
  downbeat_timer *timer = NULL, *same = NULL;
  char *report = NULL;
  int i;
  CHECK(downbeat_get_timer("solve", &timer) == DOWNBEAT_OK);
  CHECK(downbeat_get_timer("solve", &same) == DOWNBEAT_OK && same == timer);
  CHECK(downbeat_get_timer("solve", &same) == DOWNBEAT_OK && same == timer);
  CHECK(downbeat_get_timer("solver", &same) == DOWNBEAT_OK && same != timer);
  /* A variable that was never set. */
  same = (downbeat_timer *)(size_t)0x1234;
  CHECK(downbeat_get_timer("solve", &same) == DOWNBEAT_OK && same == timer);
  for (i = 0; i < 7; i++) {
    CHECK(downbeat_start_timer(timer) == DOWNBEAT_OK);
    CHECK(downbeat_stop_timer(timer) == DOWNBEAT_OK);
  }
  CHECK(downbeat_stop_timer(timer) == DOWNBEAT_OK);
  CHECK(downbeat_report_timers(&report) == DOWNBEAT_OK);
  CHECK(strstr(report, "solve") && strstr(report, "events per task: 7 max"));
  CHECK(downbeat_free_text(report) == DOWNBEAT_OK);
}

/* Times and places at the ends of their ranges. */
static void extremes_are_allowed(void) {
  downbeat_clock *clock = NULL, *other = NULL;
  int64_t nanos = 0;
  CHECK(downbeat_clock_open("monotonic", &clock) == DOWNBEAT_OK);
  CHECK(downbeat_clock_convert(clock, UINT64_MAX, &nanos) == DOWNBEAT_OK && nanos == INT64_MAX);
  CHECK(downbeat_clock_wait_until(clock, INT64_MIN, &nanos) == DOWNBEAT_OK);
  CHECK(downbeat_clock_close(clock) == DOWNBEAT_OK);
  CHECK(downbeat_clock_open("monotonic", &other) == DOWNBEAT_OK && other != clock);
  CHECK(downbeat_clock_close(other) == DOWNBEAT_OK);
  CHECK(strcmp(downbeat_status_name(DOWNBEAT_ERROR_HANDLE), "DOWNBEAT_ERROR_HANDLE") == 0);
  CHECK(strcmp(downbeat_status_name(-1), "unknown status") == 0);
}

int main(void) {
  static const char *const names[] = {NULL, "recommended", "raw", "monotonic", "realtime"};
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; i++) {
    downbeat_clock *clock = NULL;
    CHECK(downbeat_clock_open(names[i], &clock) == DOWNBEAT_OK);
    reads_agree(clock);
    time_passes(clock);
    CHECK(downbeat_clock_close(clock) == DOWNBEAT_OK);
  }
  extremes_are_allowed();
  regions_are_timed();
  prepare_local();
  make_all(local_cases, COUNT(local_cases));
  puts("all checks passed");
  return 0;
}
