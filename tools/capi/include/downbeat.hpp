// libdownbeat for C++11: clocks that close themselves, exceptions, and a clock for <chrono>.
//
// MPI programs include <mpi.h> first, or define DOWNBEAT_MPI.
#ifndef DOWNBEAT_HPP
#define DOWNBEAT_HPP

#include "downbeat.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace downbeat {

// A call failed, for the reason in what().
class error : public std::runtime_error {
 public:
  explicit error(int status)
      : std::runtime_error(std::string(downbeat_status_name(status)) + ": " + downbeat_error_message()),
        status_(status) {}

  int status() const noexcept { return status_; }

 private:
  int status_;
};

inline void check(int status) {
  if (status != DOWNBEAT_OK) throw error(status);
}

// The clock that was synchronized last, for <chrono>: time since the first synchronization, the same on all ranks. Its time steps
// when it is synchronized again. now() throws before any synchronization.
struct global_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<global_clock>;
  static constexpr bool is_steady = false;

  static time_point now() {
    downbeat_clock *clock = nullptr;
    std::int64_t nanos = 0;
    check(downbeat_global_clock(&clock));
    check(downbeat_clock_now(clock, &nanos));
    return time_point(duration(nanos));
  }
};

// A clock, which is closed with this object.
class clock {
 public:
  using time_point = global_clock::time_point;

  // Opens a clock of this process by its name, as "tsc"; the recommended one by default.
  explicit clock(const char *name = nullptr) { check(downbeat_clock_open(name, &handle_)); }

#if defined(DOWNBEAT_MPI)
  // Synchronizes the clocks of all ranks of a communicator by an algorithm, as "hca3".
  explicit clock(MPI_Comm comm, const char *label = nullptr) {
    check(downbeat_synchronize(comm, label, &handle_));
  }

  // Synchronizes the clock again.
  void resynchronize(MPI_Comm comm) { check(downbeat_resynchronize(handle_, comm)); }
#endif

  clock(clock &&other) noexcept { std::swap(handle_, other.handle_); }
  clock &operator=(clock &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  clock(const clock &) = delete;
  clock &operator=(const clock &) = delete;
  ~clock() {
    if (handle_ != nullptr) downbeat_clock_close(handle_);
  }

  time_point now() const {
    std::int64_t nanos = 0;
    check(downbeat_clock_now(handle_, &nanos));
    return at(nanos);
  }

  // The time, and its largest error relative to rank 0.
  std::pair<time_point, std::chrono::nanoseconds> now_with_error() const {
    std::int64_t nanos = 0, largest = 0;
    check(downbeat_clock_now_with_error(handle_, &nanos, &largest));
    return std::make_pair(at(nanos), std::chrono::nanoseconds(largest));
  }

  // The earliest and the latest time that rank 0 can show now.
  std::pair<time_point, time_point> now_with_bounds() const {
    std::int64_t earliest = 0, latest = 0;
    check(downbeat_clock_now_with_bounds(handle_, &earliest, &latest));
    return std::make_pair(at(earliest), at(latest));
  }

  // Spins until the clock shows this time, and returns the time that it shows then.
  time_point wait_until(time_point time) const {
    std::int64_t reached = 0;
    check(downbeat_clock_wait_until(handle_, time.time_since_epoch().count(), &reached));
    return at(reached);
  }

  // The model, for downbeat_model_now.
  const downbeat_model *model() const {
    const downbeat_model *model = nullptr;
    check(downbeat_clock_model(handle_, &model));
    return model;
  }

  downbeat_clock *handle() const noexcept { return handle_; }

 private:
  static time_point at(std::int64_t nanos) { return time_point(std::chrono::nanoseconds(nanos)); }

  downbeat_clock *handle_ = nullptr;
};

// A timer of the regions with one name; keep it, as in a static variable.
class timer {
 public:
  explicit timer(const char *name) { check(downbeat_get_timer(name, &handle_)); }

  downbeat_timer *handle() const noexcept { return handle_; }

 private:
  downbeat_timer *handle_ = nullptr;
};

// Times a scope as an event of a timer.
class timed_scope {
 public:
  explicit timed_scope(const timer &timer) : handle_(timer.handle()) { downbeat_start_timer(handle_); }
  timed_scope(const timed_scope &) = delete;
  timed_scope &operator=(const timed_scope &) = delete;
  ~timed_scope() { downbeat_stop_timer(handle_); }

 private:
  downbeat_timer *handle_;
};

// Returns a text of the library as a string, and frees it.
inline std::string take_text(char *text) {
  std::string copy(text == nullptr ? "" : text);
  downbeat_free_text(text);
  return copy;
}

// A report of all timers of this process.
inline std::string report_timers() {
  char *text = nullptr;
  check(downbeat_report_timers(&text));
  return take_text(text);
}

#if defined(DOWNBEAT_MPI)
// A report of the timers of all ranks of a communicator on its rank 0; empty on the others. Collective.
inline std::string report_timers(MPI_Comm comm) {
  char *text = nullptr;
  check(downbeat_report_timers_over(comm, &text));
  return take_text(text);
}
#endif

#if defined(DOWNBEAT_MPI)
// The ranks of a communicator that share a clock, which outlives this object. All of them create and destroy it, on one thread.
class team {
 public:
  team(const clock &clock, MPI_Comm comm) { check(downbeat_team_open(clock.handle(), comm, &handle_)); }
  team(const team &) = delete;
  team &operator=(const team &) = delete;
  ~team() { downbeat_team_close(handle_); }

  // Keeps the clock: makes a session if this time has passed since the last one. Returns true if there was one.
  bool keep(std::chrono::nanoseconds period) { return session(period.count() > 0 ? period.count() : 1); }

  // Makes a session now.
  bool keep_now() { return session(0); }

  // Returns at one instant on all ranks; by how much this rank missed it, 0 if it did not. The clock is synchronized again where it may be
  // off by more than max_error.
  std::chrono::nanoseconds harmonize(std::chrono::nanoseconds max_error) {
    std::int64_t missed_by = 0;
    check(downbeat_harmonize(handle_, max_error.count(), &missed_by));
    return std::chrono::nanoseconds(missed_by);
  }

 private:
  bool session(std::int64_t period) {
    int kept = 0;
    check(downbeat_keep(handle_, period, &kept));
    return kept != 0;
  }

  downbeat_team *handle_ = nullptr;
};
#endif

}  // namespace downbeat

#endif  // DOWNBEAT_HPP
