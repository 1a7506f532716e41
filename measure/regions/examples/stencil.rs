//! Load imbalance of a parallel program: a stencil code with timed regions on three threads.
//!
//! Run `cargo run --release -p downbeat-regions --features json,ranks --example stencil`: the last
//! rank has no work. With `-- --balanced`, all ranks have the same work. `--save FILE` keeps the
//! report for `downbeat regions show`. `stencil_mpi` is the same program over MPI.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod heat;
mod stencil_program;

use downbeat_sync::{ThreadCluster, ThreadComm, block_on_ready};
use heat::spread;
use stencil_program::{StencilFailure, StencilOptions, conclude, configure};

fn main() -> Result<(), StencilFailure> {
    let options = StencilOptions::from_arguments(std::env::args())?;
    configure()?;
    let shown = ThreadCluster::new(3).run(|comm: &ThreadComm| {
        block_on_ready(async {
            let outcome = spread(options.deal, comm).await?;
            // Ranks that are threads have one profile each.
            conclude(
                outcome,
                &downbeat_regions::profile_of_this_thread(),
                &options,
                comm,
            )
            .await
        })
    })?;
    for shown in shown {
        print!("{}", shown?.unwrap_or_default());
    }
    Ok(())
}
