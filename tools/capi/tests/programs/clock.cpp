// Clocks that close themselves, exceptions, and <chrono>.
#include <downbeat.hpp>

#include <type_traits>
#include <vector>

#include "check.h"

static_assert(!std::is_copy_constructible<downbeat::clock>::value, "a clock is closed once");
static_assert(std::is_nothrow_move_constructible<downbeat::clock>::value, "a clock is moved");

int main() {
  downbeat::clock clock("monotonic");
  auto start = clock.now();
  auto late = clock.wait_until(start + std::chrono::microseconds(200)) - start;
  CHECK(late >= std::chrono::microseconds(200));
  CHECK(clock.now_with_error().second.count() == 0);
  auto bounds = clock.now_with_bounds();
  CHECK(bounds.first > start && bounds.second >= bounds.first);

  std::vector<downbeat::clock> clocks;
  clocks.push_back(std::move(clock));
  CHECK(clock.handle() == nullptr && downbeat_model_now(clocks[0].model()) > 0);
  clocks[0] = downbeat::clock();
  auto earlier = clocks[0].now();
  CHECK(earlier <= clocks[0].now());

  try {
    downbeat::clock none("sundial");
    CHECK(!"an exception");
  } catch (const downbeat::error &why) {
    CHECK(why.status() == DOWNBEAT_ERROR_ARGUMENT);
    CHECK(std::string(why.what()).find("sundial") != std::string::npos);
  }
  try {
    downbeat::global_clock::now();
    CHECK(!"an exception");
  } catch (const downbeat::error &why) {
    CHECK(why.status() == DOWNBEAT_ERROR_NOT_SYNCHRONIZED);
  }
  static const downbeat::timer solve("solve");
  for (int i = 0; i < 3; i++) downbeat::timed_scope scope(solve);
  CHECK(downbeat::report_timers().find("solve") != std::string::npos);
  std::puts("all checks passed");
}
