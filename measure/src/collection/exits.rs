//! Imbalance of calls, and the ranks that leave them last.

use downbeat_sync::collective::{broadcast_bytes, greatest_to_first};
use downbeat_sync::{Comm, CommError};

/// Imbalance of the calls that rank 0 keeps, by a global clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exits {
    /// Time from the first rank that leaves a call to the last, in nanoseconds.
    pub leaving: Vec<f64>,
    /// Rank that leaves a call last; of ranks that leave at the same time, the lowest.
    pub last: Vec<u32>,
}

/// Reduces the ends of all calls on all ranks, which rank 0 gets, a number of calls `together`, for which each rank needs memory.
pub(super) async fn reduce_ends<M: Comm>(
    comm: &M,
    own: &[[i64; 2]],
    together: usize,
) -> Result<Exits, CommError> {
    let mut exits = Exits::default();
    for calls in own.chunks(together) {
        // The least end is the greatest negative one.
        let mut ends: Vec<[i64; 2]> = calls
            .iter()
            .map(|[_, end]| [*end, end.saturating_neg()])
            .collect();
        greatest_to_first(comm, ends.as_flattened_mut()).await?;
        let latest: Vec<[u8; 8]> = ends.iter().map(|[end, _]| end.to_le_bytes()).collect();
        let latest = broadcast_bytes(comm, latest.into_flattened()).await?;
        let (latest, _) = latest.as_chunks();
        let number = -i64::from(comm.rank());
        let mut ranks: Vec<i64> = calls
            .iter()
            .zip(latest)
            .map(
                |([_, end], latest)| match *end == i64::from_le_bytes(*latest) {
                    true => number,
                    false => i64::MIN,
                },
            )
            .collect();
        greatest_to_first(comm, &mut ranks).await?;
        if comm.rank() == 0 {
            let leaving = ends
                .iter()
                .map(|[end, negative]| end.saturating_add(*negative) as f64);
            exits.leaving.extend(leaving);
            exits.last.extend(ranks.iter().map(|rank| -rank as u32));
        }
    }
    Ok(exits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::{ThreadCluster, block_on_ready};
    use proptest::prelude::*;

    fn ends() -> impl Strategy<Value = Vec<Vec<i64>>> {
        (1_usize..6, 0_usize..20).prop_flat_map(|(ranks, calls)| {
            // Several ranks leave at the same time now and then.
            prop::collection::vec(prop::collection::vec(-3_i64..9, calls), ranks)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

        #[test]
        fn exits_are_those_of_all_ranks(ends in ends()) {
            let reduced = ThreadCluster::new(ends.len() as u32).run(|comm| {
                let own: Vec<[i64; 2]> = ends[comm.rank() as usize].iter().map(|end| [-99, *end]).collect();
                block_on_ready(reduce_ends(comm, &own, 7)).unwrap()
            });
            let found = reduced.unwrap().swap_remove(0);
            for call in 0..ends[0].len() {
                let of_call: Vec<i64> = ends.iter().map(|rank| rank[call]).collect();
                let (first, last) = (of_call.iter().min().unwrap(), of_call.iter().max().unwrap());
                prop_assert_eq!(found.leaving[call], (last - first) as f64);
                prop_assert_eq!(Some(found.last[call] as usize), of_call.iter().position(|end| end == last));
            }
            prop_assert_eq!(found.leaving.len(), ends[0].len());
        }
    }
}
