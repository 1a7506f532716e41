//! A recorder for tests: what ranks do is stamped by clocks that are wrong in a known way, compared in sessions, and
//! written to a trace, with the true times beside.

pub(crate) mod patterns;

use core::num::NonZeroU32;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time;

use downbeat_clock_core::{ClockModel, Counter, Duration, Global, Local, Timestamp};
use downbeat_sync::{
    Comm, OffsetAlgorithm, OffsetClient, answer_blocking, block_on_ready, collective,
};
use downbeat_timers::{Skew, SkewSwing, SkewedClock, SystemClock, SystemClockId, Truth};
use downbeat_trace::formats::{Item, TraceFormat, TraceReader, TraceWriter, What};
use downbeat_trace::{ClockSample, CollectiveKind, Place};

type Skewed = SkewedClock<SystemClock>;

/// Ranks that have a communicator in common, and in a trace the same one.
pub(crate) struct Team<M> {
    pub(crate) comm: M,
    /// Its number in the trace.
    pub(crate) number: u32,
    /// Who is in it, by the ranks of all.
    members: Vec<u32>,
}

/// What happened when: in truth, and as the clock showed it.
struct Event {
    truth: i64,
    local: i64,
    what: What<'static>,
}

/// Of one rank.
pub(crate) struct Recorder<M> {
    pub(crate) world: Team<M>,
    /// Every other rank, with this one.
    pub(crate) half: Team<M>,
    clock: Skewed,
    events: Vec<Event>,
    sessions: Vec<Vec<ClockSample>>,
}

/// The region that is entered to work.
const WORK: u32 = 0;

/// True time begins here. All ranks on this machine read the same clock.
pub(crate) fn origin() -> ClockModel<Counter, Truth> {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    ClockModel::through(
        downbeat_clock_core::Clock::ticks(&raw),
        Timestamp::ORIGIN,
        SystemClock::RATE,
    )
    .unwrap()
}

/// Beside an offset and a drift, which are found out, a swing that sessions do not see. The first clock is right.
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
            Team {
                comm,
                number,
                members,
            }
        };
        let world = team(0, 0, (0..size).collect());
        let half = team(1 + rank % 2, rank % 2, half(rank % 2, size));
        let clock = Skewed::new(raw, origin, skew(rank)).unwrap();
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

    /// Compares all clocks with that of rank 0, so often.
    pub(crate) fn session(&mut self, samples: usize) {
        let comm = &self.world.comm;
        let local = Skewed::nominal_model().unwrap();
        if comm.rank() == 0 {
            let global = ClockModel::<Counter, Global>::through(
                Skewed::ZERO,
                Timestamp::ORIGIN,
                Skewed::RATE,
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

    /// Something happens now.
    pub(crate) fn stamp(&mut self, what: What<'static>) {
        let truth = self.clock.true_now();
        let local = Skewed::nominal_model()
            .unwrap()
            .apply(self.clock.ticks_at(truth))
            .as_nanos();
        self.events.push(Event {
            truth: truth.as_nanos(),
            local,
            what,
        });
    }

    /// Works for as long.
    pub(crate) fn work(&mut self, micros: u64) {
        self.stamp(What::Enter { region: WORK });
        let started = time::Instant::now();
        while started.elapsed() < time::Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
        self.stamp(What::Leave { region: WORK });
    }

    /// A message to a rank of a team sets out.
    pub(crate) fn send(&mut self, team: fn(&Self) -> &Team<M>, to: u32, tag: i32) {
        let within = team(self);
        let what = What::Send {
            to: within.members[to as usize],
            communicator: within.number,
            tag,
        };
        self.stamp(what);
        block_on_ready(team(self).comm.send(to, tag as u64)).unwrap();
    }

    /// A message of a rank of a team is waited for. Its tag.
    pub(crate) fn receive(&mut self, team: fn(&Self) -> &Team<M>, from: u32) -> i32 {
        let within = team(self);
        let tag = block_on_ready(within.comm.recv::<u64>(from)).unwrap() as i32;
        let what = What::Receive {
            from: within.members[from as usize],
            communicator: within.number,
            tag,
        };
        self.stamp(what);
        tag
    }

    /// All ranks of a team do something together.
    pub(crate) fn together(
        &mut self,
        team: fn(&Self) -> &Team<M>,
        kind: CollectiveKind,
        root: u32,
        call: impl FnOnce(&Team<M>),
    ) {
        let communicator = team(self).number;
        self.stamp(What::Collective { communicator });
        call(team(self));
        self.stamp(What::CollectiveEnd {
            communicator,
            kind,
            root,
            sent: true,
            received: true,
        });
    }

    /// Writes what all ranks recorded, by their clocks and in truth: the two files, which are there on return.
    pub(crate) fn write(&self, folder: &Path) -> [PathBuf; 2] {
        ["wrong", "truth"].map(|name| {
            let part = |rank: u32| folder.join(format!("{name}-{rank}.dbtb"));
            self.write_part(&part(self.rank()), name == "truth");
            block_on_ready(collective::barrier(&self.world.comm)).unwrap();
            let whole = folder.join(format!("{name}.dbtb"));
            if self.rank() == 0 {
                join(&(0..self.size()).map(part).collect::<Vec<_>>(), &whole);
            }
            block_on_ready(collective::barrier(&self.world.comm)).unwrap();
            whole
        })
    }

    /// With what all ranks define.
    fn write_part(&self, path: &Path, in_truth: bool) {
        let mut writer = TraceWriter::create(path, TraceFormat::Binary).unwrap();
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
        for Event { truth, local, what } in &self.events {
            let time = Timestamp::from_nanos(if in_truth { *truth } else { *local });
            writer
                .write(&Item::Event {
                    location,
                    time,
                    what: *what,
                })
                .unwrap();
        }
        writer.finish().unwrap();
    }
}

/// Every other rank.
fn half(which: u32, size: u32) -> Vec<u32> {
    (which..size).step_by(2).collect()
}

/// The definitions of one part, and the samples and events of all, which are removed.
fn join(parts: &[PathBuf], whole: &Path) {
    let mut writer = TraceWriter::create(whole, TraceFormat::Binary).unwrap();
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

/// Lets time pass in which clocks go wrong.
pub(crate) fn rest() {
    thread::sleep(time::Duration::from_millis(30));
}
