//! Exchange between the parts of a simulated cluster.
//!
//! Time passes in windows. Every part processes the events of a window, then all parts exchange
//! the messages that crossed between them. A window begins at the earliest event of all parts and
//! lasts as long as the fastest link between them: nothing that happens in it can arrive in another
//! part before it ends. So every part processes its events in the order of time, and results do not
//! depend on the number of parts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::messages::{MessageKind, MessageStage, NONE, SimMessage};
use crate::payload::Words;
use crate::split::SplitRequest;
use crate::thread::Sleeper;

/// News for another part.
#[derive(Clone, Debug)]
pub(super) enum Crossing {
    Message(Box<CrossingMessage>),
    /// A synchronous message of this rank was received.
    Delivered {
        rank: u32,
        at: u64,
    },
    Departure(Departure),
    /// All ranks of a part have arrived at a split.
    Split(Arc<SplitArrivals>),
}

/// Message on its way to another part; its time is that of the arrival at the card of the
/// receiver's node, or at the receiver if there are no cards.
#[derive(Clone, Debug)]
pub(super) struct CrossingMessage {
    pub(super) message: SimMessage,
    /// Number among the messages of its sender.
    pub(super) number: u32,
    /// Bytes of a long message.
    pub(super) parcel: Option<Vec<u8>>,
}

/// End of a rank's communication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// Rank in the whole cluster.
    pub(super) member: u32,
    /// Communicator that it has left, and its rank there; `None` if it has returned.
    pub(super) left: Option<(u32, u32)>,
    pub(super) at: u64,
}

impl Departure {
    /// Packs the departure into an entry of the queue of messages.
    pub(super) fn as_message(self, node: u32) -> SimMessage {
        let mut words = Words::default();
        if let Some((group, rank)) = self.left {
            words[..3].copy_from_slice(&[1, group.into(), rank.into()]);
        }
        SimMessage {
            words,
            time: self.at,
            from: self.member,
            to: self.member,
            from_node: node,
            to_node: node,
            group: 0,
            next: NONE,
            length: 0,
            stage: MessageStage::Departure,
            kind: MessageKind::Plain,
        }
    }

    pub(super) fn of_message(message: &SimMessage) -> Self {
        let [left, group, rank, ..] = message.words;
        Self {
            member: message.from,
            left: (left != 0).then_some((group as u32, rank as u32)),
            at: message.time,
        }
    }
}

/// Requests of the ranks of a part in a split of one communicator.
#[derive(Debug)]
pub(super) struct SplitArrivals {
    pub(super) group: u32,
    pub(super) requests: Vec<SplitRequest>,
    /// Numbers that the part offers for the new communicators, by their colors.
    pub(super) numbers: Vec<(u32, u32)>,
    /// Time at which the last of them arrived.
    pub(super) latest: u64,
}

impl Crossing {
    /// Returns the time before which this has no effect.
    fn time(&self) -> u64 {
        match self {
            Self::Message(crossing) => crossing.message.time,
            Self::Delivered { at, .. } | Self::Departure(Departure { at, .. }) => *at,
            Self::Split(arrivals) => arrivals.latest,
        }
    }
}

/// Report of a part at the end of a window.
#[derive(Debug, Default)]
struct WindowReport {
    /// News for every part.
    mail: Vec<Vec<Crossing>>,
    /// Time of the earliest event that follows, if there is one.
    earliest: Option<u64>,
    failed: bool,
}

/// Meeting point of all parts.
#[derive(Debug)]
pub(super) struct PartExchange {
    parts: Vec<PartReports>,
    /// Duration of a window.
    lookahead: u64,
}

/// Reports of one part.
#[derive(Debug, Default)]
struct PartReports {
    /// Number of windows that were reported.
    windows: AtomicUsize,
    /// Reports, in turns: the part may report the next window while others still read this one.
    reports: [Mutex<WindowReport>; 2],
    /// Place where the part waits for the others.
    sleeper: Sleeper,
}

/// Beginning of a window: the news, and the time at which the window ends.
#[derive(Debug)]
pub(super) struct NextWindow {
    pub(super) news: Vec<Crossing>,
    pub(super) end: u64,
}

impl PartExchange {
    pub(super) fn new(parts: usize, lookahead: u64) -> Self {
        Self {
            parts: (0..parts).map(|_| PartReports::default()).collect(),
            lookahead,
        }
    }

    /// Waits for the reports of all parts on window number `window`. Returns the next window;
    /// `None` if nothing is left to happen, or a part has failed.
    pub(super) fn meet(
        &self,
        window: usize,
        part: usize,
        mail: Vec<Vec<Crossing>>,
        next_event: Option<u64>,
        failed: bool,
    ) -> Option<NextWindow> {
        let crossings = mail.iter().flatten().map(Crossing::time);
        let earliest = crossings.chain(next_event).min();
        let mine = &self.parts[part];
        *lock(&mine.reports[window % 2]) = WindowReport {
            mail,
            earliest,
            failed,
        };
        mine.windows.store(window + 1, Ordering::Release);
        self.parts.iter().for_each(|other| other.sleeper.nudge());
        let reported = |part: &PartReports| part.windows.load(Ordering::Acquire) > window;
        mine.sleeper
            .wait_until(|| self.parts.iter().all(reported).then_some(()));
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
