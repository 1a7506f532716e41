/* libdownbeat: one precise clock for all ranks of a parallel program.
 *
 * Every call returns DOWNBEAT_OK or another code; downbeat_error_message() tells the reason. Programs for MPI include mpi.h
 * first, or define DOWNBEAT_MPI, and link libdownbeat_mpi; others link libdownbeat.
 *
 * Pointers are NULL, which is an error unless it says otherwise, or point to what their type says; texts end with a NUL.
 *
 * Made from the sources of the library: change these, and run its test `header`. */
#ifndef DOWNBEAT_H
#define DOWNBEAT_H


#include <stddef.h>
#include <stdint.h>
#if defined(DOWNBEAT_MPI)
#include <mpi.h>
#elif defined(MPI_VERSION)
#define DOWNBEAT_MPI
#endif

/* A clock: local, or global after a synchronization. */
typedef struct downbeat_clock downbeat_clock;
/* The model of a clock, which is read in place. */
typedef struct downbeat_model downbeat_model;
/* A timer of the regions with one name. */
typedef struct downbeat_timer downbeat_timer;
/* The ranks of a communicator that share a clock. */
typedef struct downbeat_team downbeat_team;
/* Functions of a loaded library. */
typedef struct downbeat_functions downbeat_functions;


// Version of the interface: the high 16 bits change when programs must be compiled again, the low ones when it grows.
#define DOWNBEAT_ABI (1 << 16)

// The call did what it promises.
#define DOWNBEAT_OK 0

// A pointer is NULL that must not be.
#define DOWNBEAT_ERROR_NULL 1

// A handle was closed, or never was one.
#define DOWNBEAT_ERROR_HANDLE 2

// A name, a label, a number or an environment variable is not one of those that are allowed.
#define DOWNBEAT_ERROR_ARGUMENT 3

// This machine does not have the clock, or it cannot be calibrated.
#define DOWNBEAT_ERROR_UNAVAILABLE 4

// No clock was synchronized yet.
#define DOWNBEAT_ERROR_NOT_SYNCHRONIZED 5

// MPI is not initialized or already finalized, may not be called by this thread, or failed.
#define DOWNBEAT_ERROR_MPI 6

// The synchronization failed on a rank, or the ranks disagree about the arguments. All ranks get this.
#define DOWNBEAT_ERROR_RANKS 7

// The program was compiled with the header of another version, or loads another version of the library as well.
#define DOWNBEAT_ERROR_VERSION 8

// The call comes too early or too late.
#define DOWNBEAT_ERROR_STATE 9

// A fault of the library itself, which is worth a report.
#define DOWNBEAT_ERROR_INTERNAL 10

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the reason of the last failure in this thread, or an empty text; never NULL. The text is valid until the next call
// that fails in this thread.
const char *downbeat_error_message(void);

// Opens a clock of this process and calibrates it, for 10 ms. Its time is that since then, in nanoseconds. `name` is `recommended`,
// `tsc`, `cntvct`, `monotonic`, `raw`, `realtime` or `tai`; NULL stands for the environment variable `DOWNBEAT_CLOCK`, or `recommended`. `header`
// must be `DOWNBEAT_ABI`. Any thread may call it.
int downbeat_clock_open_abi(const char *name,
                            downbeat_clock **clock,
                            uint32_t header);

// Closes a clock. No thread may use it any more; a call that does so nevertheless fails. Any thread may call it.
int downbeat_clock_close(downbeat_clock *clock);

// Reads a clock, in nanoseconds. Any thread may call it at any time.
int downbeat_clock_now(const downbeat_clock *clock, int64_t *nanos);

// Reads a clock, and the largest error of its time relative to that of rank 0, both in nanoseconds: `INT64_MAX` if none is known. Any
// thread may call it at any time.
int downbeat_clock_now_with_error(const downbeat_clock *clock,
                                  int64_t *nanos,
                                  int64_t *error);

// Reads the earliest and the latest time that rank 0 can show now, in nanoseconds: certain as long as the clocks drift from each other by no
// more than a thousandth and do not step. `-INT64_MAX` and `INT64_MAX` if nothing is known. Any thread may call it at any time.
int downbeat_clock_now_with_bounds(const downbeat_clock *clock,
                                   int64_t *earliest,
                                   int64_t *latest);

// Reads the counter of a clock. `downbeat_clock_convert` makes nanoseconds of it later. Any thread may call it at any time.
int downbeat_clock_ticks(const downbeat_clock *clock,
                         uint64_t *ticks);

// Converts a reading of the counter to the time that the clock showed then, by its present model, in nanoseconds. Any thread may call
// it at any time.
int downbeat_clock_convert(const downbeat_clock *clock,
                           uint64_t ticks,
                           int64_t *nanos);

// Converts a reading of the counter through the sessions of `downbeat_timesync`, in
// nanoseconds: by a smooth curve between them, and straight lines before the first and
// after the last; without any session as `downbeat_clock_convert`. The curve is cut
// between two sessions that contradict each other, although the clocks may drift by
// `DOWNBEAT_MAX_DRIFT`: a clock stepped. A time between these two is on the straight
// line through both: in order with all others, but wrong by up to the step. Any thread
// may call it at any time.
int downbeat_clock_past(const downbeat_clock *clock, uint64_t ticks, int64_t *nanos);

// Spins until the clock shows a time, in nanoseconds, and writes the time that it shows then to `reached`, which can be NULL. Returns at
// once if the time is past. Any thread may call it at any time.
int downbeat_clock_wait_until(const downbeat_clock *clock,
                              int64_t nanos,
                              int64_t *reached);

// Converts a time of the clock to the time of day, in nanoseconds since 1970, and writes the largest error of that, if the time of day
// of the system is right. Any thread may call it at any time.
int downbeat_clock_time_of_day(const downbeat_clock *clock,
                               int64_t nanos,
                               int64_t *since_1970,
                               int64_t *error);

// Writes the clock that was synchronized last, for calls that name none. Any thread may call it at any time.
int downbeat_global_clock(downbeat_clock **clock);

// Reads the clock that was synchronized last, in seconds since the first synchronization: a replacement of `MPI_Wtime`. Not a number
// before any synchronization. Any thread may call it at any time.
double downbeat_wtime(void);

// Writes the address of the model of a clock, for `downbeat_model_now`. It stays valid until the clock is closed, also when the clock is
// synchronized again. Any thread may call it at any time.
int downbeat_clock_model(const downbeat_clock *clock,
                         const downbeat_model **model);

// Reads the clock of a model, in nanoseconds, as `downbeat_model_now` does where it cannot do so itself; `INT64_MIN` if the clock is
// closed. Any thread may call it at any time.
int64_t downbeat_model_read(const downbeat_model *model);

#if defined(DOWNBEAT_MPI)
// Synchronizes the clocks of all ranks of a communicator, which all call this with the same label, and opens a clock that shows the
// same time on all of them: nanoseconds since now by the clock of rank 0. It becomes the one of calls that name none. `label` names
// the algorithm, as `hca3` or `h2hca(hca3/500/skampi/100,prop)`; NULL stands for the environment variable `DOWNBEAT_ALGORITHM`, or
// `auto/300ms`. The clock that each rank reads is that of `DOWNBEAT_CLOCK`. `header`
// must be `DOWNBEAT_ABI`. Collective: a failure of one rank is `DOWNBEAT_ERROR_RANKS` on
// all, with one message. Only threads that may call MPI may call it.
int downbeat_synchronize_abi(MPI_Comm comm,
                             const char *label,
                             downbeat_clock **clock,
                             uint32_t header);
#endif

#if defined(DOWNBEAT_MPI)
// Synchronizes a clock again, over a communicator whose ranks all call this with a clock that was synchronized; the time of its rank 0 is
// the reference. Other threads can read the clock meanwhile. The time steps by what the clock was wrong. Collective, as
// `downbeat_synchronize`.
int downbeat_resynchronize(const downbeat_clock *clock,
                           MPI_Comm comm);
#endif

#if defined(DOWNBEAT_MPI)
// Compares the clocks of all ranks of a communicator, which all call this: the one that
// was synchronized last. It can be called at any time in the run of a program, any
// number of times. The clock stays as it is, but `downbeat_clock_past` knows better
// afterwards what it showed. Rank 0 exchanges a message with each other rank in turn,
// until each had `DOWNBEAT_SYNC_MAX_MESSAGES` of them (a variable of the environment;
// 100 by default) or `DOWNBEAT_SYNC_MAX_DURATION` has passed (`60s`).
// `DOWNBEAT_SYNC_RULE` names the rule that condenses them: `lowest`, the default, is the
// mean of the lowest 5 % of the time differences in each direction; `trace-collector` is
// the mean of all exchanges except the slowest tenth. If the last synchronization was by
// `auto`, and proved that the ranks of each node read one counter, only the first rank
// of each node exchanges messages, and the others take its session. Collective, as
// `downbeat_synchronize`.
int downbeat_timesync(MPI_Comm comm);
#endif

#if defined(DOWNBEAT_MPI)
// Merges the timers of all ranks of a communicator, which all call this, and writes a report of them on its rank 0, as a text that
// `downbeat_free_text` frees; NULL on the others. Collective, as `downbeat_synchronize`.
int downbeat_report_timers_over(MPI_Comm comm,
                                char **report);
#endif

#if defined(DOWNBEAT_MPI)
// The same as `downbeat_report_timers_over`, for a communicator of Fortran.
int downbeat_report_timers_over_f(int comm, char **report);
#endif

#if defined(DOWNBEAT_MPI)
// The same as `downbeat_timesync`, for a communicator of Fortran.
int downbeat_timesync_f(int comm);
#endif

#if defined(DOWNBEAT_MPI)
// The same as `downbeat_synchronize_abi`, for a communicator of Fortran; an empty label is none.
int downbeat_synchronize_f(int comm, const char *label, downbeat_clock **clock, uint32_t header);
#endif

#if defined(DOWNBEAT_MPI)
// The same as `downbeat_resynchronize`, for a communicator of Fortran.
int downbeat_resynchronize_f(const downbeat_clock *clock, int comm);
#endif

// Returns the name of a code, as `DOWNBEAT_ERROR_NULL`; never NULL. Any thread may call it at any time.
const char *downbeat_status_name(int status);

// Returns the functions of this library, for others in the same process. Any thread may call it at any time.
const downbeat_functions *downbeat_library(void);

#if defined(DOWNBEAT_MPI)
// Opens a team of the ranks of a communicator, which all call this with a clock that was synchronized over it: for `downbeat_keep` and
// `downbeat_harmonize`. It holds a communicator of its own, and belongs to the calling thread; with `MPI_THREAD_SERIALIZED` no other
// thread may make collective calls meanwhile. Collective, as `downbeat_synchronize`.
int downbeat_team_open(const downbeat_clock *clock,
                       MPI_Comm comm,
                       downbeat_team **team);
#endif

#if defined(DOWNBEAT_MPI)
// Keeps the clock of a team, whose ranks all call this at points of the program that they reach about together: makes a session of at most
// a millisecond if `period` nanoseconds have passed since the last one, or now if `period` is 0. That of rank 0 counts; the first sessions
// are closer to each other. Mostly it costs a broadcast. The clock slews: it neither jumps nor runs backward, and other threads can read
// it meanwhile. Writes 1 to `kept` if there was a session and 0 if not, unless it is NULL. A clock that stepped is `DOWNBEAT_ERROR_RANKS`
// on all ranks, and must be synchronized again. Only the thread that opened the team may call it.
int downbeat_keep(const downbeat_team *team,
                  int64_t period,
                  int *kept);
#endif

#if defined(DOWNBEAT_MPI)
// Returns at one instant of their clock on all ranks of a team, which all call this; a rank that learns of the instant too late returns at
// once. Writes by how many nanoseconds it missed the instant to `missed_by`, 0 if it did not, unless that is NULL. The clock is
// synchronized again where the error of a rank may exceed the `max_error` nanoseconds that it allows. Only the thread that opened the
// team may call it.
int downbeat_harmonize(const downbeat_team *team,
                       int64_t max_error,
                       int64_t *missed_by);
#endif

#if defined(DOWNBEAT_MPI)
// Closes a team, which all its ranks do, before its clock. Only the thread that opened it may call it.
int downbeat_team_close(downbeat_team *team);
#endif

#if defined(DOWNBEAT_MPI)
// The same as `downbeat_team_open`, for a communicator of Fortran.
int downbeat_team_open_f(const downbeat_clock *clock, int comm, downbeat_team **team);
#endif

// Finds the timer with a name, or creates it: the same for the same name in all threads. It is never freed. The first one calibrates the
// clock of all timers, for 10 ms. `header` must be `DOWNBEAT_ABI`. Any thread may call it. Where `*timer` is that timer already, it costs
// little; other calls take a lock.
int downbeat_get_timer_abi(const char *name,
                           downbeat_timer **timer,
                           uint32_t header);

// The same as `downbeat_get_timer_abi`, for a name of this length in Fortran.
int downbeat_get_timer_f(const char *name, size_t length, downbeat_timer **timer, uint32_t header);

// Begins an event of this thread. If one is running, it goes on, which the report counts. Any thread may call it at any time, but no
// signal handler: the first event of a thread takes a lock, which the interrupted call may hold.
int downbeat_start_timer(const downbeat_timer *timer);

// Ends the event of this thread. If none is running, nothing happens, which the report counts. Any thread may call it at any time, but no
// signal handler.
int downbeat_stop_timer(const downbeat_timer *timer);

// Writes a report of all timers of this process, in all threads, as a text that `downbeat_free_text` frees. Any thread may call it at
// any time.
int downbeat_report_timers(char **report);

// Frees a text that the library returned; NULL is none. Any thread may call it.
int downbeat_free_text(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus


/* The model of a clock, which other threads may replace while it is read. `tag` and `sequence` are followed by two copies of 24
 * words; `downbeat_model_now` reads those that it knows. */
struct downbeat_model {
  /* Low 32 bits: number of the layout. High 32 bits: how the counter is read. */
  uint64_t tag;
  /* Selects the copy that is valid: the first if even. */
  uint64_t sequence;
  /* Words of a copy: nanoseconds per tick, whole and in units of 2^-64; time at tick 0 plus half a nanosecond, in units of 2^-64,
   * high and low word; number of ticks to which these apply, and the first of them; and others. */
  uint64_t copies[2][24];
};

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a local clock: see downbeat_clock_open_abi. */
static inline int downbeat_clock_open(const char *name, downbeat_clock **clock) {
  return downbeat_clock_open_abi(name, clock, DOWNBEAT_ABI);
}

/* Finds or creates a timer: see downbeat_get_timer_abi. */
static inline int downbeat_get_timer(const char *name, downbeat_timer **timer) {
  return downbeat_get_timer_abi(name, timer, DOWNBEAT_ABI);
}

#if defined(DOWNBEAT_MPI)
/* Synchronizes the clocks of all ranks: see downbeat_synchronize_abi. */
static inline int downbeat_synchronize(MPI_Comm comm, const char *label, downbeat_clock **clock) {
  return downbeat_synchronize_abi(comm, label, clock, DOWNBEAT_ABI);
}
#endif

#if defined(__GNUC__) && defined(__SIZEOF_INT128__) && defined(__x86_64__)
#define DOWNBEAT_INLINE_COUNTER 1
#elif defined(__GNUC__) && defined(__SIZEOF_INT128__) && defined(__aarch64__)
#define DOWNBEAT_INLINE_COUNTER 2
#else
#define DOWNBEAT_INLINE_COUNTER 0
#endif

#if DOWNBEAT_INLINE_COUNTER
/* Layout 2, and the counter of this processor. */
#define DOWNBEAT_INLINE_TAG ((uint64_t)DOWNBEAT_INLINE_COUNTER << 32 | 2)

/* Reads the counter, ordered after all earlier instructions. */
static inline uint64_t downbeat_inline_ticks(void) {
#if DOWNBEAT_INLINE_COUNTER == 1
  uint32_t low, high, core;
  __asm__ __volatile__("rdtscp" : "=a"(low), "=d"(high), "=c"(core) : : "memory");
  return (uint64_t)high << 32 | low;
#else
  uint64_t ticks;
  __asm__ __volatile__("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
  return ticks;
#endif
}

/* Applies a model with the inline layout to a reading of its counter, and returns 1; returns 0 if the library must do so. */
static inline int downbeat_inline_apply(const downbeat_model *model, uint64_t ticks, int64_t *nanos) {
  __extension__ typedef unsigned __int128 downbeat_uint128;
  for (;;) {
    uint64_t before = __atomic_load_n(&model->sequence, __ATOMIC_ACQUIRE);
    const uint64_t *words = model->copies[before & 1];
    uint64_t whole = __atomic_load_n(words, __ATOMIC_RELAXED);
    uint64_t fraction = __atomic_load_n(words + 1, __ATOMIC_RELAXED);
    uint64_t high = __atomic_load_n(words + 2, __ATOMIC_RELAXED);
    uint64_t low = __atomic_load_n(words + 3, __ATOMIC_RELAXED);
    uint64_t span = __atomic_load_n(words + 4, __ATOMIC_RELAXED);
    uint64_t begins = __atomic_load_n(words + 5, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&model->sequence, __ATOMIC_RELAXED) == before) {
      downbeat_uint128 sum = (downbeat_uint128)ticks * fraction;
      sum += (downbeat_uint128)(high + ticks * whole) << 64 | low;
      *nanos = (int64_t)(uint64_t)(sum >> 64);
      /* Earlier ticks wrap to a large distance. */
      return ticks - begins <= span;
    }
  }
}
#endif

/* Reads the clock of a model, in nanoseconds: as downbeat_clock_now, without a call where that is possible. INT64_MIN if the clock
 * is closed. Any thread may call it at any time. */
static inline int64_t downbeat_model_now(const downbeat_model *model) {
#if DOWNBEAT_INLINE_COUNTER
  if (model != NULL && model->tag == DOWNBEAT_INLINE_TAG) {
    int64_t nanos;
    uint64_t ticks = downbeat_inline_ticks();
    if (downbeat_inline_apply(model, ticks, &nanos)) {
      return nanos;
    }
  }
#endif
  return downbeat_model_read(model);
}

#ifdef __cplusplus
}
#endif

#endif /* DOWNBEAT_H */
