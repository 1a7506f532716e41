/* A program of every kind of completion, which keeps its own count of what it did: see counts.h for the file it writes
 * (environment variable MESSAGES_OUT) and messages.F90 for the same in Fortran. At least two ranks, any number.
 *
 *   mpicc messages*.c counts.c -o messages && MESSAGES_OUT=counts mpirun -np 3 ./messages
 *
 * Everything but the number of unsuccessful tests and probes is the same in each run: where a call returns indices, one
 * message at a time is under way. Prints nothing and exits with 0 if every value was right.
 */
#include "messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rank, size, left, right;

void begin(void) { COLLECTIVE(MPI_Barrier, MPI_COMM_WORLD); }

static int element(int sender, int tag, int i) { return sender * 1000000 + tag * 1000 + i; }

void fill(int *body, int length, int tag) {
  int i;
  for (i = 0; i < length; i++) body[i] = element(rank, tag, i);
}

void check_content(MPI_Comm comm, int source, int tag, const int *body, int length) {
  int sender = counts_world_rank(comm, source), i;
  for (i = 0; i < length; i++)
    if (body[i] != element(sender, tag, i)) counts_wrong("element of a message", body[i], element(sender, tag, i));
}

void accept_message(MPI_Comm comm, int source, int tag, const int *body, int length) {
  if (source == MPI_PROC_NULL) return;
  check_content(comm, source, tag, body, length);
  count_received(comm, source, tag, length * (long)sizeof *body);
}

static void check_status(const MPI_Status *status, int source, int tag, int bytes) {
  int got;
  PMPI_Get_count(status, MPI_BYTE, &got);
  if (status->MPI_SOURCE != source) counts_wrong("source of a status", status->MPI_SOURCE, source);
  if (status->MPI_TAG != tag) counts_wrong("tag of a status", status->MPI_TAG, tag);
  if (got != bytes) counts_wrong("bytes of a status", got, bytes);
}

/* Receives a message of integers from the left neighbour. */
static void take(int tag) {
  int body[LENGTH];
  CALL(MPI_Recv, body, LENGTH, MPI_INT, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, tag, body, LENGTH);
}

/* Odd ranks receive first, so a ring of synchronous sends ends for every number of ranks above 1. */
#define AROUND_THE_RING(send, receive) \
  do {                                 \
    if (rank % 2) {                    \
      receive;                         \
      send;                            \
    } else {                           \
      send;                            \
      receive;                         \
    }                                  \
  } while (0)

static void blocking_modes(void) {
  int body[LENGTH], arriving[LENGTH];
  MPI_Request request;
  begin();
  fill(body, LENGTH, 1);
  AROUND_THE_RING(SEND(MPI_Send, body, LENGTH, MPI_INT, right, 1, MPI_COMM_WORLD), take(1));
  fill(body, LENGTH, 2);
  AROUND_THE_RING(SEND(MPI_Ssend, body, LENGTH, MPI_INT, right, 2, MPI_COMM_WORLD), take(2));
  fill(body, LENGTH, 3);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 3, MPI_COMM_WORLD);
  take(3);
  fill(body, LENGTH, 4);
  CALL(MPI_Irecv, arriving, LENGTH, MPI_INT, left, 4, MPI_COMM_WORLD, &request);
  begin(); /* all receives are posted now */
  SEND(MPI_Rsend, body, LENGTH, MPI_INT, right, 4, MPI_COMM_WORLD);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 4, arriving, LENGTH);
}

/* Blocking receives of given and of any sender, with and without a status. */
static void receives(void) {
  int body[LENGTH], first[2 * LENGTH], count, i;
  MPI_Status status;
  begin();
  fill(body, LENGTH, 10);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 10, MPI_COMM_WORLD);
  /* room for more than is sent: the true number of bytes is in the status only */
  CALL(MPI_Recv, first, 2 * LENGTH, MPI_INT, left, 10, MPI_COMM_WORLD, &status);
  accept_message(MPI_COMM_WORLD, left, 10, first, LENGTH);
  check_status(&status, left, 10, LENGTH * (int)sizeof *first);
  CALL(MPI_Get_count, &status, MPI_INT, &count);
  if (count != LENGTH) counts_wrong("MPI_Get_count", count, LENGTH);

  begin();
  fill(body, LENGTH, 11);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 11, MPI_COMM_WORLD);
  CALL(MPI_Recv, first, 2 * LENGTH, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  accept_message(MPI_COMM_WORLD, status.MPI_SOURCE, status.MPI_TAG, first, LENGTH);
  check_status(&status, left, 11, LENGTH * (int)sizeof *first);

  begin();
  fill(body, LENGTH, 12);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 12, MPI_COMM_WORLD);
  CALL(MPI_Recv, first, 2 * LENGTH, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 12, first, LENGTH);

  /* Rank 0 receives from all others in the order of arrival, half of them without a status: then the message itself
   * tells who sent it. */
  begin();
  fill(body, LENGTH, 13);
  if (rank != 0) SEND(MPI_Send, body, LENGTH, MPI_INT, 0, 13, MPI_COMM_WORLD);
  for (i = 1; rank == 0 && i < size; i++) {
    CALL(MPI_Recv, first, LENGTH, MPI_INT, MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, i % 2 ? MPI_STATUS_IGNORE : &status);
    accept_message(MPI_COMM_WORLD, first[0] / 1000000, 13, first, LENGTH);
    if (i % 2 == 0) check_status(&status, first[0] / 1000000, 13, LENGTH * (int)sizeof *first);
  }
}

/* All modes at once, waited for in three ways. Also a message that is too long to be sent eagerly. */
static void non_blocking_modes(void) {
  enum { LONG = 60000 };
  int tag, body[4][LENGTH], arriving[4][LENGTH];
  int *leaving = malloc(LONG * sizeof *leaving), *coming = malloc(LONG * sizeof *coming);
  MPI_Request in[4], out[4], pair[2];
  MPI_Status statuses[4];
  begin();
  for (tag = 0; tag < 4; tag++) {
    fill(body[tag], LENGTH, 20 + tag);
    CALL(MPI_Irecv, arriving[tag], LENGTH, MPI_INT, tag == 1 ? MPI_ANY_SOURCE : left, 20 + tag, MPI_COMM_WORLD, &in[tag]);
  }
  begin();
  ISEND(MPI_Isend, body[0], LENGTH, MPI_INT, right, 20, MPI_COMM_WORLD, &out[0]);
  ISEND(MPI_Issend, body[1], LENGTH, MPI_INT, right, 21, MPI_COMM_WORLD, &out[1]);
  ISEND(MPI_Ibsend, body[2], LENGTH, MPI_INT, right, 22, MPI_COMM_WORLD, &out[2]);
  ISEND(MPI_Irsend, body[3], LENGTH, MPI_INT, right, 23, MPI_COMM_WORLD, &out[3]);
  CALL(MPI_Waitall, 4, in, statuses);
  for (tag = 0; tag < 4; tag++) {
    accept_message(MPI_COMM_WORLD, left, 20 + tag, arriving[tag], LENGTH);
    check_status(&statuses[tag], left, 20 + tag, LENGTH * (int)sizeof(int));
  }
  CALL(MPI_Waitall, 4, out, MPI_STATUSES_IGNORE);

  fill(leaving, LONG, 24);
  CALL(MPI_Irecv, coming, LONG, MPI_INT, MPI_ANY_SOURCE, 24, MPI_COMM_WORLD, &pair[0]);
  ISEND(MPI_Isend, leaving, LONG, MPI_INT, right, 24, MPI_COMM_WORLD, &pair[1]);
  CALL(MPI_Waitall, 2, pair, MPI_STATUSES_IGNORE); /* a wildcard, and no status that tells the source */
  accept_message(MPI_COMM_WORLD, left, 24, coming, LONG);

  CALL(MPI_Irecv, coming, LONG, MPI_INT, left, 25, MPI_COMM_WORLD, &pair[0]);
  fill(leaving, LONG, 25);
  ISEND(MPI_Isend, leaving, LONG, MPI_INT, right, 25, MPI_COMM_WORLD, &pair[1]);
  CALL(MPI_Wait, &pair[1], &statuses[0]); /* of a send: nothing in it is defined */
  CALL(MPI_Wait, &pair[0], &statuses[0]);
  accept_message(MPI_COMM_WORLD, left, 25, coming, LONG);
  check_status(&statuses[0], left, 25, LONG * (int)sizeof(int));
  CALL(MPI_Wait, &pair[0], &statuses[0]); /* of MPI_REQUEST_NULL */
  free(leaving);
  free(coming);
}

/* The two halves of a Sendrecv: what is sent counts before what is received. */
static void sendrecv(const int *body, int dest, int sent_tag, int *arriving, int source, int tag, MPI_Status *status) {
  CALL(MPI_Sendrecv, body, LENGTH, MPI_INT, dest, sent_tag, arriving, LENGTH, MPI_INT, source, tag, MPI_COMM_WORLD,
       status);
  count_sent(MPI_COMM_WORLD, dest, sent_tag, LENGTH, MPI_INT);
}

static void send_and_receive(void) {
  int body[LENGTH], arriving[LENGTH];
  int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  MPI_Status status;
  begin();
  fill(body, LENGTH, 30);
  sendrecv(body, right, 30, arriving, left, 30, &status);
  accept_message(MPI_COMM_WORLD, left, 30, arriving, LENGTH);
  check_status(&status, left, 30, LENGTH * (int)sizeof(int));

  begin();
  fill(body, LENGTH, 31);
  sendrecv(body, right, 31, arriving, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 31, arriving, LENGTH);

  begin();
  fill(body, LENGTH, 32); /* along a line: its ends have no neighbour */
  sendrecv(body, up, 32, arriving, down, 32, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, down, 32, arriving, LENGTH);

  fill(body, LENGTH, 33);
  CALL(MPI_Sendrecv_replace, body, LENGTH, MPI_INT, left, 33, right, 33, MPI_COMM_WORLD, &status);
  count_sent(MPI_COMM_WORLD, left, 33, LENGTH, MPI_INT);
  accept_message(MPI_COMM_WORLD, right, 33, body, LENGTH);
  check_status(&status, right, 33, LENGTH * (int)sizeof(int));
}

/* A persistent send, which is a message at every start. */
struct channel {
  int body[LENGTH], tag;
};

static void channel_starts(struct channel *channel) { count_sent(MPI_COMM_WORLD, right, channel->tag, LENGTH, MPI_INT); }

static void persistent(void) {
  enum { MODES = 4, ROUNDS = 4 };
  struct channel out[MODES];
  int arriving[MODES][LENGTH], i, round, index;
  MPI_Request receives[MODES], sends[MODES];
  MPI_Status statuses[MODES];
  begin();
  for (i = 0; i < MODES; i++) {
    out[i].tag = 40 + i;
    fill(out[i].body, LENGTH, out[i].tag);
    CALL(MPI_Recv_init, arriving[i], LENGTH, MPI_INT, i == 1 ? MPI_ANY_SOURCE : left, out[i].tag, MPI_COMM_WORLD,
         &receives[i]);
  }
  CALL(MPI_Send_init, out[0].body, LENGTH, MPI_INT, right, 40, MPI_COMM_WORLD, &sends[0]);
  CALL(MPI_Ssend_init, out[1].body, LENGTH, MPI_INT, right, 41, MPI_COMM_WORLD, &sends[1]);
  CALL(MPI_Bsend_init, out[2].body, LENGTH, MPI_INT, right, 42, MPI_COMM_WORLD, &sends[2]);
  CALL(MPI_Rsend_init, out[3].body, LENGTH, MPI_INT, right, 43, MPI_COMM_WORLD, &sends[3]);
  for (round = 0; round < ROUNDS; round++) {
    memset(arriving, 0, sizeof arriving);
    if (round % 2)
      CALL(MPI_Startall, MODES, receives);
    else
      for (i = 0; i < MODES; i++) CALL(MPI_Start, &receives[i]);
    begin(); /* the ready send needs its receive */
    if (round % 2)
      CALL(MPI_Startall, MODES, sends);
    else
      for (i = 0; i < MODES; i++) CALL(MPI_Start, &sends[i]);
    for (i = 0; i < MODES; i++) channel_starts(&out[i]);
    if (round < 2) {
      CALL(MPI_Waitall, MODES, receives, round == 0 ? statuses : MPI_STATUSES_IGNORE);
      for (i = 0; round == 0 && i < MODES; i++) check_status(&statuses[i], left, 40 + i, LENGTH * (int)sizeof(int));
    } else if (round == 2) {
      for (i = 0; i < MODES; i++) CALL(MPI_Wait, &receives[i], i % 2 ? &statuses[i] : MPI_STATUS_IGNORE);
    } else {
      int seen = 0; /* the order is that of arrival: these indices are checked, not noted */
      for (i = 0; i < MODES; i++) {
        CALL(MPI_Waitany, MODES, receives, &index, &statuses[0]);
        seen |= 1 << index;
        check_status(&statuses[0], left, 40 + index, LENGTH * (int)sizeof(int));
      }
      if (seen != (1 << MODES) - 1) counts_wrong("set of MPI_Waitany's indices", seen, (1 << MODES) - 1);
    }
    for (i = 0; i < MODES; i++) accept_message(MPI_COMM_WORLD, left, 40 + i, arriving[i], LENGTH);
    CALL(MPI_Waitall, MODES, sends, MPI_STATUSES_IGNORE);
  }
  /* all are inactive */
  CALL(MPI_Wait, &receives[0], &statuses[0]);
  CALL(MPI_Waitany, MODES, receives, &index, MPI_STATUS_IGNORE);
  note_indices("MPI_Waitany", 1, &index);
  for (i = 0; i < MODES; i++) {
    CALL(MPI_Request_free, &receives[i]);
    CALL(MPI_Request_free, &sends[i]);
  }
}

/* Four receives of which one at a time can complete, because the left neighbour sends only when it is asked to. */
enum { RECEIVES = 4 };
static const int arrival_order[RECEIVES] = {2, 0, 3, 1};

struct receives {
  int body[RECEIVES][LENGTH], base;
  MPI_Request requests[RECEIVES], send;
  int leaving[LENGTH];
};

static void post_receives(struct receives *all, int base) {
  int i;
  all->base = base;
  begin();
  for (i = 0; i < RECEIVES; i++)
    CALL(MPI_Irecv, all->body[i], LENGTH, MPI_INT, i % 2 ? MPI_ANY_SOURCE : left, base + i, MPI_COMM_WORLD,
         &all->requests[i]);
}

/* Asks the left neighbour for the message of `step`, and answers the right one. */
static int ask(struct receives *all, int step) {
  int which = arrival_order[step];
  fill(all->leaving, LENGTH, all->base + which);
  CALL(MPI_Sendrecv, NULL, 0, MPI_BYTE, left, 59, NULL, 0, MPI_BYTE, right, 59, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  count_sent(MPI_COMM_WORLD, left, 59, 0, MPI_BYTE);
  count_received(MPI_COMM_WORLD, right, 59, 0);
  ISEND(MPI_Isend, all->leaving, LENGTH, MPI_INT, right, all->base + which, MPI_COMM_WORLD, &all->send);
  return which;
}

static void answered(struct receives *all, int which) {
  accept_message(MPI_COMM_WORLD, left, all->base + which, all->body[which], LENGTH);
  if (all->requests[which] != MPI_REQUEST_NULL) counts_wrong("a completed request", 1, 0);
  CALL(MPI_Wait, &all->send, MPI_STATUS_IGNORE);
}

static void note_some(const char *name, int count, const int *indices) {
  note_indices(name, 1, &count);
  if (count > 0) note_indices(name, count, indices);
}

static void one_of_several(void) {
  struct receives all;
  int step, which, index = 0, done, count, indices[RECEIVES];
  MPI_Status status, statuses[RECEIVES];

  post_receives(&all, 50);
  for (step = 0; step < RECEIVES; step++) {
    which = ask(&all, step);
    CALL(MPI_Waitany, RECEIVES, all.requests, &index, step % 2 ? MPI_STATUS_IGNORE : &status);
    note_indices("MPI_Waitany", 1, &index);
    if (step % 2 == 0) check_status(&status, left, 50 + which, LENGTH * (int)sizeof(int));
    answered(&all, which);
  }
  CALL(MPI_Waitany, RECEIVES, all.requests, &index, &status);
  note_indices("MPI_Waitany", 1, &index);

  post_receives(&all, 50);
  for (step = 0; step < RECEIVES; step++) {
    which = ask(&all, step);
    CALL(MPI_Waitsome, RECEIVES, all.requests, &count, indices, step % 2 ? MPI_STATUSES_IGNORE : statuses);
    note_some("MPI_Waitsome", count, indices);
    if (step % 2 == 0) check_status(&statuses[0], left, 50 + which, LENGTH * (int)sizeof(int));
    answered(&all, which);
  }
  CALL(MPI_Waitsome, RECEIVES, all.requests, &count, indices, statuses);
  note_some("MPI_Waitsome", count, indices);

  post_receives(&all, 50);
  TRY(done, MPI_Testany, RECEIVES, all.requests, &index, &done, &status); /* nobody has asked yet */
  for (step = 0; step < RECEIVES; step++) {
    which = ask(&all, step);
    do
      TRY(done, MPI_Testany, RECEIVES, all.requests, &index, &done, step % 2 ? MPI_STATUS_IGNORE : &status);
    while (!done);
    note_indices("MPI_Testany", 1, &index);
    if (step % 2 == 0) check_status(&status, left, 50 + which, LENGTH * (int)sizeof(int));
    answered(&all, which);
  }
  TRY(done, MPI_Testany, RECEIVES, all.requests, &index, &done, &status);
  note_indices("MPI_Testany", 1, &index);

  post_receives(&all, 50);
  TRY(count, MPI_Testsome, RECEIVES, all.requests, &count, indices, statuses);
  for (step = 0; step < RECEIVES; step++) {
    which = ask(&all, step);
    do
      TRY(count, MPI_Testsome, RECEIVES, all.requests, &count, indices, step % 2 ? MPI_STATUSES_IGNORE : statuses);
    while (count == 0);
    note_some("MPI_Testsome", count, indices);
    if (step % 2 == 0) check_status(&statuses[0], left, 50 + which, LENGTH * (int)sizeof(int));
    answered(&all, which);
  }
  TRY(count, MPI_Testsome, RECEIVES, all.requests, &count, indices, statuses); /* MPI_UNDEFINED: not a failure */
  note_some("MPI_Testsome", count, indices);
}

/* Two of four requests, or none, are complete from the start: receives from nobody. */
static void some_of_several(void) {
  int count, indices[4], nothing[4], i, pass;
  MPI_Request requests[4];
  MPI_Status statuses[4];
  for (pass = 0; pass < 2; pass++) {
    begin();
    for (i = 0; i < 4; i++)
      CALL(MPI_Irecv, &nothing[i], 1, MPI_INT, i % 2 ? MPI_PROC_NULL : left, 54, MPI_COMM_WORLD, &requests[i]);
    if (pass == 0)
      CALL(MPI_Waitsome, 4, requests, &count, indices, statuses);
    else
      do
        TRY(count, MPI_Testsome, 4, requests, &count, indices, statuses);
      while (count == 0);
    note_some(pass == 0 ? "MPI_Waitsome" : "MPI_Testsome", count, indices);
    begin(); /* nobody sends before all have looked */
    for (i = 0; i < 2; i++) {
      int body;
      fill(&body, 1, 54);
      SEND(MPI_Send, &body, 1, MPI_INT, right, 54, MPI_COMM_WORLD);
    }
    CALL(MPI_Waitall, 4, requests, MPI_STATUSES_IGNORE);
    accept_message(MPI_COMM_WORLD, left, 54, &nothing[0], 1);
    accept_message(MPI_COMM_WORLD, left, 54, &nothing[2], 1);
  }
}

static void tests(void) {
  struct receives all;
  int step, which, done;
  MPI_Status status, statuses[RECEIVES + 1];
  MPI_Request none = MPI_REQUEST_NULL;

  post_receives(&all, 60);
  TRY(done, MPI_Test, &all.requests[0], &done, &status);
  for (step = 0; step < RECEIVES; step++) {
    which = ask(&all, step);
    do
      TRY(done, MPI_Test, &all.requests[which], &done, step % 2 ? MPI_STATUS_IGNORE : &status);
    while (!done);
    if (step % 2 == 0) check_status(&status, left, 60 + which, LENGTH * (int)sizeof(int));
    answered(&all, which);
  }
  TRY(done, MPI_Test, &none, &done, &status);

  /* MPI_Testall completes everything or nothing; MPI_Request_get_status shows but never completes. */
  for (step = 0; step < 2; step++) {
    MPI_Request both[2];
    post_receives(&all, 60);
    TRY(done, MPI_Testall, RECEIVES, all.requests, &done, MPI_STATUSES_IGNORE);
    begin(); /* nobody sends before all have looked */
    for (which = 0; which < RECEIVES; which++) {
      fill(all.leaving, LENGTH, 60 + which);
      SEND(MPI_Bsend, all.leaving, LENGTH, MPI_INT, right, 60 + which, MPI_COMM_WORLD);
    }
    do
      TRY(done, MPI_Testall, RECEIVES, all.requests, &done, step ? MPI_STATUSES_IGNORE : statuses);
    while (!done);
    for (which = 0; which < RECEIVES; which++) {
      accept_message(MPI_COMM_WORLD, left, 60 + which, all.body[which], LENGTH);
      if (step == 0) check_status(&statuses[which], left, 60 + which, LENGTH * (int)sizeof(int));
    }
    CALL(MPI_Irecv, all.body[0], LENGTH, MPI_INT, left, 64, MPI_COMM_WORLD, &both[0]);
    fill(all.leaving, LENGTH, 64);
    ISEND(MPI_Issend, all.leaving, LENGTH, MPI_INT, right, 64, MPI_COMM_WORLD, &both[1]);
    CALL(MPI_Request_get_status, both[0], &done, &status);
    CALL(MPI_Waitall, 2, both, MPI_STATUSES_IGNORE);
    accept_message(MPI_COMM_WORLD, left, 64, all.body[0], LENGTH);
  }
}

static void probes(void) {
  int body[LENGTH], arriving[LENGTH], found;
  const int bytes = LENGTH * (int)sizeof(int);
  MPI_Status status;
  MPI_Message message;
  MPI_Request request;
  begin();
  TRY(found, MPI_Iprobe, MPI_ANY_SOURCE, 79, MPI_COMM_WORLD, &found, &status); /* never sent */
  TRY(found, MPI_Improbe, left, 79, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);

  fill(body, LENGTH, 70);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 70, MPI_COMM_WORLD);
  CALL(MPI_Probe, left, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  take(70);

  begin();
  fill(body, LENGTH, 71);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 71, MPI_COMM_WORLD);
  CALL(MPI_Probe, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  check_status(&status, left, 71, bytes);
  take(71);

  begin();
  fill(body, LENGTH, 72);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 72, MPI_COMM_WORLD);
  do
    TRY(found, MPI_Iprobe, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
  while (!found);
  check_status(&status, left, 72, bytes);
  take(72);

  begin();
  fill(body, LENGTH, 73);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 73, MPI_COMM_WORLD);
  CALL(MPI_Mprobe, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
  check_status(&status, left, 73, bytes);
  CALL(MPI_Mrecv, arriving, LENGTH, MPI_INT, &message, &status);
  check_status(&status, left, 73, bytes);
  accept_message(MPI_COMM_WORLD, left, 73, arriving, LENGTH);

  begin();
  fill(body, LENGTH, 74);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 74, MPI_COMM_WORLD);
  CALL(MPI_Mprobe, MPI_ANY_SOURCE, 74, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  CALL(MPI_Imrecv, arriving, LENGTH, MPI_INT, &message, &request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 74, arriving, LENGTH);

  begin();
  fill(body, LENGTH, 75);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 75, MPI_COMM_WORLD);
  do
    TRY(found, MPI_Improbe, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &status);
  while (!found);
  check_status(&status, left, 75, bytes);
  CALL(MPI_Mrecv, arriving, LENGTH, MPI_INT, &message, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 75, arriving, LENGTH);

  begin();
  fill(body, LENGTH, 76);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 76, MPI_COMM_WORLD);
  do
    TRY(found, MPI_Improbe, left, 76, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
  while (!found);
  CALL(MPI_Imrecv, arriving, LENGTH, MPI_INT, &message, &request);
  do
    TRY(found, MPI_Test, &request, &found, &status);
  while (!found);
  check_status(&status, left, 76, bytes);
  accept_message(MPI_COMM_WORLD, left, 76, arriving, LENGTH);

  /* A matched message of nobody is MPI_MESSAGE_NO_PROC. */
  CALL(MPI_Mprobe, MPI_PROC_NULL, 77, MPI_COMM_WORLD, &message, &status);
  CALL(MPI_Mrecv, arriving, LENGTH, MPI_INT, &message, &status);
  note_status("MPI_Mrecv", status.MPI_SOURCE, status.MPI_TAG);
  CALL(MPI_Probe, MPI_PROC_NULL, 77, MPI_COMM_WORLD, &status);
  note_status("MPI_Probe", status.MPI_SOURCE, status.MPI_TAG);
}

/* Receives that no message will ever match. */
static void cancelled_receives(void) {
  int never[3], is_cancelled, i;
  MPI_Request requests[3];
  MPI_Status status;
  begin();
  for (i = 0; i < 3; i++)
    if (i == 2)
      CALL(MPI_Recv_init, &never[i], 1, MPI_INT, MPI_ANY_SOURCE, 82, MPI_COMM_WORLD, &requests[i]);
    else
      CALL(MPI_Irecv, &never[i], 1, MPI_INT, i ? MPI_ANY_SOURCE : left, 80 + i, MPI_COMM_WORLD, &requests[i]);
  CALL(MPI_Start, &requests[2]);
  CALL(MPI_Cancel, &requests[0]);
  CALL(MPI_Wait, &requests[0], &status);
  CALL(MPI_Test_cancelled, &status, &is_cancelled);
  if (!is_cancelled) counts_wrong("a cancelled receive", is_cancelled, 1);
  CALL(MPI_Cancel, &requests[1]);
  CALL(MPI_Wait, &requests[1], MPI_STATUS_IGNORE); /* only a status of one's own tells that it was cancelled */
  CALL(MPI_Cancel, &requests[2]);
  CALL(MPI_Wait, &requests[2], &status);
  CALL(MPI_Test_cancelled, &status, &is_cancelled);
  if (!is_cancelled) counts_wrong("a cancelled persistent receive", is_cancelled, 1);
  CALL(MPI_Request_free, &requests[2]);
}

/* The message arrives all the same. The buffer is static, and free again when the receiver has answered. */
static void freed_active_send(void) {
  static int body[LENGTH];
  MPI_Request request;
  begin();
  fill(body, LENGTH, 83);
  ISEND(MPI_Isend, body, LENGTH, MPI_INT, right, 83, MPI_COMM_WORLD, &request);
  CALL(MPI_Request_free, &request);
  take(83);
  begin();
}

/* Requests outlive their communicator's handle. */
static void freed_communicator(void) {
  int body[LENGTH], arriving[LENGTH];
  MPI_Comm comm;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  begin();
  CALL(MPI_Comm_dup, MPI_COMM_WORLD, &comm);
  fill(body, LENGTH, 84);
  CALL(MPI_Irecv, arriving, LENGTH, MPI_INT, MPI_ANY_SOURCE, 84, comm, &requests[0]);
  ISEND(MPI_Isend, body, LENGTH, MPI_INT, right, 84, comm, &requests[1]);
  CALL(MPI_Comm_free, &comm);
  CALL(MPI_Waitall, 2, requests, statuses);
  accept_message(MPI_COMM_WORLD, left, 84, arriving, LENGTH);
  check_status(&statuses[0], left, 84, LENGTH * (int)sizeof(int));
}

/* To and from nobody: calls, but no messages. */
static void null_peers(void) {
  int body[LENGTH] = {0};
  MPI_Request requests[6];
  MPI_Status status, statuses[6];
  begin();
  SEND(MPI_Send, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD);
  SEND(MPI_Ssend, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD);
  SEND(MPI_Rsend, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD);
  CALL(MPI_Recv, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &status);
  note_status("MPI_Recv", status.MPI_SOURCE, status.MPI_TAG);
  CALL(MPI_Recv, body, LENGTH, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CALL(MPI_Sendrecv_replace, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &status);
  note_status("MPI_Sendrecv_replace", status.MPI_SOURCE, status.MPI_TAG);
  ISEND(MPI_Isend, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &requests[0]);
  ISEND(MPI_Issend, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &requests[1]);
  ISEND(MPI_Ibsend, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &requests[2]);
  ISEND(MPI_Irsend, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &requests[3]);
  CALL(MPI_Irecv, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &requests[4]);
  CALL(MPI_Irecv, body, LENGTH, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[5]);
  CALL(MPI_Waitall, 6, requests, statuses);
  note_status("MPI_Waitall", statuses[4].MPI_SOURCE, statuses[4].MPI_TAG);
}

static void persistent_null_peers(void) {
  int body[LENGTH] = {0}, i, round;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  begin();
  CALL(MPI_Send_init, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Recv_init, body, LENGTH, MPI_INT, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &requests[1]);
  for (round = 0; round < 2; round++) {
    CALL(MPI_Startall, 2, requests);
    CALL(MPI_Waitall, 2, requests, statuses);
    note_status("MPI_Waitall", statuses[1].MPI_SOURCE, statuses[1].MPI_TAG);
  }
  for (i = 0; i < 2; i++) CALL(MPI_Request_free, &requests[i]);
}

static void to_oneself(void) {
  int body[LENGTH], arriving[LENGTH];
  MPI_Request request;
  begin();
  fill(body, LENGTH, 91);
  ISEND(MPI_Isend, body, LENGTH, MPI_INT, rank, 91, MPI_COMM_WORLD, &request);
  CALL(MPI_Recv, arriving, LENGTH, MPI_INT, rank, 91, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, rank, 91, arriving, LENGTH);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);

  fill(body, LENGTH, 92);
  CALL(MPI_Irecv, arriving, LENGTH, MPI_INT, MPI_ANY_SOURCE, 92, MPI_COMM_SELF, &request);
  SEND(MPI_Send, body, LENGTH, MPI_INT, 0, 92, MPI_COMM_SELF);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_SELF, 0, 92, arriving, LENGTH);

  fill(body, LENGTH, 93);
  sendrecv(body, rank, 93, arriving, rank, 93, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, rank, 93, arriving, LENGTH);
}

static void empty_messages(void) {
  int body[LENGTH];
  MPI_Request request;
  MPI_Status status;
  begin();
  SEND(MPI_Bsend, NULL, 0, MPI_INT, right, 94, MPI_COMM_WORLD);
  CALL(MPI_Recv, body, LENGTH, MPI_INT, left, 94, MPI_COMM_WORLD, &status);
  check_status(&status, left, 94, 0);
  accept_message(MPI_COMM_WORLD, left, 94, body, 0);
  CALL(MPI_Irecv, NULL, 0, MPI_BYTE, left, 95, MPI_COMM_WORLD, &request);
  SEND(MPI_Bsend, NULL, 0, MPI_BYTE, right, 95, MPI_COMM_WORLD);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 95, body, 0);
}

/* Bytes of a message are those of its elements, not of the span that they cover in memory. */
static void derived_datatypes(void) {
  enum { SPREAD = 64 };
  int body[SPREAD], arriving[SPREAD], blocks[] = {1, 3, 2}, places[] = {0, 4, 9}, i, elements;
  struct mixed {
    double number;
    int index;
  } out[3], in[3];
  MPI_Datatype every_third, pieces, mixed, padded, members[] = {MPI_DOUBLE, MPI_INT};
  MPI_Aint offsets[] = {0, sizeof(double)};
  int ones[] = {1, 1};
  MPI_Status status;
  begin();
  CALL(MPI_Type_vector, 5, 1, 3, MPI_INT, &every_third);
  CALL(MPI_Type_commit, &every_third);
  memset(body, 0, sizeof body);
  for (i = 0; i < 5; i++) fill(&body[3 * i], 1, 100);
  for (i = 0; i < 5; i++) body[3 * i] += i;
  SEND(MPI_Bsend, body, 1, every_third, right, 100, MPI_COMM_WORLD);
  CALL(MPI_Recv, arriving, 5, MPI_INT, left, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 100, arriving, 5);

  /* two elements of the vector, whose extent is 13 integers, into six */
  for (i = 0; i < SPREAD; i++) body[i] = -1;
  for (i = 0; i < 10; i++) body[i / 5 * 13 + i % 5 * 3] = i;
  for (i = 0; i < 10; i++) {
    int value;
    fill(&value, 1, 101);
    body[i / 5 * 13 + i % 5 * 3] = value + i;
  }
  SEND(MPI_Bsend, body, 2, every_third, right, 101, MPI_COMM_WORLD);
  CALL(MPI_Recv, arriving, 10, MPI_INT, left, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  accept_message(MPI_COMM_WORLD, left, 101, arriving, 10);

  CALL(MPI_Type_indexed, 3, blocks, places, MPI_INT, &pieces);
  CALL(MPI_Type_commit, &pieces);
  fill(body, 12, 102);
  SEND(MPI_Bsend, body, 12, MPI_INT, right, 102, MPI_COMM_WORLD);
  CALL(MPI_Recv, arriving, 4, pieces, left, 102, MPI_COMM_WORLD, &status); /* 6 of 24 integers per element; 2 arrive */
  check_status(&status, left, 102, 12 * (int)sizeof(int));
  CALL(MPI_Get_count, &status, pieces, &elements);
  if (elements != 2) counts_wrong("MPI_Get_count of an indexed type", elements, 2);
  body[0] = arriving[0];
  for (i = 0; i < 3; i++) body[1 + i] = arriving[4 + i];
  for (i = 0; i < 2; i++) body[4 + i] = arriving[9 + i];
  body[6] = arriving[11]; /* its extent is 11 integers */
  for (i = 0; i < 3; i++) body[7 + i] = arriving[15 + i];
  for (i = 0; i < 2; i++) body[10 + i] = arriving[20 + i];
  accept_message(MPI_COMM_WORLD, left, 102, body, 12);

  CALL(MPI_Type_create_struct, 2, ones, offsets, members, &mixed);
  CALL(MPI_Type_create_resized, mixed, 0, sizeof(struct mixed), &padded);
  CALL(MPI_Type_commit, &padded);
  for (i = 0; i < 3; i++) {
    out[i].number = rank + i / 2.0;
    out[i].index = i;
  }
  SEND(MPI_Bsend, out, 2, padded, right, 103, MPI_COMM_WORLD);
  CALL(MPI_Recv, in, 3, padded, left, 103, MPI_COMM_WORLD, &status);
  CALL(MPI_Get_elements, &status, padded, &elements);
  if (elements != 4) counts_wrong("MPI_Get_elements", elements, 4);
  for (i = 0; i < 2; i++)
    if (in[i].number != left + i / 2.0 || in[i].index != i) counts_wrong("a structure", in[i].index, i);
  count_received(MPI_COMM_WORLD, left, 103, 2 * (sizeof(double) + sizeof(int)));

  CALL(MPI_Type_free, &every_third);
  CALL(MPI_Type_free, &pieces);
  CALL(MPI_Type_free, &mixed);
  CALL(MPI_Type_free, &padded);
}

static int grequest_query(void *state, MPI_Status *status) {
  (void)state;
  PMPI_Status_set_elements(status, MPI_INT, 3);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = right;
  status->MPI_TAG = 108;
  return MPI_SUCCESS;
}

static int grequest_free(void *state) {
  (void)state;
  return MPI_SUCCESS;
}

static int grequest_cancel(void *state, int is_complete) {
  (void)state, (void)is_complete;
  return MPI_SUCCESS;
}

/* Requests that are no messages, though one of them has a source, a tag and a length. Completed together with one. */
static void other_requests(void) {
  int body[LENGTH], arriving[LENGTH], i;
  MPI_Request requests[4], finished;
  MPI_Status statuses[4];
  MPI_File file;
  char path[64];
  begin();
  snprintf(path, sizeof path, "/tmp/downbeat-messages-%ld", (long)getpid());
  CALL(MPI_File_open, MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
       &file);
  fill(body, LENGTH, 105);
  CALL(MPI_Grequest_start, grequest_query, grequest_free, grequest_cancel, NULL, &requests[0]);
  finished = requests[0]; /* MPI_Waitall sets the other copy to MPI_REQUEST_NULL */
  CALL(MPI_File_iwrite, file, body, LENGTH, MPI_INT, &requests[1]);
  CALL(MPI_Irecv, arriving, LENGTH, MPI_INT, MPI_ANY_SOURCE, 105, MPI_COMM_WORLD, &requests[2]);
  ISEND(MPI_Isend, body, LENGTH, MPI_INT, right, 105, MPI_COMM_WORLD, &requests[3]);
  CALL(MPI_Grequest_complete, finished);
  CALL(MPI_Waitall, 4, requests, statuses);
  accept_message(MPI_COMM_WORLD, left, 105, arriving, LENGTH);
  check_status(&statuses[0], right, 108, 3 * (int)sizeof(int));
  for (i = 1; i < 3; i++) {
    int bytes;
    PMPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
    if (bytes != LENGTH * (int)sizeof(int)) counts_wrong("bytes written or received", bytes, sizeof body);
  }
  CALL(MPI_File_close, &file);
}

static void expect_error(const char *call, int error, int wanted) {
  int class = MPI_SUCCESS;
  if (error != MPI_SUCCESS) PMPI_Error_class(error, &class);
  count_call(call);
  if (class != wanted) counts_wrong(call, class, wanted);
}

static void return_errors_of(MPI_Comm comm) { CALL(MPI_Comm_set_errhandler, comm, MPI_ERRORS_RETURN); }

/* Messages that are longer than their receives, and sends to nowhere. */
static void errors(void) {
  const int bytes = LENGTH * (int)sizeof(int);
  int body[LENGTH], arriving[2][LENGTH], error, i;
  MPI_Comm comm;
  MPI_Request request, both[2];
  MPI_Status statuses[2];
  begin();
  CALL(MPI_Comm_dup, MPI_COMM_WORLD, &comm);
  return_errors_of(comm);
  /* MPICH 4.0 forgets the communicator of a request that MPI_Wait has completed, and calls the handler of another one. */
  return_errors_of(MPI_COMM_WORLD);
  return_errors_of(MPI_COMM_SELF);
  fill(body, LENGTH, 110);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 110, comm);
  expect_error("MPI_Recv", MPI_Recv(arriving, 3, MPI_INT, left, 110, comm, &statuses[0]), MPI_ERR_TRUNCATE);
  count_truncated(comm, left, 110, bytes);

  CALL(MPI_Irecv, arriving, 3, MPI_INT, MPI_ANY_SOURCE, 111, comm, &request);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 111, comm);
  expect_error("MPI_Wait", MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  count_truncated(comm, left, 111, bytes);

  /* One of two is too long; the other is received. */
  for (i = 0; i < 2; i++) CALL(MPI_Irecv, arriving[i], i ? LENGTH : 3, MPI_INT, left, 112 + i, comm, &both[i]);
  for (i = 0; i < 2; i++) {
    fill(body, LENGTH, 112 + i);
    SEND(MPI_Bsend, body, LENGTH, MPI_INT, right, 112 + i, comm);
  }
  COLLECTIVE(MPI_Barrier, comm);
  expect_error("MPI_Waitall", MPI_Waitall(2, both, statuses), MPI_ERR_IN_STATUS);
  PMPI_Error_class(statuses[0].MPI_ERROR, &error);
  if (error != MPI_ERR_TRUNCATE) counts_wrong("MPI_ERROR of a truncated message", error, MPI_ERR_TRUNCATE);
  count_truncated(comm, left, 112, bytes);
  /* It may be left pending; and Open MPI leaves the request that failed in the array. */
  if (both[1] != MPI_REQUEST_NULL) CALL(MPI_Wait, &both[1], MPI_STATUS_IGNORE);
  accept_message(comm, left, 113, arriving[1], LENGTH);

  expect_error("MPI_Send", MPI_Send(body, 1, MPI_INT, size, 114, comm), MPI_ERR_RANK);
  expect_error("MPI_Send", MPI_Send(body, 1, MPI_INT, right, -5, comm), MPI_ERR_TAG);
  expect_error("MPI_Isend", MPI_Isend(body, -1, MPI_INT, right, 114, comm, &request), MPI_ERR_COUNT);
  CALL(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  CALL(MPI_Comm_set_errhandler, MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  CALL(MPI_Comm_free, &comm);
}

/* An operation between two groups counts as two: what the first one sends the other one, and the reverse. */
#define BETWEEN(name, ...) (COLLECTIVE(name, __VA_ARGS__), count_collective(#name))

/* Even and odd ranks of the world, each a group of its own. Ranks in such a communicator are those of the other group. */
static void intercommunicator(void) {
  const int root = rank % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  int body[LENGTH], arriving[LENGTH], ranks[MAX_RANKS], local_rank, remote_size, is_inter, sum, one = 1;
  MPI_Comm half, inter, merged;
  MPI_Request request;
  MPI_Status status;
  begin();
  CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % 2, rank, &half);
  CALL(MPI_Intercomm_create, half, 0, MPI_COMM_WORLD, 1 - rank % 2, 120, &inter);
  CALL(MPI_Comm_rank, inter, &local_rank);
  CALL(MPI_Comm_remote_size, inter, &remote_size);
  CALL(MPI_Comm_test_inter, inter, &is_inter);
  if (!is_inter) counts_wrong("MPI_Comm_test_inter", is_inter, 1);
  if (local_rank < remote_size) {
    fill(body, LENGTH, 121);
    if (rank % 2) {
      CALL(MPI_Recv, arriving, LENGTH, MPI_INT, local_rank, 121, inter, &status);
      SEND(MPI_Send, body, LENGTH, MPI_INT, local_rank, 121, inter);
    } else {
      SEND(MPI_Send, body, LENGTH, MPI_INT, local_rank, 121, inter);
      CALL(MPI_Recv, arriving, LENGTH, MPI_INT, local_rank, 121, inter, &status);
    }
    accept_message(inter, local_rank, 121, arriving, LENGTH);
    check_status(&status, local_rank, 121, LENGTH * (int)sizeof(int));

    fill(body, LENGTH, 122);
    CALL(MPI_Irecv, arriving, LENGTH, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &request);
    SEND(MPI_Bsend, body, LENGTH, MPI_INT, local_rank, 122, inter);
    CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
    accept_message(inter, local_rank, 122, arriving, LENGTH);
  }
  BETWEEN(MPI_Barrier, inter);
  BETWEEN(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, inter); /* of the other group */
  count_given(sizeof one);
  if (sum != remote_size) counts_wrong("MPI_Allreduce over an inter-communicator", sum, remote_size);
  sum = rank == 0 ? 77 : 0;
  BETWEEN(MPI_Bcast, &sum, 1, MPI_INT, root, inter);
  count_given(rank == 0 ? sizeof sum : 0);
  if (rank % 2 && sum != 77) counts_wrong("MPI_Bcast over an inter-communicator", sum, 77);
  BETWEEN(MPI_Reduce, &one, &sum, 1, MPI_INT, MPI_SUM, root, inter);
  count_given(rank % 2 ? sizeof one : 0);
  if (rank == 0 && sum != remote_size) counts_wrong("MPI_Reduce over an inter-communicator", sum, remote_size);
  BETWEEN(MPI_Iallgather, &local_rank, 1, MPI_INT, ranks, 1, MPI_INT, inter, &request);
  count_given(sizeof local_rank);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  if (ranks[remote_size - 1] != remote_size - 1)
    counts_wrong("MPI_Iallgather over an inter-communicator", ranks[remote_size - 1], remote_size - 1);
  CALL(MPI_Intercomm_merge, inter, rank % 2, &merged);
  fill(body, LENGTH, 123);
  CALL(MPI_Comm_rank, merged, &local_rank);
  SEND(MPI_Bsend, body, LENGTH, MPI_INT, (local_rank + 1) % size, 123, merged);
  CALL(MPI_Recv, arriving, LENGTH, MPI_INT, MPI_ANY_SOURCE, 123, merged, MPI_STATUS_IGNORE);
  accept_message(merged, (local_rank + size - 1) % size, 123, arriving, LENGTH);
  CALL(MPI_Comm_free, &merged);
  CALL(MPI_Comm_free, &inter);
  CALL(MPI_Comm_free, &half);
}

/* A message around the ranks of `comm`, whose order need not be that of the world; then `comm` is freed. */
static void ring_and_free(MPI_Comm *comm, int tag) {
  int body[LENGTH], arriving[LENGTH], mine, all, sum, one = 1;
  MPI_Status status;
  if (*comm == MPI_COMM_NULL) return;
  CALL(MPI_Comm_rank, *comm, &mine);
  CALL(MPI_Comm_size, *comm, &all);
  fill(body, LENGTH, tag);
  CALL(MPI_Sendrecv, body, LENGTH, MPI_INT, (mine + 1) % all, tag, arriving, LENGTH, MPI_INT, MPI_ANY_SOURCE, tag, *comm,
       &status);
  count_sent(*comm, (mine + 1) % all, tag, LENGTH, MPI_INT);
  check_status(&status, (mine + all - 1) % all, tag, LENGTH * (int)sizeof(int));
  accept_message(*comm, (mine + all - 1) % all, tag, arriving, LENGTH);
  COLLECTIVE(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, *comm);
  count_given(sizeof one);
  if (sum != all) counts_wrong("size of a communicator", sum, all);
  CALL(MPI_Comm_free, comm);
}

static void communicators(void) {
  MPI_Comm comm;
  MPI_Group world, some;
  MPI_Request request;
  int ranks[MAX_RANKS], yes = 1, index[MAX_RANKS], edges[2 * MAX_RANKS], two = 2, both[2] = {right, left}, i;
  int ring[2] = {left, right};
  begin();
  CALL(MPI_Comm_dup, MPI_COMM_WORLD, &comm);
  CALL(MPI_Comm_set_name, comm, "duplicate of the world");
  ring_and_free(&comm, 130);
  CALL(MPI_Comm_dup_with_info, MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
  ring_and_free(&comm, 131);
  CALL(MPI_Comm_idup, MPI_COMM_WORLD, &comm, &request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  ring_and_free(&comm, 132);
  CALL(MPI_Comm_split, MPI_COMM_WORLD, 0, -rank, &comm); /* in reverse order */
  ring_and_free(&comm, 133);
  CALL(MPI_Comm_split, MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, rank, &comm);
  ring_and_free(&comm, 134);
  CALL(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm);
  ring_and_free(&comm, 135);

  /* All but rank 0, the last one first. */
  for (i = 0; i < size - 1; i++) ranks[i] = size - 1 - i;
  CALL(MPI_Comm_group, MPI_COMM_WORLD, &world);
  CALL(MPI_Group_incl, world, size - 1, ranks, &some);
  CALL(MPI_Comm_create, MPI_COMM_WORLD, some, &comm);
  ring_and_free(&comm, 136);
  if (rank != 0) {
    CALL(MPI_Comm_create_group, MPI_COMM_WORLD, some, 5, &comm);
    ring_and_free(&comm, 137);
  }
  CALL(MPI_Group_free, &some);
  CALL(MPI_Group_free, &world);

  CALL(MPI_Cart_create, MPI_COMM_WORLD, 1, &size, &yes, 1, &comm);
  ring_and_free(&comm, 138);
  for (i = 0; i < size; i++) {
    index[i] = 2 * (i + 1);
    edges[2 * i] = (i + 1) % size;
    edges[2 * i + 1] = (i + size - 1) % size;
  }
  CALL(MPI_Graph_create, MPI_COMM_WORLD, size, index, edges, 0, &comm);
  ring_and_free(&comm, 139);
  CALL(MPI_Dist_graph_create, MPI_COMM_WORLD, 1, &rank, &two, both, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  ring_and_free(&comm, 140);
  CALL(MPI_Dist_graph_create_adjacent, MPI_COMM_WORLD, 2, ring, MPI_UNWEIGHTED, 2, both, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
       &comm);
  ring_and_free(&comm, 141);
}

static void point_to_point(void) {
  blocking_modes();
  receives();
  non_blocking_modes();
  send_and_receive();
  persistent();
  one_of_several();
  some_of_several();
  tests();
  probes();
  cancelled_receives();
  freed_active_send();
  freed_communicator();
  null_peers();
  to_oneself();
  empty_messages();
  derived_datatypes();
  other_requests();
  intercommunicator();
  communicators();
  large_counts();
  combined_requests();
  partitioned();
}

int main(int argc, char **argv) {
  static char buffer[1 << 16]; /* of buffered sends */
  void *attached;
  int bytes, failed;
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  if (size < 2 || size > MAX_RANKS) {
    counts_wrong("number of ranks", size, 2);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  CALL(MPI_Buffer_attach, buffer, sizeof buffer);
  point_to_point();
  collectives();
  several_collectives_at_once();
  neighborhoods();
  one_sided();
  /* Last, because afterwards persistent collectives of MPICH 4.0 never end. */
  persistent_null_peers();
  errors();
  CALL(MPI_Buffer_detach, &attached, &bytes);
  if (attached != buffer || bytes != sizeof buffer) counts_wrong("detached buffer", bytes, sizeof buffer);
  count_call("MPI_Finalize");
  failed = counts_write("MESSAGES_OUT");
  MPI_Finalize();
  return failed;
}
