//! Replay of a trace by 2 to 64 simulated ranks: virtual time and messages of each step,
//! as in figure 6 of Becker et al. (2009): `cargo bench -p downbeat-trace --bench ranks`.
//!
//! Every rank has one process of a program that exchanges messages with its neighbours and meets all
//! others in collective operations. Only communication takes virtual time, not the events, of which
//! each rank has the same number: a rank replays some 50 million a second.

#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]
#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]

use std::time::Instant;

use downbeat_clock_core::Timestamp;
use downbeat_sync::sim::{Clocks, Network, NetworkCard, SimCluster, SimComm, VirtualTime};
use downbeat_sync::{ClusterError, Comm, collective};
use downbeat_trace::check::Verdict;
use downbeat_trace::generate::{SyntheticEvent, SyntheticProgram, SyntheticTraffic};
use downbeat_trace::ranks::{LocationLoad, LocationShares};
use downbeat_trace::{
    ClockOwner, ControlledLogicalClock, CorrectionError, Matching, Place, TraceBuilder,
};

/// Ranks of a node.
const PER_NODE: u32 = 2;

/// Events of each rank.
const EVENTS: u64 = if cfg!(debug_assertions) { 20 } else { 1_000 };

/// Steps that are timed.
const STEPS: [&str; 4] = ["matching", "forward", "backward", "check"];

/// Program of one process per rank, and its events by process, with their positions in the trace.
struct Traced {
    program: SyntheticProgram,
    events: Vec<Vec<(u64, SyntheticEvent)>>,
}

impl Traced {
    fn new(ranks: u32) -> Self {
        let program = SyntheticProgram {
            processes: PER_NODE,
            traffic: SyntheticTraffic::Stencil,
            violated: 0.1,
            seed: 1,
            ..SyntheticProgram::new(ranks / PER_NODE, 1)
        };
        let program = program.with_events(EVENTS * u64::from(ranks));
        let mut events: Vec<_> = program.places().iter().map(|_| vec![]).collect();
        let mut position = 0;
        let made = program.run(|event| {
            events[event.location.index()].push((position, event));
            position += 1;
            Ok::<_, ClusterError>(())
        });
        made.expect("the parameters are valid");
        Self { program, events }
    }

    /// Corrects the trace as one rank; returns the virtual times between the steps.
    async fn correct(
        &self,
        comm: &SimComm,
    ) -> Result<[Timestamp<VirtualTime>; 5], CorrectionError> {
        let places = self.program.places();
        let load = |((process, place), events): ((u32, &Place), &Vec<_>)| LocationLoad {
            process,
            place: *place,
            events: events.len() as u64,
        };
        let loads = (0..).zip(&places).zip(&self.events).map(load);
        let shares =
            LocationShares::new(comm.size(), ClockOwner::Process, &loads.collect::<Vec<_>>());
        let builder = TraceBuilder::new(Matching::default());
        let mut builder = builder.for_rank(comm.rank(), shares);
        for place in self.program.places() {
            builder.add_location(place)?;
        }
        for members in self.program.communicators() {
            builder.add_communicator(&members)?;
        }
        for (position, event) in &self.events[comm.rank() as usize] {
            let time = Timestamp::from_nanos(event.local.as_nanos());
            builder.set_position(*position);
            builder.push(event.location, time, event.event)?;
        }
        let next = async || {
            collective::barrier(comm).await?;
            Ok::<_, CorrectionError>(comm.true_now())
        };
        let clock = ControlledLogicalClock::new(self.program.latencies);
        let begun = next().await?;
        let part = builder.finish_on_ranks(comm).await?;
        let matched = next().await?;
        let mut corrected = clock.forward_part(&part, comm).await?;
        let forward = next().await?;
        corrected.amortize_part(&part, clock.gradient, comm).await?;
        let backward = next().await?;
        let found = Verdict::of_part(&part, corrected.times(), &clock.latencies, 1, comm).await?;
        assert!(found.holds(), "no violation is left");
        Ok([begun, matched, forward, backward, next().await?])
    }
}

/// Prints one row.
fn measure(ranks: u32) {
    let traced = Traced::new(ranks);
    let cluster = SimCluster {
        ranks,
        ranks_per_node: PER_NODE,
        sockets_per_node: 2,
        nodes_per_rack: None,
        network: Network {
            card: None::<NetworkCard>,
            ..Network::typical()
        },
        clocks: Clocks::typical(),
        seed: 1,
    };
    let started = Instant::now();
    let done = cluster.simulate(async |comm| {
        traced
            .correct(comm)
            .await
            .expect("the program can have run")
    });
    let done = done.expect("no rank waits for ever");
    let times = done.results[0];
    print!(
        "{ranks:>6}  {:>8.0}",
        done.messages as f64 / f64::from(ranks)
    );
    for (from, to) in times.iter().zip(&times[1..]) {
        print!("  {:>8.3}", (*to - *from).as_nanos() as f64 * 1e-6);
    }
    println!("  {:>6.1}", started.elapsed().as_secs_f64());
}

fn main() {
    println!("{EVENTS} events per rank; messages of at most 48 bytes; virtual ms of each step\n");
    print!(" ranks  messages");
    STEPS.iter().for_each(|step| print!("  {step:>8}"));
    println!("  real s");
    let all = [2, 4, 8, 16, 32, 64];
    let most = if cfg!(debug_assertions) { 1 } else { all.len() };
    all[..most].iter().for_each(|ranks| measure(*ranks));
}
