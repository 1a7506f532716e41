/* Many calls, by one thread or by many at once, for a tracer that has little memory, or loses it.
 *
 *   mpicc -pthread flood.c -o flood && mpirun -np 2 ./flood CALLS [THREADS [MILLISECONDS]]
 *
 * Each of THREADS threads, or the one of the program, sends CALLS messages of 8 bytes to its own rank; all threads
 * live until the last one has sent its messages. Between two tenths of its messages a thread sleeps MILLISECONDS.
 * Prints the number of calls of MPI that the ranks made, and a line of each rank when it exits. If FLOOD_END is
 * "pthread_exit", the main thread ends by that; if it is "orphan", each rank kills its parent before its last message; if it
 * is "stopped", each rank stops its parent before its messages, and lets it go on after them; if it is "first", the
 * first thread sends 500 messages before the others. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long calls = 1000;
static int milliseconds;
static const char *end = "";
static pthread_barrier_t all_threads;

static void send_all(long count) {
  long body = 0, call;
  for (call = 0; call < count; call++) {
    if (milliseconds > 0 && call % (count / 10 + 1) == 0) usleep(1000 * milliseconds);
    if (call == count - 1 && strcmp(end, "orphan") == 0) {
      kill(getppid(), SIGKILL);
      sleep(1);
    }
    MPI_Sendrecv_replace(&body, 1, MPI_LONG, 0, 0, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  }
}

static void *flood(void *is_thread) {
  send_all(calls);
  if (is_thread) pthread_barrier_wait(&all_threads);
  return NULL;
}

static void say_exit(void) { puts("exits"); }

int main(int argc, char **argv) {
  int provided, thread, threads = argc > 2 ? atoi(argv[2]) : 0;
  long mine, all = 0, early = 0;
  pthread_t *started = malloc((threads + 1) * sizeof *started);
  if (argc > 1) calls = atol(argv[1]);
  if (argc > 3) milliseconds = atoi(argv[3]);
  if (getenv("FLOOD_END")) end = getenv("FLOOD_END");
  atexit(say_exit);
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  pthread_barrier_init(&all_threads, NULL, threads + 1);
  if (strcmp(end, "stopped") == 0) kill(getppid(), SIGSTOP);
  if (strcmp(end, "first") == 0) send_all(early = 500);
  for (thread = 0; thread < threads; thread++) {
    if (pthread_create(&started[thread], NULL, flood, &started) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (threads == 0) flood(NULL);
  else pthread_barrier_wait(&all_threads);
  for (thread = 0; thread < threads; thread++) pthread_join(started[thread], NULL);
  if (strcmp(end, "stopped") == 0) kill(getppid(), SIGCONT);
  /* MPI_Init_thread, these two and MPI_Comm_rank, the messages. */
  mine = 4 + early + calls * (threads > 0 ? threads : 1);
  MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &thread);
  if (thread == 0) printf("%ld calls\n", all);
  MPI_Finalize();
  free(started);
  if (strcmp(end, "pthread_exit") == 0) pthread_exit(NULL);
  return 0;
}
