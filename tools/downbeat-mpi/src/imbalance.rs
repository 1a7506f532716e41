//! `downbeat-mpi imbalance`: the time between the first and the last rank that leave a barrier, and its effect on
//! measurements behind the barrier.

mod job;
mod page;
mod studied;
mod table;
mod timing;

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_common::bench::{
    BenchGroup, BenchPlan, BenchResults, GroupOutcome, RankTimes, check_ranks, measure_all,
};
use downbeat_common::cli::positive;
use downbeat_common::page::PageOptions;
use downbeat_common::records::Factors;
use downbeat_common::sizes::Sizes;
use downbeat_common::{Failure, agree_blocking};
use downbeat_jobs::factors;
use downbeat_measure::imbalance::{BarrierOperation, Imbalance};
use downbeat_measure::mpi::{
    BarrierAlgorithms, MpiGroup, MpiOperation, OperationKind, OperationSettings,
};
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{RoundTime, Scheme};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{Barrier, ClockBasis, MeasureContext, MeasureError, Measurement, Method};
use downbeat_records::{GroupKey, ObservationState};
use downbeat_sync::{Comm, MpiComm, block_on_ready};

use crate::job::{JobClock, JobRanks, MpiJob, RankClocks};
use crate::session::{SessionOptions, agree_on_measured};
use job::{ImbalanceJob, StudiedSubject};
use studied::{StudiedBarrier, WantedAlgorithms};
use table::ImbalanceResults;
use timing::{REPS, TimingMethod};

#[derive(Args, Debug)]
#[command(
    after_help = "All ranks begin a barrier at one instant of the global clock; its imbalance is the time from the first rank that \
                  leaves it to the last.\n\n\
                  Open MPI and MPICH let --algorithms select the algorithm of their barrier; it has no effect where a \
                  component for the network (as hcoll) provides the barrier. Algorithms of other libraries are set with \
                  their own variables, which are recorded.\n\n\
                  Examples:\n  mpirun -np 4 downbeat-mpi imbalance --latency\n  \
                  mpirun -np 4 downbeat-mpi imbalance --algorithms all --latency -o barriers.html\n  \
                  mpirun -np 4 downbeat-mpi imbalance --barrier library --latency \\\n    \
                  --methods osu,round-time --sizes 8..4Ki*2 -o methods.html\n  \
                  I_MPI_ADJUST_BARRIER=2 mpirun -np 4 \\\n    \
                  downbeat-mpi imbalance --barrier library --out results/two"
)]
pub(crate) struct ImbalanceOptions {
    /// Barriers, separated by commas [default: library, double, dissemination, tree, linear, recursive-doubling, double-ring, harmonize]
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    barrier: Vec<Barrier>,
    /// Also these algorithms of the library's barrier, separated by commas, or all that it has
    #[arg(long, value_name = "NAMES", value_parser = WantedAlgorithms::parse, allow_hyphen_values = true)]
    algorithms: Option<WantedAlgorithms>,
    /// Number of rounds for each barrier; with --latency also the number of calls, which replaces that of a suite
    /// only if it is given [default: 500]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000), allow_hyphen_values = true)]
    reps: Option<u32>,
    /// Upper limit of the duration of each measurement; a series of calls is not cut
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    time_slice: Option<Duration>,
    /// Also measure an operation behind each barrier
    #[arg(long)]
    latency: bool,
    /// Methods with which it is measured, separated by commas: ms1, ms2, ms3, ms4, round-time, round-grid, or those of suites: osu, imb, ...
    #[arg(
        long,
        value_name = "METHODS",
        value_delimiter = ',',
        default_value = "osu,imb,round-time",
        requires = "latency",
        allow_hyphen_values = true
    )]
    methods: Vec<TimingMethod>,
    /// Operation, named as for the command bench
    #[arg(
        long,
        value_name = "NAME",
        default_value = "allreduce",
        requires = "latency",
        allow_hyphen_values = true
    )]
    operation: OperationKind,
    /// Sizes of its messages in bytes, separated by commas, also ranges: 8..4Ki*2
    #[arg(
        long,
        alias = "size",
        value_name = "SIZES",
        default_value = "8",
        requires = "latency",
        allow_hyphen_values = true
    )]
    sizes: Sizes,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    session: SessionOptions,
}

const WARM_UP: u32 = 16;

pub(crate) fn run(options: &ImbalanceOptions, job: &MpiJob<'_>) -> Result<(), Failure> {
    if job.comm.size() < 2 {
        return Err(Failure::Input(MeasureError::OneRank.to_string()));
    }
    let ranks = options.session.find_ranks(job)?;
    let known = match options.barrier.as_slice() {
        [] => &Barrier::ALL,
        given => given,
    };
    let mut barriers: Vec<StudiedBarrier> =
        known.iter().copied().map(StudiedBarrier::Known).collect();
    let mut algorithms = None;
    if let Some(wanted) = &options.algorithms {
        let found = WantedAlgorithms::find(&ranks)?;
        barriers.extend(wanted.select(&found)?);
        algorithms = Some(found);
    }
    let jobs = options.jobs(&barriers, job.comm.size())?;
    ranks.begin_outputs(options.session.inputs(), |outputs| {
        options.page.add_to(outputs)
    })?;
    let clocks = options.session.find_clocks(&ranks)?;
    let group = MpiGroup::all(job.comm).map_err(Failure::run)?;
    let session = ImbalanceSession {
        options,
        ranks: &ranks,
        group,
        clocks,
        jobs,
        algorithms,
    };
    session.measure_all()
}

impl ImbalanceOptions {
    fn jobs(&self, barriers: &[StudiedBarrier], ranks: u32) -> Result<Vec<ImbalanceJob>, Failure> {
        let mut jobs: Vec<ImbalanceJob> = Vec::new();
        let mut add = |operation: String, bytes, barrier: &StudiedBarrier, timing| {
            let key = GroupKey {
                operation,
                bytes,
                ranks,
            };
            if jobs.iter().all(|job| job.key != key) {
                jobs.push(BenchGroup {
                    key,
                    method: self.method(barrier, timing, bytes),
                    subject: StudiedSubject {
                        barrier: barrier.clone(),
                        timing,
                    },
                });
            }
        };
        let operation = self.operation;
        let sizes = match operation.has_message() {
            true => self.sizes.as_slice(),
            false => &[0],
        };
        for barrier in barriers {
            add(format!("imbalance/{barrier}"), 0, barrier, None);
            for timing in self.methods.iter().filter(|_| self.latency) {
                for size in sizes {
                    let settings = settings(operation, *timing);
                    let checked = MpiOperation::check(operation, ranks, *size, &settings);
                    checked.map_err(|why| Failure::option("--operation and --sizes", why))?;
                    let name = format!("{operation}/{timing}/{barrier}");
                    add(name, *size, barrier, Some(*timing));
                }
            }
        }
        if self.latency {
            check_ranks(&operation, operation.min_ranks()..=u32::MAX, ranks)?;
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

    /// Returns the method that measures imbalance.
    fn rounds(&self) -> Method {
        Method {
            warm_up: WARM_UP,
            scheme: Scheme::RoundTime(RoundTime::default()),
            stopping: self.stopping(),
            processing: Processing::Median,
            root: 0,
        }
    }

    fn method(&self, barrier: &StudiedBarrier, timing: Option<TimingMethod>, bytes: u64) -> Method {
        let rounds = self.rounds();
        let Some(timing) = timing else { return rounds };
        let (operation, barrier) = (self.operation.name(), barrier.called());
        let (reps, slice) = (self.reps, self.time_slice);
        timing.method(&rounds, (operation, bytes), barrier, reps, slice)
    }
}

/// Returns the settings that the method uses for the operation.
fn settings(operation: OperationKind, timing: TimingMethod) -> OperationSettings {
    let suite = timing.suite();
    suite.map_or_else(OperationSettings::default, |suite| {
        OperationSettings::of_suite(suite, operation)
    })
}

/// What is measured on rank 0, and the imbalance if it is a barrier.
type MeasuredJob = (Option<Measurement>, Option<Imbalance>);

/// Adds the outcome of a job to the results. The imbalance of a barrier replaces the
/// measured observations and figures, because it is what the record holds.
fn add_outcome(
    summary: &mut ImbalanceResults,
    job: &ImbalanceJob,
    outcome: &mut GroupOutcome,
    imbalance: Option<&Imbalance>,
) {
    match outcome {
        GroupOutcome::Measured(measured) => {
            let counts = [ObservationState::Valid, ObservationState::Late]
                .map(|state| measured.observations.count(state));
            if let Some(imbalance) = imbalance {
                measured.figures = imbalance.figures(measured.observations.run_times());
                measured.observations = imbalance.leaving().clone();
            }
            summary.add(job, counts, &measured.figures, imbalance);
        }
        // With more ranks than cores, all rounds may be late: that is a result, too.
        GroupOutcome::NothingValid([late, ..]) => summary.add(job, [0, *late], &[], None),
        GroupOutcome::Failed(_) => {}
    }
}

struct ImbalanceSession<'a> {
    options: &'a ImbalanceOptions,
    ranks: &'a JobRanks<'a>,
    group: MpiGroup,
    clocks: RankClocks<'a>,
    jobs: Vec<ImbalanceJob>,
    /// Those of the library, if some are studied.
    algorithms: Option<BarrierAlgorithms>,
}

impl ImbalanceSession<'_> {
    fn measure_all(&self) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let RankClocks {
            local,
            counter,
            name,
        } = &self.clocks;
        let rounds = options.rounds();
        let plan = BenchPlan {
            groups: self.jobs.clone(),
            seed: options.session.seed,
            factors: self.factors(&rounds)?,
            facts: factors::add_place(
                ranks,
                factors::add_counter(counter.as_ref(), Factors::default()),
            ),
            headline: format!("{}, clock {name}", ranks.description()),
        };
        let me = ranks.local_clock(local);
        let global = options.session.sync.clock(self.group.comm(), me, &rounds);
        let mut summary = ImbalanceResults::default();
        let (node, output) = (ranks.node_comm(), &options.session.output);
        let results = measure_all(ranks.all, node, output, plan, |job, times| {
            // Methods without a global clock measure with local clocks, as they do elsewhere.
            let needed = global.as_ref().filter(|_| job.method.needs_global_time());
            let time = ClockBasis::new(needed, local.model);
            let (barrier, mut imbalance) = (&job.subject.barrier, None);
            let measured =
                barrier.with_group(ranks, &self.group, self.algorithms.as_ref(), |group| {
                    let measured = self.measure(job, group, &local.clock, time, times)?;
                    let measured = measured.map(|(measured, found)| {
                        imbalance = found;
                        measured
                    });
                    agree_on_measured(ranks, &job.key, measured)
                })?;
            let mut outcome = measured.unwrap_or_else(|why| {
                // Some algorithms are for certain numbers of ranks.
                ranks.is_first().then_some(GroupOutcome::Failed(why))
            });
            if let Some(outcome) = &mut outcome {
                add_outcome(&mut summary, job, outcome, imbalance.as_ref());
            }
            Ok(outcome)
        })?;
        ranks.on_first(|| self.show(&mut summary, &results))
    }

    /// Measures one group; returns also the imbalance of a barrier. The ranks have not agreed on the inner result yet.
    fn measure(
        &self,
        job: &ImbalanceJob,
        group: &MpiGroup,
        clock: &JobClock<'_>,
        time: ClockBasis<'_, MpiComm, JobClock<'_>>,
        times: &mut RankTimes,
    ) -> Result<Result<MeasuredJob, MeasureError>, Failure> {
        let Self { options, ranks, .. } = self;
        let context = MeasureContext {
            comm: group.comm(),
            coordinator: group,
            clock,
            clock_basis: time,
        };
        let StudiedSubject { barrier, timing } = &job.subject;
        let Some(timing) = *timing else {
            let mut barrier = BarrierOperation::new(barrier.called(), &context);
            let found = Imbalance::measure(&job.method, &context, &mut barrier);
            return Ok(block_on_ready(found).map(|(found, own)| {
                times.keep(group.comm().rank(), own);
                found.unzip()
            }));
        };
        let settings = settings(options.operation, timing);
        let prepared = MpiOperation::prepare(options.operation, group, job.key.bytes, &settings);
        let prepared = prepared.map_err(|why| ranks.failure(format!("{}: {why}", job.key)));
        let mut operation = agree_blocking(ranks.all, prepared)?;
        let measured = times.measure(&job.method, &context, &mut operation);
        Ok(measured.map(|measured| (measured, None)))
    }

    fn show(&self, summary: &mut ImbalanceResults, results: &BenchResults) -> Result<(), Failure> {
        summary.sort_by_jobs(&self.jobs);
        let options = self.options;
        options.page.write_or(
            &format!("Barriers: {}", results.headline()),
            || summary.page(results),
            || {
                let output = &options.session.output;
                output.show_as(results, &summary.report(results), summary.text(results))
            },
        )
    }

    /// Returns the factors on which the results depend, as rank 0 knows them.
    fn factors(&self, rounds: &Method) -> Result<Factors, Failure> {
        let Self { options, ranks, .. } = self;
        let factors = factors::for_experiment(ranks, self.clocks.name);
        let factors = options.session.sync.factors(factors, rounds);
        let factors = factors
            .with("stop", &rounds.stopping)
            .with("warm-up", &rounds.warm_up);
        Ok(match options.reps {
            Some(reps) if options.latency => factors.with("calls of suites", &reps),
            _ => factors,
        })
    }
}
