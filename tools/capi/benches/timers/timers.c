/* Times of an event of a timer, in nanoseconds: with a kept timer, and with one that each event gets by its name. */
#define _POSIX_C_SOURCE 199309L
#include "downbeat.h"
#include <stdio.h>
#include <time.h>

enum { EVENTS = 200000 };

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return 1e9 * (double)at.tv_sec + (double)at.tv_nsec;
}

static double kept(downbeat_timer *timer) {
  double began = now();
  int i;
  for (i = 0; i < EVENTS; i++) {
    downbeat_start_timer(timer);
    downbeat_stop_timer(timer);
  }
  return (now() - began) / EVENTS;
}

static double got(void) {
  static downbeat_timer *timer = NULL;
  double began = now();
  int i;
  for (i = 0; i < EVENTS; i++) {
    downbeat_get_timer("solve", &timer);
    downbeat_start_timer(timer);
    downbeat_stop_timer(timer);
  }
  return (now() - began) / EVENTS;
}

int main(void) {
  downbeat_timer *timer = NULL;
  int round;
  if (downbeat_get_timer("solve", &timer) != DOWNBEAT_OK) return 1;
  for (round = 0; round < 30; round++) {
    double of_kept = kept(timer);
    printf("%.3f %.3f\n", of_kept, got());
  }
  return 0;
}
