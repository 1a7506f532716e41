/* Operations and buffers, most of which are wrong in one respect that their names tell. */
#include <downbeat_operation.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const downbeat_operation_context *context;
static int rank;
static unsigned calls, prepared, prepared_in_series;
static int failure(const char *why) {
  snprintf(context->message, context->message_size, "%s", why);
  return 7;
}

static int setup(const downbeat_operation_context *given, void **state) {
  context = given;
  calls = prepared = prepared_in_series = 0;
  *state = &rank;
  return MPI_Comm_rank(*given->comm, &rank);
}

static int call(void *state, uint32_t number) {
  (void)number;
  ++calls;
  return state == &rank ? MPI_Barrier(*context->comm) : failure("another state");
}

static int check(void *state, uint32_t number) {
  (void)number;
  return state == &rank ? 0 : failure("another state");
}

static void prepare(void *state, int in_series) {
  if (state != &rank) abort();
  ++prepared;
  prepared_in_series += in_series != 0;
}

static void teardown(void *state) {
  if (state != &rank) abort();
}

/* Address that no compiler knows to be wrong. */
static volatile uintptr_t nowhere = 8;
static void crash(void) { *(volatile int *)nowhere = 1; }

static int setup_fails(const downbeat_operation_context *given, void **state) {
  setup(given, state);
  return rank == 1 ? failure("no card\n\tin this node") : 0;
}

static int setup_fails_silently(const downbeat_operation_context *given, void **state) {
  setup(given, state);
  return rank == 0 ? 42 : 0;
}

/* One rank leaves the others waiting for it. */
static int setup_waits(const downbeat_operation_context *given, void **state) {
  setup(given, state);
  return rank == 1 ? failure("no card") : MPI_Barrier(*given->comm);
}

static int setup_crashes(const downbeat_operation_context *given, void **state) {
  setup(given, state);
  if (rank == 1) crash();
  return 0;
}

static int setup_aborts(const downbeat_operation_context *given, void **state) {
  setup(given, state);
  if (rank == 1) abort();
  return 0;
}

static int call_crashes(void *state, uint32_t number) {
  if (rank == 1 && number == 3) crash();
  return call(state, number);
}

static int call_fails(void *state, uint32_t number) {
  return rank == 1 && number == 3 ? failure("the card is gone") : call(state, number);
}

static int check_fails(void *state, uint32_t number) {
  (void)state;
  (void)number;
  return rank == 1 ? failure("element 3 is 4, and not 5") : 0;
}

static int check_crashes(void *state, uint32_t number) {
  (void)state;
  (void)number;
  if (rank == 1) crash();
  return 0;
}

static void prepare_crashes(void *state, int in_series) {
  (void)state;
  (void)in_series;
  if (rank == 1) crash();
}

static void teardown_crashes(void *state) {
  (void)state;
  if (rank == 1) crash();
}

/* One rank after the other is the root of a call, which the check sees, too. */
static int check_root(void *state, uint32_t number) {
  int ranks;
  (void)state;
  MPI_Comm_size(*context->comm, &ranks);
  if (context->root != -1) return failure("the root does not rotate");
  return number < (uint32_t)ranks && calls == number + 1 ? 0 : failure("a call has a wrong number");
}

static int setup_cold(const downbeat_operation_context *given, void **state) {
  setup(given, state);
  if (given->cache != DOWNBEAT_CACHE_WALK || given->cache_size != 65536) return failure("the caches should be cold");
  return given->alignment == 256 ? 0 : failure("another alignment");
}

/* All but the first call of a series are prepared in it. */
static void teardown_cold(void *state) {
  (void)state;
  if (rank == 0) fprintf(stderr, "prepared %s\n", prepared == calls && prepared_in_series == calls / 5 * 4 ? "all" : "some");
}

static int setup_in_buffers(const downbeat_operation_context *given, void **state) {
  setup(given, state);
  return given->buffers != NULL && given->buffers->allocate != NULL ? 0 : failure("there are no buffers");
}

#define OPERATION(NAME, ...)                              \
  const downbeat_operation *downbeat_operation_##NAME(void) { \
    static const downbeat_operation table = {__VA_ARGS__};    \
    return &table;                                        \
  }
#define HEAD DOWNBEAT_OPERATION_HEAD
#define REST .call = call, .check = check, .teardown = teardown

OPERATION(good, HEAD, .setup = setup, .flags = DOWNBEAT_OPERATION_NO_MESSAGE, REST)
OPERATION(longer, DOWNBEAT_OPERATION_ABI, sizeof(downbeat_operation) + 64, 0, .setup = setup, REST)
OPERATION(rotating, HEAD, .setup = setup, .call = call, .check = check_root, .teardown = teardown)
OPERATION(cold, HEAD, .setup = setup_cold, .call = call, .prepare = prepare, .teardown = teardown_cold)
OPERATION(in_buffers, HEAD, .setup = setup_in_buffers, REST)

OPERATION(version, DOWNBEAT_OPERATION_ABI + 1, sizeof(downbeat_operation), sizeof(MPI_Comm), .setup = setup, REST)
OPERATION(size, DOWNBEAT_OPERATION_ABI, 16, sizeof(MPI_Comm), .setup = setup, REST)
OPERATION(comm_size, DOWNBEAT_OPERATION_ABI, sizeof(downbeat_operation), 12, .setup = setup, REST)
OPERATION(no_setup, HEAD, REST)
OPERATION(no_call, HEAD, .setup = setup, .check = check, .teardown = teardown)
OPERATION(no_teardown, HEAD, .setup = setup, .call = call, .check = check)
OPERATION(no_check, HEAD, .setup = setup, .call = call, .teardown = teardown)
OPERATION(limits, HEAD, .least_ranks = 5, .most_ranks = 3, .setup = setup, REST)
OPERATION(three, HEAD, .least_ranks = 3, .setup = setup, REST)
OPERATION(one, HEAD, .most_ranks = 1, .setup = setup, REST)

OPERATION(setup_fails, HEAD, .setup = setup_fails, REST)
OPERATION(setup_fails_silently, HEAD, .setup = setup_fails_silently, REST)
OPERATION(setup_waits, HEAD, .setup = setup_waits, REST)
OPERATION(setup_crashes, HEAD, .setup = setup_crashes, REST)
OPERATION(setup_aborts, HEAD, .setup = setup_aborts, REST)
OPERATION(call_fails, HEAD, .setup = setup, .call = call_fails, .check = check, .teardown = teardown)
OPERATION(call_crashes, HEAD, .setup = setup, .call = call_crashes, .check = check, .teardown = teardown)
OPERATION(check_fails, HEAD, .setup = setup, .call = call, .check = check_fails, .teardown = teardown)
OPERATION(check_crashes, HEAD, .setup = setup, .call = call, .check = check_crashes, .teardown = teardown)
OPERATION(prepare_crashes, HEAD, .setup = setup, .prepare = prepare_crashes, REST)
OPERATION(teardown_crashes, HEAD, .setup = setup, .call = call, .teardown = teardown_crashes)

const downbeat_operation *downbeat_operation_no_table(void) { return NULL; }

const downbeat_operation *downbeat_operation_get_crashes(void) {
  crash();
  return NULL;
}

/* Memory of the host that is not where it seems to be: the bits of its bytes are inverted by each copy to it and from it. MPI's operations
 * that move bytes work in it. */

static void *inverted_allocate(size_t bytes, size_t alignment) {
  void *memory;
  if (bytes > 100000 || posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0) return NULL;
  return memory;
}

static int inverted_copy(void *to, const void *from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((char *)to)[i] = (char)~((const char *)from)[i];
  return 0;
}

static int copy_fails(void *to, const void *from, size_t bytes) {
  (void)to;
  (void)from;
  return bytes > 0;
}

#define BUFFERS(NAME, ...)                              \
  const downbeat_buffers *downbeat_buffers_##NAME(void) {   \
    static const downbeat_buffers table = {__VA_ARGS__};    \
    return &table;                                      \
  }

BUFFERS(inverted, DOWNBEAT_BUFFERS_HEAD, inverted_allocate, inverted_copy, free)
BUFFERS(copy_fails, DOWNBEAT_BUFFERS_HEAD, inverted_allocate, copy_fails, free)
BUFFERS(no_copy, DOWNBEAT_BUFFERS_HEAD, inverted_allocate, NULL, free)
BUFFERS(version, DOWNBEAT_OPERATION_ABI + 1, sizeof(downbeat_buffers), inverted_allocate, inverted_copy, free)
