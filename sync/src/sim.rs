//! Ranks that are simulated, in virtual time.

mod clock;
mod comm;
mod engine;
mod group;
mod messages;
mod network;
mod parameter;
mod queue;
mod random;
mod rank;
mod traffic;

use core::cell::{Cell, RefCell};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::rc::Rc;

pub use clock::{Clocks, Drift, DriftWalk, NodeClock, SimClock, VirtualTime};
pub use comm::SimComm;
use downbeat_clock_core::Timestamp;
use engine::{Engine, World};
use group::Group;
pub use network::{Bursts, Card, DelayTail, Network, NetworkLink};
pub use parameter::{require, require_non_negative};
pub use random::exponential;

use crate::ClusterError;

/// A cluster that exists in virtual time only: many ranks on one thread, with a network and clocks of which everything
/// is known.
///
/// Algorithms run on it as they are. Neither the load of the machine that simulates nor the order in which it simulates the
/// ranks matters: equal clusters give equal results, bit for bit. A rank in the middle of a synchronization takes one
/// to two kilobytes.
///
/// ```
/// use downbeat_sync::{Algorithm, Clocks, Comm, Network, SimCluster};
///
/// let cluster = SimCluster {
///     ranks: 1_000,
///     ranks_per_node: 16,
///     sockets_per_node: 2,
///     network: Network::typical(),
///     clocks: Clocks::typical(),
///     seed: 1,
/// };
/// let algorithm: Algorithm = "h2hca(hca3/10/skampi/10,prop)".parse()?;
/// let found = cluster.run(async |comm| {
///     let clock = comm.clock();
///     let synchronized = algorithm.synchronize(&comm.local_clock(&clock)?, comm).await?;
///     Ok::<_, downbeat_sync::SyncError>((synchronized.model, clock, comm.true_now()))
/// })?;
/// let ranks = found.into_iter().collect::<Result<Vec<_>, _>>()?;
///
/// // At the instant when the last one was done, by every rank's own clock:
/// let end = ranks.iter().map(|(.., done)| *done).max().unwrap();
/// let shown = ranks.iter().map(|(model, clock, _)| model.apply(clock.ticks_at(end)));
/// let worst = shown.clone().max().unwrap() - shown.min().unwrap();
/// println!("the clocks of 1,000 ranks show the same to {worst}");
/// # assert!(worst.as_nanos() < 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SimCluster {
    /// How many ranks there are: at most 67 million.
    pub ranks: u32,
    /// How many of them share a node and its clock; the last node may have fewer.
    pub ranks_per_node: u32,
    /// How many sockets a node has. Its ranks are dealt out in blocks.
    pub sockets_per_node: u32,
    /// How long messages take.
    pub network: Network,
    /// How wrong the clocks of the nodes are.
    pub clocks: Clocks,
    /// Another seed makes other chances.
    pub seed: u64,
}

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
enum Task<F, T> {
    Running(Pin<Box<F>>),
    Done(T),
}

impl SimCluster {
    /// The most ranks that there can be.
    pub const MAX_RANKS: u32 = 1 << traffic::RANK_BITS;

    /// Looks for a parameter that makes no sense.
    ///
    /// # Errors
    /// With its name.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let name = |name: &str| name.to_owned();
        require(
            (1..=Self::MAX_RANKS).contains(&self.ranks),
            || name("ranks"),
            "1 to 67,108,864",
        )?;
        require(
            self.ranks_per_node > 0,
            || name("ranks_per_node"),
            "positive",
        )?;
        require(
            self.sockets_per_node > 0,
            || name("sockets_per_node"),
            "positive",
        )?;
        self.network.validate()?;
        self.clocks.validate()
    }

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
        let world = Rc::new(World {
            engine: RefCell::new(Engine::new(self)),
            groups: Cell::new(0),
        });
        let group = Rc::new(Group::of_all(self.ranks));
        let comms: Vec<_> = (0..self.ranks)
            .map(|rank| SimComm::new(&world, &group, rank))
            .collect();
        let mut tasks: Vec<_> = comms
            .iter()
            .map(|comm| Task::Running(Box::pin(program(comm))))
            .collect();
        let program_bytes = tasks.first().map_or(0, size_of_program);
        let next_ready = || world.engine.borrow_mut().next_ready();
        while let Some(rank) = next_ready() {
            let Task::Running(program) = &mut tasks[rank as usize] else {
                continue;
            };
            if let Poll::Ready(result) = program
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                // Ends what the program still holds, too.
                tasks[rank as usize] = Task::Done(result);
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
            if let Task::Done(result) = task {
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

fn size_of_program<F, T>(task: &Task<F, T>) -> usize {
    match task {
        Task::Running(program) => size_of_val(&**program),
        Task::Done(_) => 0,
    }
}
