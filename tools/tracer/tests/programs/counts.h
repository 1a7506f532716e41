/* A program's own count of what it did with MPI, to be compared with a trace of the same run.
 *
 * The bookkeeping calls only PMPI_ functions: a tracer that replaces MPI_ names does not see them, so the count itself
 * adds nothing to the trace. It may be called by several threads at once.
 *
 * Lines of the file, sorted by bytes; COUNT is always last, ranks are ranks of MPI_COMM_WORLD, also for messages of other
 * communicators:
 *
 *   call NAME COUNT                    calls by their C names; unsuccessful tests and probes are not among them
 *   collective NAME COUNT              collective operations of data (and barriers) that completed, calls that make and free
 *                                      windows, and fences; a persistent one counts under the name of its _init, once per start;
 *                                      those on neighbours are messages with tag 0 as well
 *   failed NAME COUNT                  calls of Test*, Iprobe, Improbe, Parrived that found nothing
 *   given BYTES COUNT                  collective operations to which this rank gave data, except those on neighbours; only in C
 *   index NAME VALUE...                what the calls that return indices gave, in the order of the calls (see below)
 *   received SOURCE TAG BYTES COUNT    messages that were received and whose content was right; BYTES is -1 where the library
 *                                      tells no length
 *   rma NAME TARGET BYTES COUNT        one-sided operations, at their origin, with the bytes at the target; all are completed
 *   sent DEST TAG BYTES COUNT          messages that were sent; MPI_Win_complete sends one of no bytes, with tag 0, to each
 *                                      member of the group, which MPI_Win_wait receives
 *   status NAME VALUE...               source and tag of statuses whose content differs from library to library
 *   truncated SOURCE TAG BYTES COUNT   messages that arrived with MPI_ERR_TRUNCATE; BYTES is what was sent
 *
 * A test of no active request finds something, MPI_UNDEFINED, and counts as a call. Waitany and Testany give one value
 * each, Waitsome and Testsome the number of completions and then that many indices.
 */
#ifndef COUNTS_H
#define COUNTS_H

#include <mpi.h>

/* Every call of a test program goes through this: it counts, calls, and looks at the result. */
#define CALL(name, ...) (count_call(#name), count_result(#name, name(__VA_ARGS__)))

/* A call that may find nothing (Test, Iprobe ...): what it is counted as depends on `found`, read after the call. */
#define TRY(found, name, ...) (count_result(#name, name(__VA_ARGS__)), count_outcome(#name, (found)))

/* Sends count their message in the same breath. */
#define SEND(name, buffer, count, type, dest, tag, comm) \
  (CALL(name, buffer, count, type, dest, tag, comm), count_sent(comm, dest, tag, count, type))
#define ISEND(name, buffer, count, type, dest, tag, comm, request) \
  (CALL(name, buffer, count, type, dest, tag, comm, request), count_sent(comm, dest, tag, count, type))

/* Blocking collectives. */
#define COLLECTIVE(name, ...) (CALL(name, __VA_ARGS__), count_collective(#name))

void count_call(const char *name);
void count_outcome(const char *name, int found);
/* Complains unless `error` is MPI_SUCCESS, and returns it. */
int count_result(const char *name, int error);
void count_collective(const char *name);
/* Data that this rank gave to the others in a collective operation. */
void count_given(long bytes);
/* Nothing is counted for MPI_PROC_NULL. */
void count_sent(MPI_Comm comm, int dest, int tag, MPI_Count count, MPI_Datatype type);
void count_received(MPI_Comm comm, int source, int tag, MPI_Count bytes);
/* A message that MPI_Isendrecv received: MPICH does not fill the status of such a request. */
void count_received_combined(MPI_Comm comm, int source, int tag, MPI_Count bytes);
void count_truncated(MPI_Comm comm, int source, int tag, MPI_Count bytes);
void count_rma(const char *name, MPI_Comm comm, int target, MPI_Count count, MPI_Datatype type);
void note_indices(const char *name, int count, const int *values);
void note_status(const char *name, int source, int tag);

/* Rank in MPI_COMM_WORLD of `rank` of `comm`, in the remote group if `comm` has one. */
int counts_world_rank(MPI_Comm comm, int rank);
/* The group whose ranks are written. Needed only where there is no MPI_COMM_WORLD. */
void counts_set_world(MPI_Comm comm);

/* Complains of a wrong value; the program goes on, so that no other rank waits for this one. */
void counts_wrong(const char *what, long got, long wanted);
/* Writes the file that the environment variable names, with the rank appended (nothing if it is unset), and returns the
 * exit code: 1 after a wrong value. Called last before MPI_Finalize, which must have been counted already. */
int counts_write(const char *variable);

#endif
