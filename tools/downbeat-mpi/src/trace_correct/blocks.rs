//! Writing of a file by rank 0, which requests the timestamps of other ranks in blocks, when it needs
//! them.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_common::Failure;
use downbeat_sync::{Comm, CommError, block_on_ready};
use downbeat_trace::formats::{Sessions, TraceFormat};

use super::part::FilePart;

/// Maximum number of timestamps of a location per request: for a thousand locations, they take 32 MB.
const BLOCK: usize = 1 << 12;

/// Index of a location and of the first event to send, or [`DONE`].
type Request = [u64; 2];

/// Last request: rank 0 needs no more timestamps.
const DONE: Request = [u64::MAX; 2];

/// Timestamps that rank 0 has received for a location of another rank.
#[derive(Clone, Debug, Default)]
struct Ahead {
    times: Vec<Timestamp<Global>>,
    next: usize,
    /// Number of timestamps requested so far.
    asked: usize,
}

/// Writes the file on rank 0, with the timestamps of all ranks; the others call [`serve`].
pub(super) fn write<C: Comm>(
    file: &FilePart,
    path: &Path,
    format: TraceFormat,
    own: &[Vec<Timestamp<Global>>],
    sessions: &Sessions,
    comm: &C,
) -> Result<(), Failure> {
    let owners: Vec<u32> = file
        .trace
        .ids()
        .map(|location| file.trace.owner(location).unwrap_or(0))
        .collect();
    let mut ahead = vec![Ahead::default(); owners.len()];
    let mut lost = None;
    let time = |location: u32| {
        let at = location as usize;
        let (owner, events, ahead) = (*owners.get(at)?, file.loads.get(at)?.1, ahead.get_mut(at)?);
        if owner != comm.rank() && ahead.next == ahead.times.len() {
            let count = BLOCK.min((events as usize).saturating_sub(ahead.asked));
            match ask(comm, owner, [location.into(), ahead.asked as u64], count) {
                Ok(times) => (ahead.times, ahead.next) = (times, 0),
                Err(why) => {
                    lost = Some(why);
                    return None;
                }
            }
            ahead.asked += count;
        }
        let times = if owner == comm.rank() {
            own.get(at)?
        } else {
            &ahead.times
        };
        let time = times.get(ahead.next).copied();
        ahead.next += 1;
        time
    };
    let written = file
        .write_with(path, format, time, sessions)
        .map_err(Failure::run);
    for other in 1..comm.size() {
        block_on_ready(comm.send(other, DONE)).map_err(Failure::run)?;
    }
    lost.map_or(written, |why| Err(Failure::run(why)))
}

fn ask<C: Comm>(
    comm: &C,
    owner: u32,
    request: Request,
    count: usize,
) -> Result<Vec<Timestamp<Global>>, CommError> {
    let mut bytes = vec![0; count * size_of::<i64>()];
    if count > 0 {
        block_on_ready(async {
            comm.send(owner, request).await?;
            comm.recv_bytes(owner, &mut bytes).await
        })?;
    }
    Ok(bytes
        .as_chunks()
        .0
        .iter()
        .map(|nanos| Timestamp::from_nanos(i64::from_le_bytes(*nanos)))
        .collect())
}

/// Answers the requests of rank 0 for timestamps, until it sends [`DONE`].
pub(super) fn serve<C: Comm>(own: &[Vec<Timestamp<Global>>], comm: &C) -> Result<(), Failure> {
    block_on_ready(async {
        loop {
            let request: Request = comm.recv(0).await?;
            if request == DONE {
                return Ok(());
            }
            let [location, from] = request.map(|number| number as usize);
            let times = own
                .get(location)
                .and_then(|times| times.get(from..))
                .unwrap_or_default();
            let block = &times[..BLOCK.min(times.len())];
            let bytes: Vec<u8> = block
                .iter()
                .flat_map(|time| time.as_nanos().to_le_bytes())
                .collect();
            comm.send_bytes(0, &bytes).await?;
        }
    })
    .map_err(|why: CommError| Failure::run(why))
}
