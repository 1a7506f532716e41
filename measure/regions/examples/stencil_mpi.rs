//! Load imbalance of a parallel program: a stencil code with timed regions over MPI.
//!
//! Run `cargo build --release -p downbeat-regions --features json,mpi --example stencil_mpi`, and
//! then `mpirun -np 3 target/release/examples/stencil_mpi`: the last rank has no work. With
//! `--balanced`, all ranks have the same work. `--save FILE` keeps the report for `downbeat regions
//! show`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod heat;
mod stencil_program;

use downbeat_sync::{MpiComm, block_on_ready};
use heat::spread;
use stencil_program::{StencilFailure, StencilOptions, conclude, configure};

fn main() -> Result<(), StencilFailure> {
    let options = StencilOptions::from_arguments(std::env::args())?;
    let universe = mpi::initialize().ok_or("MPI was initialized already")?;
    let comm = MpiComm::duplicate(&universe.world())?;
    configure()?;
    let outcome = block_on_ready(spread(options.deal, &comm))?;
    let shown = block_on_ready(conclude(
        outcome,
        &downbeat_regions::profile(),
        &options,
        &comm,
    ));
    print!("{}", shown?.unwrap_or_default());
    Ok(())
}
