//! A trace recorder for tests: events are stamped by clocks with a known skew, which are compared in sessions, and written
//! to a trace, and with true times to another.

pub(crate) mod patterns;

use core::num::NonZeroU32;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time;

use downbeat_clock_core::{ClockModel, Counter, Duration, Global, Local, Timestamp};
use downbeat_sync::pair::{OffsetClient, answer_blocking};
use downbeat_sync::{Comm, OffsetAlgorithm, block_on_ready, collective};
use downbeat_timers::skew::{Skew, SkewSwing, SkewedClock, Truth};
use downbeat_timers::{SystemClock, SystemClockId};
use downbeat_trace::Event;
use downbeat_trace::formats::{Item, TraceReader, TraceWriter};
use downbeat_trace::presync::ClockSample;
use downbeat_trace::{CollectiveKind, Place};

type RecorderClock = SkewedClock<SystemClock>;

/// Ranks that share a communicator, and its number in the trace.
pub(crate) struct RecordedTeam<M> {
    pub(crate) comm: M,
    /// Number of the communicator in the trace.
    pub(crate) number: u32,
    /// Members, by their ranks in the world.
    members: Vec<u32>,
}

/// An event with its true time and its local time.
struct RecordedEvent {
    truth: i64,
    local: i64,
    event: Event<'static>,
}

/// Recorder of one rank.
pub(crate) struct Recorder<M> {
    pub(crate) world: RecordedTeam<M>,
    /// Every second rank, including this one.
    pub(crate) half: RecordedTeam<M>,
    clock: RecorderClock,
    events: Vec<RecordedEvent>,
    sessions: Vec<Vec<ClockSample>>,
}

/// Region that is entered for work.
const WORK: u32 = 0;

/// Origin of true time. All ranks on this machine read the same clock.
pub(crate) fn origin() -> ClockModel<Counter, Truth> {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    ClockModel::through(
        downbeat_clock_core::Clock::ticks(&raw),
        Timestamp::ORIGIN,
        SystemClock::RATE,
    )
    .unwrap()
}

/// Skew of a rank: an offset and a drift, which sessions can measure, and a swing, which they cannot. Rank 0 has none.
fn skew(rank: u32) -> Skew {
    if rank == 0 {
        return Skew::default();
    }
    let way = if rank.is_multiple_of(2) { 1 } else { -1 };
    Skew {
        offset: Duration::from_millis(i64::from(way) * 7 * i64::from(rank)),
        drift: f64::from(way * 20) * 1e-6,
        swing: Some(SkewSwing {
            amplitude: Duration::from_micros(i64::from(way) * 300),
            period: Duration::from_millis(170 + 30 * i64::from(rank)),
        }),
        ..Skew::default()
    }
}

impl<M: Comm> Recorder<M> {
    /// Of a rank of `comm`; for all ranks, the same origin.
    pub(crate) fn new(comm: &M, origin: ClockModel<Counter, Truth>) -> Self {
        let (rank, size) = (comm.rank(), comm.size());
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let team = |number: u32, color: u32, members: Vec<u32>| {
            let comm = block_on_ready(comm.split(Some(color), rank))
                .unwrap()
                .unwrap();
            RecordedTeam {
                comm,
                number,
                members,
            }
        };
        let world = team(0, 0, (0..size).collect());
        let half = team(1 + rank % 2, rank % 2, half(rank % 2, size));
        let clock = RecorderClock::new(raw, origin, skew(rank)).unwrap();
        Self {
            world,
            half,
            clock,
            events: vec![],
            sessions: vec![],
        }
    }

    pub(crate) fn rank(&self) -> u32 {
        self.world.comm.rank()
    }

    pub(crate) fn size(&self) -> u32 {
        self.world.comm.size()
    }

    /// Compares all clocks with that of rank 0 by this number of samples.
    pub(crate) fn session(&mut self, samples: usize) {
        let comm = &self.world.comm;
        let local = RecorderClock::nominal_model().unwrap();
        if comm.rank() == 0 {
            let global = ClockModel::<Counter, Global>::through(
                RecorderClock::ZERO,
                Timestamp::ORIGIN,
                RecorderClock::RATE,
            )
            .unwrap();
            for client in (1..comm.size()).flat_map(|client| vec![client; samples]) {
                answer_blocking(&self.clock, &global, comm, client).unwrap();
            }
            return;
        }
        let algorithm = OffsetAlgorithm::skampi(NonZeroU32::new(5).unwrap());
        let mut client = OffsetClient::<Local, Global>::new(algorithm, 0).unwrap();
        let found =
            (0..samples).filter_map(|_| client.measure_blocking(&self.clock, &local, comm).ok());
        let sample = |at: Timestamp<Local>, offset: Duration| (at - offset).as_nanos();
        let found = found.map(|found| ClockSample {
            at: found.at,
            image: Timestamp::from_nanos(sample(found.at, found.offset)),
        });
        self.sessions.push(found.collect());
    }

    /// Records an event now.
    pub(crate) fn stamp(&mut self, event: Event<'static>) {
        let truth = self.clock.true_now();
        let local = RecorderClock::nominal_model()
            .unwrap()
            .apply(self.clock.ticks_at(truth))
            .as_nanos();
        self.events.push(RecordedEvent {
            truth: truth.as_nanos(),
            local,
            event,
        });
    }

    /// Works for this duration, busy waiting.
    pub(crate) fn work(&mut self, micros: u64) {
        self.stamp(Event::Enter { region: WORK });
        let started = time::Instant::now();
        while started.elapsed() < time::Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
        self.stamp(Event::Leave { region: WORK });
    }

    /// Sends a message to a rank of a team.
    pub(crate) fn send(&mut self, team: fn(&Self) -> &RecordedTeam<M>, to: u32, tag: i32) {
        let within = team(self);
        let event = Event::Send {
            to: within.members[to as usize],
            communicator: within.number,
            tag,
            request: None,
            bytes: Some(8),
        };
        self.stamp(event);
        block_on_ready(team(self).comm.send(to, tag as u64)).unwrap();
    }

    /// Receives a message from a rank of a team; returns its tag.
    pub(crate) fn receive(&mut self, team: fn(&Self) -> &RecordedTeam<M>, from: u32) -> i32 {
        let within = team(self);
        let tag = block_on_ready(within.comm.recv::<u64>(from)).unwrap() as i32;
        let event = Event::Receive {
            from: within.members[from as usize],
            communicator: within.number,
            tag,
            bytes: Some(8),
            request: None,
        };
        self.stamp(event);
        tag
    }

    /// Records a collective operation of a team.
    pub(crate) fn together(
        &mut self,
        team: fn(&Self) -> &RecordedTeam<M>,
        kind: CollectiveKind,
        root: u32,
        call: impl FnOnce(&RecordedTeam<M>),
    ) {
        let communicator = team(self).number;
        self.stamp(Event::CollectiveBegin {
            communicator,
            request: None,
        });
        call(team(self));
        self.stamp(Event::CollectiveEnd {
            communicator,
            kind,
            root,
            sent: true,
            received: true,
            bytes: None,
            request: None,
        });
    }

    /// Writes the events of all ranks with local times and with true times; returns the two files.
    pub(crate) fn write(&self, folder: &Path) -> [PathBuf; 2] {
        ["wrong", "truth"].map(|name| {
            let part = |rank: u32| folder.join(format!("{name}-{rank}.dbt"));
            self.write_part(&part(self.rank()), name == "truth");
            block_on_ready(collective::barrier(&self.world.comm)).unwrap();
            let whole = folder.join(format!("{name}.dbt"));
            if self.rank() == 0 {
                join(&(0..self.size()).map(part).collect::<Vec<_>>(), &whole);
            }
            block_on_ready(collective::barrier(&self.world.comm)).unwrap();
            whole
        })
    }

    /// Writes the events of this rank, with the definitions of all.
    fn write_part(&self, path: &Path, in_truth: bool) {
        let mut writer = TraceWriter::create(path).unwrap();
        let (location, size) = (self.rank(), self.size());
        for rank in 0..size {
            let (place, name) = (
                Place {
                    node: rank / 2,
                    process: rank,
                },
                format!("rank {rank}"),
            );
            writer
                .write(&Item::Location { place, name: &name })
                .unwrap();
        }
        for members in [(0..size).collect(), half(0, size), half(1, size)] {
            writer
                .write(&Item::Communicator { members: &members })
                .unwrap();
        }
        writer.write(&Item::Region { name: "work" }).unwrap();
        for (session, samples) in (0..).zip(&self.sessions) {
            for &ClockSample {
                at: local,
                image: master,
            } in samples
            {
                writer
                    .write(&Item::Sample {
                        location,
                        session,
                        local,
                        master,
                    })
                    .unwrap();
            }
        }
        for RecordedEvent {
            truth,
            local,
            event,
        } in &self.events
        {
            let time = Timestamp::from_nanos(if in_truth { *truth } else { *local });
            writer
                .write(&Item::Event {
                    location,
                    time,
                    event: *event,
                })
                .unwrap();
        }
        writer.finish().unwrap();
    }
}

/// Returns every second rank.
fn half(which: u32, size: u32) -> Vec<u32> {
    (which..size).step_by(2).collect()
}

/// Joins parts: the definitions of the first, and the samples and events of all. Removes the parts.
fn join(parts: &[PathBuf], whole: &Path) {
    let mut writer = TraceWriter::create(whole).unwrap();
    for (number, part) in parts.iter().enumerate() {
        let mut reader = TraceReader::open(part).unwrap();
        while let Some(item) = reader.next_item().unwrap() {
            if number == 0 || matches!(item, Item::Sample { .. } | Item::Event { .. }) {
                writer.write(&item).unwrap();
            }
        }
        fs::remove_file(part).unwrap();
    }
    writer.finish().unwrap();
}

/// Lets time pass in which clocks drift.
pub(crate) fn rest() {
    thread::sleep(time::Duration::from_millis(30));
}
