
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
