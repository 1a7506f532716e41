//! Options for the messages of measured operations.

use std::fmt::Display;

use clap::Args;
use downbeat_common::Failure;
use downbeat_common::bench::{IN_FLIGHT, THREADS};
use downbeat_common::records::Factors;
use downbeat_measure::mpi::{
    Datatype, Epoch, MessageLayout, OperationKind, OperationSettings, Reduction, Root, WindowMemory,
};
use downbeat_measure::{Alignment, CacheState, Preset};
use downbeat_timers::caches::last_private_cache;
use downbeat_timers::cores::current_core;

#[derive(Args, Clone, Debug)]
pub(crate) struct SettingsOptions {
    /// Datatype of the messages: byte, char, int, long, float, double, ... [default: that of the suite, or byte]
    #[arg(long, value_name = "TYPE")]
    datatype: Option<Datatype>,
    /// Places of the elements: contiguous, or by a derived datatype: vector/BLOCK/STRIDE, indexed/BLOCK/STRIDE (irregular places) or
    /// struct/BLOCK/STRIDE (elements and bytes in turn), in elements
    #[arg(long, value_name = "LAYOUT", default_value_t = OperationSettings::default().layout)]
    layout: MessageLayout,
    /// Reduction operator: sum, prod, min, max, band, bor, ... [default: that of the suite, or bor, or sum for float and double]
    #[arg(long, value_name = "NAME")]
    reduction: Option<Reduction>,
    /// Root: a rank, or "rotating" for another one with every call [default: that of the suite, or 0]
    #[arg(long, value_name = "ROOT", allow_hyphen_values = true)]
    root: Option<Root>,
    /// Use MPI_IN_PLACE: results replace the messages
    #[arg(long)]
    in_place: bool,
    /// Align messages to multiples of this number of bytes
    #[arg(long, value_name = "BYTES", default_value_t = Alignment::default(), allow_hyphen_values = true)]
    alignment: Alignment,
    /// State of the caches before a call: warm, cold-overwrite (overwritten with other data) or cold-walk (each message is
    /// in another buffer)
    #[arg(long, value_name = "STATE", default_value_t = CacheState::Warm)]
    cache: CacheState,
    /// Number of messages in flight at once in each direction of bandwidth and bidirectional, and of accesses in put-bandwidth
    /// and get-bandwidth: the window of OSU and IMB
    #[arg(long, value_name = "COUNT", default_value_t = OperationSettings::default().in_flight, value_parser = clap::value_parser!(u32).range(1..=65_536), allow_hyphen_values = true)]
    in_flight: u32,
    /// Number of parts of the messages of partitioned-ping-pong, which become ready one after the other
    #[arg(long, value_name = "COUNT", default_value_t = OperationSettings::default().partitions, value_parser = clap::value_parser!(u32).range(1..=65_536), allow_hyphen_values = true)]
    partitions: u32,
    /// Number of threads of each rank that call the operation at once, each with a communicator of its own; more than one need MPI_THREAD_MULTIPLE
    #[arg(long, value_name = "COUNT", default_value_t = OperationSettings::default().threads, value_parser = clap::value_parser!(u32).range(1..=1024), allow_hyphen_values = true)]
    pub(crate) threads: u32,
    /// Distance up to which ranks of a ring are neighbours, on both sides, in neighborhood collectives
    #[arg(long, value_name = "DISTANCE", default_value_t = OperationSettings::default().radius, value_parser = clap::value_parser!(u32).range(1..=65_536), allow_hyphen_values = true)]
    radius: u32,
    /// Synchronization in each call of a one-sided operation: flush (MPI_Win_lock_all around all calls), lock, pscw (post, start,
    /// complete, wait) or fence
    #[arg(long, value_name = "NAME", default_value_t = OperationSettings::default().epoch)]
    epoch: Epoch,
    /// Memory of the windows of one-sided operations: allocate (MPI_Win_allocate) or create (MPI_Win_create)
    #[arg(long, value_name = "NAME", default_value_t = OperationSettings::default().window_memory)]
    window_memory: WindowMemory,
    /// Size of the cache to make cold [default: that of the last private cache of a core]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=1 << 40), allow_hyphen_values = true)]
    cache_size: Option<u64>,
}

impl SettingsOptions {
    /// Returns the settings of an operation: those that are given, and otherwise those of the suite. It has no kind if it is one of a user.
    pub(crate) fn settings(
        &self,
        suite: Option<Preset>,
        kind: Option<OperationKind>,
    ) -> Result<OperationSettings, Failure> {
        let default = match (suite, kind) {
            (Some(suite), Some(kind)) => OperationSettings::of_suite(suite, kind),
            (Some(suite), None) => OperationSettings {
                root: Root::of_suite(suite),
                ..OperationSettings::default()
            },
            (None, _) => OperationSettings::default(),
        };
        let usual = self.datatype.map(Datatype::usual_reduction);
        let usual = usual.unwrap_or(default.reduction);
        Ok(OperationSettings {
            datatype: self.datatype.unwrap_or(default.datatype),
            layout: self.layout,
            reduction: self.reduction.unwrap_or(usual),
            root: self.root.unwrap_or(default.root),
            in_place: self.in_place,
            alignment: self.alignment,
            cache: self.cache,
            cache_bytes: self.cache_bytes()?,
            in_flight: self.in_flight,
            threads: self.threads,
            partitions: self.partitions,
            radius: self.radius,
            epoch: self.epoch,
            window_memory: self.window_memory,
            ..default
        })
    }

    fn cache_bytes(&self) -> Result<usize, Failure> {
        match (self.cache, self.cache_size) {
            (CacheState::Warm, None) => Ok(0),
            (CacheState::Warm, Some(_)) => Err(Failure::option(
                "--cache-size",
                "does not apply to warm caches",
            )),
            (_, Some(bytes)) => Ok(bytes as usize),
            (_, None) => {
                let core = current_core()
                    .ok_or_else(|| unknown_size(&"the system does not report the current core"))?;
                Ok(last_private_cache(core)
                    .map_err(|why| unknown_size(&why))?
                    .bytes as usize)
            }
        }
    }
}

fn unknown_size(why: &dyn Display) -> Failure {
    Failure::option("--cache", format!("{why}; set the size with --cache-size"))
}

impl SettingsOptions {
    /// Adds the settings to the factors. Those that a suite has for each operation are not given by name, and others only if one of the
    /// operations has them.
    pub(crate) fn factors(
        &self,
        is_suite: bool,
        kinds: &[OperationKind],
        factors: Factors,
    ) -> Result<Factors, Failure> {
        let default = OperationSettings::default();
        let datatype = self.datatype.unwrap_or(default.datatype);
        let reduction = self.reduction.unwrap_or(datatype.usual_reduction());
        let root = self.root.unwrap_or(default.root);
        let named: [(&str, &dyn Display, bool); 3] = [
            ("datatype", &datatype, self.datatype.is_some()),
            ("reduction", &reduction, self.reduction.is_some()),
            ("root", &root, self.root.is_some()),
        ];
        let named = named.into_iter().filter(|(.., given)| *given || !is_suite);
        let factors = named
            .fold(factors, |factors, (name, value, _)| {
                factors.with(name, value)
            })
            .with("in place", &self.in_place)
            .with("alignment", &self.alignment)
            .with("cache", &self.cache);
        let any = |has: fn(OperationKind) -> bool| kinds.iter().any(|kind| has(*kind));
        let one_sided = any(OperationKind::is_one_sided);
        let of_some: [(&str, &dyn Display, bool); 7] = [
            (
                "partitions",
                &self.partitions,
                any(OperationKind::is_partitioned),
            ),
            (THREADS, &self.threads, self.threads > 1),
            (
                "layout",
                &self.layout,
                self.layout != MessageLayout::Contiguous,
            ),
            (
                IN_FLIGHT,
                &self.in_flight,
                any(OperationKind::has_many_in_flight),
            ),
            (
                "radius",
                &self.radius,
                any(OperationKind::is_among_neighbours),
            ),
            ("epoch", &self.epoch, one_sided),
            ("window memory", &self.window_memory, one_sided),
        ];
        let of_some = of_some.into_iter().filter(|(.., applies)| *applies);
        let factors = of_some.fold(factors, |factors, (name, value, _)| {
            factors.with(name, value)
        });
        Ok(match self.cache {
            CacheState::Warm => factors,
            _ => factors.with("cache size", &self.cache_bytes()?),
        })
    }
}
