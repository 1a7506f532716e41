/* Four threads of each rank send and receive at once (MPI_THREAD_MULTIPLE), each with its own tag; then requests of one
 * thread are completed by another. At last, more threads begin and end, one after the other, than a tracer has memory for
 * at once. The file of counts is that of counts.h, for all threads of a rank together.
 *
 *   mpicc -pthread threads.c counts.c -o threads && MESSAGES_OUT=counts mpirun -np 2 ./threads [rounds]
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "counts.h"

enum { THREADS = 4, LENGTH = 8, SHORT_THREADS = 300 };

static int rank, size, left, right, rounds = 200;
static pthread_barrier_t all_threads;

/* Requests that are handed from thread to thread. */
static struct handed {
  int body[LENGTH], arriving[LENGTH];
  MPI_Request requests[2];
} handed[THREADS];

static int element(int sender, int tag, int round, int i) { return sender * 10000000 + tag * 100000 + round * 10 + i; }

static void fill(int *body, int tag, int round) {
  int i;
  for (i = 0; i < LENGTH; i++) body[i] = element(rank, tag, round, i);
}

static void accept_message(const int *body, int tag, int round) {
  int i;
  for (i = 0; i < LENGTH; i++)
    if (body[i] != element(left, tag, round, i))
      counts_wrong("element of a message", body[i], element(left, tag, round, i));
  count_received(MPI_COMM_WORLD, left, tag, LENGTH * sizeof *body);
}

static void post(int *body, int *arriving, int tag, int round, MPI_Request *requests) {
  fill(body, tag, round);
  CALL(MPI_Irecv, arriving, LENGTH, MPI_INT, left, tag, MPI_COMM_WORLD, &requests[0]);
  ISEND(MPI_Isend, body, LENGTH, MPI_INT, right, tag, MPI_COMM_WORLD, &requests[1]);
}

static void *run_thread(void *number) {
  const int me = *(int *)number, neighbor = (me + 1) % THREADS;
  int round, body[LENGTH], arriving[LENGTH];
  MPI_Request requests[2];
  for (round = 0; round < rounds; round++) {
    post(body, arriving, me, round, requests);
    CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
    accept_message(arriving, me, round);
    CALL(MPI_Wait, &requests[1], MPI_STATUS_IGNORE);
  }
  for (round = 0; round < rounds / 10; round++) {
    post(handed[me].body, handed[me].arriving, 100 + me, round, handed[me].requests);
    pthread_barrier_wait(&all_threads);
    CALL(MPI_Waitall, 2, handed[neighbor].requests, MPI_STATUSES_IGNORE);
    accept_message(handed[neighbor].arriving, 100 + neighbor, round);
    pthread_barrier_wait(&all_threads);
  }
  return NULL;
}

/* A thread that makes few calls. */
static void *run_short_thread(void *number) {
  int body[LENGTH], arriving[LENGTH];
  MPI_Request requests[2];
  post(body, arriving, 200, *(int *)number, requests);
  CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
  accept_message(arriving, 200, *(int *)number);
  return NULL;
}

int main(int argc, char **argv) {
  int provided, i, failed, numbers[THREADS];
  pthread_t threads[THREADS];
  CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (argc > 1) rounds = atoi(argv[1]);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  if (provided < MPI_THREAD_MULTIPLE) {
    counts_wrong("level of threads", provided, MPI_THREAD_MULTIPLE);
  } else {
    pthread_barrier_init(&all_threads, NULL, THREADS);
    for (i = 0; i < THREADS; i++) {
      numbers[i] = i;
      if (pthread_create(&threads[i], NULL, run_thread, &numbers[i])) abort();
    }
    for (i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all_threads);
    for (i = 0; i < SHORT_THREADS; i++) {
      if (pthread_create(&threads[0], NULL, run_short_thread, &i)) abort();
      pthread_join(threads[0], NULL);
    }
  }
  COLLECTIVE(MPI_Barrier, MPI_COMM_WORLD);
  count_call("MPI_Finalize");
  failed = counts_write("MESSAGES_OUT");
  MPI_Finalize();
  return failed;
}
