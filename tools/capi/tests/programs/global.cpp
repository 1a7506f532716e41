// A global clock over MPI in C++. Prints `rank 0 of N` once.
#include <mpi.h>

#include <downbeat.hpp>

#include "check.h"

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  {
    downbeat::clock clock(MPI_COMM_WORLD);
    auto start = downbeat::global_clock::now();
    clock.resynchronize(MPI_COMM_WORLD);
    auto reached = clock.wait_until(start + std::chrono::milliseconds(5));
    CHECK(reached - start >= std::chrono::milliseconds(5));
    {
      downbeat::team team(clock, MPI_COMM_WORLD);
      CHECK(team.keep_now());
      CHECK(!team.keep(std::chrono::hours(1)));
      CHECK(team.harmonize(std::chrono::seconds(1)).count() >= 0);
    }
    try {
      downbeat::clock none(MPI_COMM_WORLD, "hca4");
      CHECK(!"an exception");
    } catch (const downbeat::error &why) {
      CHECK(why.status() == DOWNBEAT_ERROR_RANKS);
    }
  }
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) std::printf("rank 0 of %d: all checks passed\n", size);
  MPI_Finalize();
}
