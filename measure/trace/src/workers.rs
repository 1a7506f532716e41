//! Threads that share the locations of a trace.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Trace;

/// Splits the locations into contiguous groups with similar numbers of events, one for each worker;
/// fewer if there are fewer locations.
pub(super) fn groups(trace: &Trace, workers: usize) -> Vec<Range<usize>> {
    let events: Vec<u64> = trace
        .locations
        .iter()
        .map(|location| location.times.len() as u64)
        .collect();
    balanced(&events, workers)
}

/// Splits anything into contiguous groups, given the number of events of each item.
pub(super) fn balanced(events: &[u64], workers: usize) -> Vec<Range<usize>> {
    let locations = events.len();
    let workers = workers.clamp(1, locations.max(1));
    let (all, mut before, mut start) = (events.iter().sum::<u64>(), 0, 0);
    let mut groups = Vec::with_capacity(workers);
    for worker in 0..workers {
        let (share, rest) = (
            all * (worker as u64 + 1) / workers as u64,
            workers - worker - 1,
        );
        let mut end = start;
        // Every group gets at least one location, and the last one gets the rest.
        while end < locations - rest && (end == start || rest == 0 || before < share) {
            before += events[end];
            end += 1;
        }
        groups.push(start..end);
        start = end;
    }
    groups
}

/// Distributes one item for each location to the workers.
pub(super) fn deal<T>(all: Vec<T>, groups: &[Range<usize>]) -> Vec<Vec<T>> {
    let mut all = all.into_iter();
    groups
        .iter()
        .map(|group| all.by_ref().take(group.len()).collect())
        .collect()
}

/// Runs the parts of all workers, and returns their results in order. The calling thread
/// takes parts, too: all of them if the system gives no other thread.
pub(super) fn share<T: Send, R: Send>(
    parts: Vec<T>,
    work: impl Fn(usize, T) -> R + Sync,
) -> Vec<R> {
    let workers = parts.len();
    let results = Mutex::new(parts.iter().map(|_| None).collect::<Vec<_>>());
    let parts = Mutex::new(parts.into_iter().enumerate());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    run_on_threads(workers, &|| {
        while let Some((worker, part)) = next() {
            let result = Some(work(worker, part));
            results.lock().unwrap_or_else(PoisonError::into_inner)[worker] = result;
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Every part was taken.
    results.into_iter().flatten().collect()
}

/// Runs the same work on this number of threads, the calling one among them; on fewer, if
/// the system gives no other thread. Not generic, as it would be compiled for each work.
fn run_on_threads(threads: usize, run: &(dyn Fn() + Sync)) {
    thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, run).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        run();
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Matching, Place, TraceBuilder};
    use downbeat_clock_core::Timestamp;

    fn of(events: &[usize], workers: usize) -> Vec<(usize, usize)> {
        let mut builder = TraceBuilder::new(Matching::default());
        for count in events {
            let location = builder
                .add_location(Place {
                    node: 0,
                    process: 0,
                })
                .unwrap();
            (0..*count).for_each(|_| {
                builder
                    .push(location, Timestamp::ORIGIN, Event::Note("work"))
                    .unwrap();
            });
        }
        let groups = groups(&builder.finish().unwrap(), workers);
        groups
            .into_iter()
            .map(|group| (group.start, group.end))
            .collect()
    }

    #[test]
    fn workers_have_similar_numbers_of_events() {
        assert_eq!(of(&[5, 5, 5, 5], 2), [(0, 2), (2, 4)]);
        assert_eq!(of(&[15, 1, 1, 1], 2), [(0, 1), (1, 4)]);
        assert_eq!(of(&[0, 0, 0], 3), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(of(&[1, 1, 30], 2), [(0, 2), (2, 3)]);
        assert_eq!(of(&[7], 4), [(0, 1)]);
        assert_eq!(of(&[], 4), [(0, 0)]);
        assert_eq!(of(&[3, 3], 0), [(0, 2)]);
    }

    #[test]
    fn shared_work_returns_results_in_order() {
        let groups = [0..2, 2..2, 2..5];
        let parts = deal(vec![1, 2, 3, 4, 5], &groups);
        assert_eq!(parts, [vec![1, 2], vec![], vec![3, 4, 5]]);
        let sums = share(parts, |worker, part| {
            worker as u32 * 100 + part.iter().sum::<u32>()
        });
        assert_eq!(sums, [3, 100, 212]);
    }
}
