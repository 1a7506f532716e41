/* What it costs to record an event, in the time of one rdtscp: blocks of calls with and without recording alternate in one run,
 * because separate runs differ by more than the cost. Two ranks with a core each.
 *
 *   mpicc -O2 overhead.c -o overhead && mpirun -np 2 downbeat record-rank -o run -- ./overhead [GATE]
 *
 * With GATE, the exit code is 1 if a figure is above it. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { PAIRS = 1000, SENDS = 500, TRIPS = 100, READS = 1000 };

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

static void send_to_nobody(void) {
  char byte = 0;
  int i;
  for (i = 0; i < SENDS; i++) MPI_Send(&byte, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

static int rank;

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

static double ticks_of(void (*block)(void), int is_recorded) {
  uint64_t begin;
  MPI_Pcontrol(is_recorded);
  begin = now();
  block();
  return (double)(now() - begin);
}

/* Time that recording adds to an event, in units of `unit`. Both orders of a pair occur as often. */
static void added(void (*block)(void), double events, double unit, double quartiles[3]) {
  static double differences[PAIRS];
  int i;
  for (i = 0; i < 20; i++) ticks_of(block, i % 2);
  for (i = 0; i < PAIRS; i++) {
    double with, without;
    if (i % 2) {
      with = ticks_of(block, 1);
      without = ticks_of(block, 0);
    } else {
      without = ticks_of(block, 0);
      with = ticks_of(block, 1);
    }
    differences[i] = (with - without) / events / unit;
  }
  condense(differences, quartiles);
}

int main(int argc, char **argv) {
  static double reads[PAIRS];
  double unit[3], found[2][3], gate = argc > 1 ? atof(argv[1]) : 0;
  const char *names[2] = {"MPI_Send to MPI_PROC_NULL / 2", "8-byte ping-pong / 4"};
  int i, j, is_above = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (i = 0; i < PAIRS; i++) {
    uint64_t begin = now();
    for (j = 0; j < READS; j++) now();
    reads[i] = (double)(now() - begin) / READS;
  }
  condense(reads, unit);
  added(send_to_nobody, 2 * SENDS, unit[1], found[0]);
  MPI_Barrier(MPI_COMM_WORLD);
  added(ping_pong, 4 * TRIPS, unit[1], found[1]);
  if (rank == 0) {
    printf("one rdtscp: %.1f ticks\n", unit[1]);
    printf("%-32s %8s %8s %8s\n", "added per event, in rdtscp", "25 %", "median", "75 %");
    for (i = 0; i < 2; i++) {
      printf("%-32s %8.2f %8.2f %8.2f\n", names[i], found[i][0], found[i][1], found[i][2]);
      is_above |= gate > 0 && found[i][1] > gate;
    }
  }
  MPI_Finalize();
  return is_above;
}
