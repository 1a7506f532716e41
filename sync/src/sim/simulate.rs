//! Simulation of a program on all ranks of a cluster.

use core::hint::black_box;
use core::num::NonZero;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread::{self, ScopedJoinHandle};

use downbeat_clock_core::Timestamp;

use super::cluster::SimCluster;
use super::comm::SimComm;
use super::engine::{Engine, WaitingRanks};
use super::exchange::{NextWindow, PartExchange, WindowReport};
use super::group::{SimGroup, SimWorld};
use super::news::Crossing;
use super::node_clock::VirtualTime;
use super::part::SimPart;
use crate::ClusterError;

/// Result of a simulation.
#[derive(Clone, Debug)]
pub struct Simulated<T> {
    /// Results of the ranks, in the order of ranks.
    pub results: Vec<T>,
    /// Number of messages sent.
    pub messages: u64,
    /// Time at which the last rank returned.
    pub ended: Timestamp<VirtualTime>,
    /// Memory of the suspended program of one rank in bytes, without its allocations.
    pub program_bytes: usize,
}

/// Program of a rank, or its result.
enum RankTask<F, T> {
    Running(Pin<Box<F>>),
    Done(T),
}

impl SimCluster {
    /// Runs `program` on every rank, and returns the results in the order of ranks.
    ///
    /// The program must await only calls of [`SimComm`]. A panic of a rank panics here.
    ///
    /// # Errors
    /// If a parameter is out of range, or the ranks are deadlocked.
    pub fn run<T>(&self, program: impl AsyncFn(&SimComm) -> T) -> Result<Vec<T>, ClusterError> {
        Ok(self.simulate(program)?.results)
    }

    /// Same as [`run`](Self::run), with more information about the simulation.
    ///
    /// # Errors
    /// Same as [`run`](Self::run).
    #[expect(
        clippy::needless_pass_by_value,
        reason = "same signature as `ThreadCluster::run`: callers pass a closure"
    )]
    pub fn simulate<T>(
        &self,
        program: impl AsyncFn(&SimComm) -> T,
    ) -> Result<Simulated<T>, ClusterError> {
        self.validate()?;
        let parts = SimPart::split(self, 1).into_iter();
        joined(parts.map(|part| simulate_part(self, part, 1, &program, None)))
    }

    /// Same as [`simulate`](Self::simulate), on several threads: each simulates an equal share of
    /// the nodes. No more threads are used than there are nodes, and only one if messages between
    /// nodes can have a latency of zero.
    ///
    /// Results are equal, bit for bit, for any number of threads; except that a rank learns later,
    /// in an order that depends on their number, that a rank of another thread has left a
    /// communicator or returned, as it happens after errors. The clocks of the ranks can be read
    /// after the simulation by [`true_clocks`](Self::true_clocks).
    ///
    /// # Errors
    /// Same as [`run`](Self::run).
    pub fn simulate_on<T: Send>(
        &self,
        threads: NonZero<usize>,
        program: impl AsyncFn(&SimComm) -> T + Sync,
    ) -> Result<Simulated<T>, ClusterError> {
        self.validate()?;
        let lookahead = self.network.least_latency();
        let threads = if lookahead == 0 { 1 } else { threads.get() };
        let parts = SimPart::split(self, threads);
        let count = parts.len();
        let exchange = (count > 1).then(|| PartExchange::new(count, lookahead));
        let simulate = |part| simulate_part(self, part, count, &program, exchange.as_ref());
        thread::scope(|scope| {
            let start = |part: SimPart| {
                let (index, rank) = (part.index, part.ranks.start);
                let thread = thread::Builder::new().name(format!("simulator {index}"));
                let started = thread.spawn_scoped(scope, || simulate(part));
                started.map_err(|why| {
                    report_failure(exchange.as_ref(), index);
                    let why = why.to_string();
                    ClusterError::Start { rank, why }
                })
            };
            let mut parts = parts.into_iter();
            let first = parts.next();
            // All threads are started before this one begins its part.
            let others: Vec<_> = parts.map(start).collect();
            let first = first.map(simulate);
            // All threads end before the first failure is returned, or panics.
            let join =
                |thread: ScopedJoinHandle<'_, PartOutcome<T>>| thread.join().and_then(|part| part);
            let others: Vec<_> = others.into_iter().map(|thread| thread.map(join)).collect();
            let others: Vec<_> = others.into_iter().collect::<Result<_, _>>()?;
            joined(first.into_iter().chain(others))
        })
    }
}

/// Result of a part, or the panic of a rank.
type PartOutcome<T> = thread::Result<SimulatedPart<T>>;

struct SimulatedPart<T> {
    /// Results of the ranks that have returned.
    results: Vec<T>,
    messages: u64,
    ended: u64,
    program_bytes: usize,
    waiting: Option<WaitingRanks>,
}

/// Reports that a part has failed before its first window, so that the others do not wait for it.
fn report_failure(exchange: Option<&PartExchange<Crossing>>, part: usize) {
    if let Some(exchange) = exchange {
        exchange.report(0, part, WindowReport::failed());
    }
}

/// Simulates a part of a cluster.
fn simulate_part<T>(
    cluster: &SimCluster,
    part: SimPart,
    parts: usize,
    program: &impl AsyncFn(&SimComm) -> T,
    exchange: Option<&PartExchange<Crossing>>,
) -> PartOutcome<T> {
    let (index, ranks) = (part.index, part.ranks.clone());
    let world = Rc::new(SimWorld::new(Engine::new(cluster, part, parts)));
    let group = SimGroup::all_ranks(cluster.ranks, &world);
    let comms: Vec<_> = ranks
        .clone()
        .map(|rank| SimComm::new(&world, &group, rank))
        .collect();
    let start = |comm| RankTask::Running(Box::pin(program(comm)));
    let started = catch_unwind(AssertUnwindSafe(|| comms.iter().map(start).collect()));
    let mut programs = RankPrograms {
        tasks: started.inspect_err(|_| report_failure(exchange, index))?,
        first: ranks.start,
        group: &group,
        world: &world,
    };
    let program_bytes = programs.tasks.first().map_or(0, program_size);
    match exchange {
        Some(exchange) => programs.run_windows(exchange, index)?,
        None => programs.run_until(u64::MAX),
    }
    // Before the programs are dropped, which ends their waits.
    let (messages, ended, waiting) = {
        let engine = world.engine.borrow();
        (engine.messages_sent(), engine.ended(), engine.waiting())
    };
    let done = |task| match task {
        RankTask::Done(result) => Some(result),
        RankTask::Running(_) => None,
    };
    Ok(SimulatedPart {
        results: programs.tasks.into_iter().filter_map(done).collect(),
        messages,
        ended,
        program_bytes,
        waiting,
    })
}

/// Programs of the ranks of a part.
struct RankPrograms<'a, F, T> {
    /// Programs and results, in the order of ranks from the `first` on.
    tasks: Vec<RankTask<F, T>>,
    first: u32,
    group: &'a SimGroup,
    world: &'a SimWorld,
}

impl<F: Future<Output = T>, T> RankPrograms<'_, F, T> {
    fn task(&mut self, rank: u32) -> &mut RankTask<F, T> {
        &mut self.tasks[(rank - self.first) as usize]
    }

    /// Runs all ranks that are ready, until nothing is left to be done before the time `end`.
    fn run_until(&mut self, end: u64) {
        let world = self.world;
        let next_ready = || world.engine.borrow_mut().next_ready(end);
        while let Some(rank) = next_ready() {
            for next in world.engine.borrow_mut().load_ahead() {
                black_box(matches!(self.task(*next), RankTask::Done(_)));
            }
            let task = self.task(rank);
            let RankTask::Running(program) = task else {
                continue;
            };
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(result) = program.as_mut().poll(&mut context) {
                // Also drops everything that the program still holds.
                *task = RankTask::Done(result);
                self.group.leave(rank, world);
                world.engine.borrow_mut().retire(rank);
            }
        }
    }

    /// Runs all ranks of the part with this index in windows of time, between which the parts
    /// exchange their messages.
    ///
    /// # Errors
    /// The panic of a rank of this part.
    fn run_windows(
        &mut self,
        exchange: &PartExchange<Crossing>,
        index: usize,
    ) -> thread::Result<()> {
        // Ranks run before the first event.
        let mut end = 0;
        for window in 0.. {
            let ran = catch_unwind(AssertUnwindSafe(|| self.run_until(end)));
            let report = self.world.engine.borrow_mut().end_window(ran.is_err());
            let Some(NextWindow { news, end: next }) = exchange.meet(window, index, report) else {
                return ran;
            };
            news.into_iter().for_each(|news| self.world.take(news));
            end = next;
        }
        Ok(())
    }
}

/// Joins the results of all parts. A panic of a rank panics here.
fn joined<T>(parts: impl Iterator<Item = PartOutcome<T>>) -> Result<Simulated<T>, ClusterError> {
    // All threads have ended before a panic goes on.
    let parts: Vec<_> = parts.collect();
    let mut simulated = Simulated {
        results: vec![],
        messages: 0,
        ended: Timestamp::ORIGIN,
        program_bytes: 0,
    };
    let mut deadlock = None::<WaitingRanks>;
    for part in parts {
        let part = part.unwrap_or_else(|panic| resume_unwind(panic));
        simulated.results.extend(part.results);
        simulated.messages += part.messages;
        simulated.ended = simulated
            .ended
            .max(Timestamp::from_nanos(part.ended as i64));
        simulated.program_bytes = part.program_bytes;
        if let Some(waiting) = part.waiting {
            let count = deadlock.map_or(0, |earlier| earlier.count) + waiting.count;
            deadlock = Some(WaitingRanks {
                count,
                ..deadlock.unwrap_or(waiting)
            });
        }
    }
    match deadlock {
        None => Ok(simulated),
        Some(WaitingRanks {
            first,
            waits_for,
            count,
        }) => Err(ClusterError::Deadlock {
            waiting: count,
            rank: first,
            waits_for,
        }),
    }
}

fn program_size<F, T>(task: &RankTask<F, T>) -> usize {
    match task {
        RankTask::Running(program) => size_of_val(&**program),
        RankTask::Done(_) => 0,
    }
}
