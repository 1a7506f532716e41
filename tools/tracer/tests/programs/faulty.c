/* Calls that fail, on all ranks or on one, between calls that do not: by their error code, or by an error handler that
 * leaves the call by longjmp, or in C++ by an exception. Needs two ranks at least. Prints the number of failures that the
 * program noticed on all ranks, and the sum of what it received.
 *
 *   mpicc faulty.c -o faulty && mpirun -np 2 ./faulty
 *   mpicxx faulty.c -o faulty_cxx && mpirun -np 2 ./faulty_cxx */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>

enum { ROUNDS = 10, NO_RANK = 1000 };

#ifdef __cplusplus
#define ATTEMPT(what) \
  try { \
    what; \
  } catch (int) { \
    failures++; \
  }
#define LEAVE throw 1
#else
#define ATTEMPT(what) \
  if (setjmp(back) == 0) \
    what; \
  else \
    failures++;
#define LEAVE longjmp(back, 1)
static jmp_buf back;
#endif

static int failures, rank, size, sum;

static void leave(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  (void)code;
  LEAVE;
}

static void failed(int code) {
  if (code != MPI_SUCCESS) failures++;
}

/* Messages around the ring, and collective operations. */
static void work(void) {
  int right = (rank + 1) % size, left = (rank + size - 1) % size, mine = rank + 1, other = 0, all = 0;
  MPI_Request requests[2];
  MPI_Irecv(&other, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&mine, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Bcast(&mine, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  MPI_Allreduce(&other, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(&all, &mine, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  sum += all + other;
}

static void fail(int which) {
  int value = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  switch (which) {
  case 0: failed(MPI_Bcast(&value, 1, MPI_INT, NO_RANK, MPI_COMM_WORLD)); break;
  case 1: failed(MPI_Reduce(&value, NULL, 1, MPI_INT, MPI_SUM, -7, MPI_COMM_WORLD)); break;
  case 2: failed(MPI_Send(&value, 1, MPI_INT, NO_RANK, 0, MPI_COMM_WORLD)); break;
  case 3: failed(MPI_Recv(&value, 1, MPI_INT, NO_RANK, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); break;
  case 4: failed(MPI_Isend(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request)); break;
  case 5: failed(MPI_Allreduce(&value, &value, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)); break;
  case 6: failed(MPI_Gather(&value, 1, MPI_INT, &value, 1, MPI_INT, NO_RANK, MPI_COMM_WORLD)); break;
  case 7: failed(MPI_Irecv(&value, 1, MPI_INT, NO_RANK, 0, MPI_COMM_WORLD, &request)); break;
  case 8: failed(MPI_Ibcast(&value, 1, MPI_INT, NO_RANK, MPI_COMM_WORLD, &request)); break;
  case 9: failed(MPI_Probe(NO_RANK, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); break;
  default: break;
  }
}

int main(void) {
  /* Changed between setjmp and longjmp. */
  volatile int way, which, round;
  int all[2];
  MPI_Errhandler handler;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_create_errhandler(leave, &handler);
  for (way = 0; way < 4; way++) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, way % 2 ? handler : MPI_ERRORS_RETURN);
    for (which = 0; which < ROUNDS; which++) {
      /* On all ranks, or on the last one alone. */
      if (way < 2 || rank == size - 1) {
        ATTEMPT(fail(which))
      }
      work();
    }
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  for (round = 0; round < ROUNDS; round++) work();
  all[0] = failures;
  all[1] = sum;
  MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d failures, sum %d\n", all[0], all[1]);
  MPI_Errhandler_free(&handler);
  MPI_Finalize();
  return 0;
}
