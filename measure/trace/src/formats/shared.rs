//! Traces that ranks share, written with other times.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use downbeat_sync::{Comm, CommError};

use super::sessions::Sessions;
use super::{TraceFile, requests, write_corrected};
use crate::Array;
use crate::array::Access;
use crate::distributed::TracePart;

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
            part.as_ref().store.expect(Access::InTurns);
            let paths = [&self.path, to];
            return Ok(write_corrected(paths, times, sessions));
        }
        match comm.rank() {
            0 => requests::write(self, part, to, times, sessions, comm).await,
            _ => requests::serve(times, comm).await.map(Ok),
        }
    }
}
