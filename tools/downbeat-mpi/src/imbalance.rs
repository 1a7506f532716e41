//! `downbeat-mpi imbalance`: how far apart ranks leave barriers, and what that does to measurements behind them.

mod table;
mod timing;

use clap::Args;
use downbeat_clock_core::{Clock, Duration};
use downbeat_common::bench::{BenchPlan, BenchResults, GlobalTime, measure_all};
use downbeat_common::cli::positive;
use downbeat_common::output::count;
use downbeat_common::records::Factors;
use downbeat_common::sizes::{Sizes, SizesError};
use downbeat_common::{Failure, agree_blocking};
use downbeat_measure::{
    Barrier, BarrierOperation, ClockBasis, Imbalance, MeasureContext, MeasureError, Measurement,
    Method, MpiGroup, MpiOperation, OperationKind, OperationSettings, Processing, Root, RoundTime,
    Scheme, Stopping,
};
use downbeat_records::GroupKey;
use downbeat_sync::{Comm, LocalClock, MpiComm, block_on_ready};

use crate::clock::{ClockUser, Kind, Timebase, Tsc};
use crate::ranks::Ranks;
use crate::session::SessionOptions;
use crate::truth::Traceable;
use crate::{factors, session};
use table::Found;
use timing::Timing;

#[derive(Args, Debug)]
#[command(
    after_help = "Imbalance is by the global clock: all ranks begin a barrier at one instant, and what is shown is the time \
                  from when the first of them leaves it to when the last does. The library's barriers are chosen from \
                  outside, and recorded.\n\n\
                  Examples:\n  mpirun -np 4 downbeat-mpi imbalance --latency\n  \
                  OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_barrier_algorithm=4 mpirun -np 4 \
                  downbeat-mpi imbalance --barrier library --latency --out results/bruck\n  \
                  MPIR_CVAR_BARRIER_INTRA_ALGORITHM=k_dissemination mpirun -np 4 downbeat-mpi imbalance --barrier library"
)]
pub(crate) struct Options {
    /// Which barriers, with commas
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "library,double,dissemination,tree",
        allow_hyphen_values = true
    )]
    barrier: Vec<Barrier>,
    /// So many rounds for each, valid or not; with --latency so many calls, of suites only if it is given [default: 500]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000), allow_hyphen_values = true)]
    reps: Option<u32>,
    /// But no more than there is time for; a series of calls is not cut
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    time_slice: Option<Duration>,
    /// Measure an operation behind each barrier, too
    #[arg(long)]
    latency: bool,
    /// How it is measured, with commas: ms1, ms2, ms3, ms4, round-time, or as suites do: osu, imb, ...
    #[arg(
        long,
        value_name = "METHODS",
        value_delimiter = ',',
        default_value = "osu,imb,round-time",
        requires = "latency",
        allow_hyphen_values = true
    )]
    methods: Vec<Timing>,
    /// Which operation, as for the command bench
    #[arg(
        long,
        value_name = "NAME",
        default_value = "allreduce",
        requires = "latency",
        allow_hyphen_values = true
    )]
    operation: OperationKind,
    /// The size of its messages in bytes
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = size, requires = "latency", allow_hyphen_values = true)]
    size: u64,
    #[command(flatten)]
    session: SessionOptions,
}

/// One size, written as one of a list.
fn size(text: &str) -> Result<u64, String> {
    let sizes: Sizes = text.parse().map_err(|why: SizesError| why.to_string())?;
    match sizes.as_slice() {
        [size] => Ok(*size),
        _ => Err("one size is wanted".to_owned()),
    }
}

const REPS: u32 = 500;
const WARM_UP: u32 = 16;

pub(crate) fn run(options: &Options, comm: &MpiComm) -> Result<(), Failure> {
    if comm.size() < 2 {
        return Err(Failure::Input(MeasureError::OneRank.to_string()));
    }
    let ranks = Ranks::find(comm, &options.session.place)?;
    let jobs = options.jobs(comm.size())?;
    let tsc = match options.session.clock {
        Kind::Tsc => Some(Tsc::calibrated(&ranks, &options.session.calibration)?),
        _ => None,
    };
    let group = MpiGroup::all(comm).map_err(Failure::run)?;
    options.session.clock.give(
        &ranks,
        tsc.as_ref(),
        &Session {
            options,
            ranks: &ranks,
            group,
            tsc,
            jobs,
        },
    )
}

/// One thing to be measured, and the name it has in records.
#[derive(Clone, Debug)]
struct Job {
    key: GroupKey,
    barrier: Barrier,
    /// How the operation behind the barrier is measured; nothing where it is the barrier's imbalance that is.
    timing: Option<Timing>,
}

impl Job {
    /// The name of the operation behind the barrier.
    fn operation(&self) -> String {
        self.key
            .operation
            .split('/')
            .next()
            .unwrap_or_default()
            .to_owned()
    }
}

impl Options {
    fn jobs(&self, ranks: u32) -> Result<Vec<Job>, Failure> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut add = |operation: String, bytes, barrier, timing| {
            let key = GroupKey {
                operation,
                bytes,
                ranks,
            };
            if jobs.iter().all(|job| job.key != key) {
                jobs.push(Job {
                    key,
                    barrier,
                    timing,
                });
            }
        };
        let Self {
            operation, size, ..
        } = self;
        let size = if operation.has_message() { *size } else { 0 };
        for barrier in &self.barrier {
            add(format!("imbalance/{barrier}"), 0, *barrier, None);
            for timing in self.methods.iter().filter(|_| self.latency) {
                let checked =
                    MpiOperation::check(*operation, ranks, size, &settings(*operation, *timing));
                checked.map_err(|why| Failure::option("--operation and --size", why))?;
                add(
                    format!("{operation}/{timing}/{barrier}"),
                    size,
                    *barrier,
                    Some(*timing),
                );
            }
        }
        if self.latency && ranks < operation.min_ranks() {
            let why = format!(
                "{operation} takes {} ranks, and not {ranks}",
                operation.min_ranks()
            );
            return Err(Failure::option("--operation", why));
        }
        Ok(jobs)
    }

    fn stopping(&self) -> Stopping {
        let most = self.reps.unwrap_or(REPS);
        self.time_slice
            .map_or(Stopping::Count { most }, |slice| Stopping::TimeSlice {
                slice,
                most,
            })
    }

    /// How imbalance is measured.
    fn rounds(&self) -> Method {
        Method {
            warm_up: WARM_UP,
            scheme: Scheme::RoundTime(RoundTime::default()),
            stopping: self.stopping(),
            processing: Processing::Median,
            root: 0,
        }
    }

    fn method(&self, job: &Job) -> Method {
        match job.timing {
            None => self.rounds(),
            Some(timing) => timing
                .method(&self.rounds(), job.key.bytes, self.reps, self.time_slice)
                .behind(job.barrier),
        }
    }
}

/// As the method would have them.
fn settings(operation: OperationKind, timing: Timing) -> OperationSettings {
    let usual = OperationSettings::default();
    let rotates = operation.has_root() && timing.rotates_root();
    OperationSettings {
        root: if rotates { Root::Rotating } else { usual.root },
        ..usual
    }
}

struct Session<'a> {
    options: &'a Options,
    ranks: &'a Ranks<'a>,
    group: MpiGroup,
    tsc: Option<Tsc>,
    jobs: Vec<Job>,
}

impl ClockUser for Session<'_> {
    fn with<K: Traceable + Copy>(&self, base: &Timebase<K>) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let rounds = options.rounds();
        let plan = BenchPlan {
            groups: self.jobs.iter().map(|job| job.key.clone()).collect(),
            seed: options.session.seed,
            factors: self.factors(&rounds)?,
            facts: factors::of_tsc(self.tsc.as_ref(), Factors::default()),
            headline: self.headline(),
        };
        let me = LocalClock::new(&base.clock, base.local)
            .source(base.source)
            .placement(ranks.place);
        let mut global = GlobalTime::new(ranks.all, me, &options.session.sync, &rounds)?;
        let mut found = Found::default();
        let results = measure_all(ranks.all, &options.session.output, plan, |key| {
            let job = self.jobs.iter().find(|job| job.key == *key);
            let job = job.ok_or_else(|| Failure::run(format!("{key}: nobody asked for this")))?;
            let method = options.method(job);
            // Methods that do with local clocks are to show what these see.
            let time = if method.needs_global_time() {
                global.time()?
            } else {
                ClockBasis::Local(base.local)
            };
            let mut measured = self.measure(job, &method, &base.clock, time)?;
            // Where cores are crowded, ranks may never be there in time: that is a result, too. But a record is not complete
            // without a group, and can be gone on with.
            if let Err(MeasureError::NothingValid { late, .. }) = measured
                && !options.session.output.keeps_record()
            {
                found.nothing(job, late);
                measured = Ok(None);
            }
            let measured = session::agree_on_measured(ranks, key, measured)?;
            agree_blocking(
                ranks.all,
                measured
                    .map(|measured| found.take(job, measured))
                    .transpose(),
            )
        })?;
        let shown = match ranks.all.rank() {
            0 => self.show(&mut found, &results),
            _ => Ok(()),
        };
        agree_blocking(ranks.all, shown)
    }
}

impl Session<'_> {
    /// What went wrong with the measurement itself is not agreed on yet.
    fn measure(
        &self,
        job: &Job,
        method: &Method,
        clock: &impl Clock,
        time: ClockBasis,
    ) -> Result<Result<Option<Measurement>, MeasureError>, Failure> {
        let Self {
            options,
            ranks,
            group,
            ..
        } = self;
        let context = MeasureContext {
            comm: group.comm(),
            coordinator: group,
            clock,
            clock_basis: time,
        };
        let Some(timing) = job.timing else {
            let mut barrier = BarrierOperation {
                barrier: job.barrier,
                comm: group.comm(),
                coordinator: group,
            };
            return Ok(block_on_ready(method.measure(&context, &mut barrier)));
        };
        let settings = settings(options.operation, timing);
        let prepared = MpiOperation::prepare(options.operation, group, job.key.bytes, &settings);
        let prepared = prepared.map_err(|why| ranks.failure(format!("{}: {why}", job.key)));
        let mut operation = agree_blocking(ranks.all, prepared)?;
        Ok(block_on_ready(method.measure(&context, &mut operation)))
    }

    fn show(&self, found: &mut Found, results: &BenchResults) -> Result<(), Failure> {
        if found.is_nothing() {
            let why =
                "in no round were all ranks there in time: are there more of them than cores?";
            return Err(Failure::run(why));
        }
        found.sort_as(&self.jobs);
        self.options
            .session
            .output
            .show_as(results, &found.report(results), &found.text(results))
    }

    /// Everything that the results depend on, as rank 0 knows it.
    fn factors(&self, rounds: &Method) -> Result<Factors, Failure> {
        let Self { options, ranks, .. } = self;
        let factors = factors::of_machine(ranks, factors::of_job(ranks, options.session.clock));
        let factors = options.session.sync.factors(factors, rounds)?;
        let factors = factors
            .with("stop", &rounds.stopping)
            .with("warm-up", &rounds.warm_up);
        Ok(match options.reps {
            Some(reps) if options.latency => factors.with("calls of suites", &reps),
            _ => factors,
        })
    }

    fn headline(&self) -> String {
        let Self { options, ranks, .. } = self;
        let (size, nodes) = (
            count(ranks.all.size() as usize, "rank"),
            count(ranks.nodes(), "node"),
        );
        format!("{size} on {nodes}, clock {}", options.session.clock)
    }
}

/// Replaces the observations of a barrier by how far apart the ranks left it.
fn leaving(measured: Measurement, imbalance: &Imbalance) -> Measurement {
    Measurement {
        observations: imbalance.leaving().clone(),
        figures: imbalance.figures(),
        ..measured
    }
}
