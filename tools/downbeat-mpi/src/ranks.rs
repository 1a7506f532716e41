//! Where the ranks are.

use std::fmt::Display;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use clap::Args;
use downbeat_common::{Failure, gather_texts, machine};
use downbeat_sync::{Comm, MpiComm, RankPlacement, block_on_ready, collective};
use downbeat_timers::{CoreId, allowed_cores, current_core, pin_to, socket_of};

use downbeat_common::block_on_ready_failure;

#[derive(Args, Clone, Debug)]
pub(crate) struct PlaceOptions {
    /// Take so many ranks in a row for a node, instead of those that share memory
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    per_node: Option<u32>,
    /// Take so many ranks in a row for a socket, instead of those whose core is on one
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    per_socket: Option<u32>,
    /// Keep every rank on a core of its own, as far as there are enough, instead of where the launcher put it
    #[arg(long)]
    pin: bool,
}

/// All ranks, and those of this node.
#[derive(Debug)]
pub(crate) struct Ranks<'a> {
    pub(crate) all: &'a MpiComm,
    pub(crate) of_node: MpiComm,
    pub(crate) place: RankPlacement,
    /// The place of every rank, on rank 0.
    pub(crate) places: Vec<RankPlacement>,
    /// The names of all hosts, on rank 0.
    pub(crate) hosts: Vec<String>,
    /// The cores that every rank may run on, on rank 0.
    pub(crate) cores: Vec<String>,
    /// Whether all ranks run under one kernel.
    pub(crate) one_machine: bool,
    /// A number of that kernel.
    pub(crate) boot: u64,
}

impl<'a> Ranks<'a> {
    pub(crate) fn find(all: &'a MpiComm, options: &PlaceOptions) -> Result<Self, Failure> {
        let node = match options.per_node {
            Some(ranks) => all.rank() / ranks,
            None => all.node().map_err(Failure::run)?,
        };
        let of_node = block_on_ready(all.split(Some(node), all.rank())).map_err(Failure::run)?;
        let of_node = of_node
            .ok_or_else(|| Failure::run("MPI gave this rank no communicator for its node"))?;
        block_on_ready_failure(downbeat_common::agree(all, pin(options, of_node.rank())))?;
        let socket = match options.per_socket {
            Some(ranks) => of_node.rank() / ranks,
            None => current_core().and_then(socket_of).unwrap_or(0),
        };
        let boot = boot_number();
        let one_machine =
            block_on_ready(collective::all_equal(all, boot)).map_err(Failure::run)? && boot != 0;
        let places = block_on_ready(collective::gather(all, [node.into(), socket.into()]))
            .map_err(Failure::run)?;
        let places = places.into_iter().map(|[node, socket]| RankPlacement {
            node: node as u32,
            socket: socket as u32,
        });
        let hosts =
            block_on_ready(gather_texts(all, &machine::host_name())).map_err(Failure::run)?;
        let cores =
            block_on_ready(gather_texts(all, &ranges(&allowed_cores()))).map_err(Failure::run)?;
        let place = RankPlacement { node, socket };
        Ok(Self {
            all,
            of_node,
            place,
            places: places.collect(),
            hosts,
            cores,
            one_machine,
            boot,
        })
    }

    /// What this rank has to say, though another may be the one that says it.
    pub(crate) fn failure(&self, why: impl Display) -> Failure {
        Failure::Run(format!("rank {}: {why}", self.all.rank()))
    }

    /// How many nodes there are, as rank 0 knows.
    pub(crate) fn nodes(&self) -> usize {
        let mut nodes: Vec<u32> = self.places.iter().map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

fn pin(options: &PlaceOptions, index: u32) -> Result<(), Failure> {
    let cores = allowed_cores();
    match cores.get(index as usize % cores.len().max(1)) {
        Some(core) if options.pin => pin_to(*core).map_err(|why| Failure::option("--pin", why)),
        None if options.pin => Err(Failure::option(
            "--pin",
            "the system does not say which cores there are",
        )),
        _ => Ok(()),
    }
}

/// As in `0-3,8`.
fn ranges(cores: &[CoreId]) -> String {
    let runs = cores.chunk_by(|a, b| a.0 + 1 == b.0);
    let text = runs.map(|run| match run {
        [first, .., last] => format!("{}-{}", first.0, last.0),
        run => run.iter().map(|core| core.0.to_string()).collect(),
    });
    text.collect::<Vec<_>>().join(",")
}

/// Equal for processes under one kernel, until it is booted again; 0 where the system does not tell.
fn boot_number() -> u64 {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or(0, |boot| number_of(&boot))
}

/// Equal for equal things.
pub(crate) fn number_of(thing: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}
