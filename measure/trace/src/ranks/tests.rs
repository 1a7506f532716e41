//! Compares results of several ranks with those of one rank that has the whole trace.

use crate::Totals;
use crate::logical::ControlVariable;
use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_files::testing::TemporaryFolder;
use fastrand::Rng;

use super::{LocationLoad, LocationShares};
use crate::check::Verdict;
use crate::deviation::{Deviation, TruthComparison};
use crate::generate::{SyntheticProgram, SyntheticTraffic};
use crate::{
    Array, ArrayStore, ClockOwner, CollectiveKind, CommunicatorId, ControlledLogicalClock,
    CorrectionError, Event, EventId, ForwardPass, Gradient, Latencies, Location, LocationId,
    Matching, Place, Trace, TraceBuilder, TraceError,
};
use downbeat_sync::{ClusterError, Comm, ThreadCluster, block_on_ready};

type Nanos = Vec<Vec<Timestamp<Global>>>;

/// Adds an event at a position of the trace, if the builder takes it.
fn add_event(
    builder: &mut TraceBuilder,
    at: usize,
    (location, time, event): (u32, i64, Event<'static>),
) -> Result<(), TraceError> {
    let location = LocationId(location);
    if !builder.owns(location) {
        return Ok(());
    }
    builder.set_position(at as u64);
    builder.push(location, Timestamp::from_nanos(time), event)
}

/// All results about a trace and its correction.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    totals: Totals,
    latencies: Latencies,
    verdicts: [Verdict; 3],
    passes: Vec<ForwardPass>,
    jumps: Vec<(EventId, Duration)>,
    deviation: Deviation,
    truth: TruthComparison,
    forward: Nanos,
    times: Nanos,
}

/// Returns arbitrary times that are taken as the truth.
fn truth(location: usize, times: &[Timestamp<Global>]) -> Vec<Timestamp<Global>> {
    let truth = |(i, time): (usize, &Timestamp<Global>)| {
        *time + Duration::from_nanos(((i * 7 + location * 3) % 40) as i64)
    };
    times.iter().enumerate().map(truth).collect()
}

fn truths<'a>(locations: impl IntoIterator<Item = &'a [Timestamp<Global>]>) -> Nanos {
    locations
        .into_iter()
        .enumerate()
        .map(|(location, times)| truth(location, times))
        .collect()
}

/// Position and message of the first event that cannot be added; errors found later are at the end.
type Failure = (usize, String);
const END: usize = usize::MAX;

fn copied(times: &[Array<Timestamp<Global>>]) -> Nanos {
    times.iter().map(|times| times.to_vec()).collect()
}

fn serially(trace: &Trace, clock: &ControlledLogicalClock) -> Result<Outcome, Failure> {
    let mut clock = *clock;
    let measured = Latencies::measured(trace);
    if clock.latencies == Latencies::ZERO {
        clock.latencies = measured;
    }
    let truth = truths(trace.times());
    let mut corrected = clock.forward(trace).map_err(|why| (END, why.to_string()))?;
    let jumps = corrected.jumps().collect();
    let forward = copied(corrected.times());
    corrected.amortize(clock.gradient);
    let verdict = |times: &Nanos| Verdict::new(trace, times, &clock.latencies).unwrap();
    let mut errors = TruthComparison::default();
    for (times, truth) in corrected.times().iter().zip(&truth) {
        for (time, truth) in times.iter().zip(truth) {
            errors.add(*time, *truth);
        }
    }
    let exits = trace
        .collectives()
        .flat_map(|of| of.members())
        .filter(|member| member.exit.is_some())
        .count();
    let totals = Totals {
        events: trace.events(),
        messages: trace.messages().count() as u64,
        collectives: trace.collectives().len() as u64,
        arrivals: (trace.messages().count() + exits) as u64,
        left_out: trace.left_out(),
    };
    Ok(Outcome {
        totals,
        latencies: measured,
        verdicts: [
            Verdict::new(trace, &trace.times(), &clock.latencies).unwrap(),
            verdict(&truth),
            verdict(&copied(corrected.times())),
        ],
        passes: corrected.passes().to_vec(),
        jumps,
        deviation: Deviation::between(trace, corrected.times()).unwrap(),
        truth: errors,
        forward,
        times: copied(corrected.times()),
    })
}

async fn together<C: Comm>(
    builder: TraceBuilder,
    clock: &ControlledLogicalClock,
    comm: &C,
) -> Result<Outcome, CorrectionError> {
    let mut clock = *clock;
    let part = builder.finish_on_ranks(comm).await?;
    let measured = Latencies::measured_in_part(&part, 1, comm).await?;
    if clock.latencies == Latencies::ZERO {
        clock.latencies = measured;
    }
    let as_measured = part.times();
    let truth = truths(as_measured.iter().copied());
    let mut corrected = clock.forward_part(&part, comm).await?;
    let jumps = corrected.jumps().collect();
    let forward = copied(corrected.times());
    corrected.amortize_part(&part, clock.gradient, comm).await?;
    let verdicts = [
        Verdict::of_part(&part, &as_measured, &clock.latencies, 1, comm).await?,
        Verdict::of_part(&part, &truth, &clock.latencies, 1, comm).await?,
        Verdict::of_part(&part, corrected.times(), &clock.latencies, 1, comm).await?,
    ];
    Ok(Outcome {
        totals: part.totals(comm).await?,
        latencies: measured,
        verdicts,
        passes: corrected.passes().to_vec(),
        jumps,
        deviation: Deviation::of_part(&part, corrected.times(), 1, comm).await?,
        truth: TruthComparison::of_part(&part, corrected.times(), &truth, comm).await?,
        forward,
        times: copied(corrected.times()),
    })
}

/// Returns the result of all ranks: the error of the first event that cannot be added on any rank,
/// or else their common result.
fn shared_by(
    ranks: u32,
    shares: &LocationShares,
    matching: Matching,
    clock: &ControlledLogicalClock,
    add: impl Fn(&mut TraceBuilder) -> Result<(), Failure> + Sync,
) -> Result<Outcome, Failure> {
    let added = |rank: u32| {
        let mut builder = TraceBuilder::new(matching).for_rank(rank, shares.clone());
        add(&mut builder).map(|()| builder)
    };
    if let Some(first) = (0..ranks).filter_map(|rank| added(rank).err()).min() {
        return Err(first);
    }
    let found = ThreadCluster::new(ranks).run(|comm| {
        let builder = added(comm.rank()).unwrap();
        block_on_ready(together(builder, clock, comm)).map_err(|why| (END, why.to_string()))
    });
    let mut found = found.unwrap().into_iter();
    let mut whole = found.next().unwrap();
    for other in found {
        match (&mut whole, other) {
            (Ok(whole), Ok(mut other)) => {
                whole.jumps.append(&mut other.jumps);
                let parts = [
                    (&mut whole.forward, &mut other.forward),
                    (&mut whole.times, &mut other.times),
                ];
                for (whole, other) in parts {
                    for (whole, other) in whole.iter_mut().zip(other) {
                        assert!(
                            whole.is_empty() || other.is_empty(),
                            "both have events of a location"
                        );
                        whole.append(other);
                    }
                }
                let of_parts =
                    |of: &Outcome| (of.jumps.clone(), of.forward.clone(), of.times.clone());
                let (jumps, forward, times) = of_parts(whole);
                let rest = Outcome {
                    jumps,
                    forward,
                    times,
                    ..other
                };
                assert_eq!(*whole, rest, "ranks do not agree");
            }
            (Err(one), Err(other)) => assert_eq!(*one, other, "ranks do not agree"),
            (one, other) => panic!("ranks do not agree: {one:?} {other:?}"),
        }
    }
    if let Ok(whole) = &mut whole {
        whole.jumps.sort();
    }
    whole
}

const RANKS: [u32; 6] = [1, 2, 3, 4, 5, 8];

#[test]
fn ranks_correct_programs_as_one_rank_does() {
    for seed in 0..9 {
        let program = SyntheticProgram {
            processes: 1 + seed as u32 % 3,
            threads: 1 + seed as u32 % 2 * 2,
            collective_every: 2,
            fork_every: 5,
            traffic: [
                SyntheticTraffic::Ring,
                SyntheticTraffic::Pairs,
                SyntheticTraffic::Stencil,
            ][seed as usize % 3],
            asynchronous: seed % 2 == 1,
            violated: 0.4,
            seed,
            ..SyntheticProgram::new(2 + seed as u32, 0)
        };
        let program = program.with_events(3_000);
        let mut clock = ControlledLogicalClock::new(program.latencies);
        clock.threshold = (seed % 3 == 0).then_some(Duration::from_micros(1));
        clock.workers = 1 + seed as usize % 3;
        let trace = program.trace(Matching::default()).unwrap();
        let expected = serially(&trace, &clock).unwrap();
        assert!(expected.verdicts[0].all().violated > 0 && expected.verdicts[2].holds());
        let (folder, _) = TemporaryFolder::with_file("input", b"");
        let store = ArrayStore::in_folder(&folder.0).unwrap();
        let mut builder = TraceBuilder::new(Matching::default()).in_store(store);
        program.build(&mut builder).unwrap();
        let in_file = serially(&builder.finish_on(clock.workers).unwrap(), &clock);
        assert!(in_file == Ok(expected.clone()), "seed {seed}, in a file");
        let add = |builder: &mut TraceBuilder| {
            for (location, place) in (0..).zip(program.places()) {
                let rank = LocationId(place.process);
                let is_rank = location == place.process;
                let added = match is_rank {
                    true => builder.add_location(place),
                    false => builder.add_thread(rank),
                };
                added.unwrap();
            }
            for members in program.communicators() {
                builder.add_communicator(&members).unwrap();
            }
            let mut at = 0;
            let run = program.run(|event| {
                at += 1;
                let event = (event.location.0, event.local.as_nanos(), event.event);
                add_event(builder, at, event).unwrap();
                Ok::<_, ClusterError>(())
            });
            run.map_err(|why| (0, why.to_string()))
        };
        for ranks in RANKS {
            let load = |of: &Location| LocationLoad {
                process: of.place().process,
                place: of.place(),
                events: of.times().len() as u64,
            };
            let loads: Vec<LocationLoad> = trace.locations().iter().map(load).collect();
            let shares = LocationShares::new(ranks, ClockOwner::Process, &loads);
            let found = shared_by(ranks, &shares, Matching::default(), &clock, add);
            assert!(found == Ok(expected.clone()), "seed {seed}, {ranks} ranks");
        }
    }
}

/// Random, possibly invalid trace.
#[derive(Debug)]
struct Chaos {
    /// For every location, its process, and the place of that.
    locations: Vec<(u32, Place)>,
    communicators: Vec<Vec<u32>>,
    events: Vec<(u32, i64, Event<'static>)>,
}

const KINDS: [CollectiveKind; 12] = CollectiveKind::MPI_KINDS;

impl Chaos {
    /// Makes a program that could have run, seen by bad clocks; sometimes an impossible one.
    fn new(rng: &mut Rng) -> Self {
        let processes = rng.u32(1..9);
        let place = |process: u32| Place {
            node: process / 2,
            process,
        };
        let mut locations: Vec<(u32, Place)> = (0..processes)
            .map(|process| (process, place(process)))
            .collect();
        let threads = (0..rng.u32(0..4))
            .map(|_| rng.u32(0..processes))
            .map(|process| (process, place(process)));
        locations.extend(threads);
        let count = locations.len() as u32;
        let communicator = |rng: &mut Rng| {
            // Some communicators contain threads.
            let mut members: Vec<u32> =
                (0..if rng.u8(..) < 60 { count } else { processes }).collect();
            rng.shuffle(&mut members);
            members.truncate(rng.usize(1..=members.len()));
            members
        };
        let communicators: Vec<Vec<u32>> = (0..3).map(|_| communicator(rng)).collect();
        let mut of = vec![vec![]; locations.len()];
        // Completions that are still to come.
        let mut late = vec![];
        for _ in 0..rng.usize(0..60) {
            if !late.is_empty() && rng.bool() {
                complete(rng, &mut late, &mut of);
            }
            if rng.u8(..) < 20 {
                signal(rng, &locations, &mut of);
            } else if rng.u8(..) < 150 {
                message(rng, count, &mut of);
            } else {
                collective(rng, &communicators, &mut of, &mut late);
            }
        }
        while !late.is_empty() {
            complete(rng, &mut late, &mut of);
        }
        if rng.u8(..) < 90 {
            spoil(rng, &mut of);
        }
        Self {
            locations,
            communicators,
            events: mixed(rng, of),
        }
    }

    fn add(&self, builder: &mut TraceBuilder) -> Result<(), Failure> {
        let wrong = |at| move |why: TraceError| (at, why.to_string());
        for (location, (process, place)) in (0..).zip(&self.locations) {
            let added = if *process == location {
                builder.add_location(*place)
            } else {
                builder.add_thread(LocationId(*process))
            };
            added.map_err(wrong(0))?;
        }
        for members in &self.communicators {
            let members: Vec<LocationId> = members.iter().copied().map(LocationId).collect();
            builder.add_communicator(&members).map_err(wrong(0))?;
        }
        for (at, (location, time, event)) in self.events.iter().enumerate() {
            add_event(builder, at, (*location, *time, *event)).map_err(wrong(at))?;
        }
        Ok(())
    }

    fn shares(&self, ranks: u32, clock_of: ClockOwner) -> LocationShares {
        let count = |location: u32| {
            self.events
                .iter()
                .filter(|(of, ..)| *of == location)
                .count() as u64
        };
        let load = |(location, (process, place)): (u32, &(u32, Place))| LocationLoad {
            process: *process,
            place: *place,
            events: count(location),
        };
        let loads: Vec<LocationLoad> = (0..).zip(&self.locations).map(load).collect();
        LocationShares::new(ranks, clock_of, &loads)
    }
}

fn message(rng: &mut Rng, locations: u32, of: &mut [Vec<Event<'static>>]) {
    let [from, to] = [0; 2].map(|_| rng.u32(0..locations));
    let (communicator, tag) = (CommunicatorId(rng.u32(0..3)), rng.i32(0..2));
    of[from as usize].push(Event::Send {
        to: LocationId(to).into(),
        communicator: communicator.into(),
        tag,
        request: None,
        bytes: None,
    });
    let (from, to) = (LocationId(from), &mut of[to as usize]);
    if rng.u8(..) < 80 {
        // Posted before some of the last events.
        let request = rng.u64(0..8);
        let at = to.len() - rng.usize(0..=to.len().min(3));
        to.insert(at, Event::PostReceive { request });
        to.push(Event::Receive {
            from: from.into(),
            communicator: communicator.into(),
            tag,
            request: Some(request),
            bytes: None,
        });
    } else {
        to.push(Event::Receive {
            from: from.into(),
            communicator: communicator.into(),
            tag,
            request: None,
            bytes: None,
        });
    }
    of[rng.usize(0..locations as usize)].push(Event::Note("work"));
}

/// Adds one of the completions that are still to come.
fn complete(rng: &mut Rng, late: &mut Vec<(u32, Event<'static>)>, of: &mut [Vec<Event<'static>>]) {
    let (member, event) = late.swap_remove(rng.usize(0..late.len()));
    of[member as usize].push(event);
}

/// Lets members enter one after the other, and leave, with other events between.
fn collective(
    rng: &mut Rng,
    communicators: &[Vec<u32>],
    of: &mut [Vec<Event<'static>>],
    late: &mut Vec<(u32, Event<'static>)>,
) {
    let number = rng.u32(0..3);
    let (communicator, members) = (CommunicatorId(number), &communicators[number as usize]);
    if rng.u8(..) < 40 {
        let master = members[rng.usize(..members.len())];
        of[master as usize].push(Event::Fork {
            team: communicator.into(),
        });
        for member in members.iter().filter(|member| **member != master) {
            of[*member as usize].extend([
                Event::ThreadBegin {
                    team: communicator.into(),
                },
                Event::ThreadEnd {
                    team: communicator.into(),
                },
            ]);
        }
        of[master as usize].push(Event::Join {
            team: communicator.into(),
        });
        return;
    }
    let (kind, root) = (
        KINDS[rng.usize(..KINDS.len())],
        rng.u32(..members.len() as u32),
    );
    let request = (rng.u8(..) < 100).then(|| rng.u64(..));
    let enter = match request {
        Some(request) => Event::CollectiveBegin {
            communicator: communicator.into(),
            request: Some(request),
        },
        None => Event::CollectiveBegin {
            communicator: communicator.into(),
            request: None,
        },
    };
    let entered = members.iter();
    entered.for_each(|member| of[*member as usize].push(enter));
    for member in members {
        let [sent, received] = [rng.u8(..) < 220, rng.u8(..) < 220];
        match request {
            Some(request) => {
                let complete = Event::CollectiveEnd {
                    communicator: communicator.into(),
                    kind,
                    root,
                    sent,
                    received,
                    request: Some(request),
                    bytes: None,
                };
                late.push((*member, complete));
            }
            None => of[*member as usize].push(Event::CollectiveEnd {
                communicator: communicator.into(),
                kind,
                root,
                sent,
                received,
                request: None,
                bytes: None,
            }),
        }
    }
}

fn signal(rng: &mut Rng, locations: &[(u32, Place)], of: &mut [Vec<Event<'static>>]) {
    let [from, to] = [0; 2].map(|_| rng.usize(0..locations.len()));
    let id = rng.u64(0..4);
    if locations[from].0 == locations[to].0 {
        of[from].push(Event::Signal { id });
        of[to].push(Event::Wait { id });
    }
}

/// Removes, reorders or changes events.
fn spoil(rng: &mut Rng, of: &mut [Vec<Event<'static>>]) {
    for _ in 0..rng.u32(1..4) {
        let at = rng.usize(..of.len());
        let location = &mut of[at];
        if location.len() < 2 {
            continue;
        }
        let at = rng.usize(..location.len() - 1);
        match rng.u8(0..6) {
            5 => location.truncate(at),
            0 => drop(location.remove(at)),
            1 => {
                if let Event::CollectiveEnd { root, .. } = &mut location[at] {
                    *root += 1;
                }
            }
            _ => location.swap(at, at + 1),
        }
    }
}

/// Interleaves the events of all locations, each in its order, as in a file.
fn mixed(rng: &mut Rng, of: Vec<Vec<Event<'static>>>) -> Vec<(u32, i64, Event<'static>)> {
    let mut times: Vec<i64> = of.iter().map(|_| rng.i64(0..200)).collect();
    let mut left: Vec<_> = of
        .into_iter()
        .map(|events| events.into_iter().peekable())
        .collect();
    let mut events = vec![];
    let by_location = rng.bool();
    while let Some(first) = left.iter_mut().position(|rest| rest.peek().is_some()) {
        let location = if by_location {
            first
        } else {
            rng.usize(..left.len())
        };
        if let Some(event) = left[location].next() {
            times[location] += rng.i64(0..30);
            events.push((location as u32, times[location], event));
        }
    }
    events
}

/// Traces with arbitrary contents and errors have equal results, also in a file.
#[test]
fn ranks_correct_or_reject_random_traces_as_one_rank_does() {
    let mut rng = Rng::with_seed(11);
    let (folder, _) = TemporaryFolder::with_file("input", b"");
    let file = ArrayStore::in_folder(&folder.0).unwrap();
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    let mut left_out = [0; 3];
    for case in 0..300 {
        let chaos = Chaos::new(&mut rng);
        let matching = Matching {
            skip_alltoallv: rng.u8(..) < 50,
            clock_of: match rng.u8(..4) {
                0 => ClockOwner::Location,
                1 => ClockOwner::Node,
                _ => ClockOwner::Process,
            },
        };
        let mut clock = ControlledLogicalClock::new(Latencies::ZERO);
        let nanos = Duration::from_nanos;
        if rng.bool() {
            clock.latencies = Latencies::new(nanos(1), nanos(3), nanos(10)).unwrap();
        }
        clock.rule.control = ControlVariable::new(0.9).unwrap();
        clock.threshold = rng.bool().then_some(nanos(100));
        clock.gradient = Gradient::new(0.1).unwrap();
        clock.workers = 1 + case % 3;

        let correct_in = |store: &ArrayStore| {
            let mut builder = TraceBuilder::new(matching).in_store(store.clone());
            chaos.add(&mut builder)?;
            let trace = builder.finish().map_err(|why| (END, why.to_string()))?;
            serially(&trace, &clock)
        };
        let expected = correct_in(&ArrayStore::MEMORY);
        assert_eq!(
            correct_in(&file),
            expected,
            "case {case}, in a file: {chaos:?}"
        );
        let ranks = [2, 3, RANKS[case / 3 % 6]][case % 3];
        let shares = chaos.shares(ranks, matching.clock_of);
        let found = shared_by(ranks, &shares, matching, &clock, |builder| {
            chaos.add(builder)
        });
        assert_eq!(found, expected, "case {case}, {ranks} ranks: {chaos:?}");
        let kind = match expected {
            Ok(Outcome { totals, .. }) => {
                let found = totals.left_out;
                left_out[0] += found.sends;
                left_out[1] += found.receives;
                left_out[2] += found.collectives;
                String::new()
            }
            Err((_, why)) => why.replace(|c: char| c.is_ascii_digit(), "#"),
        };
        *seen.entry(kind).or_default() += 1;
    }
    let of = |part: &str| {
        seen.iter()
            .filter(|(kind, _)| kind.contains(part))
            .map(|(_, count)| count)
            .sum::<u32>()
    };
    assert!(seen[""] > 100, "{seen:?}");
    for part in ["in a circle", "not entered", "different roots"] {
        assert!(of(part) > 0, "{part}: {seen:?}");
    }
    assert!(!left_out.contains(&0), "{left_out:?}");
}
