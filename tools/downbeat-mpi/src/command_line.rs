//! The command line, which all ranks read.

use std::env;

use clap::{Parser, Subcommand};
use downbeat_common::{Failure, agree, block_on_ready_failure, cli};
use downbeat_sync::{MpiComm, block_on_ready, collective};

use crate::ranks::number_of;
use crate::{bench, drift, imbalance, sync, trace_correct};

/// One global clock for the ranks of an MPI job.
#[derive(Debug, Parser)]
#[command(
    name = "downbeat-mpi",
    version,
    after_help = "Example:\n  mpirun -np 4 downbeat-mpi sync --algorithm hca3/1000/skampi/100 --check 0,10s --repeat 10"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Gives all ranks one clock, by each of the algorithms asked for, and shows how far apart it is afterwards
    Sync(Box<sync::Options>),
    /// Measures how long operations of the MPI library take
    Bench(Box<bench::Options>),
    /// Shows how far apart ranks leave barriers, and what that does to measurements behind them
    Imbalance(Box<imbalance::Options>),
    /// Shows how the clocks of the ranks drift apart over minutes, and what a line leaves of that
    Drift(Box<drift::Options>),
    /// Corrects times of a trace, whose events the ranks share, so that no message arrives before it can have arrived
    TraceCorrect(Box<trace_correct::Options>),
}

/// Does what the command line asks for. All ranks fail or none.
pub(crate) fn run(comm: &MpiComm) -> Result<(), Failure> {
    let arguments: Arguments = block_on_ready_failure(agree(comm, cli::parse()))?;
    // A launcher can start every rank with other options.
    let options = number_of(&env::args().skip(1).collect::<Vec<_>>());
    if !block_on_ready(collective::all_equal(comm, options)).map_err(Failure::run)? {
        return Err(Failure::Input(
            "the ranks were given different options".to_owned(),
        ));
    }
    match arguments.command {
        Command::Sync(options) => sync::run(&options, comm),
        Command::Bench(options) => bench::run(&options, comm),
        Command::Imbalance(options) => imbalance::run(&options, comm),
        Command::Drift(options) => drift::run(&options, comm),
        Command::TraceCorrect(options) => trace_correct::run(&options, comm),
    }
}
