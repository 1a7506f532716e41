//! Call paths of a thread: the regions that were running when a region began, and the time of the region there.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::OnceLock;

/// A region inside others, in one thread.
///
/// A region is at most once on a path, since one that is entered again continues: recursion makes no longer paths. Paths are
/// never freed; other threads can read them.
#[derive(Debug)]
pub(super) struct CallPath {
    /// Number of the region.
    region: usize,
    /// The path to the region around it.
    outer: Option<&'static Self>,
    events: AtomicU64,
    total: AtomicU64,
    /// The first path to the same region; `None` if this is it.
    first: Option<&'static Self>,
    /// Another path to the same region.
    next: OnceLock<&'static Self>,
}

/// The path to the innermost region that runs in a thread.
pub(super) type Innermost = Cell<Option<&'static CallPath>>;

/// Events of a region on one path, in ticks of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathTotals {
    pub(super) region: usize,
    /// Numbers of the regions around it, the outermost first.
    pub(super) callers: Vec<usize>,
    pub(super) events: u64,
    pub(super) total: u64,
    /// Part of the total that is not in regions inside it.
    pub(super) own: u64,
}

impl CallPath {
    pub(super) const fn new(region: usize, outer: Option<&'static Self>) -> Self {
        Self {
            region,
            outer,
            events: AtomicU64::new(0),
            total: AtomicU64::new(0),
            first: None,
            next: OnceLock::new(),
        }
    }

    /// Makes the path to this region the innermost one; this is the first path to it.
    #[inline(always)]
    pub(super) fn enter(&'static self, innermost: &Innermost) {
        let outer = innermost.get();
        let path = if address(self.outer) == address(outer) {
            self
        } else {
            self.inside(outer)
        };
        innermost.set(Some(path));
    }

    /// Leaves the region, after an event of this length, if there was one; this is the first path to it.
    #[inline(always)]
    pub(super) fn leave(&'static self, length: Option<u64>, innermost: &Innermost) {
        match innermost.get() {
            Some(path) if core::ptr::eq(path, self) || path.region == self.region => {
                path.add(length);
                innermost.set(path.outer);
            }
            path => Self::leave_outer(self.region, length, path, innermost),
        }
    }

    #[inline(always)]
    fn add(&self, length: Option<u64>) {
        let Some(length) = length else { return };
        // Only this thread writes: `fetch_add` would lock the bus.
        let add = |to: &AtomicU64, value| {
            let sum = to.load(Ordering::Relaxed).wrapping_add(value);
            to.store(sum, Ordering::Relaxed);
        };
        add(&self.events, 1);
        add(&self.total, length);
    }

    /// Leaves a region before those inside it have ended: from now on, these are inside the region around it.
    #[cold]
    fn leave_outer(
        region: usize,
        length: Option<u64>,
        mut path: Option<&'static Self>,
        innermost: &Innermost,
    ) {
        let mut inside = vec![];
        while let Some(running) = path {
            if running.region == region {
                running.add(length);
                innermost.set(running.outer);
                for inner in inside.into_iter().rev() {
                    Self::first(inner).enter(innermost);
                }
                return;
            }
            inside.push(running);
            path = running.outer;
        }
    }

    fn first(&'static self) -> &'static Self {
        self.first.unwrap_or(self)
    }

    /// Finds the path to this region inside another path, or adds it.
    #[cold]
    #[inline(never)]
    fn inside(&'static self, outer: Option<&'static Self>) -> &'static Self {
        let mut path = self;
        loop {
            path = path.next.get_or_init(|| {
                Box::leak(Box::new(Self {
                    first: Some(self.first()),
                    ..Self::new(self.region, outer)
                }))
            });
            if address(path.outer) == address(outer) {
                return path;
            }
        }
    }

    /// All paths to this region, from the first.
    fn all(&'static self) -> impl Iterator<Item = &'static Self> {
        core::iter::successors(Some(self), |path| path.next.get().copied())
    }

    pub(super) fn reset(&'static self) {
        for path in self.all() {
            path.events.store(0, Ordering::Relaxed);
            path.total.store(0, Ordering::Relaxed);
        }
    }
}

fn address(path: Option<&CallPath>) -> *const CallPath {
    path.map_or(core::ptr::null(), core::ptr::from_ref)
}

/// Returns all paths of a thread that have events, given the first path to each of its regions.
pub(super) fn totals(first_paths: impl Iterator<Item = &'static CallPath>) -> Vec<PathTotals> {
    let read = |path: &'static CallPath| {
        let get = |from: &AtomicU64| from.load(Ordering::Relaxed);
        (path, get(&path.events), get(&path.total))
    };
    let paths: Vec<_> = first_paths.flat_map(CallPath::all).map(read).collect();
    let mut inside: HashMap<*const CallPath, u64> = HashMap::new();
    for (path, _, total) in &paths {
        let sum = inside.entry(address(path.outer)).or_default();
        *sum = sum.saturating_add(*total);
    }
    let with_events = paths.into_iter().filter(|(_, events, _)| *events > 0);
    let described = with_events.map(|(path, events, total)| {
        let outer = core::iter::successors(path.outer, |path| path.outer);
        let mut callers: Vec<usize> = outer.map(|path| path.region).collect();
        callers.reverse();
        let inside = inside.get(&address(Some(path))).copied();
        PathTotals {
            region: path.region,
            callers,
            events,
            total,
            // Regions that are left in another order can be longer than the one around them.
            own: total.saturating_sub(inside.unwrap_or(0)),
        }
    });
    described.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regions 0, 1 and 2 of a thread.
    fn regions() -> [&'static CallPath; 3] {
        [0, 1, 2].map(|region| &*Box::leak(Box::new(CallPath::new(region, None))))
    }

    fn found(regions: [&'static CallPath; 3]) -> Vec<(Vec<usize>, usize, u64, u64, u64)> {
        let mut found: Vec<_> = totals(regions.into_iter())
            .into_iter()
            .map(|path| (path.callers, path.region, path.events, path.total, path.own))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn the_time_of_inner_regions_is_not_their_callers_own() {
        let (regions, innermost) = (regions(), Innermost::default());
        let [a, b, c] = regions;
        for caller in [a, b] {
            caller.enter(&innermost);
            for _ in 0..2 {
                c.enter(&innermost);
                c.leave(Some(10), &innermost);
            }
            caller.leave(Some(25), &innermost);
        }
        c.enter(&innermost);
        c.leave(None, &innermost);
        assert_eq!(
            found(regions),
            [
                (vec![], 0, 1, 25, 5),
                (vec![], 1, 1, 25, 5),
                (vec![0], 2, 2, 20, 20),
                (vec![1], 2, 2, 20, 20),
            ]
        );
        regions.into_iter().for_each(CallPath::reset);
        assert_eq!(found(regions), []);
    }

    #[test]
    fn a_region_that_ends_before_one_inside_it() {
        let (regions, innermost) = (regions(), Innermost::default());
        let [a, b, c] = regions;
        a.enter(&innermost);
        b.enter(&innermost);
        c.enter(&innermost);
        // The two inside it are at the top now.
        a.leave(Some(30), &innermost);
        c.leave(Some(5), &innermost);
        b.leave(Some(40), &innermost);
        assert!(innermost.get().is_none());
        // A region that does not run changes nothing.
        b.leave(Some(40), &innermost);
        assert_eq!(
            found(regions),
            [
                (vec![], 0, 1, 30, 30),
                (vec![], 1, 1, 40, 35),
                (vec![1], 2, 1, 5, 5),
            ]
        );
    }
}
