//! `downbeat-mpi bench`: how long operations of the MPI library take.

use std::fmt::Display;

use clap::Args;
use downbeat_clock_core::Clock;
use downbeat_common::bench::{
    BenchPlan, GlobalTime, MethodOptions, NearnessOptions, headline, measure_all,
};
use downbeat_common::output::count;
use downbeat_common::records::Factors;
use downbeat_common::sizes::Sizes;
use downbeat_common::{Failure, agree_blocking};
use downbeat_measure::{
    ClockBasis, MeasureContext, Measurement, Method, MpiGroup, MpiOperation, OperationKind,
    OperationSettings, Root,
};
use downbeat_records::GroupKey;
use downbeat_sync::{Comm, LocalClock, MpiComm};

use crate::clock::{ClockUser, Kind, Timebase, Tsc};
use crate::ranks::Ranks;
use crate::session::SessionOptions;
use crate::settings::{self, SettingsOptions};
use crate::truth::Traceable;
use crate::{factors, session};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  mpirun -np 4 downbeat-mpi bench --operation allreduce,bcast --sizes 8,1Ki,2^16..2^20*4\n  \
                  mpirun -np 4 downbeat-mpi bench --as osu --operation blocking --out results\n  \
                  mpirun -np 8 downbeat-mpi bench --operation alltoall --ranks 2,4,8 --verify --time-slice 1s"
)]
pub(crate) struct Options {
    /// What to measure, with commas: names of MPI without MPI_ in small letters (allreduce, ibcast, ...), ping-pong, sendrecv,
    /// empty; or all, blocking, nonblocking
    #[arg(long, value_name = "NAMES", default_value = "allreduce", value_parser = kinds)]
    operation: Kinds,
    /// Sizes of messages in bytes: with commas, 2^10, 1Ki, and 2^10..2^20*2 for every second power between
    #[arg(
        long,
        value_name = "SIZES",
        default_value = "8",
        allow_hyphen_values = true
    )]
    sizes: Sizes,
    /// Among how many ranks, with commas [default: all]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    ranks: Vec<u32>,
    #[command(flatten)]
    method: MethodOptions,
    #[command(flatten)]
    near: NearnessOptions,
    #[command(flatten)]
    settings: SettingsOptions,
    /// Check that results are right, before each measurement
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    session: SessionOptions,
}

/// Operations, each once.
#[derive(Clone, Debug)]
struct Kinds(Vec<OperationKind>);

fn kinds(text: &str) -> Result<Kinds, String> {
    OperationKind::list(text)
        .map(Kinds)
        .map_err(|why| why.to_string())
}

pub(crate) fn run(options: &Options, comm: &MpiComm) -> Result<(), Failure> {
    let ranks = Ranks::find(comm, &options.session.place)?;
    let sizes = options.rank_counts(comm.size())?;
    let groups = options.groups(&sizes)?;
    let settings = options.settings.settings(options.method.rotates_root())?;
    for key in &groups {
        has_root(key.ranks, settings.root)?;
        options.method(key.bytes, &settings)?;
        let checked = MpiOperation::check(kind_of(key)?, key.ranks, key.bytes, &settings);
        checked.map_err(|why| Failure::Input(format!("{key}: {why}")))?;
    }
    let tsc = match options.session.clock {
        Kind::Tsc => Some(Tsc::calibrated(&ranks, &options.session.calibration)?),
        _ => None,
    };
    let parts = sizes
        .into_iter()
        .map(|size| Ok((size, MpiGroup::first(comm, size).map_err(Failure::run)?)));
    let parts = parts.collect::<Result<_, Failure>>()?;
    options.session.clock.give(
        &ranks,
        tsc.as_ref(),
        &Session {
            options,
            ranks: &ranks,
            settings,
            tsc,
            groups,
            parts,
        },
    )
}

/// Also operations that have no root have one for what is made of the observations.
fn has_root(ranks: u32, root: Root) -> Result<(), Failure> {
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

/// By its name, which came from it.
fn kind_of(key: &GroupKey) -> Result<OperationKind, Failure> {
    key.operation.parse().map_err(Failure::run)
}

impl Options {
    /// Among how many ranks to measure.
    fn rank_counts(&self, all: u32) -> Result<Vec<u32>, Failure> {
        if let Some(many) = self.ranks.iter().find(|ranks| **ranks > all) {
            let job = count(all as usize, "rank");
            return Err(Failure::option(
                "--ranks",
                format!("this job has {job}, and not {many}"),
            ));
        }
        let mut counts = if self.ranks.is_empty() {
            vec![all]
        } else {
            self.ranks.clone()
        };
        counts.sort_unstable();
        counts.dedup();
        Ok(counts)
    }

    /// Everything that is to be measured.
    fn groups(&self, rank_counts: &[u32]) -> Result<Vec<GroupKey>, Failure> {
        let mut groups = Vec::new();
        for kind in &self.operation.0 {
            let sizes = if kind.has_message() {
                self.sizes.as_slice()
            } else {
                &[0]
            };
            for ranks in rank_counts {
                if *ranks < kind.min_ranks() {
                    let least = kind.min_ranks();
                    return Err(Failure::option(
                        "--operation",
                        format!("{kind} takes {least} ranks, and not {ranks}"),
                    ));
                }
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
        // Where every call has another root, there is none for the processing.
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

struct Session<'a> {
    options: &'a Options,
    ranks: &'a Ranks<'a>,
    settings: OperationSettings,
    tsc: Option<Tsc>,
    groups: Vec<GroupKey>,
    /// A communicator for every number of ranks, where this rank is one of them.
    parts: Vec<(u32, Option<MpiGroup>)>,
}

impl ClockUser for Session<'_> {
    fn with<K: Traceable + Copy>(&self, base: &Timebase<K>) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let method = options.method.method(0)?;
        let plan = BenchPlan {
            groups: self.groups.clone(),
            seed: options.session.seed,
            factors: self.factors(&method)?,
            facts: factors::of_tsc(self.tsc.as_ref(), Factors::default()),
            headline: self.headline(&method),
        };
        let me = LocalClock::new(&base.clock, base.local)
            .source(base.source)
            .placement(ranks.place);
        let mut global = GlobalTime::new(ranks.all, me, &options.session.sync, &method)?;
        let results = measure_all(ranks.all, &options.session.output, plan, |key| {
            options.near.while_near(ranks.all, || {
                let time = global.time()?;
                self.measure(key, &base.clock, time)
            })
        })?;
        let shown = if ranks.all.rank() == 0 {
            options.session.output.show(&results)
        } else {
            Ok(())
        };
        agree_blocking(ranks.all, shown)
    }
}

impl Session<'_> {
    /// One group. Ranks that do not take part only hear how it went.
    fn measure(
        &self,
        key: &GroupKey,
        clock: &impl Clock,
        time: ClockBasis,
    ) -> Result<Option<Measurement>, Failure> {
        let Self {
            options,
            ranks,
            settings,
            parts,
            ..
        } = self;
        let method = options.method(key.bytes, settings)?;
        let part = parts
            .iter()
            .find(|(size, _)| *size == key.ranks)
            .and_then(|(_, part)| part.as_ref());
        let operation = agree_blocking(
            ranks.all,
            part.map(|part| self.prepare(key, part)).transpose(),
        )?;
        let mut measured = Ok(None);
        if let (Some(part), Some(mut operation)) = (part, operation) {
            let context = MeasureContext {
                comm: part.comm(),
                coordinator: part,
                clock,
                clock_basis: time,
            };
            measured = method.measure_blocking(&context, &mut operation);
        }
        session::agree_on_measured(ranks, key, measured)
    }

    /// An operation that does what it should, as far as that is asked for.
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

    /// Everything that the results depend on, as rank 0 knows it.
    fn factors(&self, method: &Method) -> Result<Factors, Failure> {
        let Self { options, ranks, .. } = self;
        let factors = factors::of_machine(ranks, factors::of_job(ranks, options.session.clock));
        let factors = options.session.sync.factors(
            options.near.factors(options.method.factors(factors)?),
            method,
        )?;
        Ok(settings::factors(&self.settings, factors).with("verify", &options.verify))
    }

    fn headline(&self, method: &Method) -> String {
        let Self { ranks, .. } = self;
        let (size, nodes) = (
            count(ranks.all.size() as usize, "rank"),
            count(ranks.nodes(), "node"),
        );
        headline(&format!("{size} on {nodes}"), method)
    }
}
