use downbeat_clock_core::Duration;
use downbeat_sync::sim::Clocks;

use super::*;
use crate::check::Verdict;
use crate::presync::{Interpolation, PreSynchronization};
use crate::{CollectiveKind, ControlledLogicalClock, LocationId};

/// Program with all features.
fn varied(seed: u64) -> SyntheticProgram {
    let program = SyntheticProgram {
        processes: 3,
        threads: 3,
        collective_every: 2,
        fork_every: 5,
        traffic: [
            SyntheticTraffic::Ring,
            SyntheticTraffic::Pairs,
            SyntheticTraffic::Stencil,
        ][seed as usize % 3],
        asynchronous: seed % 4 == 3,
        sessions: 4,
        seed,
        ..SyntheticProgram::new(1 + seed as u32 % 5, 0)
    };
    program.with_events(20_000)
}

/// Pre-synchronized trace of a program.
fn synchronized(program: &SyntheticProgram, interpolation: Interpolation) -> Trace {
    let mut trace = program.trace(Matching::default()).unwrap();
    let with = PreSynchronization {
        interpolation,
        ..PreSynchronization::new(program.master())
    };
    with.maps(&trace.clocks(), &program.sessions().unwrap())
        .unwrap()
        .correct(&mut trace)
        .unwrap();
    trace
}

#[test]
fn true_times_violate_no_latency() {
    for seed in 0..15 {
        let program = varied(seed);
        let trace = program.trace(Matching::default()).unwrap();
        let truth = program.truth().unwrap();
        let found = Verdict::new(&trace, &truth, &program.latencies).unwrap();
        assert!(found.holds(), "{seed}: {:?}", found.faults);
        let events = trace.events() as f64;
        assert!(
            (0.8..1.1).contains(&(events / 20_000.0)),
            "{seed}: {events} events"
        );
        let kinds: std::collections::HashSet<_> = trace
            .collectives()
            .map(|collective| collective.kind())
            .collect();
        assert_eq!(
            kinds.len(),
            if program.nodes * program.processes > 1 {
                14
            } else {
                3
            },
            "{kinds:?}"
        );
        assert!(kinds.contains(&CollectiveKind::Join));
        assert!(
            found.messages.total > 300 && found.collectives.total > 300,
            "{found:?}"
        );
        for (location, [events, marks]) in trace
            .locations()
            .iter()
            .map(|location| [location.times.len(), location.marks.len()])
            .enumerate()
        {
            let most = program.reserved()[usize::from(location >= program.ranks() as usize)];
            assert!(
                events <= most.0 && marks <= most.1,
                "{events} {marks} {most:?}"
            );
        }
    }
}

#[test]
fn equal_programs_make_equal_traces() {
    let [one, same, other] =
        [7, 7, 10].map(|seed| varied(seed).trace(Matching::default()).unwrap());
    assert_eq!((one.times(), one.difference(&same)), (same.times(), None));
    assert_ne!(one.times(), other.times());
    assert_eq!(varied(7).sessions(), varied(7).sessions());
}

#[test]
fn clocks_without_noise_are_known_at_the_sessions() {
    let program = SyntheticProgram {
        noise: Duration::ZERO,
        violated: 0.0,
        ..varied(4)
    };
    let sessions = program.sessions().unwrap();
    assert_eq!(
        (sessions[0].len(), sessions[1].len(), sessions[1][3].len()),
        (0, 4, 20)
    );
    // Sessions are at the start, at the end, and two in between.
    let end = program.end().as_nanos();
    for (number, session) in (0..).zip(&sessions[4]) {
        assert!((session[0].image.as_nanos() - end * number / 3).abs() <= 3);
        assert_eq!(
            (session[19].image - session[0].image).as_nanos(),
            19 * SAMPLE_SPACING
        );
    }
    // The first node is the master, and its clock is correct.
    assert!(
        sessions[1]
            .iter()
            .flatten()
            .all(|sample| sample.at.as_nanos() == sample.image.as_nanos())
    );
    assert!(
        sessions[4]
            .iter()
            .flatten()
            .all(|sample| sample.at.as_nanos() != sample.image.as_nanos())
    );

    // More sessions give smaller errors, and clocks that only drift are known exactly.
    let error = |program: &SyntheticProgram, interpolation| {
        program
            .error(&synchronized(program, interpolation).times())
            .unwrap()
            .centred()
    };
    let often = SyntheticProgram {
        sessions: 200,
        ..program.clone()
    };
    let [linear, spline] =
        [Interpolation::Linear, Interpolation::Spline].map(|kind| error(&often, kind));
    assert!(spline < linear / 10.0, "{spline} {linear}");
    let steady = SyntheticProgram {
        clocks: Clocks {
            wander: None,
            ..program.clocks.clone()
        },
        ..program
    };
    assert!(error(&steady, Interpolation::Linear) < 2.0);
    assert!(error(&steady, Interpolation::Unchanged) > 1e6);
}

/// Counts the messages between nodes.
#[test]
fn the_share_of_violated_messages_is_reached() {
    for traffic in [
        SyntheticTraffic::Pairs,
        SyntheticTraffic::Stencil,
        SyntheticTraffic::Ring,
    ] {
        for share in [0.0, 0.1, 0.3, 0.43] {
            let program = SyntheticProgram {
                traffic,
                noise: Duration::ZERO,
                violated: share,
                ..SyntheticProgram::new(8, 50_000)
            };
            let trace = synchronized(&program, Interpolation::Linear);
            let found = Verdict::new(&trace, &trace.times(), &program.latencies)
                .unwrap()
                .messages;
            let violated = found.violated as f64 / found.total as f64;
            let wrong = (violated - share).abs();
            assert!(
                wrong < 0.02 || traffic == SyntheticTraffic::Ring && violated > share - 0.2,
                "{traffic:?}: {violated}, {share}"
            );
        }
    }
    // Without sessions, the clocks themselves count.
    let program = SyntheticProgram {
        sessions: 0,
        violated: 0.25,
        ..SyntheticProgram::new(4, 10_000)
    };
    let trace = program.trace(Matching::default()).unwrap();
    let found = Verdict::new(&trace, &trace.times(), &program.latencies)
        .unwrap()
        .messages;
    assert!(
        (found.violated as f64 / found.total as f64 - 0.25).abs() < 0.01,
        "{found:?}"
    );
}

#[test]
fn a_correction_leaves_nothing_violated() {
    for seed in 0..6 {
        let program = SyntheticProgram {
            violated: 0.43,
            ..varied(seed)
        };
        let trace = synchronized(&program, Interpolation::Linear);
        let corrected = ControlledLogicalClock::new(program.latencies)
            .correct(&trace)
            .unwrap();
        let found = Verdict::new(&trace, corrected.times(), &program.latencies).unwrap();
        assert!(found.holds(), "{:?}", found.faults);
    }
}

#[test]
fn invalid_parameters_are_named() {
    let base = || SyntheticProgram::new(2, 100);
    let refused =
        |program: SyntheticProgram| program.trace(Matching::default()).unwrap_err().to_string();
    assert_eq!(
        refused(SyntheticProgram {
            threads: 0,
            ..base()
        }),
        "threads must be positive"
    );
    assert_eq!(
        refused(SyntheticProgram {
            violated: f64::NAN,
            ..base()
        }),
        "violated must be from 0 to 1"
    );
    let clocks = Clocks {
        granularity: 0,
        ..Clocks::perfect()
    };
    assert_eq!(
        refused(SyntheticProgram { clocks, ..base() }),
        "clocks.granularity must be a positive number"
    );
    assert!(
        refused(SyntheticProgram {
            processes: u32::MAX,
            ..base()
        })
        .starts_with("nodes must be")
    );
    let alone = SyntheticProgram {
        collective_every: 1,
        ..SyntheticProgram::new(1, 100)
    };
    assert_eq!(
        alone.trace(Matching::default()).unwrap().messages().count(),
        0
    );
}

#[test]
fn a_grid_has_neighbours_on_all_sides() {
    assert_eq!(neighbours_of(5, 12), [2, 3, 4, 8]);
    assert_eq!(neighbours_of(0, 2), [1]);
    assert_eq!(neighbours_of(0, 4), [1, 2]);
    assert_eq!(neighbours_of(0, 7), [1, 6]);
}

fn neighbours_of(rank: u32, ranks: u32) -> Vec<u32> {
    program::neighbours(rank, ranks)
}

/// Compares the verdict with a check of every pair of every operation and of every message.
#[test]
fn verdicts_on_programs_match_a_check_of_every_pair() {
    use crate::DependencePattern;
    use crate::check::RelationCounts;
    use crate::encoding::Merge;
    for seed in 0..8 {
        let program = varied(seed).with_events(4_000);
        let trace = synchronized(&program, Interpolation::Linear);
        let early = |send: (LocationId, u32), receive: (LocationId, u32)| {
            let [sent, received] = [send, receive].map(|(location, event)| {
                trace.locations()[location.index()].times()[event as usize]
            });
            let latency = program.latencies.between(&trace, send.0, receive.0);
            RelationCounts {
                total: 1,
                reversed: u64::from(received < sent),
                violated: u64::from(received < sent + latency),
            }
        };
        let mut wanted = [RelationCounts::default(); 2];
        let (mut within, share) = (0, |one, other| trace.share_clock(one, other));
        for message in trace.messages() {
            let [send, receive] =
                [message.send, message.receive].map(|end| (end.location, end.event));
            match share(send.0, receive.0) {
                true => within += 1,
                false => wanted[0].merge(early(send, receive)),
            }
        }
        for collective in trace.collectives() {
            let members: Vec<_> = collective.members().collect();
            for (k, sender) in members.iter().enumerate() {
                for (i, receiver) in members.iter().enumerate() {
                    let waits = match collective.kind().pattern() {
                        DependencePattern::FromRoot => k as u32 == collective.root(),
                        DependencePattern::ToRoot => i as u32 == collective.root(),
                        DependencePattern::AllToAll => true,
                        DependencePattern::ToLater => i > k,
                    };
                    if let (true, Some(enter), Some(exit)) =
                        (waits && i != k, sender.enter, receiver.exit)
                    {
                        match share(sender.location, receiver.location) {
                            true => within += 1,
                            false => {
                                let [send, receive] =
                                    [(sender.location, enter), (receiver.location, exit)];
                                wanted[1].merge(early(send, receive));
                            }
                        }
                    }
                }
            }
        }
        let found = Verdict::new(&trace, &trace.times(), &program.latencies).unwrap();
        assert_eq!([found.messages, found.collectives], wanted, "{seed}");
        let expected = crate::check::WithinClocks {
            total: within,
            reversed: 0,
        };
        assert_eq!(found.within_clocks, expected, "{seed}");
        assert!(
            program.nodes == 1
                || wanted
                    .iter()
                    .all(|found| found.violated >= found.reversed && found.reversed > 0),
            "{wanted:?}"
        );
    }
}
