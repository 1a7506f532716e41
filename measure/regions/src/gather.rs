//! Merging the profiles of all ranks in a logarithmic number of rounds.

use downbeat_sync::{Comm, CommError, block_on_ready, collective};

use super::error::RegionError;
use super::profile::{Profile, RegionProfile};
use super::report::{ProfileReport, RegionAppender, RegionReport};
use super::setup::Overhead;
use super::wire::{self, Wire};

/// Number of consecutive ranks whose profiles the first of them merges by itself, before reports are merged by a tree. A profile has
/// less than half of the bytes of a report, and is merged without making one.
const TOGETHER: u64 = 8;
/// Approximate size of a message. Regions are sent in blocks, so that not all are in memory twice.
const BLOCK: usize = 1 << 20;
/// Maximum size of a message: a block may exceed its size by one region, which has a bounded number
/// of bins, groups and runs.
const LONGEST_BLOCK: u64 = 1 << 26;

/// Merges the profiles of all ranks into one report on rank 0. Collective: all ranks must call it.
///
/// A rank merges the profiles or reports of the ranks after it into its own and sends the result on: no rank
/// holds more than two reports. A region does not need to exist on all ranks.
///
/// # Errors
/// On all ranks, if their ticks differ; if a message fails, or a rank sends something else than a
/// report.
pub async fn gather<M: Comm>(
    profile: &Profile,
    comm: &M,
) -> Result<Option<ProfileReport>, RegionError> {
    // Each rank merges a block of consecutive ranks that begins with itself, so that lists of ranks
    // can be appended. The tree of the synchronization algorithms does not have this property.
    let (rank, size) = (u64::from(comm.rank()), u64::from(comm.size()));
    let mut part = RankBlock::new(profile);
    let is_first = rank.is_multiple_of(TOGETHER);
    if is_first {
        part.report.regions = RegionReport::for_rank(profile, comm.rank()).collect();
        for other in rank + 1..size.min(rank + TOGETHER) {
            part.receive(comm, other as u32).await?;
        }
    }
    let mut apart = TOGETHER;
    while is_first && apart < size && rank & apart == 0 {
        if rank + apart < size {
            part.receive(comm, (rank + apart) as u32).await?;
        }
        apart *= 2;
    }
    if rank > 0 {
        let to = match is_first {
            true => rank - apart,
            false => rank - rank % TOGETHER,
        } as u32;
        if part.report.ranks == 1 {
            part.send(profile.regions(), comm, to).await?;
        } else {
            part.send(&part.report.regions, comm, to).await?;
        }
    }
    // The ranks wait for the slowest one here, so that all can report the error.
    if !collective::broadcast(comm, part.ticks_agree).await? {
        return Err(RegionError::TicksDiffer);
    }
    Ok((rank == 0).then_some(part.report))
}

/// Merges the profiles of all threads of all ranks into one report on rank 0. All ranks call this.
///
/// # Errors
/// As [`gather`].
pub fn report_over<M: Comm>(comm: &M) -> Result<Option<ProfileReport>, RegionError> {
    block_on_ready(gather(&crate::profile(), comm))
}

/// Merged profiles of a block of ranks.
struct RankBlock {
    report: ProfileReport,
    ticks_agree: bool,
    /// Buffers for received data, kept to reuse their memory: the bytes, and one region.
    block: Vec<u8>,
    of_rank: RegionProfile,
    region: RegionReport,
}

/// Message before the regions.
type BlockHeader = [u64; 6];

impl RankBlock {
    fn new(profile: &Profile) -> Self {
        Self {
            report: ProfileReport::without_regions(profile),
            ticks_agree: true,
            block: vec![],
            of_rank: RegionProfile::blank(),
            region: RegionReport::blank(),
        }
    }

    fn head(&self) -> BlockHeader {
        let ProfileReport {
            ranks,
            tick,
            overhead,
            ..
        } = &self.report;
        let Overhead {
            within_picos,
            whole_picos,
            subtracted,
        } = *overhead;
        let [agree, subtracted] = [self.ticks_agree, subtracted].map(u64::from);
        [
            (*ranks).into(),
            tick.as_nanos() as u64,
            agree,
            within_picos,
            whole_picos,
            subtracted,
        ]
    }

    /// Sends the regions: those of one rank as its profile has them.
    async fn send<M: Comm, R: Wire>(
        &self,
        regions: &[R],
        comm: &M,
        to: u32,
    ) -> Result<(), CommError> {
        comm.send(to, self.head()).await?;
        let mut block = Vec::with_capacity(BLOCK + BLOCK / 8);
        self.report.warning.put(&mut block);
        for region in regions {
            if block.len() >= BLOCK {
                send_block(&block, true, comm, to).await?;
                block.clear();
            }
            region.put(&mut block);
        }
        send_block(&block, false, comm, to).await
    }

    /// Receives and merges the block of higher ranks.
    async fn receive<M: Comm>(&mut self, comm: &M, from: u32) -> Result<(), RegionError> {
        let not_a_report = || RegionError::NotAReport { from };
        let [ranks, tick, agree, within_picos, whole_picos, subtracted]: BlockHeader =
            comm.recv(from).await?;
        let ranks = u32::try_from(ranks).map_err(|_| not_a_report())?;
        self.ticks_agree &= agree != 0 && tick == self.report.tick.as_nanos() as u64;
        self.report.append_summary(
            ranks,
            &Overhead {
                within_picos,
                whole_picos,
                subtracted: subtracted != 0,
            },
        );
        let mut more = receive_block(&mut self.block, comm, from).await?;
        let mut rest = &*self.block;
        let warning = wire::taken::<Option<String>>(&mut rest).ok_or_else(not_a_report)?;
        self.report.warn(warning);
        let mut appending = RegionAppender::to(&mut self.report.regions);
        loop {
            while !rest.is_empty() {
                let added = if ranks == 1 {
                    let decoded = self.of_rank.set_from(&mut rest);
                    decoded.map(|()| appending.add_of_rank(from, &self.of_rank))
                } else {
                    let decoded = self.region.set_from(&mut rest);
                    decoded.map(|()| appending.add(&self.region))
                };
                added.ok_or_else(not_a_report)?;
            }
            if !more {
                break;
            }
            more = receive_block(&mut self.block, comm, from).await?;
            rest = &*self.block;
        }
        appending.finish();
        Ok(())
    }
}

/// Sends the length and a flag, true if another block follows, and then the bytes.
async fn send_block<M: Comm>(bytes: &[u8], more: bool, comm: &M, to: u32) -> Result<(), CommError> {
    comm.send(to, [bytes.len() as u64, more.into()]).await?;
    for part in bytes.chunks(BLOCK) {
        comm.send_bytes(to, part).await?;
    }
    Ok(())
}

/// Receives a block; returns true if another one follows.
async fn receive_block<M: Comm>(
    block: &mut Vec<u8>,
    comm: &M,
    from: u32,
) -> Result<bool, RegionError> {
    let [length, more]: [u64; 2] = comm.recv(from).await?;
    let length = Some(length)
        .filter(|length| *length <= LONGEST_BLOCK)
        .ok_or(RegionError::NotAReport { from })?;
    // In parts: a wrong length takes no memory for bytes that never come.
    block.clear();
    while block.len() < length as usize {
        let start = block.len();
        block.resize((start + BLOCK).min(length as usize), 0);
        comm.recv_bytes(from, &mut block[start..]).await?;
    }
    Ok(more != 0)
}
