//! `downbeat-mpi bench`: run-times of operations of the MPI library.

use clap::Args;
use downbeat_common::bench::{
    BenchGroup, BenchPlan, GroupOutcome, MethodOptions, RankTimes, check_ranks, headline,
    measure_all, rank_counts,
};
use downbeat_common::output::count;
use downbeat_common::records::Factors;
use downbeat_common::sizes::Sizes;
use downbeat_common::{Failure, agree_blocking};
use downbeat_jobs::factors;
use downbeat_measure::mpi::{
    BufferHook, MpiGroup, MpiOperation, OperationError, OperationKind, OperationSettings,
    PlugInError, PlugInName, PlugInOperation, Root,
};
use downbeat_measure::{
    ClockBasis, MeasureContext, MeasureError, Measurement, Method, RenewableClock,
};
use downbeat_records::{CLOCK_STEP, GroupKey};
use downbeat_sync::{Comm, LocalClock, MpiComm, block_on_ready, collective};
use downbeat_timers::{PagePlacement, numa_nodes};

use crate::abort::abort_all_ranks;
use crate::job::{JobClock, JobRanks, MpiJob, RankClocks};
use crate::operations::{BenchOperation, LibraryFile, Loaded, OperationNames, load_buffers};
use crate::overlap::OverlapOptions;
use crate::participants::{Participants, RankSelection};
use crate::session::{SessionOptions, agree_on_measured};
use crate::settings::SettingsOptions;

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  mpirun -np 4 downbeat-mpi bench --operation allreduce,bcast \\\n    \
                  --sizes 8,1Ki,2^16..2^20*4\n  \
                  mpirun -np 4 downbeat-mpi bench --as osu --operation blocking \\\n    \
                  --out results\n  \
                  mpirun -np 8 downbeat-mpi bench --operation alltoall --ranks 2,4,8 \\\n    \
                  --verify --time-slice 1s\n  \
                  mpirun -np 4 downbeat-mpi bench --operation allreduce,./mine.so:ring"
)]
pub(crate) struct MpiBenchOptions {
    /// Operations to measure, separated by commas: MPI functions without MPI_ in lower case (allreduce, ibcast, ...),
    /// ping-pong, persistent-ping-pong, partitioned-ping-pong, pair-ping-pong, bandwidth, bidirectional, sendrecv, put-bandwidth,
    /// get-bandwidth, empty, iallreduce+compute, ...; or all, blocking, nonblocking, persistent, one-sided, overlapped; FILE:NAME for
    /// your own in a shared library, by the interface of downbeat_operation.h
    #[arg(long, value_name = "NAMES", default_value = "allreduce", value_parser = OperationNames::parse)]
    operation: OperationNames,
    /// Sizes of messages in bytes, separated by commas; also as 2^10, 1Ki, and 2^10..2^20*2 for all powers of two in a range
    #[arg(
        long,
        value_name = "SIZES",
        default_value = "8",
        allow_hyphen_values = true
    )]
    sizes: Sizes,
    /// Ranks that can take part, by their places
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    comm: RankSelection,
    /// Numbers of ranks that take part, separated by commas [default: all]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    ranks: Vec<u32>,
    #[command(flatten)]
    method: MethodOptions,
    #[command(flatten)]
    settings: SettingsOptions,
    #[command(flatten)]
    overlap: OverlapOptions,
    /// Memory of the messages, as that of a device: functions of a shared library, by the interface of downbeat_operation.h
    #[arg(long, value_name = "FILE:NAME")]
    buffers: Option<PlugInName>,
    /// Verify the results of each operation before it is measured
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    session: SessionOptions,
}

pub(crate) fn run(options: &MpiBenchOptions, job: &MpiJob<'_>) -> Result<(), Failure> {
    let ranks = options.session.find_ranks(job)?;
    let participants = options.comm.select(&ranks)?;
    let sizes = options.rank_counts(participants.size)?;
    let distinct = options.operation.check_distinct(options.buffers.as_ref());
    distinct.map_err(|why| Failure::option("--buffers", why))?;
    let operations = options.operation.load(job.comm)?;
    let buffers = load_buffers(options.buffers.as_ref(), job.comm)?;
    let groups = options.groups(&operations, &sizes)?;
    let usual = options.method.usual_method()?;
    let clocks = options.session.find_clocks(&ranks)?;
    let parts = sizes
        .into_iter()
        .map(|size| Ok((size, participants.first(size)?)));
    let parts = parts.collect::<Result<_, Failure>>()?;
    let session = MpiBenchSession {
        options,
        ranks: &ranks,
        participants,
        clocks,
        operations: &operations,
        buffers,
        groups,
        usual,
        ranks_by_size: parts,
    };
    session.measure_all()
}

/// Checks that the root exists. Operations without a root need it for the processing of the observations.
fn check_root(ranks: u32, root: Root) -> Result<(), Failure> {
    match root {
        Root::Rank(root) if root >= ranks => {
            let among = count(ranks as usize, "rank");
            Err(Failure::option(
                "--root",
                format!("there is no rank {root} among {among}"),
            ))
        }
        _ => Ok(()),
    }
}

/// Operation that is measured, and its settings.
#[derive(Clone)]
struct OperationToMeasure<'a> {
    operation: &'a BenchOperation,
    settings: OperationSettings,
}

impl MpiBenchOptions {
    /// Returns the numbers of ranks among which to measure, in ascending order.
    fn rank_counts(&self, all: u32) -> Result<Vec<u32>, Failure> {
        if let Some(many) = self.ranks.iter().find(|ranks| **ranks > all) {
            let these = count(all as usize, "rank");
            return Err(Failure::option(
                "--ranks",
                match self.comm {
                    RankSelection::All => format!("this job has {these}, and not {many}"),
                    selection => format!("--comm {selection} selects {these}, and not {many}"),
                },
            ));
        }
        Ok(rank_counts(&self.ranks, all))
    }

    /// Returns all groups to measure, which were checked.
    fn groups<'a>(
        &self,
        operations: &'a [BenchOperation],
        rank_counts: &[u32],
    ) -> Result<Vec<BenchGroup<OperationToMeasure<'a>>>, Failure> {
        let mut groups = Vec::new();
        for operation in operations {
            let suite = self.method.suite();
            let settings = self.settings.settings(suite, operation.kind())?;
            let element = [settings.datatype.bytes()];
            let sizes = if operation.is_single_element() {
                &element
            } else if operation.has_message() {
                self.sizes.as_slice()
            } else {
                &[0]
            };
            for ranks in rank_counts {
                check_ranks(operation, operation.allowed_ranks(), *ranks)?;
                check_root(*ranks, settings.root)?;
                for bytes in sizes {
                    let key = GroupKey {
                        operation: operation.to_string(),
                        bytes: *bytes,
                        ranks: *ranks,
                    };
                    let method = self.method(&key, &settings)?;
                    operation.check(&key, &settings, self.verify, self.buffers.is_some())?;
                    groups.push(BenchGroup {
                        key,
                        method,
                        subject: OperationToMeasure {
                            operation,
                            settings,
                        },
                    });
                }
            }
        }
        Ok(groups)
    }

    fn method(&self, key: &GroupKey, settings: &OperationSettings) -> Result<Method, Failure> {
        // With a rotating root, the processing uses rank 0.
        let root = if let Root::Rank(rank) = settings.root {
            rank
        } else {
            0
        };
        let method = Method {
            root,
            ..self.method.method(&key.operation, key.bytes)?
        };
        let checked = method.check_series(settings.cache.fits_series());
        checked.map_err(|why| Failure::option("--cache", why))?;
        Ok(method)
    }
}

struct MpiBenchSession<'a> {
    options: &'a MpiBenchOptions,
    ranks: &'a JobRanks<'a>,
    participants: Participants<'a>,
    clocks: RankClocks<'a>,
    operations: &'a [BenchOperation],
    /// Memory of the messages, if it is of a kind of its own.
    buffers: Option<Loaded<BufferHook>>,
    groups: Vec<BenchGroup<OperationToMeasure<'a>>>,
    /// Method of most operations.
    usual: Method,
    /// A communicator for every number of ranks, `None` if this rank does not take part.
    ranks_by_size: Vec<(u32, Option<MpiGroup>)>,
}

/// Ranks that measure some groups.
struct BenchPart<'a> {
    size: u32,
    group: &'a MpiGroup,
    global: Option<RenewableClock<'a, MpiComm, JobClock<'a>>>,
}

impl MpiBenchSession<'_> {
    fn measure_all(&self) -> Result<(), Failure> {
        let Self {
            options,
            ranks,
            usual,
            ..
        } = self;
        let RankClocks { local, counter, .. } = &self.clocks;
        let libraries = self.libraries();
        let nodes = numa_nodes().map_or_else(|| "unknown".to_owned(), |nodes| nodes.to_string());
        let plan = BenchPlan {
            groups: self.groups.clone(),
            seed: options.session.seed,
            factors: self.factors()?,
            facts: LibraryFile::add_paths(
                &libraries,
                factors::add_place(
                    ranks,
                    factors::add_counter(counter.as_ref(), Factors::default()),
                ),
            )
            .with(CLOCK_STEP, &self.clocks.step_nanos())
            .with("numa nodes", &nodes),
            headline: headline(
                &(ranks.description() + &self.participants.description()),
                usual,
            ),
        };
        let me = ranks.local_clock(local);
        let mut parts = Vec::new();
        for (size, group) in &self.ranks_by_size {
            if let Some(group) = group {
                let global = options.session.sync.clock(group.comm(), me, usual);
                parts.push(BenchPart {
                    size: *size,
                    group,
                    global,
                });
            }
        }
        let (node, output) = (ranks.node_comm(), &options.session.output);
        let results = measure_all(ranks.all, node, output, plan, |group, times| {
            let part = parts.iter().find(|part| part.size == group.key.ranks);
            self.measure(group, &me, part, times)
        })?;
        for global in parts.iter().filter_map(|part| part.global.as_ref()) {
            if let Some(found) = global.last_synchronization() {
                ranks.warn_of(&global.algorithm(), &found);
            }
        }
        ranks.on_first(|| {
            options.session.output.show(&results)?;
            results.check_failed()
        })
    }

    /// Measures one group. Ranks that do not take part only learn if it failed.
    fn measure(
        &self,
        group: &BenchGroup<OperationToMeasure<'_>>,
        me: &LocalClock<'_, JobClock<'_>>,
        part: Option<&BenchPart<'_>>,
        times: &mut RankTimes,
    ) -> Result<Option<GroupOutcome>, Failure> {
        let Self { options, ranks, .. } = self;
        let BenchGroup {
            key,
            method,
            subject,
        } = group;
        let prepared = match part {
            Some(part) => self.prepare(subject, key, part.group),
            None => Ok(None),
        };
        let prepared = agree_blocking(ranks.all, prepared);
        let mut prepared = match (prepared, subject.operation) {
            // Errors of its author cost the other operations nothing.
            (Err(Failure::Run(why)), BenchOperation::User(_)) => {
                return Ok(ranks.is_first().then_some(GroupOutcome::Failed(why)));
            }
            (prepared, _) => prepared?,
        };
        let mut measured = Ok(None);
        if let (Some(part), Some(prepared)) = (part, &mut prepared) {
            let context = MeasureContext {
                comm: part.group.comm(),
                coordinator: part.group,
                clock: me.clock(),
                clock_basis: ClockBasis::new(part.global.as_ref(), me.base()),
            };
            measured = prepared.measure(method, &context, &options.overlap, times);
            if let (Err(MeasureError::Operation(_)), Some(why)) = (&measured, prepared.failure()) {
                abort_all_ranks(ranks.failure(format!("{key}: {why}")));
            }
        }
        let measured = agree_on_measured(ranks, key, measured)?;
        // All ranks have succeeded.
        let remote = match (part, &prepared) {
            (Some(part), Some(prepared)) => prepared.remote_pages(part.group.comm())?,
            _ => None,
        };
        let measured = match (measured, remote) {
            (Some(GroupOutcome::Measured(mut measured)), Some(remote)) => {
                measured.facts.push(("remote pages", remote));
                Some(GroupOutcome::Measured(measured))
            }
            (measured, _) => measured,
        };
        let finished = prepared.map_or(Ok(()), PreparedOperation::finish);
        finished.map_err(|why| ranks.failure(format!("{key}: {why}")))?;
        Ok(measured)
    }

    /// Prepares an operation, and verifies its results if that is wanted. Returns `None` if that fails on another rank, which reports it.
    fn prepare(
        &self,
        OperationToMeasure {
            operation,
            settings,
        }: &OperationToMeasure<'_>,
        key: &GroupKey,
        part: &MpiGroup,
    ) -> Result<Option<PreparedOperation>, Failure> {
        let buffers = self.buffers.as_ref().map(|loaded| &loaded.part);
        let verify = self.options.verify;
        match operation {
            BenchOperation::Mpi(kind) => {
                let failed = |why| self.ranks.failure(format!("{key}: {why}"));
                let mut prepared =
                    MpiOperation::prepare_in(*kind, part, key.bytes, settings, buffers)
                        .map_err(failed)?;
                if verify && let Err(why) = prepared.verify() {
                    // Otherwise all ranks have failed.
                    if !matches!(why, OperationError::Comm(_)) {
                        prepared.finish().map_err(failed)?;
                    }
                    return Err(failed(why));
                }
                Ok(Some(PreparedOperation::Mpi(Box::new(prepared))))
            }
            BenchOperation::User(loaded) => {
                let plug_in = &loaded.part;
                let mut prepared =
                    PlugInOperation::prepare(plug_in, part, key.bytes, settings, buffers);
                if let (Ok(operation), true) = (&mut prepared, verify) {
                    let verified = operation.verify();
                    if let Some(why) = operation.failure() {
                        abort_all_ranks(self.ranks.failure(format!("{key}: {why}")));
                    }
                    // Dropped, and torn down, on all ranks.
                    prepared = verified.and(prepared);
                }
                match prepared {
                    Ok(prepared) => Ok(Some(PreparedOperation::User(Box::new(prepared)))),
                    Err(PlugInError::Elsewhere { .. }) => Ok(None),
                    Err(why @ PlugInError::OthersWait(_)) => {
                        abort_all_ranks(self.ranks.failure(format!("{key}: {why}")))
                    }
                    Err(why) => Err(self.ranks.failure(why)),
                }
            }
        }
    }

    /// Returns the operations of MPI.
    fn kinds(&self) -> Vec<OperationKind> {
        let kinds = self.operations.iter().filter_map(BenchOperation::kind);
        kinds.collect()
    }

    /// Returns the libraries of operations and of buffers.
    fn libraries(&self) -> Vec<&LibraryFile> {
        LibraryFile::distinct(self.operations, self.buffers.as_ref())
    }

    /// Returns the factors on which the results depend, as rank 0 knows them.
    fn factors(&self) -> Result<Factors, Failure> {
        let Self {
            options,
            ranks,
            usual,
            ..
        } = self;
        let mut factors = factors::for_experiment(ranks, self.clocks.name);
        if options.comm != RankSelection::All {
            factors = factors.with("comm", &options.comm);
        }
        let factors = options.method.factors(factors, usual);
        let factors = options.session.sync.factors(factors, usual);
        let is_suite = options.method.suite().is_some();
        let factors = options
            .settings
            .factors(is_suite, &self.kinds(), factors)?
            .with("verify", &options.verify);
        let factors = options.overlap.factors(&self.kinds(), factors);
        let factors = LibraryFile::add_digests(&self.libraries(), factors);
        Ok(match &options.buffers {
            Some(name) => factors.with("buffers", name),
            None => factors,
        })
    }
}

/// Operation that is ready to be measured.
enum PreparedOperation {
    Mpi(Box<MpiOperation>),
    User(Box<PlugInOperation>),
}

impl PreparedOperation {
    fn measure(
        &mut self,
        method: &Method,
        context: &MeasureContext<'_, MpiComm, MpiGroup, JobClock<'_>>,
        overlap: &OverlapOptions,
        times: &mut RankTimes,
    ) -> Result<Option<Measurement>, MeasureError> {
        match self {
            Self::Mpi(operation) if operation.kind().is_overlapped() => {
                overlap.measure(operation, method, context, times)
            }
            Self::Mpi(operation) => times.measure(method, context, &mut **operation),
            Self::User(operation) => times.measure(method, context, &mut **operation),
        }
    }

    /// Counts the pages of all ranks' messages that are not on the NUMA node of their rank; `None` if there are none, or on ranks other than
    /// the first. All ranks of the group call this.
    fn remote_pages(&self, comm: &MpiComm) -> Result<Option<String>, Failure> {
        let own = match self {
            Self::Mpi(operation) => {
                let placed = operation
                    .message_memory()
                    .filter_map(PagePlacement::of_memory);
                placed.fold(PagePlacement::default(), PagePlacement::and)
            }
            Self::User(_) => PagePlacement::default(),
        };
        let add = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
        let all = collective::all_reduce(comm, [own.remote, own.pages], add);
        let [remote, pages] = block_on_ready(all).map_err(Failure::run)?;
        Ok((remote > 0 && comm.rank() == 0).then(|| format!("{remote} of {pages}")))
    }

    /// Frees it after calls that succeeded. All ranks that measured it call this.
    fn finish(self) -> Result<(), OperationError> {
        match self {
            Self::Mpi(operation) => operation.finish(),
            Self::User(_) => Ok(()),
        }
    }

    /// Returns the reason that an operation of a user gave for its failure.
    fn failure(&self) -> Option<&PlugInError> {
        match self {
            Self::Mpi(_) => None,
            Self::User(operation) => operation.failure(),
        }
    }
}
