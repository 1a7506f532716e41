//! Tests that no single crate can hold; they are in `tests/`.
//!
//! A test target with `harness = false` that requires the feature `mpi` is a program for `mpirun`: `cargo xtask test`
//! runs it under 1, 2, 3, 4, 5 and 8 ranks of each MPI library, and wants its rank 0 to say how many ranks it saw, as
//! in `rank 0 of 3`.
