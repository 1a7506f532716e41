//! `downbeat-mpi offsets`: how far the system clocks of all ranks are from that of rank 0, for the traces that other tools record.

mod perfetto;
mod report;
mod traces;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use downbeat::LocalTime;
use downbeat_clock_core::{Clock, Duration};
use downbeat_common::{Failure, Outputs, PrintOptions, agree_blocking, write_text};
use downbeat_sync::{Algorithm, Comm, block_on_ready, collective};
use downbeat_timers::SystemClockId;
use downbeat_timers::skew::SkewSpec;

use crate::Job;
use crate::clock::{JobClock, system_time};
use crate::ranks::{JobRanks, PlaceOptions};
use perfetto::{TraceFile, manifest};
use report::{ClockOffset, OffsetsReport};
use traces::{ShiftedFile, TraceName, with_one_name};

/// Options of `offsets`.
#[derive(Args, Debug)]
#[command(
    after_help = "The offset of a rank is its clock minus that of rank 0. The limits hold for certain; the offset is much better than \
                  they tell. Measure in the job that records the traces, shortly before or after: the clocks drift apart.\n\n\
                  Names of traces contain {rank} or {host}, which stand for the rank and its host, as in node7/rank{rank}.json. \
                  Names for --traces with {host} alone are those of one trace for all ranks of a host.\n\n\
                  --perfetto-manifest writes a file that goes into one archive with the traces, as named by --traces. Perfetto then \
                  shows them on one timeline. Traces whose names end in .json have no clock that Perfetto knows; of others, the one \
                  named by --clock is related.\n\n\
                  --kineto reads the traces of PyTorch, and --shifted writes copies whose times are those of rank 0's clock. Each \
                  rank works on its own trace. Compressed traces (gzip) are read, too, and copies whose names end in .gz are \
                  compressed.\n\n\
                  Examples:\n  mpirun -np 8 downbeat-mpi offsets \\\n    \
                  --perfetto-manifest perfetto_manifest.json --traces 'rank{rank}.pftrace'\n  \
                  mpirun -np 8 downbeat-mpi offsets \\\n    \
                  --kineto 'rank{rank}.pt.trace.json' --shifted 'rank{rank}.json'"
)]
pub struct OffsetsOptions {
    /// Clock of the system by which the traces were recorded
    #[arg(long, value_enum, default_value_t = TraceClock::Realtime, ignore_case = true)]
    clock: TraceClock,
    /// Synchronization algorithm: a LABEL of the command sync [default: auto/300ms]
    #[arg(long, value_name = "LABEL", value_parser = Algorithm::parse_single)]
    sync: Option<Algorithm>,
    /// Write a manifest for traces that Perfetto merges
    #[arg(long, value_name = "FILE")]
    perfetto_manifest: Option<PathBuf>,
    /// Names of the traces in Perfetto's archive
    #[arg(
        long,
        value_name = "NAME",
        default_value = "rank{rank}.json",
        requires = "perfetto_manifest"
    )]
    traces: TraceName,
    /// Read the traces of PyTorch with these names
    #[arg(long, value_name = "NAME", requires = "shifted")]
    kineto: Option<TraceName>,
    /// Write them with the times of rank 0's clock to these names
    #[arg(long, value_name = "NAME", requires = "kineto")]
    shifted: Option<TraceName>,
    #[arg(long, value_name = "SPEC", help = SkewSpec::HELP)]
    skew: Option<SkewSpec>,
    #[command(flatten)]
    place: PlaceOptions,
    #[command(flatten)]
    print: PrintOptions,
}

/// Clock of the system that stamps traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceClock {
    /// CLOCK_REALTIME, the time of day, as in the traces of PyTorch
    Realtime,
    /// CLOCK_MONOTONIC
    Monotonic,
    /// CLOCK_MONOTONIC_RAW
    Raw,
    /// CLOCK_BOOTTIME, as in Perfetto's own traces
    Boottime,
}

impl TraceClock {
    fn id(self) -> SystemClockId {
        match self {
            Self::Realtime => SystemClockId::Realtime,
            Self::Monotonic => SystemClockId::Monotonic,
            Self::Raw => SystemClockId::MonotonicRaw,
            Self::Boottime => SystemClockId::Boottime,
        }
    }
}

/// Measures the offsets of all ranks, which all call this, and shows them on rank 0.
///
/// # Errors
/// If a clock or a file cannot be used, or a rank is gone.
pub fn run<J: Job>(options: &OffsetsOptions, job: &J) -> Result<(), Failure> {
    let ranks = JobRanks::find(job, &options.place)?;
    let session = OffsetsSession {
        options,
        ranks: &ranks,
        algorithm: options.sync.unwrap_or(Algorithm::SINGLE),
    };
    ranks.have_levels_of("--sync", &session.algorithm)?;
    let local = system_time(&ranks, options.clock.id(), options.skew.as_ref())?;
    session.run(&local)
}

struct OffsetsSession<'a, J: Job> {
    options: &'a OffsetsOptions,
    ranks: &'a JobRanks<'a, J>,
    algorithm: Algorithm,
}

impl<J: Job> OffsetsSession<'_, J> {
    fn run(&self, local: &LocalTime<JobClock<J>>) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        // What cannot be used is refused before anything is measured.
        let hosts = self.all_hosts()?;
        let shifted = options.shifted.as_ref();
        let shifted = shifted.map(|name| distinct("--shifted", name.of_all(&hosts)));
        let shifted = shifted.transpose()?;
        let traces = match options.perfetto_manifest {
            Some(_) => archived(&options.traces, &hosts)?,
            None => vec![],
        };
        let kineto = options.kineto.as_ref().map(|name| name.of_all(&hosts));
        self.check_outputs(&kineto, &shifted, &traces)?;
        let (own, offsets) = self.measure(local, &hosts)?;
        if let (Some(kineto), Some(shifted)) = (&kineto, &shifted) {
            self.shift(kineto, shifted, own)?;
        }
        let report = OffsetsReport {
            schema: "downbeat.offsets",
            version: 1,
            job: ranks.description(),
            clock: options.clock.id().name(),
            algorithm: self.algorithm.to_string(),
            ranks: offsets,
        };
        ranks.on_first(|| {
            if let Some(path) = &options.perfetto_manifest {
                let text = manifest(&traces, &report.ranks, ranks, options.clock.id());
                write_text("--perfetto-manifest", path, &text)?;
            }
            options.print.print(|| &report, || report.text())
        })
    }

    /// Checks that no output of a rank replaces an input of any rank, or another output: each rank its own, and rank 0 all, as far as
    /// both see the same files.
    fn check_outputs(
        &self,
        kineto: &Option<Vec<String>>,
        shifted: &Option<Vec<String>>,
        traces: &[TraceFile],
    ) -> Result<(), Failure> {
        let Self { options, ranks, .. } = self;
        let (kineto, shifted) = (kineto.iter().flatten(), shifted.iter().flatten());
        let traces = traces.iter().map(|trace| trace.path.as_str());
        let mut inputs: Vec<&Path> = kineto
            .map(String::as_str)
            .chain(traces)
            .map(Path::new)
            .collect();
        inputs.extend(options.place.input());
        let mut outputs = Outputs::new(inputs);
        let own = ranks.all.rank() as usize;
        let claimed = shifted
            .enumerate()
            .filter(|(rank, _)| ranks.is_first() || *rank == own);
        let claimed = claimed.map(|(_, path)| outputs.claim("--shifted", Path::new(path)));
        let mut checked: Result<(), Failure> = claimed.collect();
        if let (Ok(()), true, Some(path)) = (&checked, ranks.is_first(), &options.perfetto_manifest)
        {
            checked = outputs.text("--perfetto-manifest", path);
        }
        agree_blocking(ranks.all, checked)
    }

    /// Returns the hosts of all ranks, on all of them.
    fn all_hosts(&self) -> Result<Vec<String>, Failure> {
        let hosts = serde_json::to_vec(&self.ranks.hosts).map_err(Failure::run)?;
        let hosts = block_on_ready(collective::broadcast_bytes(self.ranks.all, hosts));
        serde_json::from_slice(&hosts.map_err(Failure::run)?).map_err(Failure::run)
    }

    /// Synchronizes the clocks; returns the offset of this rank, and on rank 0 those of all.
    fn measure(
        &self,
        local: &LocalTime<JobClock<J>>,
        hosts: &[String],
    ) -> Result<(Duration, Vec<ClockOffset>), Failure> {
        let Self {
            ranks, algorithm, ..
        } = self;
        let found = ranks.synchronize(&ranks.local_clock(local), algorithm)?;
        let ticks = local.clock.ticks();
        let shown = found.model.apply(ticks);
        let own = local.model.renamed().apply(ticks);
        let [earliest, latest] = found.bound.around(shown);
        let offset = own - shown;
        let drift = local.model.rate().drift_from(found.model.rate());
        let figures = (offset, own - latest, own - earliest, drift);
        let all = collective::gather(ranks.all, figures);
        let all = block_on_ready(all).map_err(Failure::run)?;
        let offsets = all.into_iter().zip(hosts).enumerate();
        let offsets = offsets.map(|(rank, ((offset, least, most, drift), host))| ClockOffset {
            rank,
            host: host.clone(),
            offset_ns: offset.as_nanos(),
            at_least_ns: least.as_nanos(),
            at_most_ns: most.as_nanos(),
            drift_ppm: drift * 1e6,
        });
        Ok((offset, offsets.collect()))
    }

    /// Shifts the trace of this rank. Either all ranks write their traces or none.
    fn shift(&self, from: &[String], to: &[String], offset: Duration) -> Result<(), Failure> {
        let all = self.ranks.all;
        let rank = all.rank() as usize;
        let shifted = ShiftedFile::of(from[rank].as_ref(), to[rank].as_ref(), -offset);
        let shifted = agree_blocking(all, shifted)?;
        let equal = collective::all_equal(all, shifted.base.unwrap_or(0) as u64);
        if !block_on_ready(equal).map_err(Failure::run)? {
            return Err(Failure::option(
                "--kineto",
                "the traces count from different times of the epoch (baseTimeNanoseconds)",
            ));
        }
        agree_blocking(all, shifted.finish())
    }
}

/// Returns these names if no two ranks have the same.
fn distinct(option: &str, names: Vec<String>) -> Result<Vec<String>, Failure> {
    match with_one_name(&names, |_, _| false) {
        None => Ok(names),
        Some([a, b]) => {
            let why = format!("ranks {a} and {b} both have {}: add {{rank}}", names[a]);
            Err(Failure::option(option, why))
        }
    }
}

/// Returns the traces in an archive. Ranks of one host can have one trace together, if
/// its name is that of the host.
fn archived(name: &TraceName, hosts: &[String]) -> Result<Vec<TraceFile>, Failure> {
    let names = name.of_all(hosts);
    let may_share = |a: usize, b: usize| name.has_host() && hosts[a] == hosts[b];
    if let Some([a, b]) = with_one_name(&names, may_share) {
        let why = format!(
            "ranks {a} and {b} have one trace, {}: add {{rank}}, or {{host}} if the ranks of a host record one trace together",
            names[a]
        );
        return Err(Failure::option("--traces", why));
    }
    let mut known = HashSet::new();
    let traces = names.into_iter().enumerate();
    let traces = traces.filter(|(_, path)| known.insert(path.clone()));
    Ok(traces
        .map(|(rank, path)| TraceFile { path, rank })
        .collect())
}
