/* Checks of test programs. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, downbeat_error_message()); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)

#endif
