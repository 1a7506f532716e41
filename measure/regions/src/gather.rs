//! One report of all ranks, in a logarithmic number of rounds.

use core::borrow::Borrow;

use downbeat_sync::{Comm, CommError, collective};

use super::error::RegionError;
use super::profile::Profile;
use super::report::{ProfileReport, RegionAppender, RegionReport};
use super::setup::Overhead;
use super::wire::Wire;

/// Regions are sent in blocks of about so many bytes, so that not all have to be held twice.
const BLOCK: usize = 1 << 20;
/// A block is one region too long; and a region has at most so many bins, groups and runs.
const LONGEST_BLOCK: u64 = 1 << 26;

/// Makes one report of the profiles of all ranks; rank 0 gets it. All ranks must call it, and wait for each other.
///
/// A rank adds to its own part those of the ranks after it, and passes the sum on: no rank holds more than two
/// reports. Regions that only some ranks have are theirs; others take no notice.
///
/// # Errors
/// When the ranks do not count in the same unit, which all of them are told, or a rank is gone.
pub async fn gather<M: Comm>(
    profile: &Profile,
    comm: &M,
) -> Result<Option<ProfileReport>, RegionError> {
    // Each rank's part is of a block of ranks that begins with it: hence not the tree of synchronizations, which hangs
    // the last ranks on the first ones. Lists of ranks can then be appended.
    let (rank, size) = (u64::from(comm.rank()), u64::from(comm.size()));
    let mut part = RankBlock::new(profile);
    let own = || RegionReport::for_rank(profile, comm.rank());
    let mut apart = 1;
    while apart < size && rank & apart == 0 {
        if rank + apart < size {
            if part.report.ranks == 1 {
                part.report.regions = own().collect();
            }
            part.receive(comm, (rank + apart) as u32).await?;
        }
        apart *= 2;
    }
    if rank > 0 {
        let to = (rank - apart) as u32;
        // Who has nothing to add to its own part needs not hold it.
        if part.report.ranks == 1 {
            part.send(own(), comm, to).await?;
        } else {
            part.send(&part.report.regions, comm, to).await?;
        }
    }
    // All the others wait for the last one anyway, but for those who are done early.
    if collective::broadcast(comm, u64::from(part.ticks_agree)).await? == 0 {
        return Err(RegionError::TicksDiffer);
    }
    if part.report.ranks == 1 {
        part.report.regions = own().collect();
    }
    Ok((rank == 0).then_some(part.report))
}

/// What a rank knows of a block of ranks.
struct RankBlock {
    report: ProfileReport,
    ticks_agree: bool,
    /// What came last, for its memory: as bytes, and the last region of it.
    block: Vec<u8>,
    region: RegionReport,
}

/// What is sent before the regions.
type BlockHeader = [u64; 6];

impl RankBlock {
    fn new(profile: &Profile) -> Self {
        Self {
            report: ProfileReport::head_of(profile),
            ticks_agree: true,
            block: vec![],
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

    async fn send<M: Comm, R: Borrow<RegionReport>>(
        &self,
        regions: impl IntoIterator<Item = R>,
        comm: &M,
        to: u32,
    ) -> Result<(), CommError> {
        comm.send(to, self.head()).await?;
        let mut block = Vec::with_capacity(BLOCK + BLOCK / 8);
        for region in regions {
            if block.len() >= BLOCK {
                send_block(&block, true, comm, to).await?;
                block.clear();
            }
            region.borrow().put(&mut block);
        }
        send_block(&block, false, comm, to).await
    }

    /// Adds the part of higher ranks.
    async fn receive<M: Comm>(&mut self, comm: &M, from: u32) -> Result<(), RegionError> {
        let garbled = || RegionError::NotAReport { from };
        let [ranks, tick, agree, within_picos, whole_picos, subtracted]: BlockHeader =
            comm.recv(from).await?;
        let ranks = u32::try_from(ranks).map_err(|_| garbled())?;
        self.ticks_agree &= agree != 0 && tick == self.report.tick.as_nanos() as u64;
        self.report.append_head(
            ranks,
            &Overhead {
                within_picos,
                whole_picos,
                subtracted: subtracted != 0,
            },
        );
        let mut appending = RegionAppender::to(&mut self.report.regions);
        let mut more = true;
        while more {
            more = receive_block(&mut self.block, comm, from).await?;
            let mut rest = &*self.block;
            while !rest.is_empty() {
                self.region.set_from(&mut rest).ok_or_else(garbled)?;
                appending.add(&self.region);
            }
        }
        appending.finish();
        Ok(())
    }
}

/// Says before how long it is, and whether one more follows: a message behind it would be waited for.
async fn send_block<M: Comm>(bytes: &[u8], more: bool, comm: &M, to: u32) -> Result<(), CommError> {
    comm.send(to, [bytes.len() as u64, more.into()]).await?;
    comm.send_bytes(to, bytes).await
}

/// Whether one more follows.
async fn receive_block<M: Comm>(
    block: &mut Vec<u8>,
    comm: &M,
    from: u32,
) -> Result<bool, RegionError> {
    let [length, more]: [u64; 2] = comm.recv(from).await?;
    let length = Some(length)
        .filter(|length| *length <= LONGEST_BLOCK)
        .ok_or(RegionError::NotAReport { from })?;
    block.resize(length as usize, 0);
    comm.recv_bytes(from, block).await?;
    Ok(more != 0)
}
