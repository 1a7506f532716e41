//! The ranks of the job, and their nodes, sockets and cores.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use downbeat::LocalTime;
use downbeat_clock_core::Clock;
use downbeat_common::output::{count, warn};
use downbeat_common::{Failure, Outputs, ProgressBar, agree_blocking, gather_texts, machine};
use downbeat_files::format_ranges;
use downbeat_records::UNEQUAL;
use downbeat_sync::internal::boot_id;
use downbeat_sync::{
    Algorithm, Comm, LocalClock, NodeComms, PlaceLevel, RankPlacement, StableHasher, SyncError,
    Synchronized, agree_on_reason, block_on_ready, collective,
};
use downbeat_timers::cores::{
    CoreId, allowed_cores, available_cores, core_of_rank, current_core, pin_to, socket_of,
};
use downbeat_timers::numa_of;

use crate::Job;
use crate::above_nodes::AboveNodes;

/// Options for the places of ranks.
#[derive(Args, Clone, Debug, Default)]
pub struct PlaceOptions {
    /// Number of consecutive ranks that form a node [default: those under one kernel, or
    /// of one DOWNBEAT_NODE]
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    per_node: Option<u32>,
    /// Number of consecutive ranks that form a socket [default: those on cores of one socket]
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    per_socket: Option<u32>,
    /// File with the rack and the island of each host, for hlhca(...) [default: the switches that Slurm names]
    #[arg(long, value_name = "FILE")]
    places: Option<PathBuf>,
    /// Pin every rank to a core of its own, as far as there are enough, instead of the cores set by the launcher
    #[arg(long)]
    pin: bool,
}

impl PlaceOptions {
    /// File with the places of hosts, which no output may replace.
    pub fn input(&self) -> Option<&Path> {
        self.places.as_deref()
    }
}

/// Communicators of the job and of this node, and the places of all ranks.
#[derive(Debug)]
pub struct JobRanks<'a, J: Job> {
    pub(crate) job: &'a J,
    /// Communicator of all ranks.
    pub all: &'a J::Comm,
    /// Communicators of this node, and of the first ranks of all nodes.
    by_node: Rc<NodeComms<J::Comm>>,
    /// Place of this rank.
    pub place: RankPlacement,
    /// Levels above the node whose units are known.
    levels_above: Vec<PlaceLevel>,
    /// The place of every rank, on rank 0.
    pub places: Vec<RankPlacement>,
    /// Host names of all ranks, on rank 0.
    pub(crate) hosts: Vec<String>,
    /// Cores that each rank may run on, on rank 0.
    pub(crate) cores: Vec<String>,
    /// Numbers of the cores that each rank may run on, among those of its job on its
    /// node; on rank 0.
    bindings: Vec<String>,
    /// Governors of the cores of each rank's node, on rank 0.
    governors: Vec<String>,
    /// Frequency at which the core of each rank ran at the begin, on rank 0.
    pub(crate) frequencies: Vec<String>,
    /// Kind of the node of each rank, by everything that makes one differ from another; on rank 0.
    kinds: Vec<String>,
    /// True if all ranks run under one kernel.
    pub one_machine: bool,
    /// Identifier of the kernel that runs this rank, until its next boot; 0 if unknown.
    pub(crate) boot: u64,
}

impl<'a, J: Job> JobRanks<'a, J> {
    /// Finds the nodes, the places and the cores of all ranks, which all call this.
    ///
    /// # Errors
    /// If they cannot be found, or the rank cannot be pinned.
    pub fn find(job: &'a J, options: &PlaceOptions) -> Result<Self, Failure> {
        let all = job.comm();
        let node = match options.per_node {
            Some(ranks) => all.rank() / ranks,
            None => job.node()?,
        };
        let by_node = block_on_ready(all.by_node(node))?;
        let node_comm = &by_node.node;
        agree_blocking(all, pin(options, node_comm.rank()))?;
        let socket = match options.per_socket {
            Some(ranks) => node_comm.rank() / ranks,
            None => current_core().and_then(socket_of).unwrap_or(0),
        };
        let boot = boot_hash();
        let is_one_kernel = block_on_ready(collective::all_equal(all, boot))? && boot != 0;
        let places = block_on_ready(collective::gather(all, [node, socket]))?;
        let places = places
            .into_iter()
            .map(|[node, socket]| RankPlacement::new(node, socket));
        let gather = |text: &str| block_on_ready(gather_texts(all, text)).map_err(Failure::run);
        let hosts = gather(&machine::host_name())?;
        let above = AboveNodes::find(all, options.places.as_deref(), &hosts)?;
        let cores = gather(&ranges(&allowed_cores()))?;
        let bindings = gather(&number_allowed_cores())?;
        let own_governors = machine::governors();
        let governors = gather(&own_governors)?;
        let frequencies = gather(&machine::core_frequency())?;
        let kinds = gather(&machine::kind_of_node(&own_governors))?;
        let place = RankPlacement {
            numa: current_core().and_then(numa_of).unwrap_or(0),
            ..RankPlacement::new(node, socket)
        };
        let place = place.within(above.place);
        Ok(Self {
            job,
            all,
            by_node,
            place,
            levels_above: above.levels,
            places: places.collect(),
            hosts,
            cores,
            bindings,
            governors,
            frequencies,
            kinds,
            one_machine: J::IS_ONE_PROCESS || is_one_kernel,
            boot,
        })
    }

    /// Returns true on rank 0.
    pub fn is_first(&self) -> bool {
        self.all.rank() == 0
    }

    /// Begins a progress bar that lasts this long on rank 0, and none elsewhere.
    pub fn progress(&self, seconds: f64) -> ProgressBar {
        ProgressBar::lasting(if self.is_first() { seconds } else { 0.0 })
    }

    /// Does work on rank 0; all ranks fail if it fails. All ranks call this.
    ///
    /// # Errors
    /// If the work failed on rank 0.
    pub fn on_first(&self, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let done = if self.is_first() { work() } else { Ok(()) };
        agree_blocking(self.all, done)
    }

    /// Checks on rank 0 that the outputs of the command can be written and replace no input of any rank; `add` adds them. All ranks call
    /// this, each with its own inputs.
    ///
    /// # Errors
    /// If an output cannot be written, or would replace an input.
    pub fn begin_outputs<T: Default>(
        &self,
        inputs: [Option<&Path>; 2],
        add: impl FnOnce(&mut Outputs) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let inputs = || inputs.into_iter().flatten();
        let own: Vec<_> = inputs().map(Path::to_string_lossy).collect();
        // No path contains a zero.
        let all = block_on_ready(gather_texts(self.all, &own.join("\0")))?;
        let begun = match self.is_first() {
            true => {
                let others = all.iter().skip(1).flat_map(|paths| paths.split('\0'));
                let others = others.filter(|path| !path.is_empty()).map(Path::new);
                add(&mut Outputs::new(inputs().chain(others)))
            }
            false => Ok(T::default()),
        };
        agree_blocking(self.all, begun)
    }

    /// Checks that the places of the levels of an algorithm, which an option gave, are known.
    ///
    /// # Errors
    /// If one is unknown.
    pub fn have_levels_of(&self, option: &str, algorithm: &Algorithm) -> Result<(), Failure> {
        let Algorithm::Hierarchy(hierarchy) = algorithm else {
            return Ok(());
        };
        let is_known =
            |level: &PlaceLevel| *level >= PlaceLevel::Node || self.levels_above.contains(level);
        let unknown = hierarchy
            .levels()
            .map(|(level, _)| level)
            .find(|level| !is_known(level));
        unknown.map_or(Ok(()), |level| {
            let why = format!(
                "{algorithm} needs the {level} of each host, which neither --places nor Slurm tells"
            );
            Err(Failure::option(option, why))
        })
    }

    /// Returns the communicator of the ranks of this node.
    pub fn node_comm(&self) -> &J::Comm {
        &self.by_node.node
    }

    /// Returns what this rank synchronizes.
    pub fn local_clock<'c, K: Clock>(&self, local: &'c LocalTime<K>) -> LocalClock<'c, K> {
        LocalClock::new(&local.clock, local.model)
            .source(local.source)
            .placement(self.place)
            .compared_with(local.other)
    }

    /// Synchronizes all ranks. Either all fail, for the reason of the lowest rank that has one, or none.
    ///
    /// # Errors
    /// If a rank failed.
    pub fn synchronize<K: Clock>(
        &self,
        me: &LocalClock<'_, K>,
        algorithm: &Algorithm,
    ) -> Result<Synchronized, Failure> {
        let found = algorithm.synchronize_blocking(me, self.all);
        let found = self.agree_on_reason(algorithm, found)?;
        self.warn_of(algorithm, &found);
        Ok(found)
    }

    /// Tells on rank 0 why a clock is worse than wanted, or took longer.
    pub fn warn_of(&self, algorithm: &Algorithm, found: &Synchronized) {
        if self.is_first() {
            found
                .warnings()
                .for_each(|warning| warn(&format!("{algorithm}: {warning}")));
        }
    }

    /// Returns the result of an algorithm, which fails on all ranks or on none, with the reason of the lowest rank that has one.
    pub(crate) fn agree_on_reason<T>(
        &self,
        algorithm: &Algorithm,
        result: Result<T, SyncError>,
    ) -> Result<T, Failure> {
        agree_on_reason(self.all, result, |why| {
            self.failure(format!("{algorithm}: {why}"))
        })
    }

    /// Returns a failure of this rank, which names it.
    pub fn failure(&self, why: impl Display) -> Failure {
        Failure::Run(format!("rank {}: {why}", self.all.rank()))
    }

    /// Returns the numbers of ranks and nodes as text, as rank 0 knows them: `4 ranks on 2 nodes`. Points out unequal nodes.
    pub fn description(&self) -> String {
        let ranks = count(self.all.size() as usize, "rank");
        let nodes = count(self.nodes(), "node");
        match self.kinds_of_nodes() {
            kinds if kinds.starts_with(UNEQUAL) => format!("{ranks} on {nodes} ({kinds})"),
            _ => format!("{ranks} on {nodes}"),
        }
    }

    /// Describes the nodes, as rank 0 knows them: once if all are alike, and else each kind behind its hosts.
    pub(crate) fn kinds_of_nodes(&self) -> String {
        describe_kinds(&self.hosts, &self.kinds)
    }

    /// Describes how ranks are bound to cores, as rank 0 knows it: `unbound`, or the
    /// cores of each rank, node after node, once if all nodes are alike.
    ///
    /// Ranks of a node that share all of their cores are unbound, unless it is one core.
    /// Cores are numbers among those that the job has on the node, and count from the
    /// first one that any of its ranks uses: a batch system may give a job other cores
    /// next time.
    pub(crate) fn binding(&self) -> String {
        describe_bindings(&self.places, &self.bindings)
    }

    /// Governors of all nodes, as rank 0 knows them: once if all are alike.
    pub(crate) fn governors(&self) -> String {
        let different: BTreeSet<&str> = self.governors.iter().map(String::as_str).collect();
        different.into_iter().collect::<Vec<_>>().join(" | ")
    }

    /// Cores that any rank may run on, as rank 0 knows them, in ascending order.
    pub(crate) fn all_cores(&self) -> Vec<CoreId> {
        let all: BTreeSet<u32> = self
            .cores
            .iter()
            .flat_map(|cores| parse_ranges(cores))
            .collect();
        all.into_iter().map(CoreId).collect()
    }

    /// Number of nodes, as rank 0 knows it.
    pub(crate) fn nodes(&self) -> usize {
        let mut nodes: Vec<u32> = self.places.iter().map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

fn pin(options: &PlaceOptions, rank: u32) -> Result<(), Failure> {
    match core_of_rank(rank) {
        Some(core) if options.pin => pin_to(core).map_err(|why| Failure::option("--pin", why)),
        None if options.pin => Err(Failure::option(
            "--pin",
            "the system does not report its cores",
        )),
        _ => Ok(()),
    }
}

/// Describes kinds of nodes, given the host and the kind of each rank.
fn describe_kinds(hosts: &[String], kinds: &[String]) -> String {
    let mut of_kind: Vec<(&str, Vec<&str>)> = Vec::new();
    for (host, kind) in hosts.iter().zip(kinds) {
        match of_kind.iter_mut().find(|(known, _)| known == kind) {
            None => of_kind.push((kind, vec![host])),
            Some((_, hosts)) if hosts.contains(&host.as_str()) => (),
            Some((_, hosts)) => hosts.push(host),
        }
    }
    match of_kind.as_slice() {
        [(kind, _)] => (*kind).to_owned(),
        kinds => {
            let described = kinds
                .iter()
                .map(|(kind, hosts)| format!("{}: {kind}", hosts.join(" ")));
            UNEQUAL.to_owned() + &described.collect::<Vec<_>>().join(" | ")
        }
    }
}

/// Binding of ranks that share all of their cores.
const UNBOUND: &str = "unbound";

/// Returns the cores that this rank may run on, as numbers among those that its job has
/// on the node.
fn number_allowed_cores() -> String {
    let (allowed, available) = (allowed_cores(), available_cores());
    let number = |core: &CoreId| available.binary_search(core).ok();
    let numbers = allowed.iter().filter_map(number);
    ranges(
        &numbers
            .map(|number| CoreId(number as u32))
            .collect::<Vec<_>>(),
    )
}

/// Describes the bindings of ranks at these places, given the cores that each may run on.
fn describe_bindings(places: &[RankPlacement], cores: &[String]) -> String {
    let mut of_node: Vec<(u32, Vec<BTreeSet<u32>>)> = Vec::new();
    for (place, cores) in places.iter().zip(cores) {
        let cores = parse_ranges(cores).collect();
        match of_node.iter_mut().find(|(node, _)| *node == place.node) {
            Some((_, of_ranks)) => of_ranks.push(cores),
            None => of_node.push((place.node, vec![cores])),
        }
    }
    let mut nodes: Vec<String> = of_node
        .iter()
        .map(|(_, of_ranks)| describe_binding_on_node(of_ranks))
        .collect();
    if nodes.iter().all(|node| *node == nodes[0]) {
        nodes.truncate(1);
    }
    nodes.join(" | ")
}

/// Describes the binding of the ranks of one node, given the cores that each may run on.
fn describe_binding_on_node(of_ranks: &[BTreeSet<u32>]) -> String {
    let all: BTreeSet<u32> = of_ranks.iter().flatten().copied().collect();
    if all.len() != 1 && of_ranks.iter().all(|cores| *cores == all) {
        return UNBOUND.to_owned();
    }
    // Distances stay, as they tell sockets and the threads of one core apart.
    let first = all.first().copied().unwrap_or_default();
    let described = of_ranks.iter().map(|cores| {
        let cores = cores.iter().map(|core| CoreId(core - first));
        ranges(&cores.collect::<Vec<_>>())
    });
    described.collect::<Vec<_>>().join(" ")
}

/// Parses [ranges] of cores; skips other text.
fn parse_ranges(text: &str) -> impl Iterator<Item = u32> {
    downbeat_files::parse_ranges(text).flatten().flatten()
}

/// Writes cores as ranges: `0-3,8`.
fn ranges(cores: &[CoreId]) -> String {
    let cores: Vec<u32> = cores.iter().map(|core| core.0).collect();
    format_ranges(&cores)
}

/// Returns a hash of the boot identifier, which processes under one kernel share; 0 if the system does not report one.
fn boot_hash() -> u64 {
    boot_id().map_or(0, |boot| StableHasher::hash_of(&boot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_nodes_are_told_apart() {
        let texts = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(describe_kinds(&texts("a a b"), &texts("x x x")), "x");
        assert_eq!(
            describe_kinds(&texts("a a b c"), &texts("x x y x")),
            "unequal: a c: x | b: y"
        );
    }

    /// Describes bindings of ranks on these nodes, which may run on these cores.
    fn describe(nodes: &[u32], cores: &str) -> String {
        let places: Vec<_> = nodes
            .iter()
            .map(|node| RankPlacement::new(*node, 0))
            .collect();
        let cores: Vec<_> = cores.split(' ').map(str::to_owned).collect();
        describe_bindings(&places, &cores)
    }

    #[test]
    fn ranks_that_share_all_their_cores_are_unbound() {
        assert_eq!(describe(&[0, 0, 1], "0-3 0-3 0-3"), "unbound");
        // Under `taskset`, and on nodes with different numbers of cores.
        assert_eq!(describe(&[0, 0], "4-7 4-7"), "unbound");
        assert_eq!(describe(&[0, 0, 1], "0-3 0-3 0-7"), "unbound");
        // The system does not list its cores.
        assert_eq!(describe(&[0, 0], " "), "unbound");
        assert_eq!(describe(&[0, 0], "3 3"), "0 0");
        assert_eq!(describe(&[0], "3"), "0");
    }

    #[test]
    fn bindings_are_those_of_nodes() {
        assert_eq!(describe(&[0, 0, 1, 1], "0 1-2,4 0 1-2,4"), "0 1-2,4");
        // Ranks that go round the nodes are bound alike on each.
        assert_eq!(describe(&[0, 1, 0, 1], "0 0 1 1"), "0 1");
        assert_eq!(describe(&[0, 0, 1, 1], "0 0-1 0-1 0-1"), "0 0-1 | unbound");
    }

    #[test]
    fn bindings_count_from_the_first_core_of_the_job() {
        for cores in ["0 1 2-3", "4 5 6-7"] {
            assert_eq!(describe(&[0, 0, 0], cores), "0 1 2-3");
        }
        assert_eq!(describe(&[0, 0, 1, 1], "5 4 1 0"), "1 0");
        // The second rank is on another socket, or on the other thread of the first one's
        // core.
        assert_eq!(describe(&[0, 0], "4 36"), "0 32");
    }

    #[test]
    fn ranges_are_parsed_as_they_are_written() {
        for text in ["", "0", "0-3,8", "1,3,5-6"] {
            let cores: Vec<_> = parse_ranges(text).map(CoreId).collect();
            assert_eq!(ranges(&cores), text);
        }
    }
}
