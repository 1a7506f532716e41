/* What came with MPI 4. Below it these functions do nothing. */
#include "messages.h"

#include <string.h>

#if MPI_VERSION >= 4

/* The calls with large counts, of short messages. mpi4py uses nothing else under MPICH. */
void large_counts(void) {
  int body[LENGTH], arriving[LENGTH], found;
  MPI_Count count, counts[MAX_RANKS];
  MPI_Aint places[MAX_RANKS];
  MPI_Request requests[4];
  MPI_Status status;
  MPI_Message message;
  int all[MAX_RANKS], sum, r;
  begin();
  fill(body, LENGTH, 160);
  SEND(MPI_Bsend_c, body, LENGTH, MPI_INT, right, 160, MPI_COMM_WORLD);
  CALL(MPI_Recv_c, arriving, LENGTH, MPI_INT, left, 160, MPI_COMM_WORLD, &status);
  CALL(MPI_Get_count_c, &status, MPI_INT, &count);
  if (count != LENGTH) counts_wrong("MPI_Get_count_c", count, LENGTH);
  accept_message(MPI_COMM_WORLD, left, 160, arriving, LENGTH);

  CALL(MPI_Irecv_c, arriving, LENGTH, MPI_INT, left, 161, MPI_COMM_WORLD, &requests[0]);
  begin();
  fill(body, LENGTH, 161);
  SEND(MPI_Rsend_c, body, LENGTH, MPI_INT, right, 161, MPI_COMM_WORLD);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 161, arriving, LENGTH);

  CALL(MPI_Irecv_c, arriving, LENGTH, MPI_INT, MPI_ANY_SOURCE, 162, MPI_COMM_WORLD, &requests[0]);
  fill(body, LENGTH, 162);
  SEND(MPI_Send_c, body, LENGTH, MPI_INT, right, 162, MPI_COMM_WORLD);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 162, arriving, LENGTH);

  CALL(MPI_Irecv_c, arriving, LENGTH, MPI_INT, left, 163, MPI_COMM_WORLD, &requests[0]);
  fill(body, LENGTH, 163);
  SEND(MPI_Ssend_c, body, LENGTH, MPI_INT, right, 163, MPI_COMM_WORLD);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 163, arriving, LENGTH);

  fill(body, LENGTH, 164);
  ISEND(MPI_Isend_c, body, LENGTH, MPI_INT, right, 164, MPI_COMM_WORLD, &requests[0]);
  ISEND(MPI_Issend_c, body, LENGTH, MPI_INT, right, 164, MPI_COMM_WORLD, &requests[1]);
  ISEND(MPI_Ibsend_c, body, LENGTH, MPI_INT, right, 164, MPI_COMM_WORLD, &requests[2]);
  for (r = 0; r < 3; r++) {
    CALL(MPI_Mprobe, left, 164, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    if (r == 0) {
      CALL(MPI_Mrecv_c, arriving, LENGTH, MPI_INT, &message, &status);
    } else {
      CALL(MPI_Imrecv_c, arriving, LENGTH, MPI_INT, &message, &requests[3]);
      CALL(MPI_Wait, &requests[3], &status);
    }
    accept_message(MPI_COMM_WORLD, left, 164, arriving, LENGTH);
  }
  CALL(MPI_Waitall, 3, requests, MPI_STATUSES_IGNORE);

  fill(body, LENGTH, 165);
  CALL(MPI_Sendrecv_c, body, LENGTH, MPI_INT, right, 165, arriving, LENGTH, MPI_INT, left, 165, MPI_COMM_WORLD, &status);
  count_sent(MPI_COMM_WORLD, right, 165, LENGTH, MPI_INT);
  accept_message(MPI_COMM_WORLD, left, 165, arriving, LENGTH);
  fill(body, LENGTH, 166);
  CALL(MPI_Sendrecv_replace_c, body, LENGTH, MPI_INT, right, 166, left, 166, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  count_sent(MPI_COMM_WORLD, right, 166, LENGTH, MPI_INT);
  accept_message(MPI_COMM_WORLD, left, 166, body, LENGTH);

  fill(body, LENGTH, 167);
  CALL(MPI_Send_init_c, body, LENGTH, MPI_INT, right, 167, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Recv_init_c, arriving, LENGTH, MPI_INT, left, 167, MPI_COMM_WORLD, &requests[1]);
  for (r = 0; r < 2; r++) {
    memset(arriving, 0, sizeof arriving);
    CALL(MPI_Startall, 2, requests);
    count_sent(MPI_COMM_WORLD, right, 167, LENGTH, MPI_INT);
    do
      TRY(found, MPI_Testall, 2, requests, &found, MPI_STATUSES_IGNORE);
    while (!found);
    accept_message(MPI_COMM_WORLD, left, 167, arriving, LENGTH);
  }
  for (r = 0; r < 2; r++) CALL(MPI_Request_free, &requests[r]);

  for (r = 0; r < size; r++) {
    counts[r] = 1;
    places[r] = r;
  }
  COLLECTIVE(MPI_Allreduce_c, &rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  count_given(sizeof sum);
  if (sum != size * (size - 1) / 2) counts_wrong("MPI_Allreduce_c", sum, size * (size - 1) / 2);
  COLLECTIVE(MPI_Bcast_c, &sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
  count_given(rank == 0 ? sizeof sum : 0);
  COLLECTIVE(MPI_Allgather_c, &rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  count_given(sizeof rank);
  for (r = 0; r < size; r++)
    if (all[r] != r) counts_wrong("MPI_Allgather_c", all[r], r);
  COLLECTIVE(MPI_Gatherv_c, &rank, 1, MPI_INT, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  count_given(sizeof rank);
  COLLECTIVE(MPI_Alltoallv_c, all, counts, places, MPI_INT, arriving, counts, places, MPI_INT, MPI_COMM_WORLD);
  count_given(size * sizeof rank);
  CALL(MPI_Iallreduce_c, &rank, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  count_collective("MPI_Iallreduce_c");
  count_given(sizeof rank);
  if (sum != size - 1) counts_wrong("MPI_Iallreduce_c", sum, size - 1);
}

/* A send and a receive in one request. Never with MPI_PROC_NULL: there MPICH 4.0 crashes. */
void combined_requests(void) {
  enum { SHORT = LENGTH - 3 };
  int body[LENGTH], arriving[LENGTH], any;
  MPI_Request request;
  MPI_Status status;
  begin();
  /* MPICH uses the object of a request again, with the status that it had. */
  fill(body, LENGTH, 170);
  ISEND(MPI_Isend, body, LENGTH, MPI_INT, right, 170, MPI_COMM_WORLD, &request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  CALL(MPI_Irecv, arriving, LENGTH, MPI_INT, left, 170, MPI_COMM_WORLD, &request);
  CALL(MPI_Wait, &request, &status);
  accept_message(MPI_COMM_WORLD, left, 170, arriving, LENGTH);

  CALL(MPI_Isendrecv, body, SHORT, MPI_INT, right, 170, arriving, LENGTH, MPI_INT, left, 170, MPI_COMM_WORLD, &request);
  count_sent(MPI_COMM_WORLD, right, 170, SHORT, MPI_INT);
  CALL(MPI_Wait, &request, &status);
  check_content(MPI_COMM_WORLD, left, 170, arriving, SHORT);
  count_received_combined(MPI_COMM_WORLD, left, 170, SHORT * sizeof *arriving);

  fill(body, LENGTH, 171);
  CALL(MPI_Isendrecv_replace, body, LENGTH, MPI_INT, left, 171, right, 171, MPI_COMM_WORLD, &request);
  count_sent(MPI_COMM_WORLD, left, 171, LENGTH, MPI_INT);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  check_content(MPI_COMM_WORLD, right, 171, body, LENGTH);
  count_received_combined(MPI_COMM_WORLD, right, 171, sizeof body);

  /* From anyone, or with any tag: under MPICH nothing tells which message came, and the trace does not have its end. */
  for (any = 0; any < 2; any++) {
    int tag = 172 + any;
    fill(body, LENGTH, tag);
    memset(&status, 0x7f, sizeof status);
    CALL(MPI_Isendrecv, body, LENGTH, MPI_INT, right, tag, arriving, LENGTH, MPI_INT, any ? left : MPI_ANY_SOURCE, any ? MPI_ANY_TAG : tag,
         MPI_COMM_WORLD, &request);
    count_sent(MPI_COMM_WORLD, right, tag, LENGTH, MPI_INT);
    CALL(MPI_Wait, &request, &status);
    check_content(MPI_COMM_WORLD, left, tag, arriving, LENGTH);
#ifndef MPICH_NUMVERSION
    count_received(MPI_COMM_WORLD, left, tag, sizeof arriving);
#endif
    PMPI_Barrier(MPI_COMM_WORLD);
  }
}

/* A message that becomes ready in parts: one at every start, of all parts together. */
void partitioned(void) {
  enum { PARTS = 4, PART = LENGTH / PARTS };
  int body[LENGTH], arriving[LENGTH], round, part, is_there;
  MPI_Request send, receive;
  begin();
  CALL(MPI_Psend_init, body, PARTS, PART, MPI_INT, right, 180, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  CALL(MPI_Precv_init, arriving, PARTS, PART, MPI_INT, left, 180, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  for (round = 0; round < 3; round++) {
    memset(arriving, 0, sizeof arriving);
    CALL(MPI_Start, &receive);
    CALL(MPI_Start, &send);
    fill(body, LENGTH, 180);
    CALL(MPI_Pready, PARTS - 1, send);
    if (round == 0) {
      for (part = 0; part < PARTS - 1; part++) CALL(MPI_Pready, part, send);
    } else if (round == 1) {
      CALL(MPI_Pready_range, 0, PARTS - 2, send);
    } else {
      int rest[PARTS - 1] = {1, 0, 2};
      CALL(MPI_Pready_list, PARTS - 1, rest, send);
    }
    count_sent(MPI_COMM_WORLD, right, 180, LENGTH, MPI_INT);
    do
      TRY(is_there, MPI_Parrived, receive, 1, &is_there);
    while (!is_there);
    CALL(MPI_Wait, &send, MPI_STATUS_IGNORE);
    CALL(MPI_Wait, &receive, MPI_STATUS_IGNORE);
    accept_message(MPI_COMM_WORLD, left, 180, arriving, LENGTH);
  }
  CALL(MPI_Request_free, &send);
  CALL(MPI_Request_free, &receive);
}

#else

void large_counts(void) {}

void combined_requests(void) {}

void partitioned(void) {}

#endif
