/* MPI_Pcontrol between sends: a tracer records nothing after MPI_Pcontrol(0), and records again after MPI_Pcontrol(1).
 *
 *   mpicc pcontrol.c counts.c -o pcontrol && MESSAGES_OUT=counts mpirun -np 2 ./pcontrol
 *
 * Tags tell the intervals apart: 1 at the start, 2 after level 0, 3 after level 1, 4 after level 2, 5 after level 0 and
 * level 1 with a request that is posted while recording is off and completed while it is on, 6 the other way round. The
 * file of counts holds everything, recorded or not. */
#include <mpi.h>

#include "counts.h"

static int rank, size, left, right;

static void post(int tag, int *body, int *arriving, MPI_Request *requests) {
  *body = 100 * tag + rank;
  CALL(MPI_Irecv, arriving, 1, MPI_INT, left, tag, MPI_COMM_WORLD, &requests[0]);
  ISEND(MPI_Isend, body, 1, MPI_INT, right, tag, MPI_COMM_WORLD, &requests[1]);
}

static void complete(int tag, const int *arriving, MPI_Request *requests) {
  CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
  if (*arriving != 100 * tag + left) counts_wrong("message", *arriving, 100 * tag + left);
  count_received(MPI_COMM_WORLD, left, tag, sizeof *arriving);
}

static void around(int tag) {
  int i, body, arriving;
  MPI_Request requests[2];
  for (i = 0; i < 10; i++) {
    post(tag, &body, &arriving, requests);
    complete(tag, &arriving, requests);
  }
}

int main(int argc, char **argv) {
  int failed, body, arriving;
  MPI_Request requests[2];
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  around(1);
  CALL(MPI_Pcontrol, 0);
  around(2);
  CALL(MPI_Pcontrol, 1);
  around(3);
  CALL(MPI_Pcontrol, 2);
  around(4);
  CALL(MPI_Pcontrol, 0);
  post(5, &body, &arriving, requests);
  CALL(MPI_Pcontrol, 1);
  complete(5, &arriving, requests);
  post(6, &body, &arriving, requests);
  CALL(MPI_Pcontrol, 0);
  complete(6, &arriving, requests);
  CALL(MPI_Pcontrol, 1);
  COLLECTIVE(MPI_Barrier, MPI_COMM_WORLD);
  count_call("MPI_Finalize");
  failed = counts_write("MESSAGES_OUT");
  MPI_Finalize();
  return failed;
}
