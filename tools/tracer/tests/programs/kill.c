/* A program that dies in the middle of its messages, to see what its trace still holds.
 *
 *   mpicc kill.c -o kill && KILL_OUT=calls mpirun -np 2 ./kill kill|exit|abort|orphan MICROSECONDS [RANK]
 *
 * Ranks of a pair exchange 8 bytes to and fro, and all ranks join an 8-byte MPI_Allreduce, in a loop. After that time,
 * counted from the end of the first MPI_Allreduce, when all ranks have their files, rank RANK (0 unless given) ends by
 * SIGKILL, by _exit(3) or by MPI_Abort, between two calls, or kills its parent (these but MPI_Abort are from a timer's
 * signal handler, so anywhere, also inside a call).
 *
 * Every rank keeps in the mapped file KILL_OUT.RANK the number of calls of MPI that it has completed since the start of
 * the program (MPI_Init is the first), of messages that it has sent, and of messages that it has received: three 64-bit
 * integers of this machine, written right after each call, which outlive the process. A trace that is complete to the
 * last record has as many, or one more: the call whose number was not written yet. MPI_Abort is not among them. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { TAG = 8 };

static volatile struct progress {
  uint64_t calls, sent, received;
} *progress;

static enum { BY_KILL, BY_EXIT, BY_ABORT, BY_ORPHAN } way;
static volatile sig_atomic_t is_time;

static void time_is_up(int signal_number) {
  (void)signal_number;
  if (way == BY_KILL) raise(SIGKILL);
  if (way == BY_EXIT) _exit(3);
  if (way == BY_ORPHAN) kill(getppid(), SIGKILL);
  if (way == BY_ABORT) is_time = 1; /* it may not be called from here */
}

static void map_progress(int rank) {
  const char *base = getenv("KILL_OUT");
  char path[4096];
  int file;
  void *memory;
  snprintf(path, sizeof path, "%s.%d", base ? base : "kill_out", rank);
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ftruncate(file, sizeof *progress)) {
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  memory = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  close(file);
  progress = memory;
}

static void die_after(long microseconds) {
  struct itimerval timer = {{0, 0}, {microseconds / 1000000, microseconds % 1000000}};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = time_is_up;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void called(void) {
  progress->calls++;
  if (is_time) MPI_Abort(MPI_COMM_WORLD, 3);
}

static void send_to(int peer, double *body) {
  MPI_Send(body, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
  progress->sent++;
  called();
}

static void receive_from(int peer, double *body) {
  MPI_Recv(body, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  progress->received++;
  called();
}

int main(int argc, char **argv) {
  const char *ways[] = {"kill", "exit", "abort", "orphan"};
  int rank, size, peer, victim, is_armed = 0;
  double mine = 1, sum, body = 0;
  for (way = BY_KILL; argc > 1 && way <= BY_ORPHAN && strcmp(argv[1], ways[way]); way++) {}
  if (argc < 3 || way > BY_ORPHAN || atol(argv[2]) < 1) {
    fprintf(stderr, "usage: %s kill|exit|abort|orphan MICROSECONDS [RANK]\n", argv[0]);
    return 2;
  }
  victim = argc > 3 ? atoi(argv[3]) : 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  map_progress(rank);
  progress->calls = 3;
  peer = rank ^ 1;
  for (;;) {
    if (peer < size && rank < peer) {
      send_to(peer, &body);
      receive_from(peer, &body);
    } else if (peer < size) {
      receive_from(peer, &body);
      body++;
      send_to(peer, &body);
    }
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    called();
    if (rank == victim && !is_armed) {
      is_armed = 1;
      die_after(atol(argv[2]));
    }
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 4);
  }
}
