/* What the parts of the program `messages` share. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "counts.h"

enum { LENGTH = 16, MAX_RANKS = 64 };

/* Of MPI_COMM_WORLD, and the neighbours in a ring through it. */
extern int rank, size, left, right;

/* Every subject begins with a barrier: receives with wildcards must not meet messages of other subjects. */
void begin(void);

/* Content of a message is a function of its sender (a rank of the world), tag and length. */
void fill(int *body, int length, int tag);
void check_content(MPI_Comm comm, int source, int tag, const int *body, int length);
/* A message counts as received when its content was looked at. */
void accept_message(MPI_Comm comm, int source, int tag, const int *body, int length);

/* messages_collective.c */
void collectives(void);
void neighborhoods(void);
void several_collectives_at_once(void);
/* messages_onesided.c */
void one_sided(void);
/* messages_mpi4.c: nothing below MPI 4 */
void large_counts(void);
void combined_requests(void);
void partitioned(void);

#endif
