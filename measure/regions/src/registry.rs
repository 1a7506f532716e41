//! Registry of all regions of the program and all timers of its threads.
//!
//! Timers are never freed, so that threads can keep references to them: those of a thread that
//! ended are reused by a new one, after their statistics were added up.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use downbeat_clock_core::region::RegionTimer;
use downbeat_timers::at_fork;

use super::call_path::{self, CallPath};
use super::name;
use super::profile::{PathProfile, Profile, RegionProfile};
use super::setup::{RegionClock, Setup, setup};

/// The timer of one region in one thread.
#[derive(Debug)]
pub(super) struct ThreadTimer {
    pub(super) timer: RegionTimer<RegionClock>,
    /// The first path to this region.
    pub(super) path: CallPath,
}

/// The timers of a thread, by the numbers of their regions; a region that the thread has not used has none.
pub(super) type TimerTable = &'static [OnceLock<&'static ThreadTimer>];

pub(super) struct Registry {
    setup: &'static Setup,
    names: Vec<&'static str>,
    numbers: BTreeMap<&'static str, usize>,
    /// Number of threads that used regions.
    threads: u32,
    living: Vec<LivingThread>,
    /// Timers of ended threads, stopped and reset.
    spare: Vec<TimerTable>,
    /// Statistics of ended threads, by the number of the region, in ticks of the clock.
    ended: Vec<RegionProfile>,
}

/// A running thread with timers.
struct LivingThread {
    thread: u32,
    timers: TimerTable,
}

/// Locks the registry: waits for other threads that use a region for the first time, exit, or make
/// a profile.
pub(super) fn lock() -> MutexGuard<'static, Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    let registry = REGISTRY.get_or_init(|| {
        at_fork(hold, release);
        Mutex::new(Registry::new(setup()))
    });
    // A panic leaves the registry consistent.
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static HELD: RefCell<Option<MutexGuard<'static, Registry>>> = const { RefCell::new(None) };
}

/// Holds the registry during a `fork`: a child without the thread that held it would wait for ever.
extern "C" fn hold() {
    let held = lock();
    let _ = HELD.try_with(|place| place.replace(Some(held)));
}

extern "C" fn release() {
    let _ = HELD.try_with(RefCell::take);
}

impl Registry {
    fn new(setup: &'static Setup) -> Self {
        Self {
            setup,
            names: vec![],
            numbers: BTreeMap::new(),
            threads: 0,
            living: vec![],
            spare: vec![],
            ended: vec![],
        }
    }

    /// Tells if call paths are recorded.
    pub(super) fn is_nested(&self) -> bool {
        self.setup.nested
    }

    /// Recorded name and number of a region; registers a new one.
    pub(super) fn number(&mut self, name: &str) -> (&'static str, usize) {
        let name = name::recorded(name);
        if let Some((known, number)) = self.numbers.get_key_value(&*name) {
            return (known, *number);
        }
        let name: &'static str = Box::leak(name.into_owned().into_boxed_str());
        self.names.push(name);
        self.numbers.insert(name, self.names.len() - 1);
        self.ended.push(RegionProfile::new(name));
        (name, self.names.len() - 1)
    }

    /// The timer of a region for the thread with these timers, and the new table of the thread. `outer` is the path to the region that
    /// is running.
    pub(super) fn timer(
        &mut self,
        timers: TimerTable,
        number: usize,
        outer: Option<&'static CallPath>,
    ) -> (TimerTable, &'static ThreadTimer) {
        let timers = if number < timers.len() {
            timers
        } else {
            self.grow(timers, number)
        };
        let new = || ThreadTimer {
            timer: self.setup.timer(),
            path: CallPath::new(number, outer),
        };
        let timer = timers[number].get_or_init(|| Box::leak(Box::new(new())));
        (timers, timer)
    }

    /// Makes a table of at least twice the size, so that leaked tables take no more memory than
    /// used ones.
    fn grow(&mut self, old: TimerTable, number: usize) -> TimerTable {
        if old.is_empty()
            && let Some(timers) = self.spare.pop()
        {
            self.enlist(timers);
            return if number < timers.len() {
                timers
            } else {
                self.grow(timers, number)
            };
        }
        let mut table = old.to_vec();
        table.resize_with((number + 1).next_power_of_two(), OnceLock::new);
        let table: TimerTable = Vec::leak(table);
        match self.place(old) {
            Some(place) => self.living[place].timers = table,
            None => self.enlist(table),
        }
        table
    }

    fn enlist(&mut self, timers: TimerTable) {
        self.living.push(LivingThread {
            thread: self.threads,
            timers,
        });
        self.threads = self.threads.saturating_add(1);
    }

    fn place(&self, timers: TimerTable) -> Option<usize> {
        // An empty table belongs to no thread.
        self.living
            .iter()
            .position(|living| !timers.is_empty() && core::ptr::eq(living.timers, timers))
    }

    /// Takes over the statistics of an ending thread, and its timers for reuse.
    ///
    /// If a region is still running, the timers stay as they are: its guard may still exist.
    pub(super) fn leave(&mut self, timers: TimerTable) {
        let running = present(timers).any(|(_, timer)| timer.timer.is_running());
        let Some(place) = self.place(timers).filter(|_| !running) else {
            return;
        };
        let living = self.living.swap_remove(place);
        add(&mut self.ended, &self.names, &living);
        for (_, timer) in present(timers) {
            timer.timer.reset();
            timer.path.reset();
        }
        self.spare.push(timers);
    }

    /// Profile of all threads.
    pub(super) fn profile(&self) -> Profile {
        let mut regions = self.ended.clone();
        self.living
            .iter()
            .for_each(|living| add(&mut regions, &self.names, living));
        self.finished(regions)
    }

    /// Profile of the thread with these timers.
    pub(super) fn profile_of(&self, timers: TimerTable) -> Profile {
        let mut regions: Vec<_> = self
            .names
            .iter()
            .map(|name| RegionProfile::new(name))
            .collect();
        if let Some(place) = self.place(timers) {
            add(&mut regions, &self.names, &self.living[place]);
        }
        self.finished(regions)
    }

    fn finished(&self, mut regions: Vec<RegionProfile>) -> Profile {
        regions.retain(|region| !region.is_empty());
        regions
            .iter_mut()
            .for_each(|region| region.scale(self.setup.scale));
        let Setup {
            clock,
            tick,
            overhead,
            warning,
            ..
        } = self.setup;
        let mut profile = Profile::new(clock.name(), *tick, *overhead, regions);
        profile.warning = warning.map(str::to_owned);
        profile
    }
}

/// The timers that a thread has, with the numbers of their regions.
fn present(timers: TimerTable) -> impl Iterator<Item = (usize, &'static ThreadTimer)> {
    let present = |(number, timer): (usize, &'static OnceLock<&'static ThreadTimer>)| {
        Some((number, *timer.get()?))
    };
    timers.iter().enumerate().filter_map(present)
}

/// Adds the events of a thread.
fn add(regions: &mut [RegionProfile], names: &[&str], living: &LivingThread) {
    for (number, timer) in present(living.timers) {
        regions[number].add(living.thread, &timer.timer.statistics());
    }
    for path in call_path::totals(present(living.timers).map(|(_, timer)| &timer.path)) {
        let callers = path.callers.iter().map(|caller| names[*caller].to_owned());
        regions[path.region].add_path(PathProfile {
            callers: callers.collect(),
            events: path.events,
            total: path.total,
            own: path.own,
        });
    }
}
