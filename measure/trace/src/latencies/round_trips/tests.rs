use super::*;
use crate::check::Verdict;
use crate::generate::{SyntheticProgram, SyntheticTraffic};
use crate::presync::{Interpolation, PreSynchronization};
use crate::{CommunicatorId, Event, LocationId, Matching, Place, TraceBuilder};
use downbeat_clock_core::Timestamp;
use downbeat_sync::sim::{Clocks, DriftWalk};

/// Pre-synchronized trace of a program.
fn synchronized(program: &SyntheticProgram) -> Trace {
    let mut trace = program.trace(Matching::default()).unwrap();
    let linear = PreSynchronization {
        interpolation: Interpolation::Linear,
        ..PreSynchronization::new(program.master())
    };
    linear
        .maps(&trace.clocks(), &program.sessions().unwrap())
        .unwrap()
        .correct(&mut trace)
        .unwrap();
    trace
}

/// Program with clocks whose drifts wander by this much in a second.
fn wandering(program: &SyntheticProgram, drift_per_sqrt_second: f64) -> SyntheticProgram {
    let wander = program.clocks.wander.map(|wander| DriftWalk {
        drift_per_sqrt_second,
        ..wander
    });
    SyntheticProgram {
        clocks: Clocks {
            wander,
            ..program.clocks.clone()
        },
        ..program.clone()
    }
}

/// Measured latency between nodes, and the smallest positive apparent one, as shares of the true
/// latency.
fn shares(program: &SyntheticProgram) -> [f64; 2] {
    let trace = synchronized(program);
    let measured = Latencies::measured(&trace);
    let truth = program.truth().unwrap();
    // The true times of all events must not violate the measured latencies.
    let found = Verdict::new(&trace, &truth, &measured).unwrap();
    assert_eq!(
        found.messages.violated, 0,
        "{measured:?} is too large: {program:?}"
    );
    let mut least = [None::<Duration>; 3];
    for message in trace.messages() {
        let [sent, received] = [message.send, message.receive].map(|id| trace.time(id).unwrap());
        let took = Some(received - sent).filter(|took| *took > Duration::ZERO);
        let [from, to] = [message.send, message.receive].map(|id| trace.site(id.location));
        let least = &mut least[to.level(from).unwrap()];
        *least = least.iter().copied().chain(took).min();
    }
    [measured.levels()[2], least[2].unwrap()]
        .map(|found| found.as_nanos() as f64 / program.latencies.levels()[2].as_nanos() as f64)
}

#[test]
fn estimates_with_wrong_clocks_are_close_and_never_too_large() {
    let base = |nodes, events| SyntheticProgram::new(nodes, events);
    let programs = [
        base(4, 1_000),
        base(4, 30_000),
        base(2, 10_000),
        base(16, 30_000),
        SyntheticProgram {
            traffic: SyntheticTraffic::Ring,
            ..base(2, 10_000)
        },
        SyntheticProgram {
            traffic: SyntheticTraffic::Stencil,
            ..base(4, 10_000)
        },
        SyntheticProgram {
            traffic: SyntheticTraffic::Stencil,
            processes: 3,
            ..base(4, 30_000)
        },
        SyntheticProgram {
            processes: 3,
            violated: 0.3,
            ..base(4, 30_000)
        },
        SyntheticProgram {
            jitter: Duration::from_micros(5),
            ..base(4, 30_000)
        },
        SyntheticProgram {
            noise: Duration::from_micros(5),
            violated: 0.2,
            ..base(4, 10_000)
        },
        wandering(
            &SyntheticProgram {
                jitter: Duration::ZERO,
                ..base(4, 10_000)
            },
            1e-7,
        ),
    ];
    let seeds = if cfg!(debug_assertions) { 3 } else { 100 };
    let mut naive = 0.0;
    for program in programs {
        for seed in 0..seeds {
            let program = SyntheticProgram {
                seed,
                ..program.clone()
            };
            let [measured, least] = shares(&program);
            assert!(
                (0.85..=1.0).contains(&measured),
                "{measured} of {program:?}"
            );
            naive += least / (11.0 * seeds as f64);
        }
    }
    assert!(naive < 0.1, "{naive}");
}

/// All messages go in one direction.
#[test]
fn collective_operations_show_what_one_way_messages_with_wrong_clocks_do_not() {
    for seed in 0..20 {
        let program = SyntheticProgram {
            traffic: SyntheticTraffic::Ring,
            seed,
            ..SyntheticProgram::new(4, 10_000)
        };
        // Four members need two steps.
        let measured = shares(&program)[0];
        assert!((0.45..=0.75).contains(&measured), "{measured}");
        let alone = SyntheticProgram {
            collective_every: 0,
            ..program
        };
        assert_eq!(shares(&alone)[0], 0.0);
    }
}

/// Two nodes, and the true times of the messages between them.
struct Talk {
    builder: TraceBuilder,
    /// Offset and drift of the second node's clock.
    ahead: i64,
    gains: f64,
}

impl Talk {
    fn new(ahead: i64, gains: f64) -> Self {
        let mut builder = TraceBuilder::new(Matching::default());
        let ids = [0, 1].map(|process| {
            builder
                .add_location(Place {
                    node: process,
                    process,
                })
                .unwrap()
        });
        builder.add_communicator(&ids).unwrap();
        Self {
            builder,
            ahead,
            gains,
        }
    }

    fn push(
        &mut self,
        at: usize,
        truth: i64,
        event: impl Fn(LocationId, LocationId) -> Event<'static>,
    ) {
        let ids = [LocationId(at as u32), LocationId(1 - at as u32)];
        let gained = if at == 1 {
            self.ahead + (truth as f64 * self.gains) as i64
        } else {
            0
        };
        self.builder
            .push(
                ids[0],
                Timestamp::from_nanos(truth + gained),
                event(ids[0], ids[1]),
            )
            .unwrap();
    }

    /// Adds a message, given the time at which the receiver starts to wait.
    fn message(&mut self, from: usize, sent: i64, waits: i64, received: i64) {
        let communicator = CommunicatorId(0);
        self.push(from, sent, |_, to| Event::Send {
            to: to.into(),
            communicator: communicator.into(),
            tag: 0,
            request: None,
            bytes: None,
        });
        self.push(1 - from, waits, |_, _| Event::Note("work"));
        self.push(1 - from, received, |_, from| Event::Receive {
            from: from.into(),
            communicator: communicator.into(),
            tag: 0,
            request: None,
            bytes: None,
        });
    }

    fn measured(self) -> i64 {
        Latencies::measured(&self.builder.finish().unwrap()).levels()[2].as_nanos()
    }
}

/// Every answer is as late as possible, so that the drift in the meantime counts fully and always
/// with the same sign.
#[test]
fn drift_between_question_and_answer_does_not_make_the_estimate_too_large() {
    for (latency, gains) in [
        (2_000, 1e-5),
        (2_000, -1e-5),
        (500, -1e-5),
        (50_000, -1e-5),
        (2_000, -1e-6),
        (2_000, 0.0),
    ] {
        for share in [1, 5, 9] {
            let mut talk = Talk::new(-3 * latency, gains);
            for round in 0..10 {
                let asked = round * 1_000_000_000;
                let answered = asked + latency + 2 * latency * NEAR * share / 10;
                talk.message(0, asked, asked, asked + latency);
                talk.message(1, answered, asked + 1, answered + latency);
            }
            let measured = talk.measured();
            assert!(
                (latency * 8 / 10..=latency).contains(&measured),
                "{measured} of {latency}, {gains} {share}"
            );
        }
    }
}

/// The master is so busy that every question has to wait; only answers are waited for.
#[test]
fn messages_that_arrive_at_a_busy_receiver_give_no_estimate() {
    for ahead in [-90_000, -1_500, 0] {
        let mut talk = Talk::new(ahead, 0.0);
        for round in 0..100 {
            let asked = round * 10_000_000;
            let busy = asked + 300_000;
            talk.message(1, asked, busy, busy + 100);
            talk.message(0, busy + 200, asked + 1, busy + 2_200);
        }
        let measured = talk.measured();
        assert!(measured <= 2_000, "{measured} with {ahead}");
    }
}

/// Most messages take five times their minimum; some questions and some answers do not, but not
/// those that follow each other.
#[test]
fn quick_messages_need_not_follow_each_other() {
    for quick in [[0, 5], [5, 0], [3, 4]] {
        let mut talk = Talk::new(-100_000, 0.0);
        for round in 0..10 {
            let asked = 5_000_000 + round * 1_000_000;
            let [there, back] = quick.map(|quick| if quick == round { 2_000 } else { 10_000 });
            talk.message(0, asked, asked, asked + there);
            talk.message(1, asked + 50_000, asked + 1, asked + 50_000 + back);
        }
        assert_eq!(talk.measured(), 1_800, "{quick:?}");
    }
}
