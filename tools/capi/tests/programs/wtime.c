/* A program that knows nothing of Downbeat: checks that its MPI_Wtime is global, and prints by how much it differs between ranks, which
 * read one counter. Its argument is the difference that is too much, in seconds: 1 ms, unless given. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);      \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

/* A reading of MPI_Wtime between two of the counter. */
struct reading {
  uint64_t before, after;
  double time;
};

static uint64_t ticks(void) {
  uint32_t low, high, core;
  __asm__ __volatile__("rdtscp" : "=a"(low), "=d"(high), "=c"(core) : : "memory");
  return (uint64_t)high << 32 | low;
}

/* The narrowest of some readings. */
static struct reading reading(void) {
  struct reading best = {0, UINT64_MAX, 0};
  int i;
  for (i = 0; i < 1000; i++) {
    struct reading found;
    found.before = ticks();
    found.time = MPI_Wtime();
    found.after = ticks();
    if (found.after - found.before < best.after - best.before) best = found;
  }
  return best;
}

static double middle(const struct reading *reading) {
  return (double)reading->before + 0.5 * (double)(reading->after - reading->before);
}

int main(int argc, char **argv) {
  int rank, size, flag = 0, *is_global = NULL, i;
  double start, largest = 0, limit = argc > 1 ? atof(argv[1]) : 1e-3;
  struct reading mine[2], *all;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &is_global, &flag);
  CHECK(flag && *is_global == 1);
  CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1e-6);
  mine[0] = reading();
  start = MPI_Wtime();
  while (MPI_Wtime() < start + 0.05) continue;
  mine[1] = reading();
  all = malloc((size_t)size * sizeof mine);
  MPI_Gather(mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    double rate = (all[1].time - all[0].time) / (middle(&all[1]) - middle(&all[0]));
    for (i = 0; i < 2 * size; i++) {
      double expected = all[0].time + rate * (middle(&all[i]) - middle(&all[0]));
      double off = all[i].time > expected ? all[i].time - expected : expected - all[i].time;
      if (off > largest) largest = off;
    }
    printf("MPI_Wtime of %d ranks differs by at most %.0f ns\n", size, 1e9 * largest);
    CHECK(largest < limit);
    printf("rank 0 of %d: all checks passed\n", size);
  }
  free(all);
  MPI_Finalize();
  return 0;
}
