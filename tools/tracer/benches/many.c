/* A program with many small calls, to be recorded: a number of 8-byte ping-pongs between ranks 2n and 2n + 1, then a number of
 * MPI_Allreduce of 8 bytes over all ranks, and this once for each part.
 *
 *   mpirun -np 2 downbeat record-rank -o run -- ./many PARTS PING-PONGS ALLREDUCES
 *
 * Rank 0 prints the number of these calls on all ranks, and their events: a send, a receive, and each call's enter and leave, and
 * for MPI_Allreduce its begin and end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void ping_pongs(int rank, int size, long number) {
  double value = 0;
  int peer = rank ^ 1;
  long i;
  if (peer >= size) return;
  for (i = 0; i < number; i++) {
    if (rank < peer) {
      MPI_Send(&value, 1, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&value, 1, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
    }
  }
}

static void allreduces(long number) {
  double value = 1, sum = 0;
  long i;
  for (i = 0; i < number; i++) MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  long parts, trips, reductions, i;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4) {
    if (rank == 0) fprintf(stderr, "usage: many PARTS PING-PONGS ALLREDUCES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  parts = atol(argv[1]);
  trips = atol(argv[2]);
  reductions = atol(argv[3]);
  for (i = 0; i < parts; i++) {
    ping_pongs(rank, size, trips);
    allreduces(reductions);
  }
  if (rank == 0) {
    long messages = 2 * parts * trips * (size / 2), of_all = parts * reductions * size;
    printf("%ld calls, %ld events\n", 2 * messages + of_all, 6 * messages + 4 * of_all);
  }
  MPI_Finalize();
  return 0;
}
