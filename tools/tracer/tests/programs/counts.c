/* See counts.h. A counted thing is its line without the count; a list is its line so far. */
#include "counts.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counted {
  char *text;
  long count; /* -1: a list */
};

static struct counted *table;
static size_t used, capacity;
static long wrong_values;
static MPI_Group world_group;
static int world_rank, world_is_known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *checked(void *memory) {
  if (!memory) abort();
  return memory;
}

static struct counted *new_entry(const char *text, long count) {
  if (used == capacity) {
    capacity = capacity ? 2 * capacity : 256;
    table = checked(realloc(table, capacity * sizeof *table));
  }
  table[used].text = checked(strdup(text));
  table[used].count = count;
  return &table[used++];
}

__attribute__((format(printf, 1, 2))) static void count_line(const char *format, ...) {
  char line[160];
  size_t i;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&lock);
  for (i = 0; i < used && (table[i].count < 0 || strcmp(table[i].text, line)); i++) continue;
  (i < used ? &table[i] : new_entry(line, 0))->count++;
  pthread_mutex_unlock(&lock);
}

/* Appends to the list that begins with `kind name`. */
static void note_values(const char *kind, const char *name, int count, const int *values) {
  char head[96];
  size_t i, length;
  int k;
  snprintf(head, sizeof head, "%s %s", kind, name);
  length = strlen(head);
  pthread_mutex_lock(&lock);
  for (i = 0; i < used; i++)
    if (table[i].count < 0 && !strncmp(table[i].text, head, length) && strchr(" ", table[i].text[length])) break;
  if (i == used) new_entry(head, -1);
  for (k = 0; k < count; k++) {
    size_t end = strlen(table[i].text);
    table[i].text = checked(realloc(table[i].text, end + 16));
    snprintf(table[i].text + end, 16, " %d", values[k]);
  }
  pthread_mutex_unlock(&lock);
}

void count_call(const char *name) { count_line("call %s", name); }

void count_outcome(const char *name, int found) { count_line("%s %s", found ? "call" : "failed", name); }

void count_collective(const char *name) { count_line("collective %s", name); }

void count_given(long bytes) {
  if (bytes) count_line("given %ld", bytes);
}

int count_result(const char *name, int error) {
  if (error != MPI_SUCCESS) counts_wrong(name, error, MPI_SUCCESS);
  return error;
}

void counts_set_world(MPI_Comm comm) {
  PMPI_Comm_group(comm, &world_group);
  PMPI_Group_rank(world_group, &world_rank);
  world_is_known = 1;
}

static void know_world(void) {
  pthread_mutex_lock(&lock);
  if (!world_is_known) counts_set_world(MPI_COMM_WORLD);
  pthread_mutex_unlock(&lock);
}

int counts_world_rank(MPI_Comm comm, int rank) {
  MPI_Group group;
  int is_inter, translated;
  know_world();
  PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter)
    PMPI_Comm_remote_group(comm, &group);
  else
    PMPI_Comm_group(comm, &group);
  PMPI_Group_translate_ranks(group, 1, &rank, world_group, &translated);
  PMPI_Group_free(&group);
  return translated;
}

static void count_message(const char *kind, MPI_Comm comm, int peer, int tag, MPI_Count bytes) {
  if (peer == MPI_PROC_NULL) return;
  count_line("%s %d %d %lld", kind, counts_world_rank(comm, peer), tag, (long long)bytes);
}

static MPI_Count size_of(MPI_Datatype type) {
  int size;
  PMPI_Type_size(type, &size);
  return size;
}

void count_sent(MPI_Comm comm, int dest, int tag, MPI_Count count, MPI_Datatype type) {
  count_message("sent", comm, dest, tag, count * size_of(type));
}

void count_received(MPI_Comm comm, int source, int tag, MPI_Count bytes) {
  count_message("received", comm, source, tag, bytes);
}

void count_received_combined(MPI_Comm comm, int source, int tag, MPI_Count bytes) {
#ifdef MPICH_NUMVERSION
  bytes = -1;
#endif
  count_received(comm, source, tag, bytes);
}

void count_truncated(MPI_Comm comm, int source, int tag, MPI_Count bytes) {
  count_message("truncated", comm, source, tag, bytes);
}

void count_rma(const char *name, MPI_Comm comm, int target, MPI_Count count, MPI_Datatype type) {
  count_line("rma %s %d %lld", name, counts_world_rank(comm, target), (long long)(count * size_of(type)));
}

void note_indices(const char *name, int count, const int *values) { note_values("index", name, count, values); }

void note_status(const char *name, int source, int tag) {
  int values[2] = {source, tag};
  note_values("status", name, 2, values);
}

void counts_wrong(const char *what, long got, long wanted) {
  know_world();
  pthread_mutex_lock(&lock);
  wrong_values++;
  pthread_mutex_unlock(&lock);
  fprintf(stderr, "rank %d: %s: got %ld, wanted %ld\n", world_rank, what, got, wanted);
}

static int by_text(const void *left, const void *right) {
  return strcmp(((const struct counted *)left)->text, ((const struct counted *)right)->text);
}

static int write_lines(const char *base) {
  char path[4096];
  FILE *file;
  size_t i;
  snprintf(path, sizeof path, "%s.%d", base, world_rank);
  file = fopen(path, "w");
  if (!file) {
    perror(path);
    return 1;
  }
  qsort(table, used, sizeof *table, by_text);
  for (i = 0; i < used; i++)
    if (table[i].count < 0)
      fprintf(file, "%s\n", table[i].text);
    else
      fprintf(file, "%s %ld\n", table[i].text, table[i].count);
  if (ferror(file) | fclose(file)) {
    fprintf(stderr, "%s: not written\n", path);
    return 1;
  }
  return 0;
}

int counts_write(const char *variable) {
  const char *base = getenv(variable);
  int failed = 0;
  size_t i;
  know_world();
  PMPI_Group_free(&world_group);
  if (base) failed = write_lines(base);
  for (i = 0; i < used; i++) free(table[i].text);
  free(table);
  table = NULL;
  used = capacity = 0;
  return failed || wrong_values > 0;
}

/* For Fortran: handles as integers, names with their lengths; numbers by value. */

static const char *name_of(const char *name, int length, char *room, size_t size) {
  snprintf(room, size, "%.*s", length, name);
  return room;
}

#define NAME char room[64]; name_of(name, length, room, sizeof room)

void count_call_f(const char *name, int length) {
  NAME;
  count_call(room);
}

void count_outcome_f(const char *name, int length, int found) {
  NAME;
  count_outcome(room, found);
}

void count_collective_f(const char *name, int length) {
  NAME;
  count_collective(room);
}

void counts_set_world_f(MPI_Fint comm) { counts_set_world(PMPI_Comm_f2c(comm)); }

void count_sent_f(MPI_Fint comm, int dest, int tag, int count, MPI_Fint type) {
  count_sent(PMPI_Comm_f2c(comm), dest, tag, count, PMPI_Type_f2c(type));
}

void count_received_f(MPI_Fint comm, int source, int tag, int bytes) {
  count_received(PMPI_Comm_f2c(comm), source, tag, bytes);
}

void count_received_combined_f(MPI_Fint comm, int source, int tag, int bytes) {
  count_received_combined(PMPI_Comm_f2c(comm), source, tag, bytes);
}

void count_rma_f(const char *name, int length, MPI_Fint comm, int target, int count, MPI_Fint type) {
  NAME;
  count_rma(room, PMPI_Comm_f2c(comm), target, count, PMPI_Type_f2c(type));
}

void note_indices_f(const char *name, int length, int count, const int *values) {
  NAME;
  note_indices(room, count, values);
}

void note_status_f(const char *name, int length, int source, int tag) {
  NAME;
  note_status(room, source, tag);
}

int counts_world_rank_f(MPI_Fint comm, int rank) { return counts_world_rank(PMPI_Comm_f2c(comm), rank); }

void counts_wrong_f(const char *name, int length, int got, int wanted) {
  NAME;
  counts_wrong(room, got, wanted);
}

int counts_write_f(const char *name, int length) {
  NAME;
  return counts_write(room);
}
