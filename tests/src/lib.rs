//! Tests that span crates; they are in `tests/`.
//!
//! A test target with `harness = false` that requires the feature `mpi` is a program for `mpirun`: `cargo xtask test`
//! runs it under 1, 2, 3, 4, 5 and 8 ranks of each MPI library, and expects its rank 0 to print the number of ranks, as
//! in `rank 0 of 3`. The other two, `mpi_program` and `installed`, start `mpirun` themselves.
