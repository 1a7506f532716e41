/* A program of MPI 4's sessions: it never calls MPI_Init, and there is no MPI_COMM_WORLD.
 *
 *   mpicc.mpich session.c counts.c -o session && MESSAGES_OUT=counts mpirun.mpich -np 2 ./session
 *
 * A library below MPI 4 makes a program that says so and exits with 77. */
#include <mpi.h>
#include <stdio.h>

#include "counts.h"

#if MPI_VERSION >= 4

int main(void) {
  int rank, size, sum, failed, body, arriving;
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  CALL(MPI_Session_init, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  CALL(MPI_Group_from_session_pset, session, "mpi://WORLD", &group);
  CALL(MPI_Comm_create_from_group, group, "org.downbeat.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  CALL(MPI_Group_free, &group);
  counts_set_world(comm);
  CALL(MPI_Comm_rank, comm, &rank);
  CALL(MPI_Comm_size, comm, &size);
  COLLECTIVE(MPI_Allreduce, &rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (sum != size * (size - 1) / 2) counts_wrong("sum of ranks", sum, size * (size - 1) / 2);
  body = 100 + rank;
  CALL(MPI_Sendrecv, &body, 1, MPI_INT, (rank + 1) % size, 3, &arriving, 1, MPI_INT, (rank + size - 1) % size, 3, comm,
       MPI_STATUS_IGNORE);
  count_sent(comm, (rank + 1) % size, 3, 1, MPI_INT);
  count_received(comm, (rank + size - 1) % size, 3, sizeof arriving);
  if (arriving != 100 + (rank + size - 1) % size) counts_wrong("message", arriving, 100 + (rank + size - 1) % size);
  CALL(MPI_Comm_free, &comm);
  count_call("MPI_Session_finalize");
  failed = counts_write("MESSAGES_OUT");
  MPI_Session_finalize(&session);
  return failed;
}

#else

int main(void) {
  puts("this library has no sessions");
  return 77;
}

#endif
