/* Starts two more processes by MPI_Comm_spawn. A tracer must refuse that before anything hangs.
 *
 *   mpicc spawn.c -o spawn && mpirun -np 1 ./spawn
 *
 * Prints one line on rank 0 and exits with 0 if the call returned an error (with MPI_ERRORS_RETURN) or if the processes
 * were started; which of both, the line says. A tracer may also end the run. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int error, rank, codes[2] = {MPI_SUCCESS, MPI_SUCCESS};
  MPI_Comm parent, children;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) { /* a child */
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  error = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
  if (error == MPI_SUCCESS && codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS) {
    if (rank == 0) puts("spawned");
    MPI_Comm_disconnect(&children);
  } else if (rank == 0) {
    int class = MPI_ERR_SPAWN;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &class);
    printf("refused: %s\n", class == MPI_ERR_SPAWN ? "MPI_ERR_SPAWN" : "another error");
  }
  MPI_Finalize();
  return 0;
}
