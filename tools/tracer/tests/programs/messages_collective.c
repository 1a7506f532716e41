/* Collective operations: each blocking, non-blocking and, where the library has them, persistent. */
#include "messages.h"

#include <stdlib.h>
#include <string.h>

/* MPI 4 has persistent collectives, Open MPI 4.1 has the same calls under other names. */
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4
#define PERSISTENT(operation) MPI_##operation##_init
#define HAS_PERSISTENT 1
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define PERSISTENT(operation) MPIX_##operation##_init
#define HAS_PERSISTENT 1
#else
#define HAS_PERSISTENT 0
#endif

enum { BLOCK = 3, ROOM = 4096 };

/* What an operation is given, what its receive buffer holds before it, and what that must hold afterwards. */
static int give[ROOM], start[ROOM], want[ROOM], got[ROOM];

static void before(void) { memcpy(got, start, sizeof got); }

/* Communicator whose members exchange a block with each neighbour in every operation, and the neighbours. */
static MPI_Comm neighbors_of = MPI_COMM_NULL;
static int sources[2], destinations[2], neighbors;

static void count_neighbors(void) {
  int k;
  for (k = 0; k < neighbors; k++) {
    count_sent(neighbors_of, destinations[k], 0, BLOCK, MPI_INT);
    count_received(neighbors_of, sources[k], 0, BLOCK * sizeof(int));
  }
}

/* Elements that this rank gives to the others in every operation. */
static int gives;

static void after(const char *name, int length) {
  int i;
  if (neighbors_of != MPI_COMM_NULL)
    count_neighbors();
  else
    count_given(gives * (long)sizeof(int));
  for (i = 0; i < length; i++)
    if (got[i] != want[i]) counts_wrong(name, got[i], want[i]);
}

/* An element that tells who has it, for whom it is, and where it stands. */
static int piece(int from, int to, int i) { return from * 10000 + to * 100 + i; }

static void nothing_yet(void) {
  int i;
  for (i = 0; i < ROOM; i++) start[i] = want[i] = -1;
}

/* `length` elements of `got` must be those of `want` after each of the calls. */
#define BLOCKING(length, name, ...) \
  do {                              \
    before();                       \
    COLLECTIVE(name, __VA_ARGS__);  \
    after(#name, length);           \
  } while (0)

#define NON_BLOCKING(length, name, ...)         \
  do {                                          \
    MPI_Request request;                        \
    before();                                   \
    CALL(name, __VA_ARGS__, &request);          \
    CALL(MPI_Wait, &request, MPI_STATUS_IGNORE); \
    count_collective(#name);                    \
    after(#name, length);                       \
  } while (0)

#if HAS_PERSISTENT
#define STARTED_TWICE(length, name, ...)                    \
  do {                                                      \
    MPI_Request request;                                    \
    int round;                                              \
    CALL(name, __VA_ARGS__, MPI_INFO_NULL, &request);       \
    for (round = 0; round < 2; round++) {                   \
      before();                                             \
      CALL(MPI_Start, &request);                            \
      CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);          \
      count_collective(#name);                              \
      after(#name, length);                                 \
    }                                                       \
    CALL(MPI_Request_free, &request);                       \
  } while (0)
/* One step more, so that `name` is the name of the function and not PERSISTENT(...). */
#define STARTED(length, name, ...) STARTED_TWICE(length, name, __VA_ARGS__)
#else
#define STARTED(length, name, ...)
#endif

/* MPI_Bcast, MPI_Ibcast and MPI_Bcast_init: upper and lower are the two spellings of the operation. */
#define TWO_WAYS(length, upper, lower, ...)          \
  do {                                               \
    BLOCKING(length, MPI_##upper, __VA_ARGS__);      \
    NON_BLOCKING(length, MPI_I##lower, __VA_ARGS__); \
  } while (0)
#define THREE_WAYS(length, upper, lower, ...)        \
  do {                                               \
    TWO_WAYS(length, upper, lower, __VA_ARGS__);     \
    STARTED(length, PERSISTENT(upper), __VA_ARGS__); \
  } while (0)

/* Gather, Scatter and Allgather as persistent operations are faulty in MPICH 4.0: copies within a process are made when
 * the request is made and not when it is started, and from three ranks on Scatter ends with "Invalid communicator". */
#ifdef MPICH_NUMVERSION
#define TWO_OR_THREE_WAYS TWO_WAYS
#else
#define TWO_OR_THREE_WAYS THREE_WAYS
#endif

static void barrier_and_broadcast(void) {
  int i, root = size - 1;
  gives = 0;
  COLLECTIVE(MPI_Barrier, MPI_COMM_WORLD);
  NON_BLOCKING(0, MPI_Ibarrier, MPI_COMM_WORLD);
  STARTED(0, PERSISTENT(Barrier), MPI_COMM_WORLD);
  nothing_yet();
  for (i = 0; i < BLOCK; i++) want[i] = piece(root, 0, i);
  if (rank == root) memcpy(start, want, BLOCK * sizeof *want);
  gives = rank == root ? BLOCK : 0;
  THREE_WAYS(BLOCK, Bcast, bcast, got, BLOCK, MPI_INT, root, MPI_COMM_WORLD);
}

/* Rank r gives r + 1 elements to calls with a count per rank; their places leave gaps of one element. */
static int counts[MAX_RANKS], places[MAX_RANKS], room;

static void uneven(void) {
  int r;
  room = 0;
  for (r = 0; r < size; r++) {
    counts[r] = r + 1;
    places[r] = room;
    room += r + 2;
  }
}

static void gather(void) {
  const int root = 0, is_root = rank == root, all = BLOCK * size;
  int r, i;
  gives = BLOCK;
  nothing_yet();
  for (i = 0; i < BLOCK; i++) give[i] = piece(rank, root, i);
  for (r = 0; is_root && r < size; r++)
    for (i = 0; i < BLOCK; i++) want[BLOCK * r + i] = piece(r, root, i);
  TWO_OR_THREE_WAYS(all, Gather, gather, give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, root, MPI_COMM_WORLD);
  if (is_root) memcpy(&start[BLOCK * rank], give, BLOCK * sizeof *give);
  TWO_OR_THREE_WAYS(all, Gather, gather, is_root ? MPI_IN_PLACE : give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, root,
             MPI_COMM_WORLD);

  uneven();
  gives = counts[rank];
  nothing_yet();
  for (i = 0; i <= rank; i++) give[i] = piece(rank, root, i);
  for (r = 0; is_root && r < size; r++)
    for (i = 0; i < counts[r]; i++) want[places[r] + i] = piece(r, root, i);
  THREE_WAYS(room, Gatherv, gatherv, give, counts[rank], MPI_INT, got, counts, places, MPI_INT, root, MPI_COMM_WORLD);
  if (is_root) start[places[rank]] = give[0];
  THREE_WAYS(room, Gatherv, gatherv, is_root ? MPI_IN_PLACE : give, counts[rank], MPI_INT, got, counts, places, MPI_INT,
             root, MPI_COMM_WORLD);
}

static void scatter(void) {
  const int root = size - 1, is_root = rank == root;
  int r, i;
  gives = is_root ? BLOCK * size : 0;
  nothing_yet();
  for (r = 0; r < size; r++)
    for (i = 0; i < BLOCK; i++) give[BLOCK * r + i] = piece(root, r, i);
  for (i = 0; i < BLOCK; i++) want[i] = piece(root, rank, i);
  TWO_OR_THREE_WAYS(BLOCK, Scatter, scatter, give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, root, MPI_COMM_WORLD);
  if (is_root) nothing_yet(); /* in place the root's own part stays where it is */
  TWO_OR_THREE_WAYS(BLOCK, Scatter, scatter, give, BLOCK, MPI_INT, is_root ? MPI_IN_PLACE : got, BLOCK, MPI_INT, root,
             MPI_COMM_WORLD);

  uneven();
  gives = is_root ? room - size : 0;
  nothing_yet();
  for (r = 0; r < size; r++)
    for (i = 0; i < counts[r]; i++) give[places[r] + i] = piece(root, r, i);
  for (i = 0; i < counts[rank]; i++) want[i] = piece(root, rank, i);
  THREE_WAYS(size, Scatterv, scatterv, give, counts, places, MPI_INT, got, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
  if (is_root) nothing_yet();
  THREE_WAYS(size, Scatterv, scatterv, give, counts, places, MPI_INT, is_root ? MPI_IN_PLACE : got, counts[rank], MPI_INT,
             root, MPI_COMM_WORLD);
}

static void all_gather(void) {
  const int all = BLOCK * size;
  int r, i;
  gives = BLOCK;
  nothing_yet();
  for (i = 0; i < BLOCK; i++) give[i] = piece(rank, 0, i);
  for (r = 0; r < size; r++)
    for (i = 0; i < BLOCK; i++) want[BLOCK * r + i] = piece(r, 0, i);
  TWO_OR_THREE_WAYS(all, Allgather, allgather, give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, MPI_COMM_WORLD);
  memcpy(&start[BLOCK * rank], give, BLOCK * sizeof *give);
  TWO_OR_THREE_WAYS(all, Allgather, allgather, MPI_IN_PLACE, BLOCK, MPI_INT, got, BLOCK, MPI_INT, MPI_COMM_WORLD);

  uneven();
  gives = counts[rank];
  nothing_yet();
  for (i = 0; i <= rank; i++) give[i] = piece(rank, 0, i);
  for (r = 0; r < size; r++)
    for (i = 0; i < counts[r]; i++) want[places[r] + i] = piece(r, 0, i);
  THREE_WAYS(room, Allgatherv, allgatherv, give, counts[rank], MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
  memcpy(&start[places[rank]], give, counts[rank] * sizeof *give);
  THREE_WAYS(room, Allgatherv, allgatherv, MPI_IN_PLACE, 0, MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
}

static void all_to_all(void) {
  const int all = BLOCK * size;
  int r, i, even[MAX_RANKS], steps[MAX_RANKS], bytes[MAX_RANKS];
  MPI_Datatype types[MAX_RANKS];
  gives = all;
  nothing_yet();
  for (r = 0; r < size; r++) {
    even[r] = BLOCK;
    steps[r] = BLOCK * r;
    bytes[r] = steps[r] * (int)sizeof(int);
    types[r] = MPI_INT;
    for (i = 0; i < BLOCK; i++) {
      give[BLOCK * r + i] = piece(rank, r, i);
      want[BLOCK * r + i] = piece(r, rank, i);
    }
  }
  THREE_WAYS(all, Alltoall, alltoall, give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, MPI_COMM_WORLD);
  THREE_WAYS(all, Alltoallv, alltoallv, give, even, steps, MPI_INT, got, even, steps, MPI_INT, MPI_COMM_WORLD);
  THREE_WAYS(all, Alltoallw, alltoallw, give, even, bytes, types, got, even, bytes, types, MPI_COMM_WORLD);
  memcpy(start, give, all * sizeof *give);
  THREE_WAYS(all, Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_INT, got, BLOCK, MPI_INT, MPI_COMM_WORLD);
  THREE_WAYS(all, Alltoallv, alltoallv, MPI_IN_PLACE, even, steps, MPI_INT, got, even, steps, MPI_INT, MPI_COMM_WORLD);
  THREE_WAYS(all, Alltoallw, alltoallw, MPI_IN_PLACE, even, bytes, types, got, even, bytes, types, MPI_COMM_WORLD);
}

/* Sum over ranks below `end` of what rank r gives as element i. */
static int sum_below(int end, int i) {
  int r, sum = 0;
  for (r = 0; r < end; r++) sum += piece(r, 0, i);
  return sum;
}

static void reductions(void) {
  const int root = size / 2, is_root = rank == root, all = BLOCK * size;
  int i;
  gives = BLOCK;
  for (i = 0; i < all; i++) give[i] = piece(rank, 0, i);

  nothing_yet();
  for (i = 0; is_root && i < BLOCK; i++) want[i] = sum_below(size, i);
  THREE_WAYS(BLOCK, Reduce, reduce, give, got, BLOCK, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  if (is_root) memcpy(start, give, BLOCK * sizeof *give);
  THREE_WAYS(BLOCK, Reduce, reduce, is_root ? MPI_IN_PLACE : give, got, BLOCK, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);

  nothing_yet();
  for (i = 0; i < BLOCK; i++) want[i] = sum_below(size, i);
  THREE_WAYS(BLOCK, Allreduce, allreduce, give, got, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  memcpy(start, give, BLOCK * sizeof *give);
  THREE_WAYS(BLOCK, Allreduce, allreduce, MPI_IN_PLACE, got, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

  nothing_yet();
  for (i = 0; i < BLOCK; i++) want[i] = sum_below(rank + 1, i);
  THREE_WAYS(BLOCK, Scan, scan, give, got, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  memcpy(start, give, BLOCK * sizeof *give);
  THREE_WAYS(BLOCK, Scan, scan, MPI_IN_PLACE, got, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

  nothing_yet();
  for (i = 0; i < BLOCK; i++) want[i] = sum_below(rank, i);
  /* rank 0's result is undefined, so nothing is looked at there */
  THREE_WAYS(rank ? BLOCK : 0, Exscan, exscan, give, got, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  memcpy(start, give, BLOCK * sizeof *give);
  THREE_WAYS(rank ? BLOCK : 0, Exscan, exscan, MPI_IN_PLACE, got, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void scattered_reductions(void) {
  const int all = BLOCK * size;
  int i, r, first = 0, total = 0;
  gives = all;
  for (i = 0; i < ROOM; i++) give[i] = piece(rank, 0, i);
  nothing_yet();
  for (i = 0; i < BLOCK; i++) want[i] = sum_below(size, BLOCK * rank + i);
  THREE_WAYS(BLOCK, Reduce_scatter_block, reduce_scatter_block, give, got, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  memcpy(start, give, all * sizeof *give);
  /* what lies behind the result is undefined, but must be there */
  before();
  COLLECTIVE(MPI_Reduce_scatter_block, MPI_IN_PLACE, got, BLOCK, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  after("MPI_Reduce_scatter_block in place", BLOCK);

  uneven();
  gives = room - size;
  nothing_yet();
  for (r = 0; r < size; r++) {
    if (r < rank) first += counts[r];
    total += counts[r];
  }
  for (i = 0; i < counts[rank]; i++) want[i] = sum_below(size, first + i);
  THREE_WAYS(size, Reduce_scatter, reduce_scatter, give, got, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  memcpy(start, give, total * sizeof *give);
  before();
  COLLECTIVE(MPI_Reduce_scatter, MPI_IN_PLACE, got, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  after("MPI_Reduce_scatter in place", counts[rank]);
}

void collectives(void) {
  begin();
  barrier_and_broadcast();
  gather();
  scatter();
  all_gather();
  all_to_all();
  reductions();
  scattered_reductions();
}

/* A point-to-point message and three collectives are under way together, and are completed together. */
void several_collectives_at_once(void) {
  int sums[2], mine = rank, body, arriving, done, round;
  MPI_Request requests[5];
  begin();
  for (round = 0; round < 2; round++) {
    const int tag = 150 + round;
    fill(&body, 1, tag);
    CALL(MPI_Iallreduce, &mine, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    CALL(MPI_Irecv, &arriving, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &requests[1]);
    CALL(MPI_Ibarrier, MPI_COMM_WORLD, &requests[2]);
    ISEND(MPI_Isend, &body, 1, MPI_INT, right, tag, MPI_COMM_WORLD, &requests[3]);
    CALL(MPI_Iallreduce, &mine, &sums[1], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[4]);
    if (round == 0)
      CALL(MPI_Waitall, 5, requests, MPI_STATUSES_IGNORE);
    else
      do
        TRY(done, MPI_Testall, 5, requests, &done, MPI_STATUSES_IGNORE);
      while (!done);
    count_collective("MPI_Iallreduce");
    count_given(sizeof mine);
    count_collective("MPI_Ibarrier");
    count_collective("MPI_Iallreduce");
    count_given(sizeof mine);
    accept_message(MPI_COMM_WORLD, left, tag, &arriving, 1);
    if (sums[0] != size * (size - 1) / 2) counts_wrong("sum of ranks", sums[0], size * (size - 1) / 2);
    if (sums[1] != size - 1) counts_wrong("greatest rank", sums[1], size - 1);
  }
}

/* Along a line, whose ends have one neighbour only: in a periodic grid of two ranks both neighbours would be the same
 * process, and it would matter in which order a library sends. */
void neighborhoods(void) {
  enum { NEIGHBORS = 2 };
  int no = 0, weight = 1, ends[MAX_RANKS], edges[2 * MAX_RANKS], towards[NEIGHBORS], ones[NEIGHBORS] = {BLOCK, BLOCK}, steps[NEIGHBORS] = {0, BLOCK}, k, i, direction;
  MPI_Aint bytes[NEIGHBORS] = {0, BLOCK * sizeof(int)};
  MPI_Datatype types[NEIGHBORS] = {MPI_INT, MPI_INT};
  MPI_Comm line, ring;
  begin();
  CALL(MPI_Cart_create, MPI_COMM_WORLD, 1, &size, &no, 0, &line);
  CALL(MPI_Cart_shift, line, 0, 1, &towards[0], &towards[1]);
  neighbors_of = line;
  neighbors = NEIGHBORS;
  memcpy(sources, towards, sizeof towards);
  memcpy(destinations, towards, sizeof towards);
  nothing_yet();
  for (i = 0; i < BLOCK; i++) give[i] = piece(rank, 0, i);
  for (k = 0; k < NEIGHBORS; k++)
    for (i = 0; towards[k] != MPI_PROC_NULL && i < BLOCK; i++) want[BLOCK * k + i] = piece(towards[k], 0, i);
  THREE_WAYS(2 * BLOCK, Neighbor_allgather, neighbor_allgather, give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, line);
  THREE_WAYS(2 * BLOCK, Neighbor_allgatherv, neighbor_allgatherv, give, BLOCK, MPI_INT, got, ones, steps, MPI_INT, line);

  nothing_yet();
  for (k = 0; k < NEIGHBORS; k++) {
    direction = k ? 1 : -1;
    for (i = 0; i < BLOCK; i++) {
      give[BLOCK * k + i] = piece(rank, rank + direction + 1, i);
      if (towards[k] != MPI_PROC_NULL) want[BLOCK * k + i] = piece(towards[k], rank + 1, i);
    }
  }
  THREE_WAYS(2 * BLOCK, Neighbor_alltoall, neighbor_alltoall, give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, line);
  THREE_WAYS(2 * BLOCK, Neighbor_alltoallv, neighbor_alltoallv, give, ones, steps, MPI_INT, got, ones, steps, MPI_INT,
             line);
  THREE_WAYS(2 * BLOCK, Neighbor_alltoallw, neighbor_alltoallw, give, ones, bytes, types, got, ones, bytes, types, line);
  CALL(MPI_Comm_free, &line);

  /* In one direction around a ring. */
  CALL(MPI_Dist_graph_create_adjacent, MPI_COMM_WORLD, 1, &left, &weight, 1, &right, &weight, MPI_INFO_NULL, 0, &ring);
  neighbors_of = ring;
  neighbors = 1;
  sources[0] = left;
  destinations[0] = right;
  nothing_yet();
  for (i = 0; i < BLOCK; i++) {
    give[i] = piece(rank, 0, i);
    want[i] = piece(left, 0, i);
  }
  TWO_WAYS(BLOCK, Neighbor_allgather, neighbor_allgather, give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, ring);
  TWO_WAYS(BLOCK, Neighbor_alltoallv, neighbor_alltoallv, give, ones, steps, MPI_INT, got, ones, steps, MPI_INT, ring);
  CALL(MPI_Comm_free, &ring);

  /* The same as a graph of the old kind: both ways along the line that the ring is without its ends. */
  for (k = 0; k < size; k++) ends[k] = (k ? ends[k - 1] : 0) + (k > 0) + (k < size - 1);
  for (k = i = 0; k < size; k++) {
    if (k > 0) edges[i++] = k - 1;
    if (k < size - 1) edges[i++] = k + 1;
  }
  CALL(MPI_Graph_create, MPI_COMM_WORLD, size, ends, edges, 0, &ring);
  neighbors_of = ring;
  neighbors = 0;
  if (rank > 0) sources[neighbors++] = rank - 1;
  if (rank < size - 1) sources[neighbors++] = rank + 1;
  memcpy(destinations, sources, sizeof sources);
  nothing_yet();
  for (k = 0; k < neighbors; k++)
    for (i = 0; i < BLOCK; i++) want[BLOCK * k + i] = piece(sources[k], 0, i);
  TWO_WAYS(BLOCK * neighbors, Neighbor_allgather, neighbor_allgather, give, BLOCK, MPI_INT, got, BLOCK, MPI_INT, ring);
  neighbors_of = MPI_COMM_NULL;
  CALL(MPI_Comm_free, &ring);
}
