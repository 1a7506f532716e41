//! Simulation of a program on all ranks of a cluster.

use core::cell::{Cell, RefCell};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::rc::Rc;

use downbeat_clock_core::Timestamp;

use super::cluster::SimCluster;
use super::comm::SimComm;
use super::engine::{Engine, SimWorld};
use super::group::SimGroup;
use super::node_clock::VirtualTime;
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
        let world = Rc::new(SimWorld {
            engine: RefCell::new(Engine::new(self)),
            groups: Cell::new(0),
        });
        let group = Rc::new(SimGroup::all_ranks(self.ranks));
        let comms: Vec<_> = (0..self.ranks)
            .map(|rank| SimComm::new(&world, &group, rank))
            .collect();
        let mut tasks: Vec<_> = comms
            .iter()
            .map(|comm| RankTask::Running(Box::pin(program(comm))))
            .collect();
        let program_bytes = tasks.first().map_or(0, program_size);
        let next_ready = || world.engine.borrow_mut().next_ready();
        while let Some(rank) = next_ready() {
            let RankTask::Running(program) = &mut tasks[rank as usize] else {
                continue;
            };
            if let Poll::Ready(result) = program
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                // Also drops everything that the program still holds.
                tasks[rank as usize] = RankTask::Done(result);
                group.leave(rank, &world);
                world.engine.borrow_mut().retire(rank);
            }
        }
        let (messages, ended) = {
            // Before the programs are dropped, which ends their waits.
            let engine = world.engine.borrow();
            engine.check_all_gone()?;
            (
                engine.messages_sent(),
                (0..self.ranks)
                    .map(|rank| engine.now(rank))
                    .max()
                    .unwrap_or_default(),
            )
        };
        let done = |task| {
            if let RankTask::Done(result) = task {
                Some(result)
            } else {
                None
            }
        };
        let results = tasks.into_iter().filter_map(done).collect();
        Ok(Simulated {
            results,
            messages,
            ended: Timestamp::from_nanos(ended as i64),
            program_bytes,
        })
    }
}

fn program_size<F, T>(task: &RankTask<F, T>) -> usize {
    match task {
        RankTask::Running(program) => size_of_val(&**program),
        RankTask::Done(_) => 0,
    }
}
