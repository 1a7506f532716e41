//! Latencies from cycles of messages between more than two processes, as in a ring: around a cycle,
//! the offsets of all clocks cancel, as they do in a round trip.

use downbeat_clock_core::Duration;
use rustc_hash::FxHashMap;

use super::Latencies;
use super::pair::EndpointPair;
use crate::encoding::encoded;

/// Shortest messages between two endpoints, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortestOfPair {
    pub(crate) pair: EndpointPair,
    /// From the first end to the second one, and back.
    pub(crate) least: [Option<Shortest>; 2],
}

/// Shortest message in a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortest {
    /// Apparent duration, which the offset between the clocks lengthens or shortens.
    pub(crate) took: Duration,
    /// Time that the receiver had been idle.
    pub(crate) waited: Duration,
}

encoded! {
    ShortestOfPair { pair, least }
    Shortest { took, waited }
}

/// Messages from one endpoint to another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    /// Shortest apparent duration, less the latency if that is known.
    took: i64,
    /// True if the latency is unknown.
    counts: bool,
    /// Time that the receiver had been idle.
    waited: i64,
}

/// Maximum number of endpoints: with more, the search may take long.
const MOST: usize = 4_096;

/// Fills in the latencies that no pair of endpoints shows, from the cycle of messages with the
/// shortest mean duration, less a tenth. Those that no cycle shows either stay unknown.
pub(crate) fn fill(levels: &mut [Option<Duration>; Latencies::LEVELS], pairs: &[ShortestOfPair]) {
    for level in 0..levels.len() {
        if levels[level].is_none() {
            levels[level] = shortest_mean(level, levels, pairs);
        }
    }
}

fn shortest_mean(
    level: usize,
    levels: &[Option<Duration>; Latencies::LEVELS],
    pairs: &[ShortestOfPair],
) -> Option<Duration> {
    let mut numbers = FxHashMap::default();
    let mut edges = vec![];
    for ShortestOfPair { pair, least } in pairs {
        // Threads of a process are other endpoints than processes.
        let is_near = pair.level > 0 && level > 0 && levels[pair.level].is_some();
        if pair.level != level && !is_near {
            continue;
        }
        let ends = pair.ends.map(|end| {
            let next = numbers.len();
            *numbers.entry(end).or_insert(next)
        });
        let known = levels[pair.level].map_or(0, Duration::as_nanos);
        for ([from, to], least) in [ends, [ends[1], ends[0]]].into_iter().zip(least) {
            edges.extend(least.map(|least| Edge {
                from,
                to,
                took: least.took.as_nanos().saturating_sub(known),
                counts: pair.level == level,
                waited: least.waited.as_nanos(),
            }));
        }
    }
    if numbers.len() > MOST {
        return None;
    }
    loop {
        let mean = mean_of(numbers.len(), &edges)?;
        // A receiver that was not idle may have found a message late: as in a round trip, it must
        // have waited for half of the message.
        let before = edges.len();
        edges.retain(|edge| !edge.counts || edge.waited >= mean / 2);
        if edges.len() == before {
            let mean = Duration::from_nanos(mean / 10 * 9);
            return Some(mean).filter(|mean| *mean > Duration::ZERO);
        }
    }
}

/// Returns the smallest mean duration of the messages of a cycle; `None` if there is no cycle, or clocks
/// ran apart by more than messages take.
fn mean_of(endpoints: usize, edges: &[Edge]) -> Option<i64> {
    // No cycle takes longer than all messages together.
    let all = edges.iter().map(|edge| edge.took.saturating_abs());
    let longest = all.fold(1, i64::saturating_add).min(1 << 40);
    let shrinks = |by: i64| has_shrinking_cycle(endpoints, edges, by);
    if shrinks(0) || !shrinks(longest) {
        return None;
    }
    // The largest mean that no cycle is below.
    let (mut mean, mut more) = (0, longest);
    while more - mean > 1 {
        let middle = mean + (more - mean) / 2;
        match shrinks(middle) {
            true => more = middle,
            false => mean = middle,
        }
    }
    Some(mean)
}

/// Returns true if the durations of a cycle have a negative sum after `by` is subtracted from each that
/// counts.
fn has_shrinking_cycle(endpoints: usize, edges: &[Edge], by: i64) -> bool {
    // Bellman and Ford: without such a cycle, nothing gets shorter after as many rounds as endpoints.
    let mut distances = vec![0_i64; endpoints];
    for _ in 0..=endpoints {
        let mut is_shorter = false;
        for edge in edges {
            let took = edge.took.saturating_sub(if edge.counts { by } else { 0 });
            let reached = distances[edge.from].saturating_add(took);
            if reached < distances[edge.to] {
                distances[edge.to] = reached;
                is_shorter = true;
            }
        }
        if !is_shorter {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(nanos: i64) -> Duration {
        Duration::from_nanos(nanos)
    }

    /// Messages that go one way between endpoints with these offsets.
    fn one_way(
        level: usize,
        latency: i64,
        offsets: &[i64],
        ways: &[[u32; 2]],
    ) -> Vec<ShortestOfPair> {
        let of = |[from, to]: &[u32; 2]| {
            let [sent, received] = [*from, *to].map(|end| offsets[end as usize]);
            let took = Some(Shortest {
                took: nanos(latency + received - sent),
                waited: nanos(600),
            });
            let ends = [*from.min(to), *from.max(to)];
            ShortestOfPair {
                pair: EndpointPair { level, ends },
                least: if from < to {
                    [took, None]
                } else {
                    [None, took]
                },
            }
        };
        ways.iter().map(of).collect()
    }

    #[test]
    fn offsets_cancel_around_a_ring() {
        let ring = one_way(
            2,
            1_000,
            &[0, -70_000, 500, 31_000],
            &[[0, 1], [1, 2], [2, 3], [3, 0]],
        );
        let mut levels = [None; 3];
        fill(&mut levels, &ring);
        assert_eq!(levels, [None, None, Some(nanos(900))]);
        // The receivers had waited for less than half of the messages.
        let late = one_way(2, 2_000, &[0; 4], &[[0, 1], [1, 2], [2, 3], [3, 0]]);
        let mut levels = [None; 3];
        fill(&mut levels, &late);
        assert_eq!(levels, [None; 3]);
        // A chain has no cycle.
        let mut levels = [None; 3];
        fill(&mut levels, &ring[..3]);
        assert_eq!(levels, [None; 3]);
    }

    #[test]
    fn known_latencies_on_the_way_are_subtracted() {
        let offsets = [0, -4_000, 9_000];
        let mut all = one_way(1, 300, &offsets, &[[0, 1]]);
        all.extend(one_way(2, 1_000, &offsets, &[[1, 2], [2, 0]]));
        let mut levels = [None, Some(nanos(300)), None];
        fill(&mut levels, &all);
        assert_eq!(levels[2], Some(nanos(900)));
        // Clocks that ran apart by more than the messages took.
        let apart = one_way(2, -10, &offsets, &[[0, 1], [1, 2], [2, 0]]);
        let mut levels = [None; 3];
        fill(&mut levels, &apart);
        assert_eq!(levels, [None; 3]);
    }
}
