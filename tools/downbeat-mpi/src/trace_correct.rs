//! `downbeat-mpi trace-correct`: correction of a trace whose locations are divided among ranks, with
//! the same result as in a single process.

use clap::Args;
use downbeat_common::trace::CorrectionOptions;
use downbeat_common::{Failure, agree};
use downbeat_sync::{Comm, MpiComm, block_on_ready};
use downbeat_trace::ArrayStore;

#[derive(Args, Debug)]
#[command(
    override_usage = "downbeat-mpi trace-correct [OPTIONS] \\\n           --output <OUT> <IN>",
    after_help = "The output is the same as that of downbeat trace correct, to the byte. The processes of the trace are divided \
                  among the ranks; each rank reads, corrects and writes its own locations of an OTF2 archive, which is named by its folder or \
                  its anchor file NAME.otf2. Every rank reads the whole of a text file, and rank 0 writes it.\n\n\
                  Example:\n  downbeat trace generate -o wrong && \\\n    \
                  mpirun -np 4 downbeat-mpi trace-correct wrong -o right"
)]
pub(crate) struct MpiTraceCorrectOptions {
    #[command(flatten)]
    correction: CorrectionOptions,
    /// Number of threads of each rank; the result does not depend on it
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), allow_hyphen_values = true)]
    threads: u32,
}

pub(crate) fn run(options: &MpiTraceCorrectOptions, comm: &MpiComm) -> Result<(), Failure> {
    block_on_ready(options.run(comm))
}

impl MpiTraceCorrectOptions {
    async fn run<C: Comm>(&self, comm: &C) -> Result<(), Failure> {
        let is_first = comm.rank() == 0;
        // Only rank 0 creates output.
        let begun = is_first.then(|| self.correction.begin()).transpose();
        let _unfinished = agree(comm, begun).await?;
        let corrected = self
            .correction
            .correct(self.threads as usize, &ArrayStore::MEMORY, comm);
        let document = corrected.await?;
        let shown = match is_first {
            true => self.correction.show(&document),
            false => Ok(()),
        };
        agree(comm, shown).await
    }
}
