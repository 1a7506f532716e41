/* One-sided communication, in each of its three kinds of synchronization. */
#include "messages.h"

#include <string.h>

/* Calls, and counts at the origin. */
#define RMA(target, bytes_count, bytes_type, name, ...) \
  (CALL(name, __VA_ARGS__), count_rma(#name, MPI_COMM_WORLD, target, bytes_count, bytes_type))

enum { WIDTH = 8 };

static void expect(const char *what, int got, int wanted) {
  if (got != wanted) counts_wrong(what, got, wanted);
}

/* Element 0 and 1 of every window are put by the left neighbour; all ranks add to element 2 of rank 0. */
static void fences(void) {
  int memory[WIDTH] = {0}, out[2] = {rank, -rank}, seen[2] = {-1, -1}, one = 1;
  MPI_Win window;
  COLLECTIVE(MPI_Win_create, memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  COLLECTIVE(MPI_Win_fence, MPI_MODE_NOPRECEDE, window);
  RMA(right, 2, MPI_INT, MPI_Put, out, 2, MPI_INT, right, 0, 2, MPI_INT, window);
  RMA(0, 1, MPI_INT, MPI_Accumulate, &one, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, window);
  COLLECTIVE(MPI_Win_fence, 0, window);
  expect("MPI_Put", memory[0], left);
  expect("MPI_Put", memory[1], -left);
  if (rank == 0) expect("MPI_Accumulate", memory[2], size);
  RMA(left, 2, MPI_INT, MPI_Get, seen, 2, MPI_INT, left, 0, 2, MPI_INT, window);
  COLLECTIVE(MPI_Win_fence, MPI_MODE_NOSUCCEED, window);
  expect("MPI_Get", seen[0], (left + size - 1) % size);
  COLLECTIVE(MPI_Win_free, &window);
}

/* Post and wait for the left neighbour, start and complete towards the right one. */
static void posts_and_starts(void) {
  int memory[WIDTH] = {0}, out = 1000 + rank, done;
  MPI_Group world, origin, target;
  MPI_Win window;
  CALL(MPI_Comm_group, MPI_COMM_WORLD, &world);
  CALL(MPI_Group_incl, world, 1, &left, &origin);
  CALL(MPI_Group_incl, world, 1, &right, &target);
  COLLECTIVE(MPI_Win_create, memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  CALL(MPI_Win_post, origin, 0, window);
  CALL(MPI_Win_start, target, 0, window);
  RMA(right, 1, MPI_INT, MPI_Put, &out, 1, MPI_INT, right, 3, 1, MPI_INT, window);
  CALL(MPI_Win_complete, window);
  count_sent(MPI_COMM_WORLD, right, 0, 0, MPI_BYTE);
  CALL(MPI_Win_wait, window);
  count_received(MPI_COMM_WORLD, left, 0, 0);
  expect("MPI_Put after MPI_Win_start", memory[3], 1000 + left);
  /* the same without an access, and with tests */
  CALL(MPI_Win_post, origin, 0, window);
  CALL(MPI_Win_start, target, 0, window);
  CALL(MPI_Win_complete, window);
  count_sent(MPI_COMM_WORLD, right, 0, 0, MPI_BYTE);
  do TRY(done, MPI_Win_test, window, &done);
  while (!done);
  count_received(MPI_COMM_WORLD, left, 0, 0);
  COLLECTIVE(MPI_Win_free, &window);
  CALL(MPI_Group_free, &target);
  CALL(MPI_Group_free, &origin);
  CALL(MPI_Group_free, &world);
}

static void locks(void) {
  int *memory, zero = 0, one = 1, mine = rank + 1, before, all, seen = -1, out = 500 + rank;
  MPI_Request requests[2];
  MPI_Win window;
  COLLECTIVE(MPI_Win_allocate, WIDTH * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  CALL(MPI_Win_lock, MPI_LOCK_EXCLUSIVE, rank, 0, window);
  memset(memory, 0, WIDTH * sizeof *memory);
  CALL(MPI_Win_unlock, rank, window);
  begin();

  /* a ticket for each rank: all differ */
  CALL(MPI_Win_lock, MPI_LOCK_SHARED, 0, 0, window);
  RMA(0, 1, MPI_INT, MPI_Fetch_and_op, &one, &before, MPI_INT, 0, 0, MPI_SUM, window);
  CALL(MPI_Win_flush, 0, window);
  if (before < 0 || before >= size) counts_wrong("MPI_Fetch_and_op", before, size);
  /* one rank wins */
  RMA(0, 1, MPI_INT, MPI_Compare_and_swap, &mine, &zero, &seen, MPI_INT, 0, 1, window);
  CALL(MPI_Win_unlock, 0, window);
  before = seen == 0;
  COLLECTIVE(MPI_Allreduce, &before, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  count_given(sizeof before);
  expect("winners of MPI_Compare_and_swap", all, 1);

  CALL(MPI_Win_lock_all, 0, window);
  RMA(right, 1, MPI_INT, MPI_Put, &out, 1, MPI_INT, right, 4, 1, MPI_INT, window);
  CALL(MPI_Win_flush_local, right, window);
  CALL(MPI_Win_flush_all, window);
  RMA(right, 1, MPI_INT, MPI_Get_accumulate, &one, 1, MPI_INT, &seen, 1, MPI_INT, right, 4, 1, MPI_INT, MPI_SUM, window);
  CALL(MPI_Win_flush, right, window);
  expect("MPI_Get_accumulate", seen, 500 + rank);
  /* requests that are no messages */
  RMA(right, 1, MPI_INT, MPI_Rput, &out, 1, MPI_INT, right, 5, 1, MPI_INT, window, &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  CALL(MPI_Win_flush, right, window);
  RMA(right, 1, MPI_INT, MPI_Rget, &seen, 1, MPI_INT, right, 5, 1, MPI_INT, window, &requests[0]);
  RMA(right, 1, MPI_INT, MPI_Raccumulate, &one, 1, MPI_INT, right, 6, 1, MPI_INT, MPI_SUM, window, &requests[1]);
  CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
  expect("MPI_Rget", seen, 500 + rank);
  /* to nobody, and with nothing at the origin */
  CALL(MPI_Put, &out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window);
  CALL(MPI_Rget, &seen, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window, &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  RMA(right, 1, MPI_INT, MPI_Rget_accumulate, NULL, 0, MPI_INT, &seen, 1, MPI_INT, right, 6, 1, MPI_INT, MPI_NO_OP, window,
      &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  expect("MPI_Rget_accumulate", seen, 1);
  CALL(MPI_Win_unlock_all, window);
  begin();
  CALL(MPI_Win_lock, MPI_LOCK_SHARED, rank, 0, window);
  CALL(MPI_Win_sync, window);
  expect("MPI_Get_accumulate at its target", memory[4], 500 + left + 1);
  expect("MPI_Raccumulate at its target", memory[6], 1);
  CALL(MPI_Win_unlock, rank, window);
  COLLECTIVE(MPI_Win_free, &window);
}

/* A window of ranks whose numbers are not those of the world, and one of each rank alone. MPICH 4.0 loses what is put into a
 * window of four bytes. */
static void other_ranks(void) {
  int memory[WIDTH] = {-1}, *shared, own, one = 1;
  MPI_Comm comm;
  MPI_Win window;
  CALL(MPI_Comm_split, MPI_COMM_WORLD, 0, -rank, &comm);
  CALL(MPI_Comm_rank, comm, &own);
  COLLECTIVE(MPI_Win_create, memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, comm, &window);
  COLLECTIVE(MPI_Win_fence, 0, window);
  CALL(MPI_Put, &own, 1, MPI_INT, (own + 1) % size, 0, 1, MPI_INT, window);
  count_rma("MPI_Put", comm, (own + 1) % size, 1, MPI_INT);
  COLLECTIVE(MPI_Win_fence, 0, window);
  expect("MPI_Put to other ranks", memory[0], (own + size - 1) % size);
  COLLECTIVE(MPI_Win_fence, MPI_MODE_NOSUCCEED | MPI_MODE_NOPRECEDE, window);
  CALL(MPI_Win_lock_all, 0, window);
  CALL(MPI_Accumulate, &one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
  count_rma("MPI_Accumulate", comm, 0, 1, MPI_INT);
  CALL(MPI_Win_flush_local_all, window);
  CALL(MPI_Win_unlock_all, window);
  COLLECTIVE(MPI_Barrier, comm);
  CALL(MPI_Win_lock, MPI_LOCK_SHARED, own, 0, window);
  if (own == 0) expect("MPI_Accumulate to other ranks", memory[0], size - 1 + size);
  CALL(MPI_Win_unlock, own, window);
  COLLECTIVE(MPI_Win_free, &window);
  CALL(MPI_Comm_free, &comm);
  COLLECTIVE(MPI_Win_allocate_shared, sizeof *shared, 1, MPI_INFO_NULL, MPI_COMM_SELF, &shared, &window);
  COLLECTIVE(MPI_Win_free, &window);
}

void one_sided(void) {
  begin();
  fences();
  posts_and_starts();
  locks();
  other_ranks();
}
