//! Files that rank 0 writes alone: it requests the times of other ranks in blocks, when it needs
//! them.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use downbeat_sync::{Comm, CommError, block_on_ready};

use super::file::copy;
use super::sessions::changed;
use super::{Sessions, TraceFile};
use crate::Array;
use crate::ranks::TracePart;

/// Maximum number of times of a location per request: for a thousand locations, they take 32 MB.
const BLOCK: usize = 1 << 12;

/// Index of a location and of the first event to send, or [`DONE`].
type Request = [u64; 2];

/// Last request: rank 0 needs no more times.
const DONE: Request = [u64::MAX; 2];

/// Times that rank 0 has received for a location of another rank.
#[derive(Clone, Debug, Default)]
struct Ahead {
    times: Vec<Timestamp<Global>>,
    next: usize,
    /// Number of times requested so far.
    asked: usize,
}

/// Writes the file on rank 0, with the times of all ranks; the others call [`serve`].
pub(super) async fn write<C: Comm>(
    file: &TraceFile<()>,
    part: &TracePart,
    path: &Path,
    own: &[Array<Timestamp<Global>>],
    sessions: &Sessions,
    comm: &C,
) -> Result<Result<(), FileError>, CommError> {
    let owners: Vec<u32> = part
        .ids()
        .map(|location| part.owner(location).unwrap_or(0))
        .collect();
    let mut ahead = vec![Ahead::default(); owners.len()];
    let (mut lost, mut written) = (None, 0);
    let time = |location: u32| {
        let at = location as usize;
        let (owner, events, ahead) = (
            *owners.get(at)?,
            file.loads.get(at)?.events,
            ahead.get_mut(at)?,
        );
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
        let times: &[_] = match owner == comm.rank() {
            true => own.get(at)?,
            false => &ahead.times,
        };
        let time = times.get(ahead.next).copied();
        ahead.next += 1;
        written += 1;
        time
    };
    let copied = copy([&file.path, path], time, sessions);
    let all = file.loads.iter().map(|load| load.events).sum::<u64>();
    let done = copied.and_then(|(writer, windows_end)| match written == all {
        true => writer.finish_line(windows_end),
        false => Err(changed(&file.path)),
    });
    for other in 1..comm.size() {
        comm.send(other, DONE).await?;
    }
    lost.map_or(Ok(done), Err)
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

/// Answers the requests of rank 0 for times, until it sends [`DONE`].
pub(super) async fn serve<C: Comm>(
    own: &[Array<Timestamp<Global>>],
    comm: &C,
) -> Result<(), CommError> {
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
}
