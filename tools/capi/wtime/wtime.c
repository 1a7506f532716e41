/* libdownbeat_wtime, to preload: makes MPI_Wtime of an unmodified program global.
 *
 * MPI_Init synchronizes the clocks of all ranks. After it, MPI_Wtime is the time since then by the clock of rank 0, in C and in all
 * bindings of Fortran, and the attribute MPI_WTIME_IS_GLOBAL is true. Built once for each MPI library. */
#define _GNU_SOURCE
#include <mpi.h>
#include <downbeat.h>

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The clocks of the program; NULL before MPI_Init. */
static const downbeat_model *model;

static void fail(const char *why) {
  fprintf(stderr, "libdownbeat_wtime: %s\n", why);
  exit(1);
}

#if defined(OPEN_MPI)
#define OTHER_MPI "/libmpich"
#define WRONG_MPI "this library was built for Open MPI, and the program uses MPICH: preload the one for MPICH"
#define FORTRAN_WTIME_IS_GLOBAL MPI_WTIME_IS_GLOBAL
#else
#define OTHER_MPI "/libopen-pal"
#define WRONG_MPI "this library was built for MPICH, and the program uses Open MPI: preload the one for Open MPI"
/* Attributes have other names in Fortran, since they are values and no pointers there. */
#define FORTRAN_WTIME_IS_GLOBAL (MPI_WTIME_IS_GLOBAL + 1)
#endif

static int is_other_mpi(struct dl_phdr_info *object, size_t size, void *data) {
  (void)size;
  (void)data;
  return strstr(object->dlpi_name, OTHER_MPI) != NULL;
}

static void check_mpi(void) {
  if (dl_iterate_phdr(is_other_mpi, NULL)) fail(WRONG_MPI);
}

static void synchronize(void) {
  downbeat_clock *clock = NULL;
  int rank = 0;
  if (model != NULL) return;
  if (downbeat_synchronize(MPI_COMM_WORLD, NULL, &clock) == DOWNBEAT_OK &&
      downbeat_clock_model(clock, &model) == DOWNBEAT_OK) {
    return;
  }
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    fprintf(stderr, "libdownbeat_wtime: MPI_Wtime cannot be made global: %s\n", downbeat_error_message());
  }
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

int MPI_Init(int *argc, char ***argv) {
  int code;
  check_mpi();
  code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) synchronize();
  return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  int code;
  check_mpi();
  code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) synchronize();
  return code;
}

double MPI_Wtime(void) { return model == NULL ? PMPI_Wtime() : 1e-9 * (double)downbeat_model_now(model); }

double MPI_Wtick(void) { return model == NULL ? PMPI_Wtick() : 1e-9; }

/* Answers a question for the attribute; returns 0 if the MPI library must. */
static int answer(int keyval, void *value, int *flag) {
  static int yes = 1;
  if (model == NULL || keyval != MPI_WTIME_IS_GLOBAL) return 0;
  *(int **)value = &yes;
  *flag = 1;
  return 1;
}

int MPI_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag) {
  return answer(keyval, value, flag) ? MPI_SUCCESS : PMPI_Comm_get_attr(comm, keyval, value, flag);
}

/* Deprecated, and called nevertheless. */
int MPI_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag) {
  return answer(keyval, value, flag) ? MPI_SUCCESS : PMPI_Comm_get_attr(comm, keyval, value, flag);
}

/* Fortran: each wrapper calls the next function of its own name. Error codes can be absent with mpi_f08. */

static void (*next(const char *name))(void) {
  void *found = dlsym(RTLD_NEXT, name);
  void (*function)(void);
  if (found == NULL) fail("the program loads the Fortran part of its MPI library too late");
  *(void **)&function = found;
  return function;
}

static void succeed(MPI_Fint *error) {
  if (error != NULL) *error = MPI_SUCCESS;
}

/* The spellings of a name that compilers use. */
#define SPELLINGS(lower, upper, type, parameters)                       \
  type lower(parameters) __attribute__((alias(#lower "_")));          \
  type lower##__(parameters) __attribute__((alias(#lower "_")));      \
  type upper(parameters) __attribute__((alias(#lower "_")));
#define LIST(...) __VA_ARGS__

#define DEFINE_INIT(name)                                                    \
  void name(MPI_Fint *error) {                                               \
    check_mpi();                                                             \
    ((void (*)(MPI_Fint *))next(#name))(error);                              \
    if (error == NULL || *error == MPI_SUCCESS) synchronize();               \
  }
#define DEFINE_INIT_THREAD(name)                                             \
  void name(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error) {       \
    check_mpi();                                                             \
    ((void (*)(MPI_Fint *, MPI_Fint *, MPI_Fint *))next(#name))(required, provided, error); \
    if (error == NULL || *error == MPI_SUCCESS) synchronize();               \
  }
/* The value is an address-sized integer, or a default one in the deprecated call. */
#define DEFINE_GET_ATTR(name, integer)                                       \
  void name(MPI_Fint *comm, MPI_Fint *keyval, integer *value, MPI_Fint *flag, MPI_Fint *error) { \
    if (model != NULL && *keyval == FORTRAN_WTIME_IS_GLOBAL) {               \
      *value = 1;                                                            \
      *flag = 1;                                                             \
      succeed(error);                                                        \
      return;                                                                \
    }                                                                        \
    ((void (*)(MPI_Fint *, MPI_Fint *, integer *, MPI_Fint *, MPI_Fint *))next(#name))(comm, keyval, value, flag, error); \
  }

DEFINE_INIT(mpi_init_)
DEFINE_INIT(mpi_init_f08_)
SPELLINGS(mpi_init, MPI_INIT, void, MPI_Fint *error)
DEFINE_INIT_THREAD(mpi_init_thread_)
DEFINE_INIT_THREAD(mpi_init_thread_f08_)
SPELLINGS(mpi_init_thread, MPI_INIT_THREAD, void, LIST(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error))
DEFINE_GET_ATTR(mpi_comm_get_attr_, MPI_Aint)
DEFINE_GET_ATTR(mpi_comm_get_attr_f08_, MPI_Aint)
SPELLINGS(mpi_comm_get_attr, MPI_COMM_GET_ATTR, void,
          LIST(MPI_Fint *comm, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag, MPI_Fint *error))
DEFINE_GET_ATTR(mpi_attr_get_, MPI_Fint)
SPELLINGS(mpi_attr_get, MPI_ATTR_GET, void,
          LIST(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *flag, MPI_Fint *error))

double mpi_wtime_(void) { return MPI_Wtime(); }
double mpi_wtime_f08_(void) { return MPI_Wtime(); }
SPELLINGS(mpi_wtime, MPI_WTIME, double, void)
double mpi_wtick_(void) { return MPI_Wtick(); }
double mpi_wtick_f08_(void) { return MPI_Wtick(); }
SPELLINGS(mpi_wtick, MPI_WTICK, double, void)
