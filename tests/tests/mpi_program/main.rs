//! Tests of the MPI program: started by `mpirun`, with good input and bad, with ranks that die and interrupts.
//!
//! `cargo xtask test` builds the programs, runs this for each MPI library, and passes the paths in the environment
//! variables of [`downbeat_launch::environment`].

#![expect(clippy::print_stdout, reason = "shown when a test fails")]

mod batch_jobs;
mod bench;
mod bench_input;
mod bench_records;
mod eztrace;
mod imbalance_and_drift;
mod job;
mod keep;
mod launchers;
mod nodes;
mod offsets;
mod outputs;
mod packaging;
mod plug_ins;
mod presets;
mod several_hosts;
mod sync;
mod trace_correct;
mod widths;
