//! Exchange between the parts of a simulated cluster.
//!
//! Time passes in windows. Every part processes the events of a window, then all parts exchange
//! the messages that crossed between them. A window begins at the earliest event of all parts and
//! lasts as long as the fastest link between them: nothing that happens in it can arrive in another
//! part before it ends. So every part processes its events in the order of time, and results do not
//! depend on the number of parts.

use std::sync::PoisonError;

#[cfg(downbeat_loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};
#[cfg(not(downbeat_loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};

use crate::thread::Sleeper;

/// Meeting point of all parts, which send each other items `M`.
#[derive(Debug)]
pub struct PartExchange<M> {
    parts: Vec<PartReports<M>>,
    /// Duration of a window.
    lookahead: u64,
}

/// Reports of one part.
#[derive(Debug)]
struct PartReports<M> {
    /// Number of windows that were reported.
    windows: AtomicUsize,
    /// Reports, in turns: the part may report the next window while others still read this one.
    reports: [Mutex<WindowReport<M>>; 2],
    /// Place where the part waits for the others.
    sleeper: Sleeper,
}

/// Report of a part at the end of a window.
#[derive(Debug)]
pub struct WindowReport<M> {
    /// Items for every part.
    pub mail: Vec<Vec<M>>,
    /// Time of the earliest event that follows, if there is one.
    pub earliest: Option<u64>,
    /// True if the part cannot go on.
    pub failed: bool,
}

/// Beginning of a window: the items for the part, and the time at which the window ends.
#[derive(Debug)]
pub struct NextWindow<M> {
    /// Items of all parts for this one, in the order of parts.
    pub news: Vec<M>,
    /// Time before which the part processes its events.
    pub end: u64,
}

impl<M> WindowReport<M> {
    /// Report of a part that cannot go on.
    pub fn failed() -> Self {
        Self {
            mail: vec![],
            earliest: None,
            failed: true,
        }
    }
}

impl<M> PartExchange<M> {
    /// Creates an exchange of windows of this duration.
    pub fn new(parts: usize, lookahead: u64) -> Self {
        let report = || Mutex::new(WindowReport::failed());
        let reports = |_| PartReports {
            windows: AtomicUsize::new(0),
            reports: [report(), report()],
            sleeper: Sleeper::new(),
        };
        Self {
            parts: (0..parts).map(reports).collect(),
            lookahead,
        }
    }

    /// Reports window number `window`. That is enough for a part that has failed.
    pub fn report(&self, window: usize, part: usize, report: WindowReport<M>) {
        let mine = &self.parts[part];
        *lock(&mine.reports[window % 2]) = report;
        mine.windows.store(window + 1, Ordering::Release);
        self.parts.iter().for_each(|other| other.sleeper.wake());
    }

    /// Reports window number `window`, and waits for the reports of all parts. Returns the next
    /// window; `None` if nothing is left to happen, or a part has failed.
    pub fn meet(
        &self,
        window: usize,
        part: usize,
        report: WindowReport<M>,
    ) -> Option<NextWindow<M>> {
        self.report(window, part, report);
        let reported = |part: &PartReports<M>| part.windows.load(Ordering::Acquire) > window;
        let all_reported = || self.parts.iter().all(reported).then_some(());
        self.parts[part].sleeper.wait_until(all_reported);
        let (mut news, mut begins, mut failed) = (vec![], None::<u64>, false);
        for other in &self.parts {
            let mut report = lock(&other.reports[window % 2]);
            failed |= report.failed;
            begins = begins.into_iter().chain(report.earliest).min();
            if let Some(mine) = report.mail.get_mut(part) {
                news.append(mine);
            }
        }
        let end = begins?.saturating_add(self.lookahead);
        (!failed).then_some(NextWindow { news, end })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
