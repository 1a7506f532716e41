/* Logs the collective calls of rank 0, in the order in which they return: one line each in the file $CALL_LOG, written by
   MPI_Finalize. Preloaded into benchmarks, of which it needs no source.

   A line is the function without "MPI_", and the datatype, the number of elements, and the reduction or the root, with ":" between
   them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *lines;
static size_t length, size;
static int depth;

static void add(const char *line)
{
    size_t more = strlen(line) + 1;
    if (length + more + 1 > size) {
        size = 2 * (size + more + 1);
        lines = realloc(lines, size);
        if (!lines)
            abort();
    }
    memcpy(lines + length, line, more - 1);
    lines[length + more - 1] = '\n';
    length += more;
}

static const char *type_name(MPI_Datatype type)
{
    static char name[MPI_MAX_OBJECT_NAME];
    int length_of_name;
    PMPI_Type_get_name(type, name, &length_of_name);
    return name;
}

static const char *op_name(MPI_Op op)
{
    return op == MPI_SUM ? "MPI_SUM" : op == MPI_MAX ? "MPI_MAX" : op == MPI_MIN ? "MPI_MIN" : op == MPI_BOR ? "MPI_BOR" : "?";
}

static void log_call(const char *name, MPI_Datatype type, int count, const char *detail)
{
    char line[256];
    snprintf(line, sizeof line, "%s:%s:%d:%s", name, type_name(type), count, detail);
    size_t end = strlen(line);
    if (end && line[end - 1] == ':')
        line[end - 1] = 0;
    add(line);
}

static const char *root_name(int root)
{
    static char name[16];
    snprintf(name, sizeof name, "%d", root);
    return name;
}

/* Libraries may call MPI inside of MPI: only the outer call counts. */
#define LOGGED(call, log) \
    int code; \
    depth++; \
    code = call; \
    depth--; \
    if (!depth) { log; } \
    return code

int MPI_Barrier(MPI_Comm comm)
{
    LOGGED(PMPI_Barrier(comm), add("barrier"));
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    LOGGED(PMPI_Bcast(buffer, count, type, root, comm), log_call("bcast", type, count, root_name(root)));
}

int MPI_Reduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    char detail[64];
    snprintf(detail, sizeof detail, "%s:%d", op_name(op), root);
    LOGGED(PMPI_Reduce(from, to, count, type, op, root, comm), log_call("reduce", type, count, detail));
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    LOGGED(PMPI_Allreduce(from, to, count, type, op, comm), log_call("allreduce", type, count, op_name(op)));
}

int MPI_Allgather(const void *from, int count, MPI_Datatype type, void *to, int received, MPI_Datatype as, MPI_Comm comm)
{
    LOGGED(PMPI_Allgather(from, count, type, to, received, as, comm), log_call("allgather", type, count, ""));
}

int MPI_Alltoall(const void *from, int count, MPI_Datatype type, void *to, int received, MPI_Datatype as, MPI_Comm comm)
{
    LOGGED(PMPI_Alltoall(from, count, type, to, received, as, comm), log_call("alltoall", type, count, ""));
}

int MPI_Finalize(void)
{
    const char *path = getenv("CALL_LOG");
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank && path) {
        FILE *file = fopen(path, "w");
        if (!file || fwrite(lines, 1, length, file) != length || fclose(file)) {
            perror(path);
            PMPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    return PMPI_Finalize();
}
