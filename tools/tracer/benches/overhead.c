/* What it costs to record an event, in the time of one rdtscp. Two ranks with a core each; `cargo xtask bench --only 'costs of recording'`
 * runs it, or by hand:
 *
 *   mpicc -O2 overhead.c -o overhead && mpirun -np 2 downbeat record-rank -o run -- ./overhead
 *
 * Blocks of calls with and without recording alternate in one run, because separate runs differ by more than the cost. With the
 * argument `whole`, nothing is switched, and the whole time of a call is shown: for tracers that cannot be switched, by runs with and
 * without them. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

enum { PAIRS = 1000, WARM_UP = 20, SENDS = 500, TRIPS = 100, READS = 1000 };

static int rank, is_switched;

static uint64_t now(void) {
  unsigned core;
  return __rdtscp(&core);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median, and the quartiles around it. */
static void condense(double *values, double quartiles[3]) {
  int i;
  qsort(values, PAIRS, sizeof *values, by_size);
  for (i = 0; i < 3; i++) quartiles[i] = values[PAIRS * (i + 1) / 4];
}

static void read_clock(void) {
  int i;
  for (i = 0; i < READS; i++) now();
}

static void send_to_nobody(void) {
  char byte = 0;
  int i;
  for (i = 0; i < SENDS; i++) MPI_Send(&byte, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

static void ping_pong(void) {
  double value = 0;
  int i;
  for (i = 0; i < TRIPS; i++) {
    if (rank == 0) {
      MPI_Send(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
  }
}

static double ticks_of(void (*block)(void)) {
  uint64_t begin = now();
  block();
  return (double)(now() - begin);
}

static double switched_ticks_of(void (*block)(void), int is_recorded) {
  MPI_Pcontrol(is_recorded);
  return ticks_of(block);
}

/* Time that recording adds to a block; both orders of a pair must occur as often. */
static double added_ticks_of(void (*block)(void), int is_recorded_first) {
  double first = switched_ticks_of(block, is_recorded_first), second = switched_ticks_of(block, !is_recorded_first);
  return is_recorded_first ? first - second : second - first;
}

/* Time that recording adds to an event, or the whole time of an event, in units of `unit`. */
static void per_event(void (*block)(void), double events, double unit, double quartiles[3]) {
  static double times[PAIRS];
  int i;
  for (i = -WARM_UP; i < PAIRS; i++) {
    double ticks = is_switched ? added_ticks_of(block, i & 1) : ticks_of(block);
    if (i >= 0) times[i] = ticks / events / unit;
  }
  condense(times, quartiles);
}

int main(int argc, char **argv) {
  static double reads[PAIRS];
  double unit[3], found[2][3];
  const char *names[2] = {"MPI_Send to MPI_PROC_NULL / 2", "8-byte ping-pong / 4"};
  int i;
  is_switched = argc < 2 || strcmp(argv[1], "whole") != 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (i = 0; i < PAIRS; i++) reads[i] = ticks_of(read_clock) / READS;
  condense(reads, unit);
  per_event(send_to_nobody, 2 * SENDS, unit[1], found[0]);
  MPI_Barrier(MPI_COMM_WORLD);
  per_event(ping_pong, 4 * TRIPS, unit[1], found[1]);
  if (rank == 0) {
    printf("one rdtscp: %.1f ticks\n", unit[1]);
    printf("%-32s %8s %8s %8s\n", is_switched ? "added per event, in rdtscp" : "whole, in rdtscp", "25 %", "median", "75 %");
    for (i = 0; i < 2; i++) printf("%-32s %8.2f %8.2f %8.2f\n", names[i], found[i][0], found[i][1], found[i][2]);
  }
  MPI_Finalize();
  return 0;
}
