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

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Simulated<T> {
    /// What the ranks returned, in their order.
    pub results: Vec<T>,
    /// How many messages they sent.
    pub messages: u64,
    /// When the last of them returned.
    pub ended: Timestamp<VirtualTime>,
    /// How much memory the program of one rank takes while it is suspended, besides what it allocates.
    pub program_bytes: usize,
}

/// What a rank does, or what it came to.
enum RankTask<F, T> {
    Running(Pin<Box<F>>),
    Done(T),
}

impl SimCluster {
    /// Runs `program` on every rank, and returns what they return, in their order.
    ///
    /// The program must wait for nothing but what [`SimComm`] does. A panic of a rank is one of this call.
    ///
    /// # Errors
    /// When a parameter makes no sense, or the ranks wait for each other for ever.
    pub fn run<T>(&self, program: impl AsyncFn(&SimComm) -> T) -> Result<Vec<T>, ClusterError> {
        Ok(self.simulate(program)?.results)
    }

    /// As [`run`](Self::run), and tells more about the simulation.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[expect(
        clippy::needless_pass_by_value,
        reason = "as `ThreadCluster` takes it: a caller writes it in place"
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
                // Ends what the program still holds, too.
                tasks[rank as usize] = RankTask::Done(result);
                group.leave(rank, &world);
                world.engine.borrow_mut().retire(rank);
            }
        }
        let (messages, ended) = {
            // Before the programs are dropped, which ends their waiting.
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
