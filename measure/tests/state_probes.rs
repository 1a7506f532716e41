//! Probes of the state of the machine, of simulated ranks whose latencies are known, and of threads.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Instant;

use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{EachCall, Scheme};
use downbeat_measure::stopping::{StopReason, Stopping};
use downbeat_measure::{
    BuiltinKind, BuiltinOperation, Clock, ClockBasis, ClockModel, Collect, Coordinator, Duration,
    Link, MeasureContext, Measurement, MessageCoordinator, Method, MethodError, ReadOrdering,
    ThreadCluster, ThreadCoordinator, ThreadLinks, TickRate, Ticks, Timestamp,
};
use downbeat_records::RoundTrips;
use downbeat_sync::sim::{Clocks, Network, NetworkLink, SimClock, SimCluster, SimComm};
use downbeat_sync::{Comm, CommError};

fn method(probes: bool) -> Method {
    Method {
        warm_up: 2,
        scheme: Scheme::EachCall(EachCall::default()),
        stopping: Stopping::Count { most: 1_000 },
        processing: Processing::Median,
        root: 0,
        collect: Collect::RunTimes,
        probes,
    }
}

/// Messages, which take 1 us within a node and 5 us between nodes, of which each has two ranks.
struct NodeCoordinator<'a>(&'a SimComm);

impl Coordinator for NodeCoordinator<'_> {
    async fn barrier(&self) -> Result<(), CommError> {
        MessageCoordinator(self.0).barrier().await
    }

    async fn broadcast(&self, value: u64) -> Result<u64, CommError> {
        MessageCoordinator(self.0).broadcast(value).await
    }

    async fn bitwise_or(&self, value: u64) -> Result<u64, CommError> {
        MessageCoordinator(self.0).bitwise_or(value).await
    }

    fn link(&self, neighbour: u32) -> Link<'_> {
        match neighbour / 2 == self.0.rank() / 2 {
            true => Link::Node,
            false => Link::Network,
        }
    }
}

fn simulated(ranks: u32, method: &Method) -> Measurement {
    let link = |micros| NetworkLink::steady(Duration::from_micros(micros));
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 2,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network: Network {
            socket: link(1),
            node: link(1),
            switch: link(5),
            ..Network::noiseless()
        },
        clocks: Clocks::perfect(),
        seed: 1,
    };
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let context = MeasureContext {
            comm,
            coordinator: &NodeCoordinator(comm),
            clock: &clock,
            clock_basis: ClockBasis::Local(SimClock::nominal_model().unwrap()),
        };
        let mut operation = BuiltinOperation {
            kind: BuiltinKind::Bcast,
            comm,
        };
        method.measure(&context, &mut operation).await
    };
    let found = cluster.run(program).unwrap().remove(0);
    found.unwrap().unwrap()
}

#[test]
fn latencies_within_and_between_nodes_are_found() {
    for ranks in 1..=5 {
        // Sending and receiving two messages takes 200 ns in all.
        let expected = RoundTrips {
            within: (ranks > 1).then_some(2_200.0),
            between: (ranks > 2).then_some(10_200.0),
        };
        let found = simulated(ranks, &method(true)).observations;
        assert_eq!(found.len(), 1_000);
        let probes = found.probes();
        assert!(
            probes.iter().all(|probe| probe.round_trips == expected),
            "{probes:?}"
        );
        // Before, between and behind the calls, which take some milliseconds together.
        match probes {
            [] => assert_eq!(ranks, 1),
            [first, .., last] => assert_eq!((first.before, last.before), (0, 1_000)),
            one => panic!("{one:?}"),
        }
        assert!(probes.len() < 5, "{} probes", probes.len());
        let without = simulated(ranks, &method(false)).observations;
        assert!(without.probes().is_empty());
    }
}

#[test]
fn a_measurement_ends_when_a_state_has_enough_calls() {
    let measure = |rule: &str| {
        let method = Method {
            stopping: rule.parse().unwrap(),
            ..method(true)
        };
        simulated(2, &method)
    };
    for rule in ["state/20000/10s", "state/20000/10s/2us"] {
        let found = measure(rule);
        assert_eq!(found.stop_reason, StopReason::InState, "{rule}");
        // Of those, some more than wanted are between two probes.
        assert!((20_000..40_000).contains(&found.made), "{}", found.made);
    }
    // A state that is never met costs the whole time slice.
    let found = measure("state/10/100ms/9us");
    assert_eq!(found.stop_reason, StopReason::TimeSlice);
    assert!(found.elapsed >= Duration::from_millis(100));
}

#[test]
fn a_rule_by_states_needs_probes() {
    let method = Method {
        stopping: "state/10/1s".parse().unwrap(),
        ..method(false)
    };
    assert_eq!(method.check(), Err(MethodError::NeedsProbes));
}

/// A clock that all threads share.
struct Nanoseconds(Instant);

impl Clock for Nanoseconds {
    fn ticks(&self) -> Ticks {
        Ticks(self.0.elapsed().as_nanos() as u64)
    }

    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Fenced
    }
}

#[test]
fn threads_share_memory_or_send_messages() {
    const RANKS: u32 = 3;
    let clock = Nanoseconds(Instant::now());
    let model =
        ClockModel::through(clock.ticks(), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap();
    // Without a place for the second pair, that one sends messages.
    for links in [ThreadLinks::new(RANKS), ThreadLinks::new(1)] {
        let found = ThreadCluster::new(RANKS).run(|comm| {
            let context = MeasureContext {
                comm,
                coordinator: &ThreadCoordinator {
                    comm,
                    links: &links,
                },
                clock: &clock,
                clock_basis: ClockBasis::Local(model),
            };
            let mut operation = BuiltinOperation {
                kind: BuiltinKind::Bcast,
                comm,
            };
            method(true).measure_blocking(&context, &mut operation)
        });
        let measured = found.unwrap().remove(0).unwrap().unwrap();
        let probes = measured.observations.probes();
        assert!(probes.len() >= 2);
        for RoundTrips { within, between } in probes.iter().map(|probe| probe.round_trips) {
            assert!(
                within > Some(0.0) && between.is_none(),
                "{within:?}, {between:?}"
            );
        }
    }
}
