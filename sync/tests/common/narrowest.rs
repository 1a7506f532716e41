//! The narrowest intervals that messages allow: an oracle for certain bounds.
//!
//! Whatever is known of global time follows from two kinds of constraints on the times of all readings: a message is received after it
//! was sent, and the clock of a rank drifts by no more than declared. Shortest paths over all of them give all that follows. Messages
//! count that have a reading just before they are sent and just after they are received.

use core::cell::RefCell;
use std::rc::Rc;

use downbeat_clock_core::{Clock, ClockModel, Counter, Global, ReadOrdering, Ticks};
use downbeat_sync::payload::Payload;
use downbeat_sync::{Comm, CommError};

/// Events of one rank, in their order.
pub(crate) type Log = Rc<RefCell<Vec<Event>>>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Read(Ticks),
    Sent { to: u32 },
    Received { from: u32 },
}

/// Clock whose readings are recorded.
#[derive(Clone, Debug)]
pub(crate) struct RecordedClock<K> {
    pub(crate) clock: K,
    pub(crate) log: Log,
}

impl<K: Clock> Clock for RecordedClock<K> {
    fn ticks(&self) -> Ticks {
        let ticks = self.clock.ticks();
        self.log.borrow_mut().push(Event::Read(ticks));
        ticks
    }

    fn ordering(&self) -> ReadOrdering {
        self.clock.ordering()
    }

    fn grain(&self) -> u64 {
        self.clock.grain()
    }
}

/// Communicator whose messages are recorded, unless it has been split off.
#[derive(Debug)]
pub(crate) struct RecordedComm<M> {
    pub(crate) comm: M,
    pub(crate) log: Option<Log>,
}

impl<M: Comm> RecordedComm<M> {
    fn record(&self, event: Event) {
        if let Some(log) = &self.log {
            log.borrow_mut().push(event);
        }
    }
}

impl<M: Comm> Comm for RecordedComm<M> {
    fn rank(&self) -> u32 {
        self.comm.rank()
    }

    fn size(&self) -> u32 {
        self.comm.size()
    }

    async fn send<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.record(Event::Sent { to });
        self.comm.send(to, payload).await
    }

    async fn send_sync<P: Payload>(&self, to: u32, payload: P) -> Result<(), CommError> {
        self.record(Event::Sent { to });
        self.comm.send_sync(to, payload).await
    }

    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        let received = self.comm.recv(from).await;
        self.record(Event::Received { from });
        received
    }

    async fn split(&self, color: Option<u32>, key: u32) -> Result<Option<Self>, CommError> {
        let comm = self.comm.split(color, key).await?;
        Ok(comm.map(|comm| Self { comm, log: None }))
    }
}

/// Recorded events of one rank, whose clock ticks once in a nanosecond.
pub(crate) struct Recorded<'a> {
    pub(crate) events: &'a [Event],
    /// Index of the first reading that counts.
    pub(crate) since: usize,
    /// Reading at the time for which the intervals are wanted.
    pub(crate) end: Ticks,
    /// Steps of the readings.
    pub(crate) grain: u64,
}

/// Time of `late` is at most that of `early` plus `by`, in nanoseconds.
struct Constraint {
    late: usize,
    early: usize,
    by: f64,
}

/// Returns the earliest and the latest global time of the end of each rank that its messages leave possible, in nanoseconds since the
/// end of rank 0, whose clock is global time by `global`. The interval is empty if they contradict each other.
pub(crate) fn narrowest(
    ranks: &[Recorded<'_>],
    global: &ClockModel<Counter, Global>,
    max_drift: f64,
) -> Vec<[f64; 2]> {
    let mut nodes: Vec<(usize, Ticks)> = Vec::new();
    let mut constraints = Vec::new();
    let mut ends = Vec::new();
    // Messages of each pair of ranks in their order: the reading just before the message was sent, the one just after it was received.
    let pairs = ranks.len() * ranks.len();
    let readings = || vec![Vec::<Option<usize>>::new(); pairs];
    let [mut sent, mut received] = [readings(), readings()];
    for (rank, recorded) in ranks.iter().enumerate() {
        let mut add = |ticks: Ticks| {
            if let Some((_, before)) = nodes.last().filter(|node| node.0 == rank) {
                let passed = ticks.signed_since(*before) as f64;
                let [late, early] = [nodes.len(), nodes.len() - 1];
                constraints.push(Constraint {
                    late,
                    early,
                    by: passed / (1.0 - max_drift),
                });
                constraints.push(Constraint {
                    late: early,
                    early: late,
                    by: -passed / (1.0 + max_drift),
                });
            }
            nodes.push((rank, ticks));
            nodes.len() - 1
        };
        let (mut just_read, mut waits) = (None, None::<usize>);
        for (index, event) in recorded.events.iter().enumerate() {
            match *event {
                Event::Read(_) if index < recorded.since => {}
                Event::Read(ticks) => {
                    let node = add(ticks);
                    just_read = Some(node);
                    if let Some(waiting) = waits.take() {
                        received[waiting].pop();
                        received[waiting].push(just_read);
                    }
                    continue;
                }
                Event::Sent { to } => sent[rank * ranks.len() + to as usize].push(just_read),
                Event::Received { from } => {
                    let pair = from as usize * ranks.len() + rank;
                    received[pair].push(None);
                    waits = Some(pair);
                    just_read = None;
                    continue;
                }
            }
            (just_read, waits) = (None, None);
        }
        ends.push(add(recorded.end));
    }
    for (pair, (sent, received)) in sent.iter().zip(&received).enumerate() {
        // A reading is late by less than a grain.
        let grain = ranks[pair % ranks.len()].grain as f64 / (1.0 - max_drift);
        for (early, late) in sent.iter().zip(received) {
            if let (Some(early), Some(late)) = (*early, *late) {
                constraints.push(Constraint {
                    late: early,
                    early: late,
                    by: grain,
                });
            }
        }
    }
    // Rank 0's clock is exact.
    let origin = global.apply(ranks[0].end);
    let known = |&(rank, ticks): &(usize, Ticks)| {
        let time = || (global.apply(ticks) - origin).as_nanos() as f64;
        (rank == 0).then(time)
    };
    let mut latest: Vec<f64> = nodes
        .iter()
        .map(|node| known(node).unwrap_or(f64::INFINITY))
        .collect();
    let mut earliest: Vec<f64> = nodes
        .iter()
        .map(|node| known(node).unwrap_or(f64::NEG_INFINITY))
        .collect();
    // Readings that contradict each other would never settle.
    let mut most_rounds = nodes.len();
    let mut changed = true;
    while changed && most_rounds > 0 {
        changed = false;
        most_rounds -= 1;
        let mut relax = |Constraint { late, early, by }: &Constraint| {
            let most = latest[*early] + by;
            let least = earliest[*late] - by;
            // Sums of many roundings never settle.
            if most < latest[*late] - 1e-6 && nodes[*late].0 > 0 {
                latest[*late] = most;
                changed = true;
            }
            if least > earliest[*early] + 1e-6 && nodes[*early].0 > 0 {
                earliest[*early] = least;
                changed = true;
            }
        };
        constraints.iter().for_each(&mut relax);
        constraints.iter().rev().for_each(&mut relax);
    }
    ends.into_iter()
        .map(|end| [earliest[end], latest[end]])
        .collect()
}
