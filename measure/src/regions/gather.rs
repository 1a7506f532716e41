//! One report of all ranks, in a logarithmic number of rounds.

use core::fmt;

use downbeat_sync::{Comm, CommError, collective};

use super::profile::Profile;
use super::report::{RegionReport, Report};
use super::setup::Overhead;
use super::wire::Wire;

/// Regions are sent in blocks of about so many bytes, so that none has to be held twice.
const BLOCK: usize = 1 << 16;
/// A block is one region too long; and a region has at most so many bins, groups and runs.
const LONGEST_BLOCK: u64 = 1 << 26;

/// Why there is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatherError {
    /// A message did not get through.
    Comm(CommError),
    /// The ranks do not count in the same unit.
    DifferentTicks,
    /// A rank sent something else than a report.
    NoReport {
        /// Which.
        from: u32,
    },
}

impl fmt::Display for GatherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comm(why) => why.fmt(f),
            Self::DifferentTicks => f.write_str("the ranks were not told the same length of a tick"),
            Self::NoReport { from } => write!(f, "rank {from} sent something else than a report"),
        }
    }
}

impl core::error::Error for GatherError {}

impl From<CommError> for GatherError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}

/// Makes one report of the profiles of all ranks; rank 0 gets it. All ranks must call it.
///
/// A rank adds to its own part those of the ranks after it, and passes the sum on: no rank holds more than two
/// reports. Regions that only some ranks have are theirs; others take no notice.
///
/// # Errors
/// When the ranks do not count in the same unit, which all of them are told, or a rank is gone.
pub async fn gather<M: Comm>(profile: &Profile, comm: &M) -> Result<Option<Report>, GatherError> {
    if !collective::all_equal(comm, profile.tick.as_nanos() as u64).await? {
        return Err(GatherError::DifferentTicks);
    }
    // Each rank's part is of a block of ranks that begins with it: hence not the tree of synchronizations, which hangs
    // the last ranks on the first ones. Lists of ranks can then be appended.
    let (rank, size) = (u64::from(comm.rank()), u64::from(comm.size()));
    let mut report = Report::of_rank(profile, comm.rank());
    let mut apart = 1;
    while apart < size {
        if rank & apart != 0 {
            send(&report, comm, (rank - apart) as u32).await?;
            return Ok(None);
        }
        if rank + apart < size {
            receive(&mut report, comm, (rank + apart) as u32).await?;
        }
        apart *= 2;
    }
    Ok(Some(report))
}

/// A report's part, without what all ranks have in common.
async fn send<M: Comm>(report: &Report, comm: &M, to: u32) -> Result<(), CommError> {
    let mut block = vec![];
    report.ranks.put(&mut block);
    report.overhead.put(&mut block);
    for region in &report.regions {
        if block.len() >= BLOCK {
            send_block(&block, comm, to).await?;
            block.clear();
        }
        region.put(&mut block);
    }
    send_block(&block, comm, to).await?;
    // One that is empty is the end.
    send_block(&[], comm, to).await
}

async fn receive<M: Comm>(report: &mut Report, comm: &M, from: u32) -> Result<(), GatherError> {
    let garbled = || GatherError::NoReport { from };
    let mut block = receive_block(comm, from).await?;
    let mut rest = &*block;
    let head = u32::get(&mut rest).zip(Overhead::get(&mut rest));
    let (ranks, overhead) = head.ok_or_else(garbled)?;
    report.append_head(ranks, &overhead);
    let mut regions = vec![];
    loop {
        while !rest.is_empty() {
            regions.push(RegionReport::get(&mut rest).ok_or_else(garbled)?);
        }
        block = receive_block(comm, from).await?;
        if block.is_empty() {
            break;
        }
        rest = &block;
    }
    report.append_regions(regions);
    Ok(())
}

async fn send_block<M: Comm>(bytes: &[u8], comm: &M, to: u32) -> Result<(), CommError> {
    comm.send(to, bytes.len() as u64).await?;
    comm.send_bytes(to, bytes).await
}

async fn receive_block<M: Comm>(comm: &M, from: u32) -> Result<Vec<u8>, GatherError> {
    let length: u64 = comm.recv(from).await?;
    let length = Some(length).filter(|length| *length <= LONGEST_BLOCK).ok_or(GatherError::NoReport { from })?;
    let mut bytes = vec![0; length as usize];
    comm.recv_bytes(from, &mut bytes).await?;
    Ok(bytes)
}
