/* Operations of your own, which `downbeat-mpi bench --operation ./mine.so:NAME` measures as it does those of MPI.
 *
 * A library exports one function for each operation, of type downbeat_operation_function: downbeat_operation_NAME. So the linker tells which
 * operations there are, several sources can add theirs, and a program in Fortran, which cannot initialize pointers to functions, can fill the
 * table when it is called.
 *
 * All ranks call each function at the same time and in the same order, from one thread; `check` and `teardown` may communicate, too. Functions
 * that return int return 0, or another value after they wrote the reason to `message` of the context. */
#ifndef DOWNBEAT_OPERATION_H
#define DOWNBEAT_OPERATION_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: it changes when operations must be compiled again. Structures may grow at their ends without that, and `size`
 * tells how much of them is there. */
#define DOWNBEAT_OPERATION_ABI 1

/* Memory of a kind of its own, as that of a device: all functions are mandatory. `downbeat-mpi bench --buffers ./mine.so:NAME` takes the
 * messages of MPI's operations from it; NAME stands for an exported function downbeat_buffers_NAME, of type downbeat_buffers_function. */
typedef struct downbeat_buffers {
  uint32_t abi;  /* DOWNBEAT_OPERATION_ABI */
  uint32_t size; /* sizeof(downbeat_buffers) */
  /* Returns memory, or NULL if there is none. The alignment is a power of two. */
  void *(*allocate)(size_t bytes, size_t alignment);
  /* Copies bytes, between memory of the host and of this kind in either direction, and returns 0 when they have arrived. */
  int (*copy)(void *to, const void *from, size_t bytes);
  void (*free)(void *memory);
} downbeat_buffers;

typedef const downbeat_buffers *(*downbeat_buffers_function)(void);

/* State of the caches that the user wants before a call. */
#define DOWNBEAT_CACHE_WARM 0
/* They are overwritten by the program. */
#define DOWNBEAT_CACHE_OVERWRITTEN 1
/* Each call has another message, which `prepare` of the operation selects. */
#define DOWNBEAT_CACHE_WALK 2

/* Conditions of an operation, which stay at their address until `teardown`: pointers to them can be kept. */
typedef struct downbeat_operation_context {
  uint32_t abi;  /* DOWNBEAT_OPERATION_ABI */
  uint32_t size; /* of this structure */
  /* Communicator of the ranks that take part, which no one else uses. Its calls return errors. */
  const MPI_Comm *comm;
  /* The same for Fortran. */
  int32_t fortran_comm;
  /* Root, or -1 if it is rank `number` modulo the number of ranks in each call. */
  int32_t root;
  /* Size of the message; 0 if the operation has none. */
  uint64_t bytes;
  /* Memory for the messages that --buffers names, or NULL for that of the host. */
  const downbeat_buffers *buffers;
  /* Reason of a failure in one line that ends with a NUL, and the size of this memory. */
  char *message;
  uint64_t message_size;
  /* Power of two to which the addresses of messages should be multiples. */
  uint64_t alignment;
  /* State of the caches, and the size of those that should be cold; 0 if they are warm. */
  uint64_t cache_size;
  uint32_t cache;
} downbeat_operation_context;

/* The operation has no message, and is only measured with 0 bytes. */
#define DOWNBEAT_OPERATION_NO_MESSAGE 1

typedef struct downbeat_operation {
  uint32_t abi;  /* DOWNBEAT_OPERATION_ABI */
  uint32_t size; /* sizeof(downbeat_operation) */
  /* sizeof(MPI_Comm), by which libraries for other MPI libraries are told apart; 0 in languages that do not know it. */
  uint32_t mpi_comm_size;
  uint32_t flags;
  /* Least and greatest number of ranks; 0 for no limit. */
  uint32_t least_ranks;
  uint32_t most_ranks;
  /* Mandatory: allocates what the calls need, and stores a pointer to it. If this fails on one rank, `teardown` is called on none. A rank that
   * fails must not leave others waiting for it. */
  int (*setup)(const downbeat_operation_context *context, void **state);
  /* Mandatory: calls the operation once; this is what is timed. A failure ends the job, as other ranks may wait in the same call. */
  int (*call)(void *state, uint32_t number);
  /* Optional, for --verify: checks the result of this call on this rank. */
  int (*check)(void *state, uint32_t number);
  /* Optional: prepares the next call, outside the time of each; with `in_series`, inside the time of a series of calls. */
  void (*prepare)(void *state, int in_series);
  /* Mandatory: frees the state. */
  void (*teardown)(void *state);
} downbeat_operation;

typedef const downbeat_operation *(*downbeat_operation_function)(void);

/* The first members of the tables. */
#define DOWNBEAT_OPERATION_HEAD DOWNBEAT_OPERATION_ABI, sizeof(downbeat_operation), sizeof(MPI_Comm)
#define DOWNBEAT_BUFFERS_HEAD DOWNBEAT_OPERATION_ABI, sizeof(downbeat_buffers)

#ifdef __cplusplus
}
#endif

#endif
