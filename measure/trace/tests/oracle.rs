//! Compares the controlled logical clock with a direct solution of its equations, over all
//! relations of random programs.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, that is how a failure is told"
)]

#[path = "oracle/program.rs"]
mod program;

use std::collections::BTreeMap;

use downbeat_clock_core::Duration;
use downbeat_trace::logical::ControlVariable;
use downbeat_trace::{Array, ControlledLogicalClock, Gradient, Latencies};
use fastrand::Rng;
use program::{EventIndex, Program, number};

type Times = Vec<Vec<i64>>;

/// Random trace and settings.
struct Question {
    program: Program,
    clock: ControlledLogicalClock,
    gradient_inverse: i64,
}

impl Question {
    fn random(seed: u64) -> Self {
        Self::of(seed, 6, 150, 0)
    }

    fn of(seed: u64, most_locations: usize, most_steps: usize, jitter: i64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let (locations, steps) = (rng.usize(1..=most_locations), rng.usize(1..most_steps));
        let program = Program::random(&mut rng, locations, steps, jitter);
        let mut levels = [0, 0, 0].map(|_: i64| [0, 1, 50, 700][rng.usize(0..4)]);
        levels.sort_unstable();
        let [process, node, other] = levels.map(Duration::from_nanos);
        let mut clock = ControlledLogicalClock::new(Latencies::new(process, node, other).unwrap());
        clock.rule.control =
            ControlVariable::new([0.0, 0.5, 0.9, 0.99, 1.0][rng.usize(0..5)]).unwrap();
        clock.rule.spacing = Duration::from_nanos([1, 1, 7, 5_000][rng.usize(0..4)]);
        // Powers of two have exact inverses.
        let gradient_inverse = [1, 4, 64, 1_024][rng.usize(0..4)];
        clock.gradient = Gradient::new(1.0 / gradient_inverse as f64).unwrap();
        Self {
            program,
            clock,
            gradient_inverse,
        }
    }

    fn latency(&self, from: usize, to: usize) -> i64 {
        let [a, b] = [from, to].map(|location| self.program.places[location]);
        let [process, node, other] = self.clock.latencies.levels();
        match (
            self.program.share_clock(from, to),
            a.process == b.process,
            a.node == b.node,
        ) {
            (true, ..) => 0,
            (_, true, _) => process.as_nanos(),
            (.., true) => node.as_nanos(),
            _ => other.as_nanos(),
        }
    }

    fn measured(&self) -> Times {
        self.program
            .events
            .iter()
            .map(|events| events.iter().map(|(time, _)| *time).collect())
            .collect()
    }

    /// Evaluates `L(prev) + ...` for an event of a clock: its time without dependencies,
    /// in units of 2^-63 ns. `exact` is that of the event before.
    fn base(
        &self,
        measured: &Times,
        (found, jumps): (&Times, &BTreeMap<EventIndex, i64>),
        (timeline, index): (&[EventIndex], usize),
        exact: i128,
    ) -> i128 {
        let (location, event) = timeline[index];
        let time = measured[location][event];
        let Some((other, before)) = index.checked_sub(1).map(|before| timeline[before]) else {
            return exact_of(time);
        };
        let passed = time - measured[other][before];
        // Control variables are multiples of 2^-63.
        let share = (self.clock.rule.control.get() * 2.0_f64.powi(63)) as i128;
        let slowed = exact + i128::from(passed) * share;
        let spacing = self.clock.rule.spacing.as_nanos();
        if other == location {
            let spaced = exact + exact_of(passed.min(spacing));
            return slowed.max(spaced).max(exact_of(time));
        }
        let spaced = event.checked_sub(1).map_or(i128::MIN, |before| {
            let passed = time - measured[location][before];
            // Backward amortization can move an event at the start of a jump, or of several that
            // follow each other at once, to its end.
            let (mut start, mut end) = (i64::MAX, i64::MIN);
            for at in &timeline[..index] {
                if let Some(jump) = jumps.get(at) {
                    let now = found[at.0][at.1];
                    start = if now - jump == end { start } else { now - jump };
                    end = now;
                }
            }
            let last = found[location][before];
            let last = if (start..=end).contains(&last) {
                end
            } else {
                last
            };
            exact_of(last + passed.min(spacing))
        });
        slowed.max(spaced).max(exact_of(time))
    }

    /// Returns the relations between different clocks.
    fn relations(&self) -> impl Iterator<Item = (EventIndex, EventIndex)> + '_ {
        let relations = self.program.relations.iter().copied();
        relations.filter(|(from, to)| !self.program.share_clock(from.0, to.0))
    }

    /// Iterates until all equations hold.
    fn forward(&self, timelines: &[Vec<EventIndex>]) -> (Times, BTreeMap<EventIndex, i64>) {
        let measured = self.measured();
        let mut found = measured.clone();
        loop {
            let before = found.clone();
            let mut jumps = BTreeMap::new();
            for timeline in timelines {
                let mut exact = 0;
                for (index, (location, event)) in timeline.iter().copied().enumerate() {
                    exact = self.base(&measured, (&found, &jumps), (timeline, index), exact);
                    let base = rounded(exact);
                    let sends = self.relations().filter(|(_, to)| *to == (location, event));
                    let reach = sends
                        .map(|((from, sent), _)| found[from][sent] + self.latency(from, location))
                        .max();
                    found[location][event] = base.max(reach.unwrap_or(base));
                    exact = exact.max(reach.map_or(exact, exact_of));
                    if found[location][event] > base {
                        jumps.insert((location, event), found[location][event] - base);
                    }
                }
            }
            if found == before {
                return (found, jumps);
            }
        }
    }

    fn backward(
        &self,
        timelines: &[Vec<EventIndex>],
        forward: &Times,
        jumps: &BTreeMap<EventIndex, i64>,
    ) -> Times {
        let mut found = forward.clone();
        for timeline in timelines {
            for (index, last) in timeline.iter().enumerate().rev() {
                let Some(jump) = jumps.get(last) else {
                    continue;
                };
                let end = (found[last.0][last.1] - jump, *jump);
                let start = (end.0 - jump * self.gradient_inverse, 0);
                let before = &timeline[..index];
                let mut points = vec![start, end];
                for ((from, sent), (to, received)) in self.relations() {
                    let time = found[from][sent];
                    if before.contains(&(from, sent)) && time > start.0 {
                        let limit = forward[to][received] - self.latency(from, to);
                        points.push((time, limit - time));
                    }
                }
                for (location, event) in before {
                    let time = &mut found[*location][*event];
                    if *time > start.0 {
                        *time += lowest(&points, *time);
                    }
                }
            }
        }
        found
    }
}

/// Returns a time in units of 2^-63 ns.
fn exact_of(time: i64) -> i128 {
    i128::from(time) << 63
}

/// Returns the nearest nanosecond.
fn rounded(exact: i128) -> i64 {
    ((exact + (1 << 62)) >> 63) as i64
}

/// Returns the lower convex hull at a time: the minimum of all lines between two points, rounded
/// down.
fn lowest(points: &[(i64, i64)], at: i64) -> i64 {
    let mut lowest = i128::MAX;
    for left in points.iter().filter(|(x, _)| *x <= at) {
        for right in points.iter().filter(|(x, _)| *x >= at) {
            let [along, wide, high] =
                [at - left.0, right.0 - left.0, right.1 - left.1].map(i128::from);
            let up = if wide == 0 {
                0_i128.min(high)
            } else {
                (along * high).div_euclid(wide)
            };
            lowest = lowest.min(i128::from(left.1) + up);
        }
    }
    i64::try_from(lowest).unwrap()
}

fn nanos(times: &[Array<downbeat_clock_core::Timestamp<downbeat_clock_core::Global>>]) -> Times {
    times
        .iter()
        .map(|times| times.iter().map(|time| time.as_nanos()).collect())
        .collect()
}

/// Checks the laws of every correction.
fn check_laws(question: &Question, timelines: &[Vec<EventIndex>], forward: &Times, found: &Times) {
    let measured = question.measured();
    let program = &question.program;
    for ((from, sent), (to, received)) in &program.relations {
        let is_late = found[*from][*sent] + question.latency(*from, *to) <= found[*to][*received];
        let was_reversed = measured[*to][*received] < measured[*from][*sent];
        assert!(
            is_late || (program.share_clock(*from, *to) && was_reversed),
            "a violation is left"
        );
    }
    for pair in timelines.iter().flat_map(|timeline| timeline.windows(2)) {
        let [before, after] = [pair[0], pair[1]].map(|(location, event)| found[location][event]);
        assert!(before <= after, "events of a clock changed their order");
    }
    for ((measured, forward), found) in measured.iter().zip(forward).zip(found) {
        for i in 0..found.len() {
            assert!(
                measured[i] <= forward[i] && forward[i] <= found[i],
                "an event moved back"
            );
            if i > 0 {
                assert!(found[i - 1] <= found[i], "time decreases");
                assert!(
                    measured[i - 1] == measured[i] || found[i - 1] < found[i],
                    "time stands still"
                );
            }
        }
    }
}

#[test]
fn corrections_solve_the_equations_on_any_number_of_threads() {
    let traces = if cfg!(debug_assertions) {
        3_000
    } else {
        30_000
    };
    let (mut jumps_seen, mut moved_back, mut cycles) = (0, 0, 0);
    for seed in 0..traces {
        // Clocks that disagree a little with themselves, as those of several cores may.
        let jitter = [0, 0, 2, 2_000][seed as usize % 4];
        let question = Question::of(seed, 6, 150, jitter);
        let (trace, pushed) = question
            .program
            .trace(&mut Rng::with_seed(seed))
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let timelines = question.program.timelines(&pushed);
        let is_cyclic = question.clock.forward(&trace).is_err();
        assert!(!is_cyclic || jitter > 0, "seed {seed}");
        if is_cyclic {
            // Locations that share a clock differ too much.
            cycles += 1;
            continue;
        }
        let (forward, jumps) = question.forward(&timelines);
        let both = question.backward(&timelines, &forward, &jumps);
        check_laws(&question, &timelines, &forward, &forward);
        check_laws(&question, &timelines, &forward, &both);
        jumps_seen += jumps.len();
        moved_back += usize::from(both != forward);
        // Starting threads is slow.
        let workers: &[usize] = if seed % 10 == 0 {
            &[1, 2, 3, 4, 8]
        } else {
            &[1, 2]
        };
        for workers in workers {
            let clock = {
                let mut clock = question.clock;
                clock.workers = *workers;
                clock
            };
            let mut found = clock.forward(&trace).unwrap();
            assert_eq!(
                nanos(found.times()),
                forward,
                "seed {seed}, {workers} workers, forward"
            );
            let error = forward
                .iter()
                .flatten()
                .zip(question.measured().iter().flatten())
                .map(|(l, c)| l - c)
                .max();
            assert_eq!(
                found.passes()[0].error.as_nanos(),
                error.unwrap_or(0),
                "seed {seed}"
            );
            let seen: BTreeMap<EventIndex, i64> = found
                .jumps()
                .map(|(id, jump)| (number(id), jump.as_nanos()))
                .collect();
            assert_eq!(seen, jumps, "seed {seed}, {workers} workers");
            found.amortize(clock.gradient);
            assert_eq!(
                nanos(found.times()),
                both,
                "seed {seed}, {workers} workers, backward"
            );
        }
    }
    assert!(
        jumps_seen > traces as usize && moved_back > traces as usize / 4 && cycles > 0,
        "{jumps_seen} {moved_back} {cycles}"
    );
    assert!(cycles < traces / 20, "{cycles}");
}

/// Traces that are too large for the direct solution: any number of threads gives the same result,
/// without violations.
#[test]
fn many_threads_correct_large_traces_as_one_does() {
    for seed in 0..6 {
        let question = Question::of(seed, [80, 2_000][seed as usize % 2], 40_000, 0);
        let trace = question.program.trace(&mut Rng::with_seed(seed));
        let (trace, pushed) = trace.unwrap();
        let timelines = question.program.timelines(&pushed);
        let correct = |workers| {
            let mut clock = question.clock;
            clock.workers = workers;
            let mut corrected = clock.forward(&trace).unwrap();
            let forward = nanos(corrected.times());
            corrected.amortize(clock.gradient);
            (forward, nanos(corrected.times()))
        };
        let alone = correct(1);
        check_laws(&question, &timelines, &alone.0, &alone.1);
        for workers in [2, 3, 4, 8].into_iter().cycle().take(12) {
            assert!(correct(workers) == alone, "seed {seed}, {workers} workers");
        }
    }
}

/// Locations with so many events that workers pass some to each other.
#[test]
fn locations_with_few_messages_are_passed_between_workers() {
    use downbeat_clock_core::Timestamp;
    use downbeat_trace::{Event, Matching, Place, TraceBuilder};
    let mut rng = Rng::with_seed(1);
    let mut builder = TraceBuilder::new(Matching::default());
    let ids: Vec<_> = (0..5)
        .map(|process| {
            builder
                .add_location(Place {
                    node: process,
                    process,
                })
                .unwrap()
        })
        .collect();
    let communicator = builder.add_communicator(&ids).unwrap();
    for (i, location) in ids.iter().enumerate() {
        let (mut time, next, before) = (rng.i64(0..100_000), ids[(i + 1) % 5], ids[(i + 4) % 5]);
        for round in 0..4 {
            for _ in 0..rng.u32(0..30_000) {
                time += rng.i64(0..50);
                builder
                    .push(*location, Timestamp::from_nanos(time), Event::Note("work"))
                    .unwrap();
            }
            let (send, receive) = (
                Event::Send {
                    to: next.into(),
                    communicator: communicator.into(),
                    tag: round,
                    request: None,
                    bytes: None,
                },
                Event::Receive {
                    from: before.into(),
                    communicator: communicator.into(),
                    tag: round,
                    request: None,
                    bytes: None,
                },
            );
            let time = Timestamp::from_nanos(time);
            builder.push(*location, time, send).unwrap();
            builder.push(*location, time, receive).unwrap();
        }
    }
    let trace = builder.finish().unwrap();
    let correct = |workers| {
        let mut clock = ControlledLogicalClock::new(Latencies::ZERO);
        clock.workers = workers;
        nanos(clock.correct(&trace).unwrap().times())
    };
    let alone = correct(1);
    for workers in [2, 3, 4, 8] {
        assert!(correct(workers) == alone, "{workers} workers");
    }
    for message in trace.messages() {
        let [sent, received] = [message.send, message.receive]
            .map(number)
            .map(|(at, event)| alone[at][event]);
        assert!(sent <= received);
    }
}

/// The relations of a trace are those of the program.
#[test]
fn relations_of_a_trace_are_those_of_the_program() {
    use downbeat_trace::{DependencePattern, EventId};
    for seed in 0..1_000 {
        let question = Question::random(seed);
        let (trace, _) = question.program.trace(&mut Rng::with_seed(seed)).unwrap();
        let mut found: Vec<(EventIndex, EventIndex)> = trace
            .messages()
            .map(|m| (number(m.send), number(m.receive)))
            .collect();
        for operation in trace.collectives() {
            let members: Vec<_> = operation.members().collect();
            for (sender, from) in members.iter().enumerate() {
                for (receiver, to) in members.iter().enumerate() {
                    let (Some(enter), Some(exit)) = (from.enter, to.exit) else {
                        continue;
                    };
                    if sender == receiver
                        || (operation.kind().pattern() == DependencePattern::ToLater
                            && sender > receiver)
                    {
                        continue;
                    }
                    let [enter, exit] = [(from.location, enter), (to.location, exit)]
                        .map(|(location, event)| number(EventId { location, event }));
                    found.push((enter, exit));
                }
            }
        }
        let mut expected = question.program.relations;
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "seed {seed}");
    }
}
