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
/// Words of a message.
const WORDS: usize = downbeat_sync::MAX_WORDS;
const WORD: usize = size_of::<u64>();

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

/// Bytes, as many messages as they need: the first says how many there are.
async fn send_block<M: Comm>(bytes: &[u8], comm: &M, to: u32) -> Result<(), CommError> {
    let (first, rest) = bytes.split_at(bytes.len().min((WORDS - 1) * WORD));
    let mut words = [0; WORDS];
    words[0] = bytes.len() as u64;
    fill(&mut words[1..], first);
    comm.send(to, words).await?;
    for part in rest.chunks(WORDS * WORD) {
        let mut words = [0; WORDS];
        fill(&mut words, part);
        comm.send(to, words).await?;
    }
    Ok(())
}

async fn receive_block<M: Comm>(comm: &M, from: u32) -> Result<Vec<u8>, GatherError> {
    let first: [u64; WORDS] = comm.recv(from).await?;
    let length = Some(first[0]).filter(|length| *length <= LONGEST_BLOCK).ok_or(GatherError::NoReport { from })?;
    let length = length as usize;
    let mut bytes = Vec::with_capacity(length + WORDS * WORD);
    bytes.extend(first[1..].iter().flat_map(|word| word.to_le_bytes()));
    while bytes.len() < length {
        let words: [u64; WORDS] = comm.recv(from).await?;
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn fill(words: &mut [u64], bytes: &[u8]) {
    for (word, part) in words.iter_mut().zip(bytes.chunks(WORD)) {
        let mut whole = [0; WORD];
        whole[..part.len()].copy_from_slice(part);
        *word = u64::from_le_bytes(whole);
    }
}
