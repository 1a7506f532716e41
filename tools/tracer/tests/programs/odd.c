/* Unusual but correct uses of MPI: a tracer must get through them, and a trace of them must be whole.
 *
 *   mpicc odd.c counts.c -o odd && MESSAGES_OUT=counts mpirun -np 2 ./odd
 *
 * - calls before MPI_Init and after MPI_Finalize;
 * - an attribute of MPI_COMM_SELF whose delete callback runs inside MPI_Finalize and sends a message to itself;
 * - a reduction operator that itself calls MPI while MPI_Allreduce runs;
 * - children that are not MPI programs, by system() and by fork() and exec(): with a preloaded library they inherit it.
 *
 * The counts are written by the callback, so that its calls are in them; of what follows MPI_Finalize they hold the one
 * call that is made there. Calls of MPI_Initialized that the library itself may add are not counted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counts.h"

static int failed, callbacks;

/* Adds, and asks for the size of its type: calls of MPI inside a call of MPI. */
static void add(void *in, void *both, int *length, MPI_Datatype *type) {
  int i, size;
  CALL(MPI_Type_size, *type, &size);
  if (size != sizeof(int)) counts_wrong("MPI_Type_size in an operator", size, sizeof(int));
  for (i = 0; i < *length; i++) ((int *)both)[i] += ((int *)in)[i];
}

/* Runs inside MPI_Finalize, where MPI still works. */
static int last_message(MPI_Comm comm, int key, void *value, void *unused) {
  int body = 77, arriving = 0;
  MPI_Request request;
  (void)comm, (void)key, (void)value, (void)unused;
  callbacks++;
  CALL(MPI_Irecv, &arriving, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
  SEND(MPI_Send, &body, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  if (arriving != 77) counts_wrong("message inside MPI_Finalize", arriving, 77);
  count_received(MPI_COMM_SELF, 0, 5, sizeof arriving);
  failed = counts_write("MESSAGES_OUT");
  return MPI_SUCCESS;
}

static void run_children(void) {
  int status = -1;
  pid_t child;
  if (system("true") != 0) counts_wrong("system(\"true\")", 1, 0);
  child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
    _exit(127);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5)
    counts_wrong("a child of fork() and exec()", WEXITSTATUS(status), 5);
}

int main(int argc, char **argv) {
  int flag, version, subversion, rank, size, sum, key, length;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Op op;
  CALL(MPI_Initialized, &flag);
  if (flag) counts_wrong("MPI_Initialized before MPI_Init", flag, 0);
  CALL(MPI_Finalized, &flag);
  CALL(MPI_Get_version, &version, &subversion);
  CALL(MPI_Get_library_version, text, &length);
  run_children(); /* before there is anything to record */
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  CALL(MPI_Op_create, add, 1, &op);
  COLLECTIVE(MPI_Allreduce, &rank, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
  if (sum != size * (size - 1) / 2) counts_wrong("MPI_Allreduce by a user's operator", sum, size * (size - 1) / 2);
  CALL(MPI_Op_free, &op);
  run_children();
  COLLECTIVE(MPI_Barrier, MPI_COMM_WORLD);
  CALL(MPI_Comm_create_keyval, MPI_COMM_NULL_COPY_FN, last_message, &key, NULL);
  CALL(MPI_Comm_set_attr, MPI_COMM_SELF, key, NULL);
  count_call("MPI_Finalize");
  count_call("MPI_Finalized"); /* below; the callback writes the counts first */
  MPI_Finalize();
  MPI_Finalized(&flag);
  if (!flag || callbacks != 1) {
    fprintf(stderr, "rank %d: MPI_Finalized gave %d, %d callbacks\n", rank, flag, callbacks);
    failed = 1;
  }
  run_children();
  return failed;
}
