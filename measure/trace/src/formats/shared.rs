//! Traces that ranks share, written with other times.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::{FileError, NewFile};
use downbeat_sync::{Comm, CommError, collective};

use super::TraceFile;
use super::sessions::Sessions;
use crate::array::Access;
use crate::encoding::{Encoded as _, decode_values};
use crate::ranks::{LocationLoad, TracePart, exchange_bytes};
use crate::{Array, LocationId};

impl TraceFile {
    /// Writes the same trace to another file, as [`TraceFile::write_corrected`] does; collective,
    /// with the times of each rank's own locations. Rank 0 writes alone, and has the
    /// times of all ranks in memory: programs write archives.
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
            return Ok(self.write_corrected(to, times, sessions));
        }
        let own = part
            .ids()
            .filter(|location| part.owner(*location) == Some(comm.rank()));
        let own = own.flat_map(|location| times[location.index()].iter());
        let mut boxes = vec![vec![]; comm.size() as usize];
        own.for_each(|time| time.encode(&mut boxes[0]));
        let all = exchange_bytes(comm, boxes).await?;
        if comm.rank() > 0 {
            meet_twice(comm).await?;
            return Ok(Ok(()));
        }
        let mut all: Vec<_> = all.iter().map(|bytes| decode_values(bytes)).collect();
        let times_of = |(location, load): (LocationId, &LocationLoad)| -> Vec<Timestamp<Global>> {
            let owner = part.owner(location).unwrap_or(0);
            let times = all[owner as usize].by_ref().take(load.events as usize);
            times.collect()
        };
        let times: Vec<_> = part.ids().zip(&self.loads).map(times_of).collect();
        let written = self.corrected_file(to, &times, sessions);
        // The file does not appear if a rank is gone by now.
        meet_twice(comm).await?;
        Ok(written.and_then(NewFile::finish))
    }
}

/// Returns when all ranks have called this, and are still there: others come while rank 0
/// writes, and what they sent by then says nothing.
async fn meet_twice<C: Comm>(comm: &C) -> Result<(), CommError> {
    collective::barrier(comm).await?;
    collective::barrier(comm).await
}

#[cfg(test)]
mod tests {
    use std::fs;

    use downbeat_files::Checksums;
    use downbeat_files::testing::TemporaryFolder;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    use super::*;
    use crate::formats::tests::TEXT;
    use crate::ranks::LocationShares;
    use crate::{ClockOwner, Matching, TraceBuilder};

    #[test]
    fn ranks_write_the_trace_that_they_read() {
        let (folder, path) = TemporaryFolder::with_file("a.dbt", TEXT.as_bytes());
        for ranks in 1..4 {
            let out = folder.file("out.dbt");
            let shares =
                LocationShares::new(ranks, ClockOwner::default(), &TraceFile::loads_of(&path));
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
