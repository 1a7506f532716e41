/* A sum over all ranks by recursive doubling, to be measured beside the one of the MPI library:
 *
 *     mpicc -shared -fPIC -O2 operation.c -o mine.so
 *     mpirun -np 4 downbeat-mpi bench --operation allreduce,./mine.so:doubling --verify */
#include <downbeat_operation.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  const downbeat_operation_context *context;
  int rank, ranks, count;
  double *own, *sum, *other;
} doubling;

static int fail(const downbeat_operation_context *context, const char *why) {
  snprintf(context->message, context->message_size, "%s", why);
  return 1;
}

static int setup(const downbeat_operation_context *context, void **state) {
  doubling *my = calloc(1, sizeof *my);
  if (my == NULL) return fail(context, "there is no memory");
  my->context = context;
  MPI_Comm_rank(*context->comm, &my->rank);
  MPI_Comm_size(*context->comm, &my->ranks);
  my->count = (int)(context->bytes / sizeof(double));
  if ((my->ranks & (my->ranks - 1)) != 0) {
    free(my);
    return fail(context, "the number of ranks must be a power of two");
  }
  if (context->bytes % sizeof(double) != 0) {
    free(my);
    return fail(context, "the size must be a multiple of 8 bytes");
  }
  my->own = malloc(3 * context->bytes + 1);
  if (my->own == NULL) {
    free(my);
    return fail(context, "there is no memory");
  }
  my->sum = my->own + my->count;
  my->other = my->sum + my->count;
  for (int i = 0; i < my->count; ++i) my->own[i] = my->rank + i;
  *state = my;
  return 0;
}

static int call(void *state, uint32_t number) {
  doubling *my = state;
  (void)number;
  for (int i = 0; i < my->count; ++i) my->sum[i] = my->own[i];
  for (int distance = 1; distance < my->ranks; distance *= 2) {
    const int partner = my->rank ^ distance;
    const int code = MPI_Sendrecv(my->sum, my->count, MPI_DOUBLE, partner, 0, my->other, my->count, MPI_DOUBLE, partner, 0,
                                  *my->context->comm, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return fail(my->context, "MPI_Sendrecv failed");
    for (int i = 0; i < my->count; ++i) my->sum[i] += my->other[i];
  }
  return 0;
}

static int check(void *state, uint32_t number) {
  doubling *my = state;
  (void)number;
  for (int i = 0; i < my->count; ++i) {
    const double right = my->ranks * ((my->ranks - 1) / 2.0 + i);
    if (my->sum[i] != right) {
      snprintf(my->context->message, my->context->message_size, "element %d is %g, and not %g", i, my->sum[i], right);
      return 1;
    }
  }
  return 0;
}

static void teardown(void *state) {
  doubling *my = state;
  free(my->own);
  free(my);
}

const downbeat_operation *downbeat_operation_doubling(void) {
  static const downbeat_operation operation = {
      DOWNBEAT_OPERATION_HEAD,
      .setup = setup,
      .call = call,
      .check = check,
      .teardown = teardown,
  };
  return &operation;
}
