/* A plug-in that is linked with MPI; loads_mpi.c loads it. See there. */
#include <mpi.h>
#include <stdio.h>

#include "counts.h"

/* A message around the ring, by calls that only this object's own MPI library answers. Returns the exit code. */
int run_plugin(void) {
  int rank, size, left, right, body, arriving, was_initialized, failed;
  CALL(MPI_Initialized, &was_initialized);
  CALL(MPI_Init, NULL, NULL);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  body = 1000 + rank;
  if (rank == 0) SEND(MPI_Send, &body, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
  CALL(MPI_Recv, &arriving, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (arriving != 1000 + left) counts_wrong("message", arriving, 1000 + left);
  count_received(MPI_COMM_WORLD, left, 1, sizeof arriving);
  if (rank != 0) SEND(MPI_Send, &body, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
  count_call("MPI_Finalize");
  failed = counts_write("MESSAGES_OUT");
  MPI_Finalize();
  return failed;
}
