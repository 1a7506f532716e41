//! All regions of the program and all timers of its threads.
//!
//! TimerTable are never freed, so that threads can keep references to them: those of a thread that ended serve the next one
//! that begins. Their statistics are taken over before.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use downbeat_clock_core::RegionTimer;

use super::name;
use super::profile::{Profile, RegionProfile};
use super::setup::{RegionClock, Setup, setup};

/// The timer of one region in one thread.
pub(super) type ThreadTimer = RegionTimer<RegionClock>;

/// The timers of a thread, by the numbers of their regions; a region that the thread has not used has none.
pub(super) type TimerTable = &'static [OnceLock<&'static ThreadTimer>];

pub(super) struct Registry {
    setup: &'static Setup,
    names: Vec<&'static str>,
    numbers: HashMap<&'static str, usize>,
    /// How many threads there were.
    threads: u32,
    living: Vec<LivingThread>,
    /// TimerTable of threads that ended, all of them stopped and reset.
    spare: Vec<TimerTable>,
    /// What threads that ended had seen, by the number of the region, in ticks of the clock.
    ended: Vec<RegionProfile>,
}

/// A thread that has timers.
struct LivingThread {
    thread: u32,
    timers: TimerTable,
}

/// Waits for other threads that use a region for the first time, end, or make a report.
pub(super) fn lock() -> MutexGuard<'static, Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    let registry = REGISTRY.get_or_init(|| Mutex::new(Registry::new(setup())));
    // Whoever panicked did so between two of its steps, or had no memory left.
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    fn new(setup: &'static Setup) -> Self {
        Self {
            setup,
            names: vec![],
            numbers: HashMap::new(),
            threads: 0,
            living: vec![],
            spare: vec![],
            ended: vec![],
        }
    }

    /// The name that a region is recorded by, and its number.
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

    /// The timer of a thread that has `timers` so far, and all that it has from now on.
    pub(super) fn timer(
        &mut self,
        timers: TimerTable,
        number: usize,
    ) -> (TimerTable, &'static ThreadTimer) {
        let timers = if number < timers.len() {
            timers
        } else {
            self.grow(timers, number)
        };
        (
            timers,
            timers[number].get_or_init(|| Box::leak(Box::new(self.setup.timer()))),
        )
    }

    /// A longer table, of twice as many timers, so that what is left behind is no more than what is used.
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
        // Empty tables are no thread's.
        self.living
            .iter()
            .position(|living| !timers.is_empty() && core::ptr::eq(living.timers, timers))
    }

    /// Takes over what a thread has seen, and its timers for the next one.
    ///
    /// A region that it left running keeps its timers as they are: somebody may still hold the guard.
    pub(super) fn leave(&mut self, timers: TimerTable) {
        let running = timers
            .iter()
            .filter_map(OnceLock::get)
            .any(|timer| timer.is_running());
        let Some(place) = self.place(timers).filter(|_| !running) else {
            return;
        };
        let thread = self.living.swap_remove(place).thread;
        for (ended, timer) in self.ended.iter_mut().zip(timers) {
            if let Some(timer) = timer.get() {
                ended.add(thread, &timer.statistics());
                timer.reset();
            }
        }
        self.spare.push(timers);
    }

    /// What all threads have seen.
    pub(super) fn profile(&self) -> Profile {
        let mut regions = self.ended.clone();
        self.living
            .iter()
            .for_each(|living| add(&mut regions, living));
        self.finished(regions)
    }

    /// What the thread has seen that has these timers.
    pub(super) fn profile_of(&self, timers: TimerTable) -> Profile {
        let mut regions: Vec<_> = self
            .names
            .iter()
            .map(|name| RegionProfile::new(name))
            .collect();
        if let Some(place) = self.place(timers) {
            add(&mut regions, &self.living[place]);
        }
        self.finished(regions)
    }

    fn finished(&self, mut regions: Vec<RegionProfile>) -> Profile {
        regions.retain(|region| !region.is_empty());
        regions
            .iter_mut()
            .for_each(|region| region.scale(self.setup.scale));
        Profile::new(
            self.setup.clock.name(),
            self.setup.tick,
            self.setup.overhead,
            regions,
        )
    }
}

fn add(regions: &mut [RegionProfile], living: &LivingThread) {
    for (region, timer) in regions.iter_mut().zip(living.timers) {
        if let Some(timer) = timer.get() {
            region.add(living.thread, &timer.statistics());
        }
    }
}
