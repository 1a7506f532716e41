//! Where a parallel program loses its time: a stencil code, whose regions are timed, on three threads.
//!
//! `cargo run --release -p downbeat-regions --features json,ranks --example stencil`, where the last rank has no work; and the
//! same with `-- --balanced`. `--save FILE` keeps the report for `downbeat regions show`. The same program over MPI is
//! `stencil_mpi`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod heat;
mod stencil_program;

use downbeat_sync::{ThreadCluster, ThreadComm, block_on_ready};
use heat::spread;
use stencil_program::{Failure, Options, conclude, configure};

fn main() -> Result<(), Failure> {
    let options = Options::from_arguments(std::env::args())?;
    configure()?;
    let shown = ThreadCluster::new(3).run(|comm: &ThreadComm| {
        block_on_ready(async {
            let outcome = spread(options.deal, comm).await?;
            // Ranks that are threads have a profile each.
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
