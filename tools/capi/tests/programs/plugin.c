/* A module with a static libdownbeat of its own: times its work, and returns the report of its library. */
#include <downbeat.h>

char *plugin_work(void) {
  downbeat_timer *timer = NULL;
  char *report = NULL;
  downbeat_get_timer("plugin", &timer);
  downbeat_start_timer(timer);
  downbeat_stop_timer(timer);
  downbeat_report_timers(&report);
  return report;
}

/* Its copy of a function, which differs from that of the program. */
const void *plugin_library(void) { return (const void *)downbeat_library(); }
