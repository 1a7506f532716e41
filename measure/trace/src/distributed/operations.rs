//! Iteration over the collective operations that ranks share, in which each rank sends its data
//! about them to the others.

use super::TracePart;
use super::exchange::{boxes, exchange};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// Number of operations that are processed together, which bounds the memory for messages.
const BLOCK: usize = 1 << 12;

/// Data from other ranks about an operation, by ranks.
pub(super) type Told<'a> = Vec<&'a [u64]>;

/// Sender and receiver of the data about operations.
pub(super) trait Teller {
    /// Adds this rank's data about an operation to `words`, and returns the ranks to send them to,
    /// without this one.
    fn tell(&mut self, instance: u32, words: &mut Vec<u64>) -> Vec<u32>;

    /// Processes the data of other ranks about an operation. Called after [`tell`](Self::tell) was
    /// called for all operations of a block.
    fn hear(&mut self, instance: u32, told: &Told<'_>);
}

/// Processes all shared operations, in an order that is the same on all ranks.
pub(super) async fn go_through<C: Comm>(
    part: &TracePart,
    teller: &mut impl Teller,
    comm: &C,
) -> Result<(), CommError> {
    let shared: Vec<u32> = part.shared().collect();
    let name = |instance: &u32| part.names[*instance as usize];
    let (mut out, mut inbox, mut words) = (boxes(comm), boxes(comm), vec![]);
    let mut rest = &shared[..];
    loop {
        let end = all_reduce(comm, rest.get(BLOCK).map_or(u64::MAX, name), u64::min).await?;
        let (block, others) = rest.split_at(rest.partition_point(|instance| name(instance) < end));
        rest = others;
        for instance in block {
            words.clear();
            for to in teller
                .tell(*instance, &mut words)
                .iter()
                .filter(|to| **to != part.rank)
            {
                out[*to as usize].extend([name(instance), words.len() as u64]);
                out[*to as usize].extend_from_slice(&words);
            }
        }
        exchange(comm, &part.peers, &mut out, &mut inbox).await?;
        let mut unread: Vec<&[u64]> = inbox.iter().map(Vec::as_slice).collect();
        for instance in block {
            let mut told = vec![];
            for unread in &mut unread {
                if let [named, length, words @ ..] = *unread
                    && *named == name(instance)
                    && let Some((words, others)) = words.split_at_checked(*length as usize)
                {
                    told.push(words);
                    *unread = others;
                }
            }
            teller.hear(*instance, &told);
        }
        if end == u64::MAX {
            return Ok(());
        }
    }
}
