/* A program that loads a module with another copy of the library: both have one set of timers. */
#include <downbeat.h>
#include <dlfcn.h>
#include <string.h>

#include "check.h"

int main(int argc, char **argv) {
  char *(*work)(void), *report = NULL;
  const void *(*library)(void);
  downbeat_timer *timer = NULL;
  void *plugin = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void **)&work = dlsym(plugin, "plugin_work");
  *(void **)&library = dlsym(plugin, "plugin_library");
  CHECK(library() != (const void *)downbeat_library());
  CHECK(downbeat_get_timer("program", &timer) == DOWNBEAT_OK);
  CHECK(downbeat_start_timer(timer) == DOWNBEAT_OK && downbeat_stop_timer(timer) == DOWNBEAT_OK);
  report = work();
  CHECK(report && strstr(report, "*** program") && strstr(report, "*** plugin"));
  CHECK(downbeat_free_text(report) == DOWNBEAT_OK);
  CHECK(downbeat_report_timers(&report) == DOWNBEAT_OK);
  CHECK(strstr(report, "*** program") && strstr(report, "*** plugin"));
  CHECK(downbeat_free_text(report) == DOWNBEAT_OK);
  puts("all checks passed");
  return 0;
}
