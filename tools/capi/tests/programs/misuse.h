/* Wrong uses of the library, each of which must return an error with a message. */
#ifndef MISUSE_H
#define MISUSE_H

#include <downbeat.h>
#include <string.h>

#include "check.h"

struct misuse {
  const char *what;
  int (*call)(void);
  /* The expected status, and a part of the message. */
  int status;
  const char *message;
};

/* Makes all of these mistakes, and returns their number. */
static int make_all(const struct misuse *cases, size_t count) {
  size_t i;
  for (i = 0; i < count; i++) {
    int status = cases[i].call();
    const char *message = downbeat_error_message();
    if (status != cases[i].status || strstr(message, cases[i].message) == NULL) {
      fprintf(stderr, "%s: %s, \"%s\"\n", cases[i].what, downbeat_status_name(status), message);
      exit(1);
    }
  }
  return (int)count;
}

#define COUNT(cases) (sizeof(cases) / sizeof *(cases))

/* Places for results, which stay as they are. */
static downbeat_clock *no_clock;
static downbeat_timer *no_timer;
static int64_t number;
static uint64_t ticks_read;

/* Clocks that are open, and closed. */
static downbeat_clock *open_clock, *closed_clock;
static downbeat_timer *a_timer;
static const downbeat_model *closed_model;

static void prepare_local(void) {
  CHECK(downbeat_clock_open("monotonic", &open_clock) == DOWNBEAT_OK);
  CHECK(downbeat_clock_open("monotonic", &closed_clock) == DOWNBEAT_OK);
  CHECK(downbeat_clock_model(closed_clock, &closed_model) == DOWNBEAT_OK);
  CHECK(downbeat_clock_close(closed_clock) == DOWNBEAT_OK);
  CHECK(downbeat_get_timer("misused", &a_timer) == DOWNBEAT_OK);
}

/* Result of a call that returns no status. */
static int status_if(int is_failure, int status) { return is_failure ? status : DOWNBEAT_OK; }

#define CASE(name, expression) \
  static int name(void) { return (expression); }

CASE(open_unknown, downbeat_clock_open("sundial", &no_clock))
CASE(open_empty, downbeat_clock_open("", &no_clock))
CASE(open_no_text, downbeat_clock_open("\xff", &no_clock))
CASE(open_nowhere, downbeat_clock_open(NULL, NULL))
CASE(open_newer, downbeat_clock_open_abi(NULL, &no_clock, DOWNBEAT_ABI + 1))
CASE(open_other, downbeat_clock_open_abi(NULL, &no_clock, 2 << 16))
CASE(open_without_version, downbeat_clock_open_abi(NULL, &no_clock, 0))
CASE(close_null, downbeat_clock_close(NULL))
CASE(close_twice, downbeat_clock_close(closed_clock))
CASE(now_of_null, downbeat_clock_now(NULL, &number))
CASE(now_of_closed, downbeat_clock_now(closed_clock, &number))
CASE(now_of_timer, downbeat_clock_now((downbeat_clock *)a_timer, &number))
CASE(now_nowhere, downbeat_clock_now(open_clock, NULL))
CASE(error_of_closed, downbeat_clock_now_with_error(closed_clock, &number, &number))
CASE(error_nowhere, downbeat_clock_now_with_error(open_clock, &number, NULL))
CASE(error_without_time, downbeat_clock_now_with_error(open_clock, NULL, &number))
CASE(bounds_of_closed, downbeat_clock_now_with_bounds(closed_clock, &number, &number))
CASE(bounds_nowhere, downbeat_clock_now_with_bounds(open_clock, &number, NULL))
CASE(bounds_without_first, downbeat_clock_now_with_bounds(open_clock, NULL, &number))
CASE(ticks_of_closed, downbeat_clock_ticks(closed_clock, &ticks_read))
CASE(ticks_nowhere, downbeat_clock_ticks(open_clock, NULL))
CASE(convert_by_closed, downbeat_clock_convert(closed_clock, 1, &number))
CASE(convert_by_null, downbeat_clock_convert(NULL, 1, &number))
CASE(convert_nowhere, downbeat_clock_convert(open_clock, 1, NULL))
CASE(past_of_closed, downbeat_clock_past(closed_clock, 1, &number))
CASE(past_nowhere, downbeat_clock_past(open_clock, 1, NULL))
CASE(wait_by_closed, downbeat_clock_wait_until(closed_clock, 1, &number))
CASE(wait_by_null, downbeat_clock_wait_until(NULL, 1, NULL))
CASE(day_of_closed, downbeat_clock_time_of_day(closed_clock, 1, &number, &number))
CASE(day_nowhere, downbeat_clock_time_of_day(open_clock, 1, NULL, &number))
CASE(day_without_error, downbeat_clock_time_of_day(open_clock, 1, &number, NULL))
CASE(model_of_closed, downbeat_clock_model(closed_clock, &closed_model))
CASE(model_nowhere, downbeat_clock_model(open_clock, NULL))
CASE(read_null, status_if(downbeat_model_read(NULL) == INT64_MIN, DOWNBEAT_ERROR_HANDLE))
CASE(read_closed, status_if(downbeat_model_read(closed_model) == INT64_MIN, DOWNBEAT_ERROR_HANDLE))
CASE(global_nowhere, downbeat_global_clock(NULL))
CASE(global_too_early, downbeat_global_clock(&no_clock))
CASE(wtime_too_early, status_if(downbeat_wtime() != downbeat_wtime(), DOWNBEAT_ERROR_NOT_SYNCHRONIZED))
CASE(timer_without_name, downbeat_get_timer("", &no_timer))
CASE(timer_of_null, downbeat_get_timer(NULL, &no_timer))
CASE(timer_no_text, downbeat_get_timer("\xc3", &no_timer))
CASE(timer_nowhere, downbeat_get_timer("misused", NULL))
CASE(timer_newer, downbeat_get_timer_abi("misused", &no_timer, DOWNBEAT_ABI + 1))
CASE(start_null, downbeat_start_timer(NULL))
CASE(start_clock, downbeat_start_timer((downbeat_timer *)open_clock))
CASE(stop_null, downbeat_stop_timer(NULL))
CASE(stop_clock, downbeat_stop_timer((downbeat_timer *)open_clock))
CASE(report_nowhere, downbeat_report_timers(NULL))

static int free_twice(void) {
  char *text = NULL;
  CHECK(downbeat_report_timers(&text) == DOWNBEAT_OK);
  CHECK(downbeat_free_text(NULL) == DOWNBEAT_OK && downbeat_free_text(text) == DOWNBEAT_OK);
  return downbeat_free_text(text);
}

static int free_other(void) {
  char text[] = "text";
  return downbeat_free_text(text);
}

static const struct misuse local_cases[] = {
    {"open a clock that does not exist", open_unknown, DOWNBEAT_ERROR_ARGUMENT, "there is no clock \"sundial\""},
    {"open a clock without a name", open_empty, DOWNBEAT_ERROR_ARGUMENT, "there is no clock"},
    {"open a clock by bytes that are no text", open_no_text, DOWNBEAT_ERROR_ARGUMENT, "name is not UTF-8"},
    {"open a clock, to nowhere", open_nowhere, DOWNBEAT_ERROR_NULL, "clock is NULL"},
    {"open a clock with a newer header", open_newer, DOWNBEAT_ERROR_VERSION, "version 1.1 of downbeat.h"},
    {"open a clock with another header", open_other, DOWNBEAT_ERROR_VERSION, "version 2.0 of downbeat.h"},
    {"open a clock with no header", open_without_version, DOWNBEAT_ERROR_VERSION, "version 0.0 of downbeat.h"},
    {"close NULL", close_null, DOWNBEAT_ERROR_NULL, "the handle is NULL"},
    {"close a clock twice", close_twice, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"read NULL", now_of_null, DOWNBEAT_ERROR_NULL, "the handle is NULL"},
    {"read a closed clock", now_of_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"read a timer", now_of_timer, DOWNBEAT_ERROR_HANDLE, "or is none"},
    {"read a clock, to nowhere", now_nowhere, DOWNBEAT_ERROR_NULL, "nanos is NULL"},
    {"read the error of a closed clock", error_of_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"read the error, to nowhere", error_nowhere, DOWNBEAT_ERROR_NULL, "error is NULL"},
    {"read the error without the time", error_without_time, DOWNBEAT_ERROR_NULL, "nanos is NULL"},
    {"read the bounds of a closed clock", bounds_of_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"read the bounds, to nowhere", bounds_nowhere, DOWNBEAT_ERROR_NULL, "latest is NULL"},
    {"read the bounds without the earliest", bounds_without_first, DOWNBEAT_ERROR_NULL, "earliest is NULL"},
    {"read ticks of a closed clock", ticks_of_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"read ticks, to nowhere", ticks_nowhere, DOWNBEAT_ERROR_NULL, "ticks is NULL"},
    {"convert by a closed clock", convert_by_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"convert by NULL", convert_by_null, DOWNBEAT_ERROR_NULL, "the handle is NULL"},
    {"convert, to nowhere", convert_nowhere, DOWNBEAT_ERROR_NULL, "nanos is NULL"},
    {"convert the past by a closed clock", past_of_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"convert the past, to nowhere", past_nowhere, DOWNBEAT_ERROR_NULL, "nanos is NULL"},
    {"wait by a closed clock", wait_by_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"wait by NULL", wait_by_null, DOWNBEAT_ERROR_NULL, "the handle is NULL"},
    {"the time of day of a closed clock", day_of_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"the time of day, to nowhere", day_nowhere, DOWNBEAT_ERROR_NULL, "since_1970 is NULL"},
    {"the time of day without its error", day_without_error, DOWNBEAT_ERROR_NULL, "error is NULL"},
    {"the model of a closed clock", model_of_closed, DOWNBEAT_ERROR_HANDLE, "the handle is closed"},
    {"the model, to nowhere", model_nowhere, DOWNBEAT_ERROR_NULL, "model is NULL"},
    {"read no model", read_null, DOWNBEAT_ERROR_HANDLE, "none of an open clock"},
    {"read the model of a closed clock", read_closed, DOWNBEAT_ERROR_HANDLE, "none of an open clock"},
    {"the global clock, to nowhere", global_nowhere, DOWNBEAT_ERROR_NOT_SYNCHRONIZED, "no clock was synchronized"},
    {"the global clock, too early", global_too_early, DOWNBEAT_ERROR_NOT_SYNCHRONIZED, "no clock was synchronized"},
    {"the global time, too early", wtime_too_early, DOWNBEAT_ERROR_NOT_SYNCHRONIZED, "no clock was synchronized"},
    {"a timer without a name", timer_without_name, DOWNBEAT_ERROR_ARGUMENT, "a timer needs a name"},
    {"a timer with no name", timer_of_null, DOWNBEAT_ERROR_NULL, "name is NULL"},
    {"a timer by bytes that are no text", timer_no_text, DOWNBEAT_ERROR_ARGUMENT, "name is not UTF-8"},
    {"a timer, to nowhere", timer_nowhere, DOWNBEAT_ERROR_NULL, "timer is NULL"},
    {"a timer with a newer header", timer_newer, DOWNBEAT_ERROR_VERSION, "version 1.1 of downbeat.h"},
    {"start NULL", start_null, DOWNBEAT_ERROR_NULL, "the timer is NULL"},
    {"start a clock", start_clock, DOWNBEAT_ERROR_HANDLE, "this is no timer"},
    {"stop NULL", stop_null, DOWNBEAT_ERROR_NULL, "the timer is NULL"},
    {"stop a clock", stop_clock, DOWNBEAT_ERROR_HANDLE, "this is no timer"},
    {"report, to nowhere", report_nowhere, DOWNBEAT_ERROR_NULL, "report is NULL"},
    {"free a text twice", free_twice, DOWNBEAT_ERROR_HANDLE, "the text was freed"},
    {"free another text", free_other, DOWNBEAT_ERROR_HANDLE, "does not come from this library"},
};

#endif
