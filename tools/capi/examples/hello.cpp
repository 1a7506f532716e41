#include <mpi.h>
#include <downbeat.hpp>
#include <iostream>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  {
    downbeat::clock clock(MPI_COMM_WORLD);
    std::cout << downbeat::global_clock::now().time_since_epoch().count() << " ns\n";
  }
  MPI_Finalize();
}
