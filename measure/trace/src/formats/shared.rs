//! Traces that ranks share, written with other times.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use downbeat_sync::{Comm, CommError};

use super::sessions::Sessions;
use super::{TraceFile, requests, write_corrected};
use crate::Array;
use crate::array::Access;
use crate::ranks::TracePart;

impl TraceFile<()> {
    /// Writes the same trace to another file, as [`TraceFile::write_corrected`] does; collective,
    /// with the times of each rank's own locations. Rank 0
    /// writes alone.
    ///
    /// # Errors
    /// If a rank is gone. An error of writing the file is returned on rank 0 only.
    pub async fn write_part<C: Comm>(
        &self,
        part: &TracePart,
        to: &Path,
        times: &[Array<Timestamp<Global>>],
        sessions: &Sessions,
        comm: &C,
    ) -> Result<Result<(), FileError>, CommError> {
        if comm.size() == 1 {
            // In the order of the file.
            part.store.expect(Access::InTurns);
            let paths = [&self.path, to];
            return Ok(write_corrected(paths, times, sessions));
        }
        match comm.rank() {
            0 => requests::write(self, part, to, times, sessions, comm).await,
            _ => requests::serve(times, comm).await.map(Ok),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use downbeat_files::Checksums;
    use downbeat_files::testing::Folder;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    use super::*;
    use crate::formats::tests::TEXT;
    use crate::ranks::Shares;
    use crate::{ClockOwner, Matching, TraceBuilder};

    #[test]
    fn ranks_write_the_trace_that_they_read() {
        let (folder, path) = Folder::with("a.dbt", TEXT.as_bytes());
        for ranks in 1..4 {
            let out = folder.file("out.dbt");
            let shares = Shares::new(ranks, ClockOwner::default(), &TraceFile::loads_of(&path));
            let written = ThreadCluster::new(ranks).run(|comm| {
                let builder = TraceBuilder::new(Matching::default());
                let mut builder = builder.for_rank(comm.rank(), shares.clone());
                let file = TraceFile::load(&path, &mut builder, Checksums::Verify).unwrap();
                let part = block_on_ready(builder.finish_on_ranks(comm)).unwrap();
                let locations = part.locations().iter();
                let times: Vec<Array<_>> = locations
                    .map(|of| of.times().iter().copied().collect())
                    .collect();
                let written = file.write_part(&part, &out, &times, &file.sessions, comm);
                block_on_ready(written).unwrap().unwrap();
            });
            written.unwrap();
            assert_eq!(fs::read_to_string(&out).unwrap(), TEXT);
            fs::remove_file(out).unwrap();
        }
    }
}
