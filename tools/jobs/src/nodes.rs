//! `downbeat-mpi nodes`: health of the clocks of all nodes, and how far their CLOCK_REALTIME are apart.

mod report;

use std::thread;
use std::time::Instant;

use clap::Args;
use downbeat::LocalTime;
use downbeat_clock_core::Duration;
use downbeat_common::cli::positive;
use downbeat_common::health::{
    ClockHealth, Gauge, GaugeValues, NODE_GAUGES, NodeWatch, RequirementOptions, WatchOptions,
};
use downbeat_common::{
    CalibrationOptions, Failure, PrintOptions, agree_blocking, gather_texts, now,
};
use downbeat_sync::check::{AccuracyCheck, RankSample};
use downbeat_sync::{Comm, OffsetAlgorithm, block_on_ready, collective};
use downbeat_timers::skew::SkewSpec;
use downbeat_timers::{MachineClock, SystemClock, SystemClockId};

use crate::Job;
use crate::clock::{JobClock, system_time};
use crate::ranks::{JobRanks, PlaceOptions};
use report::{NodeReport, NodesDifference, NodesReport};

/// Options of `nodes`.
#[derive(Args, Debug)]
#[command(
    after_help = "One rank of each node works, the others wait; so one rank per node is enough. CLOCK_REALTIME is the time that NTP or \
                  PTP keeps. Offsets refer to the first node, and are certain to half the round trip of a message. They are measured \
                  through the network that MPI uses, not through that of the time servers, so they also show errors that all of \
                  them make alike.\n\n\
                  With --require, --max-ppm or --max-apart, the exit code is 1 where clocks are not good enough, and standard error \
                  names the node and the reason.\n\n\
                  Examples:\n  mpirun --map-by ppr:1:node downbeat-mpi nodes\n  \
                  srun --ntasks-per-node=1 downbeat-mpi nodes \\\n    \
                  --require tsc,synchronized --max-apart 50us\n  \
                  srun --ntasks-per-node=1 downbeat-mpi nodes \\\n    \
                  --watch 10s --log cluster.csv"
)]
pub struct NodesOptions {
    /// Offset algorithm and number of its exchanges: ALGORITHM/EXCHANGES
    #[arg(
        long,
        value_name = "LABEL",
        default_value = "skampi/100",
        allow_hyphen_values = true
    )]
    check_by: OffsetAlgorithm,
    /// Fail with exit code 1 unless CLOCK_REALTIME of any two nodes are certainly not farther apart
    #[arg(long, value_name = "TIME", value_parser = positive, allow_hyphen_values = true)]
    max_apart: Option<Duration>,
    #[arg(long, value_name = "SPEC", help = SkewSpec::HELP)]
    skew: Option<SkewSpec>,
    #[command(flatten)]
    place: PlaceOptions,
    #[command(flatten)]
    calibration: CalibrationOptions,
    #[command(flatten)]
    requirements: RequirementOptions,
    #[command(flatten)]
    watch: WatchOptions,
    #[command(flatten)]
    print: PrintOptions,
}

/// Duration of the calibration of the counters, unless requirements need a longer one.
const CALIBRATION: Duration = Duration::from_millis(100);

/// Number of reasons that fit into one line.
const MOST_REASONS: usize = 5;

/// Quantities that only the comparison of nodes gives, which follow those of each node.
const OFFSET_GAUGES: [Gauge; 2] = [
    Gauge {
        name: "realtime_offset_ns",
        help: "CLOCK_REALTIME of the node minus that of the first node.",
    },
    Gauge {
        name: "realtime_offset_half_width_ns",
        help: "Upper limit of the error of that offset.",
    },
];

/// Compares the clocks of all nodes, whose ranks all call this, and shows the results on rank 0.
///
/// # Errors
/// If a clock or a file cannot be used, or a rank is gone.
pub fn run<J: Job>(options: &NodesOptions, job: &J) -> Result<(), Failure> {
    let ranks = JobRanks::find(job, &options.place)?;
    let local = system_time(&ranks, SystemClockId::Realtime, options.skew.as_ref())?;
    // One rank of each node; the first of all is the first of them.
    let leads = ranks.node_comm().rank() == 0;
    let leaders = block_on_ready(ranks.all.split(leads.then_some(0), ranks.all.rank()));
    let session = NodesSession {
        options,
        ranks: &ranks,
        leaders: leaders.map_err(Failure::run)?,
    };
    session.observe(&local)
}

struct NodesSession<'a, J: Job> {
    options: &'a NodesOptions,
    ranks: &'a JobRanks<'a, J>,
    /// Ranks that measure, on these.
    leaders: Option<J::Comm>,
}

impl<J: Job> NodesSession<'_, J> {
    fn observe(&self, local: &LocalTime<JobClock<J>>) -> Result<(), Failure> {
        let gauges = [&NODE_GAUGES[..], &OFFSET_GAUGES].concat();
        let log = || match self.options.watch.watch {
            Some(_) if self.ranks.is_first() => self.options.watch.log.open(&gauges).map(Some),
            _ => Ok(None),
        };
        let mut log = agree_blocking(self.ranks.all, log())?;
        let mut node = agree_blocking(self.ranks.all, self.node())?;
        let Some(period) = self.options.watch.watch else {
            let nodes = self.measure(local, node.as_mut())?;
            return self.ranks.on_first(|| self.show(nodes));
        };
        let period = std::time::Duration::from_nanos(period.as_nanos().unsigned_abs());
        let (mut outcome, mut next) = (Ok(()), Instant::now());
        for _ in 0..self.options.watch.most_samples() {
            // All ranks sleep: one that waits for a message occupies its core.
            next = (next + period).max(Instant::now());
            thread::sleep(next.saturating_duration_since(Instant::now()));
            let nodes = self.measure(local, node.as_mut())?;
            let written = log.as_mut().map_or(Ok(()), |log| {
                let values: Vec<GaugeValues> = nodes.iter().map(NodeReport::values).collect();
                outcome = std::mem::replace(&mut outcome, Ok(())).and(self.verify(&nodes));
                log.write(&now(), &values)
            });
            agree_blocking(self.ranks.all, written)?;
        }
        agree_blocking(self.ranks.all, outcome)
    }

    /// Calibrates the counter of the node on one of its ranks.
    fn node(&self) -> Result<Option<NodeWatch>, Failure> {
        if self.leaders.is_none() {
            return Ok(None);
        }
        self.options.requirements.check()?;
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw)
            .map_err(|why| self.ranks.failure(why))?;
        let counter = MachineClock::counter();
        let during = self.options.requirements.calibration(CALIBRATION);
        let calibration = &self.options.calibration;
        let known = calibration.calibrate_with_frequency(&counter, &raw, during)?;
        let health = ClockHealth::gather(&counter, known.as_ref());
        Ok(Some(NodeWatch::new(counter.ok(), raw, health)))
    }

    /// Measures all nodes once; returns them on rank 0.
    fn measure(
        &self,
        local: &LocalTime<JobClock<J>>,
        node: Option<&mut NodeWatch>,
    ) -> Result<Vec<NodeReport>, Failure> {
        let measured = match (&self.leaders, node) {
            (Some(leaders), Some(node)) => self.measure_node(local, leaders, node),
            _ => Ok(Vec::new()),
        };
        let nodes = agree_blocking(self.ranks.all, measured)?;
        // No rank may begin the next period early, and disturb the measurement.
        block_on_ready(collective::barrier(self.ranks.all))?;
        Ok(nodes)
    }

    fn measure_node(
        &self,
        local: &LocalTime<JobClock<J>>,
        leaders: &J::Comm,
        node: &mut NodeWatch,
    ) -> Result<Vec<NodeReport>, Failure> {
        let watched = self.options.watch.watch.is_some();
        let sample = watched.then(|| node.measure()).transpose();
        let sample = agree_blocking(leaders, sample)?;
        let health = node.health().clone();
        let unmet = self.options.requirements.unmet(&health);
        let values =
            sample.map_or_else(Vec::new, |sample| sample.values(&health, unmet.is_empty()));
        let node = NodeReport {
            rank: self.ranks.all.rank(),
            health,
            realtime_offset: None,
            unmet,
            values,
        };
        let check = AccuracyCheck {
            offset: self.options.check_by,
            ranks: RankSample::ALL,
        };
        // The accuracy check expects global clocks; here it checks those that other means synchronize.
        let shown = local.model.renamed();
        block_on_ready(collective::barrier(leaders))?;
        let offsets = check
            .measure_blocking(&local.clock, shown, leaders)
            .map_err(|why| self.ranks.failure(why));
        let offsets = agree_blocking(leaders, offsets)?;
        let text = serde_json::to_string(&node).map_err(Failure::run);
        let text = agree_blocking(leaders, text)?;
        let texts = block_on_ready(gather_texts(leaders, &text))?;
        let nodes = texts.iter().map(|text| serde_json::from_str(text));
        let nodes: Result<Vec<NodeReport>, _> = nodes.collect();
        let mut nodes = nodes.map_err(Failure::run)?;
        NodeReport::add_offsets(&mut nodes, &offsets);
        Ok(nodes)
    }

    fn verify(&self, nodes: &[NodeReport]) -> Result<(), Failure> {
        let mut unmet: Vec<String> = nodes.iter().flat_map(NodeReport::unmet).collect();
        if let Some(limit) = self.options.max_apart {
            unmet.extend(NodesDifference::of(nodes).beyond(limit));
        }
        if unmet.is_empty() {
            return Ok(());
        }
        let more = unmet.len().saturating_sub(MOST_REASONS);
        unmet.truncate(MOST_REASONS);
        let more = match more {
            0 => String::new(),
            more => format!("; and {more} more (--json lists all)"),
        };
        Err(Failure::Run(unmet.join("; ") + &more))
    }

    fn show(&self, nodes: Vec<NodeReport>) -> Result<(), Failure> {
        let outcome = self.verify(&nodes);
        let report = NodesReport::new(nodes);
        let headline = format!(
            "{}, offsets of CLOCK_REALTIME by {}",
            self.ranks.description(),
            self.options.check_by
        );
        let text = || report.text(&headline);
        self.options.print.print(|| &report, text)?;
        outcome
    }
}
