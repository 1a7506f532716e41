//! Going through the collective operations that ranks share, each telling the others what it knows of them.

use super::TracePart;
use super::exchange::{boxes, exchange};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// So many operations are gone through at once, so that what is told takes little memory.
const BLOCK: usize = 1 << 12;

/// What others told of an operation, by ranks.
pub(super) type Told<'a> = Vec<&'a [u64]>;

/// One side of what is told.
pub(super) trait Teller {
    /// What this rank tells of an operation, and whom; not itself.
    fn tell(&mut self, instance: u32, words: &mut Vec<u64>) -> Vec<u32>;

    /// What it was told of it. All operations are told of before.
    fn hear(&mut self, instance: u32, told: &Told<'_>);
}

/// Goes through all of them, in the order that they have on all ranks.
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
        exchange(comm, &part.neighbours, &mut out, &mut inbox).await?;
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
