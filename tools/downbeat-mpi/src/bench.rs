//! `downbeat-mpi bench`: run-times of operations of the MPI library.

use std::fmt::Display;

use clap::Args;
use downbeat_clock_core::Clock;
use downbeat_common::bench::{
    BenchPlan, MethodOptions, NearnessOptions, check_ranks, headline, measure_all, rank_counts,
};
use downbeat_common::output::count;
use downbeat_common::records::Factors;
use downbeat_common::sizes::Sizes;
use downbeat_common::{Failure, agree_blocking};
use downbeat_measure::{
    ClockBasis, GlobalClock, MeasureContext, Measurement, Method, MpiGroup, MpiOperation,
    OperationKind, OperationSettings, Root,
};
use downbeat_records::{CLOCK_STEP, GroupKey};
use downbeat_sync::{Comm, LocalClock, MpiComm};
use mpi::environment::Universe;

use crate::clock::{ClockUser, Timebase};
use crate::factors;
use crate::ranks::JobRanks;
use crate::session::{SessionOptions, agree_on_measured};
use crate::settings::{self, SettingsOptions};
use crate::truth::Traceable;
use crate::tsc::CalibratedTsc;

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  mpirun -np 4 downbeat-mpi bench --operation allreduce,bcast \\\n    \
                  --sizes 8,1Ki,2^16..2^20*4\n  \
                  mpirun -np 4 downbeat-mpi bench --as osu --operation blocking \\\n    \
                  --out results\n  \
                  mpirun -np 8 downbeat-mpi bench --operation alltoall --ranks 2,4,8 \\\n    \
                  --verify --time-slice 1s"
)]
pub(crate) struct MpiBenchOptions {
    /// Operations to measure, separated by commas: MPI functions without MPI_ in lower case (allreduce, ibcast, ...),
    /// ping-pong, sendrecv, empty; or all, blocking, nonblocking
    #[arg(long, value_name = "NAMES", default_value = "allreduce", value_parser = operation_kinds)]
    operation: MpiOperationKinds,
    /// Sizes of messages in bytes, separated by commas; also as 2^10, 1Ki, and 2^10..2^20*2 for all powers of two in a range
    #[arg(
        long,
        value_name = "SIZES",
        default_value = "8",
        allow_hyphen_values = true
    )]
    sizes: Sizes,
    /// Numbers of ranks that take part, separated by commas [default: all]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    ranks: Vec<u32>,
    #[command(flatten)]
    method: MethodOptions,
    #[command(flatten)]
    near: NearnessOptions,
    #[command(flatten)]
    settings: SettingsOptions,
    /// Verify the results of each operation before it is measured
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    session: SessionOptions,
}

/// Distinct operations.
#[derive(Clone, Debug)]
struct MpiOperationKinds(Vec<OperationKind>);

fn operation_kinds(text: &str) -> Result<MpiOperationKinds, String> {
    OperationKind::list(text)
        .map(MpiOperationKinds)
        .map_err(|why| why.to_string())
}

pub(crate) fn run(
    options: &MpiBenchOptions,
    universe: &Universe,
    comm: &MpiComm,
) -> Result<(), Failure> {
    let ranks = JobRanks::find(universe, comm, &options.session.place)?;
    let sizes = options.rank_counts(comm.size())?;
    let groups = options.groups(&sizes)?;
    let settings = options.settings.settings(options.method.rotates_root())?;
    for key in &groups {
        check_root(key.ranks, settings.root)?;
        options.method(key.bytes, &settings)?;
        let checked = MpiOperation::check(kind_of(key)?, key.ranks, key.bytes, &settings);
        checked.map_err(|why| Failure::Input(format!("{key}: {why}")))?;
    }
    let calibration = &options.session.calibration;
    let tsc = options.session.clock.calibrate(&ranks, calibration)?;
    let parts = sizes
        .into_iter()
        .map(|size| Ok((size, MpiGroup::first(comm, size).map_err(Failure::run)?)));
    let parts = parts.collect::<Result<_, Failure>>()?;
    options.session.clock.give(
        &ranks,
        tsc.as_ref(),
        &MpiBenchSession {
            options,
            ranks: &ranks,
            settings,
            tsc,
            groups,
            ranks_by_size: parts,
        },
    )
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

/// Returns the operation of a group by its name.
fn kind_of(key: &GroupKey) -> Result<OperationKind, Failure> {
    key.operation.parse().map_err(Failure::run)
}

impl MpiBenchOptions {
    /// Returns the numbers of ranks among which to measure, in ascending order.
    fn rank_counts(&self, all: u32) -> Result<Vec<u32>, Failure> {
        if let Some(many) = self.ranks.iter().find(|ranks| **ranks > all) {
            let job = count(all as usize, "rank");
            return Err(Failure::option(
                "--ranks",
                format!("this job has {job}, and not {many}"),
            ));
        }
        Ok(rank_counts(&self.ranks, all))
    }

    /// Returns all groups to measure.
    fn groups(&self, rank_counts: &[u32]) -> Result<Vec<GroupKey>, Failure> {
        let mut groups = Vec::new();
        for kind in &self.operation.0 {
            let sizes = if kind.has_message() {
                self.sizes.as_slice()
            } else {
                &[0]
            };
            for ranks in rank_counts {
                check_ranks(kind, kind.min_ranks(), *ranks)?;
                let key = |bytes: &u64| GroupKey {
                    operation: kind.to_string(),
                    bytes: *bytes,
                    ranks: *ranks,
                };
                groups.extend(sizes.iter().map(key));
            }
        }
        Ok(groups)
    }

    fn method(&self, bytes: u64, settings: &OperationSettings) -> Result<Method, Failure> {
        // With a rotating root, the processing uses rank 0.
        let root = if let Root::Rank(rank) = settings.root {
            rank
        } else {
            0
        };
        Ok(Method {
            root,
            ..self.method.method(bytes)?
        })
    }
}

struct MpiBenchSession<'a> {
    options: &'a MpiBenchOptions,
    ranks: &'a JobRanks<'a>,
    settings: OperationSettings,
    tsc: Option<CalibratedTsc>,
    groups: Vec<GroupKey>,
    /// A communicator for every number of ranks, `None` if this rank does not take part.
    ranks_by_size: Vec<(u32, Option<MpiGroup>)>,
}

/// Ranks that measure some groups.
struct BenchPart<'a, K> {
    size: u32,
    group: &'a MpiGroup,
    global: Option<GlobalClock<'a, MpiComm, K>>,
}

impl ClockUser for MpiBenchSession<'_> {
    fn with<K: Traceable + Copy>(&self, base: &Timebase<K>) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let method = options.method.method(0)?;
        let plan = BenchPlan {
            groups: self.groups.clone(),
            seed: options.session.seed,
            factors: self.factors(&method)?,
            facts: factors::add_tsc(self.tsc.as_ref(), Factors::default())
                .with(CLOCK_STEP, &base.step_nanos()),
            headline: headline(&ranks.description(), &method),
        };
        let me = base.local_clock(ranks);
        let mut parts = Vec::new();
        for (size, group) in &self.ranks_by_size {
            if let Some(group) = group {
                let global = options.session.sync.clock(group.comm(), me, &method);
                parts.push(BenchPart {
                    size: *size,
                    group,
                    global,
                });
            }
        }
        let results = measure_all(ranks.all, &options.session.output, plan, |key| {
            let part = parts.iter().find(|part| part.size == key.ranks);
            options
                .near
                .while_near(ranks.all, || self.measure(key, &me, part))
        })?;
        ranks.on_first(|| options.session.output.show(&results))
    }
}

impl MpiBenchSession<'_> {
    /// Measures one group. Ranks that do not take part only learn if it failed.
    fn measure<K: Clock>(
        &self,
        key: &GroupKey,
        me: &LocalClock<'_, K>,
        part: Option<&BenchPart<'_, K>>,
    ) -> Result<Option<Measurement>, Failure> {
        let Self {
            options,
            ranks,
            settings,
            ..
        } = self;
        let method = options.method(key.bytes, settings)?;
        let operation = agree_blocking(
            ranks.all,
            part.map(|part| self.prepare(key, part.group)).transpose(),
        )?;
        let mut measured = Ok(None);
        if let (Some(part), Some(mut operation)) = (part, operation) {
            let context = MeasureContext {
                comm: part.group.comm(),
                coordinator: part.group,
                clock: me.clock(),
                clock_basis: ClockBasis::new(part.global.as_ref(), me.base()),
            };
            measured = method.measure_blocking(&context, &mut operation);
        }
        agree_on_measured(ranks, key, measured)
    }

    /// Prepares an operation, and verifies its results if that is wanted.
    fn prepare(&self, key: &GroupKey, part: &MpiGroup) -> Result<MpiOperation, Failure> {
        let failed = |why: &dyn Display| self.ranks.failure(format!("{key}: {why}"));
        let kind = kind_of(key)?;
        let mut operation = MpiOperation::prepare(kind, part, key.bytes, &self.settings)
            .map_err(|why| failed(&why))?;
        if self.options.verify {
            operation.verify().map_err(|why| failed(&why))?;
        }
        Ok(operation)
    }

    /// Returns the factors on which the results depend, as rank 0 knows them.
    fn factors(&self, method: &Method) -> Result<Factors, Failure> {
        let Self { options, ranks, .. } = self;
        let factors = factors::add_machine(ranks, factors::for_job(ranks, options.session.clock));
        let factors = options.session.sync.factors(
            options.near.factors(options.method.factors(factors)?),
            method,
        );
        Ok(settings::add_factors(&self.settings, factors).with("verify", &options.verify))
    }
}
