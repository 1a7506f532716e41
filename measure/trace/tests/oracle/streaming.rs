//! Compares the correction of a stream with that of the same events in memory.

use std::collections::VecDeque;

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_trace::check::{StreamedVerdict, Verdict};
use downbeat_trace::deviation::{Deviation, StreamedDeviation};
use downbeat_trace::generate::{SyntheticProgram, SyntheticTraffic};
use downbeat_trace::streaming::{
    Census, EventCodec, Linked, Record, StreamError, StreamedBackward, StreamedForward,
    StreamedLatencies, Survey,
};
use downbeat_trace::{
    ControlledLogicalClock, Corrected, EventId, Latencies, LeftOut, LocationId, Matching, Pass,
    Trace, TraceBuilder, TraceError,
};
use fastrand::Rng;

use super::Question;
use super::program::Push;

/// All results about a trace before and after the correction.
#[derive(Debug, PartialEq)]
struct Found {
    contents: (u64, u64, u64, LeftOut),
    measured: Latencies,
    passes: Vec<Pass>,
    jumps: Vec<(EventId, Duration)>,
    forward: Vec<Vec<Timestamp<Global>>>,
    both: Vec<Vec<Timestamp<Global>>>,
    verdicts: [Verdict; 2],
    deviation: Deviation,
}

fn build(mut builder: TraceBuilder, pushes: &[Push]) -> Result<Trace, TraceError> {
    pushes
        .iter()
        .try_for_each(|(location, time, action)| builder.push(*location, *time, *action))?;
    builder.finish()
}

fn in_memory(trace: &Trace, clock: &ControlledLogicalClock) -> Found {
    let mut corrected: Corrected<'_> = clock.forward(trace).unwrap();
    let forward = corrected.times().to_vec();
    let jumps = corrected.jumps().collect();
    let passes = corrected.passes().to_vec();
    corrected.amortize(clock.gradient);
    let both = corrected.into_times();
    let (messages, collectives) = (
        trace.messages().count() as u64,
        trace.collectives().len() as u64,
    );
    Found {
        contents: (trace.events(), messages, collectives, trace.left_out()),
        measured: Latencies::measured(trace),
        passes,
        jumps,
        verdicts: [
            Verdict::new(trace, &trace.times(), &clock.latencies).unwrap(),
            Verdict::new(trace, &both, &clock.latencies).unwrap(),
        ],
        deviation: Deviation::between(trace, &both).unwrap(),
        forward,
        both,
    }
}

type Timed = (Linked, Timestamp<Global>);

/// Returns the census, and the events in a causal order.
fn ordered(
    definitions: TraceBuilder,
    pushes: &[Push],
) -> Result<(Census, Vec<Timed>), StreamError> {
    let mut survey = Survey::default();
    let mut lists: Vec<(EventCodec, Vec<u8>)> = vec![];
    for (location, time, action) in pushes {
        let event = survey.push(&definitions, *location, *time, *action)?;
        if lists.len() <= location.index() {
            lists.resize(location.index() + 1, Default::default());
        }
        let (codec, list) = &mut lists[location.index()];
        codec.put_surveyed(&event, list);
    }
    let order = survey.finish(definitions)?;
    let mut lists: Vec<_> = lists.iter().map(|(_, list)| &list[..]).collect();
    let mut codecs = vec![EventCodec::default(); lists.len()];
    let (mut codec, mut bytes) = (EventCodec::default(), vec![]);
    let census = order.run(
        |location| {
            let list = lists
                .get_mut(location.index())
                .filter(|list| !list.is_empty());
            Ok::<_, StreamError>(list.map(|list| {
                let event = codecs[location.index()].take_surveyed(location, list);
                event.unwrap()
            }))
        },
        |event, time| {
            codec.put_linked(event, time, &mut bytes);
            Ok(())
        },
    )?;
    let (mut codec, mut rest, mut events) = (EventCodec::default(), &bytes[..], vec![]);
    while !rest.is_empty() {
        events.push(codec.take_linked(&mut rest).unwrap());
    }
    assert_eq!(events.len(), pushes.len());
    Ok((census, events))
}

fn streamed(
    definitions: TraceBuilder,
    pushes: &[Push],
    clock: &ControlledLogicalClock,
) -> Result<Found, StreamError> {
    let (census, events) = ordered(definitions, pushes)?;
    let mut least = StreamedLatencies::new(&census);
    let mut before = StreamedVerdict::new(&census, clock.latencies);
    let mut messages = VecDeque::new();
    let note = |messages: &mut VecDeque<u64>, number| {
        messages.push_back(number);
        Ok::<_, StreamError>(())
    };
    for (event, time) in &events {
        least.take(*event, *time, |number| note(&mut messages, number))?;
        before.take(*event, *time, *time);
    }
    if least.end_pass(&mut messages, note, |messages| Ok(messages.pop_front()))? {
        for (event, time) in &events {
            least.take_operation(*event, *time);
        }
    }
    let (mut stack, mut jumps, mut forward) = (vec![], vec![], vec![]);
    let passes = clock.streamed_passes(|rule| {
        let mut pass = StreamedForward::new(&census, rule, clock.latencies);
        (stack, jumps, forward) = (vec![], vec![], vec![vec![]; census.places().len()]);
        for (event, time) in &events {
            let record = pass.take(*event, *time)?;
            forward[event.id.location.index()].push(record.time());
            jumps.extend((record.jump() > Duration::ZERO).then_some((event.id, record.jump())));
            record.push_to(|number| {
                stack.push(number);
                Ok::<_, StreamError>(())
            })?;
        }
        assert_eq!(pass.jumps, jumps.len() as u64);
        Ok::<_, StreamError>(pass.finish())
    })?;
    jumps.sort_unstable();
    let mut both = vec![vec![]; forward.len()];
    let mut put = |location: LocationId, time| {
        both[location.index()].push(time);
        Ok::<_, StreamError>(())
    };
    let mut backward = StreamedBackward::new(&census, clock.latencies, Some(clock.gradient));
    for (event, _) in events.iter().rev() {
        let record = Record::pop_from(*event, || Ok::<_, StreamError>(stack.pop()))?;
        backward.take(&record.unwrap(), &mut put)?;
    }
    backward.finish(&mut put)?;
    both.iter_mut().for_each(|times| times.reverse());

    let mut after = StreamedVerdict::new(&census, clock.latencies);
    let mut deviation = StreamedDeviation::default();
    for (event, time) in &events {
        let EventId {
            location,
            event: number,
        } = event.id;
        let corrected = both[location.index()][number as usize];
        after.take(*event, *time, corrected);
        deviation.take(location, *time, corrected);
    }
    Ok(Found {
        contents: (
            census.events,
            census.messages,
            census.collectives,
            census.left_out,
        ),
        measured: least.finish(),
        passes,
        jumps,
        forward,
        both,
        verdicts: [before.finish(), after.finish()],
        deviation: deviation.finish(),
    })
}

fn assert_same(found: &Found, expected: &Found, what: &str) {
    assert!(
        found == expected,
        "{what}:\n{found:#?}\ninstead of\n{expected:#?}"
    );
}

#[test]
fn a_stream_is_corrected_as_a_trace_in_memory_is() {
    let mut moved_back = 0;
    for seed in 0..if cfg!(debug_assertions) {
        6_000
    } else {
        60_000
    } {
        let mut question = Question::random(seed);
        if seed % 3 == 0 {
            question.clock.threshold = Some(Duration::from_nanos(100));
        }
        let matching = question.program.matching();
        let (builder, pushes) = question.program.pushes(matching);
        let expected = in_memory(&build(builder, &pushes).unwrap(), &question.clock);
        let found = streamed(
            question.program.pushes(matching).0,
            &pushes,
            &question.clock,
        );
        assert_same(&found.unwrap(), &expected, &format!("seed {seed}"));
        moved_back += usize::from(expected.forward != expected.both);
    }
    assert!(moved_back > 1_000, "{moved_back}");
}

/// With missing or impossibly ordered events, the results or errors are the same, except for errors
/// of order.
#[test]
fn invalid_streams_have_the_same_results_as_in_memory() {
    let (mut cyclic, mut same, mut refused) = (0, 0, 0);
    for seed in 0..if cfg!(debug_assertions) {
        8_000
    } else {
        80_000
    } {
        let (question, mut rng) = (Question::random(seed), Rng::with_seed(seed));
        let matching = Matching {
            lenient: rng.bool(),
            skip_alltoallv: rng.bool(),
            ..question.program.matching()
        };
        let (builder, mut pushes) = question.program.pushes(matching);
        for _ in 0..rng.usize(0..4) {
            if !pushes.is_empty() {
                pushes.remove(rng.usize(0..pushes.len()));
            }
        }
        for _ in 0..rng.usize(0..4) {
            let at = rng.usize(0..pushes.len().max(1));
            if pushes
                .get(at + 1)
                .is_some_and(|next| next.0 != pushes[at].0)
            {
                pushes.swap(at, at + 1);
            }
        }
        let found = streamed(
            question.program.pushes(matching).0,
            &pushes,
            &question.clock,
        );
        match (found, build(builder, &pushes)) {
            (Err(StreamError::Cycle(_) | StreamError::LatePost(_)), _) => {
                cyclic += 1;
            }
            (Err(StreamError::Trace(found)), Err(expected)) => {
                // A builder compares the statements of members before it looks for unmatched
                // messages, and a stream after that.
                let disagree = [found, expected].iter().any(|why| {
                    matches!(
                        why,
                        TraceError::OtherKind { .. } | TraceError::OtherRoot { .. }
                    )
                });
                // A stream names the first event of an operation in its own order.
                let is_other = matches!(
                    (found, expected),
                    (TraceError::Absent { absent: one, .. }, TraceError::Absent { absent: other, .. }) if one == other
                ) || matches!(
                    (found, expected),
                    (TraceError::NotEntered(_), TraceError::NotEntered(_))
                        | (TraceError::NotLeft(_), TraceError::NotLeft(_))
                );
                assert!(
                    found == expected || disagree || is_other,
                    "seed {seed}: {found}, {expected}"
                );
                refused += 1;
            }
            (Ok(found), Ok(trace)) => {
                assert_same(
                    &found,
                    &in_memory(&trace, &question.clock),
                    &format!("seed {seed}"),
                );
                same += 1;
            }
            (found, trace) => panic!("seed {seed}: {found:?} instead of {:?}", trace.err()),
        }
    }
    assert!(
        cyclic > 10 && same > 1_000 && refused > 1_000,
        "{cyclic} {same} {refused}"
    );
}

#[test]
fn a_stream_of_a_large_program_is_corrected_as_in_memory() {
    let all = [
        SyntheticTraffic::Ring,
        SyntheticTraffic::Pairs,
        SyntheticTraffic::Stencil,
    ];
    for (seed, traffic) in (0..).zip([all, all].concat()) {
        let program = SyntheticProgram {
            processes: 4,
            threads: 3,
            fork_every: 7,
            collective_every: 3,
            asynchronous: seed >= 3,
            traffic,
            sessions: 0,
            seed,
            ..SyntheticProgram::new(3, 40_000)
        };
        let definitions = || {
            let mut builder = TraceBuilder::new(Matching::default());
            let mut ranks = vec![];
            for place in program.places() {
                match ranks.get(place.process as usize) {
                    Some(rank) => builder.add_thread(*rank).unwrap(),
                    None => {
                        ranks.push(builder.add_location(place).unwrap());
                        ranks[ranks.len() - 1]
                    }
                };
            }
            for members in program.communicators() {
                builder.add_communicator(&members).unwrap();
            }
            builder
        };
        let mut pushes: Vec<Push> = vec![];
        let see = |event: downbeat_trace::generate::SyntheticEvent| {
            pushes.push((
                event.location,
                Timestamp::from_nanos(event.local.as_nanos()),
                event.action,
            ));
            Ok::<_, downbeat_sync::ClusterError>(())
        };
        program.run(see).unwrap();
        let clock = ControlledLogicalClock::new(program.latencies);
        let expected = in_memory(&build(definitions(), &pushes).unwrap(), &clock);
        assert!(expected.jumps.len() > 1_000 && expected.verdicts[1].holds());
        assert_same(
            &streamed(definitions(), &pushes, &clock).unwrap(),
            &expected,
            "a program",
        );
    }
}
