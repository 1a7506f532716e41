//! `downbeat simulate`: synchronization algorithms on a simulated cluster, in virtual time.

mod keeping;
mod runs;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use clap::Args;
use downbeat_clock_core::{Duration, Timestamp};
use downbeat_common::cli::{Labels, not_negative};
use downbeat_common::machine::cores;
use downbeat_common::output::count;
use downbeat_common::page::PageOptions;
use downbeat_common::records::{
    CsvFile, ExplainedRuns, Factors, LargestDeviation, RunRecord, TrueErrors, all_or_first_failure,
};
use downbeat_common::{
    DeclaredRates, Failure, OffsetCheckOptions, Outputs, PrintOptions, Trial, TrialOptions,
};
use downbeat_sync::sim::{DelayBursts, Network, SimCluster, SimComm, VirtualTime};
use downbeat_sync::{Comm as _, SyncError};

use crate::cluster::ClusterFile;
use crate::memory;
use keeping::KeepOptions;
use runs::{SimulatedRuns, size};

#[derive(Args, Debug)]
#[command(
    after_help = "Besides the offsets that messages can measure, the true error is printed.\n\
                  Equal seeds give equal results. Runs of one number have the same clocks: with --repeat 6 or more, algorithms \
                  are compared run by run with the first. Built-in clusters: typical; wandering, with a rank on each node; jupiter, hydra and titan, after the \
                  machines of a paper; tcp and cloud, on slow networks.\n\n\
                  Examples:\n  downbeat simulate --ranks 512 \\\n    \
                  --algorithm hca3/100/skampi/20,jk/100/skampi/20 --repeat 6 -o sync.html\n  \
                  downbeat simulate --cluster titan --ranks 4096 --sample 0.1\n  \
                  downbeat simulate --cluster wandering --ranks 16 \\\n    \
                  --algorithm cube/10/40 --keep 10s --lasting 10min"
)]
pub(crate) struct SimulateOptions {
    /// Number of ranks
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=i64::from(SimCluster::MAX_RANKS)), allow_hyphen_values = true)]
    ranks: u32,
    /// Number of ranks per node [default: as in the cluster file]
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..), allow_hyphen_values = true)]
    per_node: Option<u32>,
    /// Cluster to simulate: name of a built-in cluster, or a cluster file
    #[arg(long, value_name = "FILE", default_value = "typical")]
    cluster: String,
    /// Operating system's noise, in place of the bursts of the cluster: once in each interval EVERY, at a random time, all messages that leave
    /// a node during LASTING are delayed, by MEAN on average, as 10ms/50us/20us
    #[arg(long, value_name = "EVERY/LASTING/MEAN", allow_hyphen_values = true)]
    system_noise: Option<SystemNoise>,
    #[arg(long, value_name = "LABELS", help = Labels::HELP, default_value = "hca3/100/skampi/20,h2hca(hca3/100/skampi/20,prop)")]
    algorithm: Labels,
    /// Number of threads; the result does not depend on it [default: one per core, with at least 32 nodes each]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024), allow_hyphen_values = true)]
    threads: Option<u32>,
    #[command(flatten)]
    keep: KeepOptions,
    #[command(flatten)]
    declared: DeclaredRates,
    #[command(flatten)]
    trial: TrialOptions,
    #[command(flatten)]
    check: OffsetCheckOptions,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1, allow_hyphen_values = true)]
    seed: u64,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    print: PrintOptions,
    /// File for one line per run and check, written as each run ends
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Spells during which a node runs something else.
#[derive(Clone, Copy, Debug)]
struct SystemNoise(DelayBursts);

impl FromStr for SystemNoise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let times: Vec<Duration> = text
            .split('/')
            .map(not_negative)
            .collect::<Result<_, _>>()?;
        match times[..] {
            [every, lasting, mean] if lasting <= every && every > Duration::ZERO => {
                Ok(Self(DelayBursts::Spells {
                    every,
                    lasting,
                    mean,
                }))
            }
            [_, _, _] => Err("an interval must be longer than what it contains".to_owned()),
            _ => Err("must be three times, as 10ms/50us/20us".to_owned()),
        }
    }
}

impl SystemNoise {
    fn disturb(self, network: &mut Network) {
        let Network {
            socket,
            node,
            switch,
            racks,
            ..
        } = network;
        for link in [socket, node, switch].into_iter().chain(racks) {
            link.bursts = self.0;
        }
    }
}

impl SimulateOptions {
    /// Makes the simulated cluster from the cluster file and the options that replace parts of it.
    fn build_cluster(&self, cluster: &ClusterFile) -> Result<SimCluster, Failure> {
        let mut sim = SimCluster {
            ranks: self.ranks,
            ranks_per_node: self.per_node.unwrap_or(cluster.ranks_per_node),
            sockets_per_node: cluster.sockets_per_node,
            nodes_per_rack: cluster.nodes_per_rack,
            network: cluster.network.clone(),
            clocks: cluster.clocks(),
            seed: 0,
        };
        if let Some(noise) = self.system_noise {
            noise.disturb(&mut sim.network);
        }
        sim.validate()
            .map_err(|why| Failure::option("--cluster", format!("{}: {why}", self.cluster)))?;
        Ok(sim)
    }

    /// Creates the CSV file, if one is wanted.
    fn create_csv(
        &self,
        outputs: &mut Outputs,
        factors: &Factors,
    ) -> Result<Option<CsvFile>, Failure> {
        let Some(path) = &self.csv else {
            return Ok(None);
        };
        outputs.claim("--csv", path)?;
        CsvFile::create(path, factors).map(Some)
    }

    fn threads(&self, sim: &SimCluster) -> NonZero<usize> {
        let nodes = sim.ranks.div_ceil(sim.ranks_per_node) as usize;
        // With fewer nodes, threads mostly wait for each other.
        let useful = || cores().min(nodes.div_ceil(32));
        let threads = self.threads.map_or_else(useful, |threads| threads as usize);
        NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN)
    }
}

/// Memory that a simulated rank takes at least.
const RANK_BYTES: u64 = 3_000;

pub(crate) fn run(options: &SimulateOptions) -> Result<(), Failure> {
    memory::require("--ranks", u64::from(options.ranks) * RANK_BYTES)?;
    let cluster = ClusterFile::find(&options.cluster)?;
    let mut sim = options.build_cluster(&cluster)?;
    let factors = factors(options, &cluster, &sim);
    let threads = options.threads(&sim);
    // The name of a built-in cluster is no file.
    let input = Some(&options.cluster).filter(|name| Path::new(name).is_file());
    let mut outputs = Outputs::new(input);
    options.page.add_to(&mut outputs)?;
    let runs = SimulatedRuns {
        algorithms: &options.algorithm.0,
        repeat: options.trial.repeat,
        seed: options.seed,
    };
    if let Some(kept) = options.keep.kept(options.declared) {
        return keeping::run(
            &mut sim,
            threads,
            runs,
            kept,
            (&options.page, options.print),
            factors,
        );
    }
    let check = options.check.check(options.seed, options.ranks)?;
    let mut csv = options.create_csv(&mut outputs, &factors)?;
    let began = Instant::now();
    let mut messages = 0;
    let records = runs.each(&mut sim, |sim, algorithm, run| {
        let trial = options.trial.trial(*algorithm, Some(check));
        let (record, sent) = simulate_once(sim, threads, options.declared, &trial, run)?;
        csv.as_mut().map_or(Ok(()), |csv| csv.append(&record))?;
        messages += sent;
        Ok(record)
    })?;
    let repeat = count(runs.repeat as usize, "run");
    let (name, check_by) = (&cluster.name, check.offset);
    let checks = records.iter().flat_map(|run| &run.checks);
    let beyond: usize = checks.filter_map(|check| check.beyond_bound).sum();
    let title = format!(
        "{} ({name}), {repeat} of each, seed {}",
        size(&sim),
        runs.seed
    );
    let explanation = format!(
        "Took: duration in virtual time. Offsets: to rank 0, as measured by {check_by}.\n\
         True errors beyond the stated bound of their clock: {beyond}.\n\
         {messages} messages simulated in {:.1} s.\n",
        began.elapsed().as_secs_f64()
    );
    let explained = ExplainedRuns {
        title: &title,
        explanation: &explanation,
        factors: &factors,
        runs: &records,
    };
    explained.show(&options.page, options.print)
}

fn factors(options: &SimulateOptions, cluster: &ClusterFile, sim: &SimCluster) -> Factors {
    let factors = Factors::default()
        .with(
            "program",
            &concat!("downbeat ", env!("CARGO_PKG_VERSION"), " simulate"),
        )
        .with("cluster", &cluster.name)
        .with("ranks", &sim.ranks)
        .with("ranks_per_node", &sim.ranks_per_node)
        .with("sockets_per_node", &sim.sockets_per_node)
        .with("network", &format!("{:?}", sim.network))
        .with("clocks", &format!("{:?}", sim.clocks))
        .with("check", &options.check.check_by)
        .with("sample", &options.check.sample)
        .with("repeat", &options.trial.repeat)
        .with("seed", &options.seed);
    options.declared.add_to(factors)
}

/// Simulates one run; returns its record and the number of messages.
fn simulate_once(
    sim: &SimCluster,
    threads: NonZero<usize>,
    declared: DeclaredRates,
    trial: &Trial,
    run: u32,
) -> Result<(RunRecord, u64), Failure> {
    let simulated = sim.simulate_on(threads, async |comm: &SimComm| {
        let clock = comm.clock();
        let me = declared.of(comm.local_clock(&clock)?);
        // Times at which rank 0 began its checks.
        let mut check_times: Vec<Timestamp<VirtualTime>> = Vec::new();
        let pause = |time| {
            comm.pause(time);
            if comm.rank() == 0 {
                check_times.push(comm.true_now());
            }
        };
        let tried = trial.run(&me, comm, pause, async |_| Ok(())).await?;
        let synchronized = tried.synchronized;
        let of_first = (comm.rank() == 0).then_some((tried, check_times));
        // Boxed to keep the slots of ranks that have no result yet small: there may be a million.
        Ok::<_, SyncError>(Box::new((synchronized, of_first)))
    });
    let simulated = simulated.map_err(Failure::run)?;
    let ranks = all_or_first_failure(simulated.results)?;
    let of_first = ranks.first().and_then(|rank| rank.1.as_ref());
    let (tried, check_times) = of_first.ok_or_else(|| Failure::run("rank 0 has no result"))?;
    let clocks = sim.true_clocks().map_err(Failure::run)?;
    let errors_at = |at: &Timestamp<VirtualTime>| {
        let global_time = |i: usize| ranks[i].0.model.apply(clocks.ticks_at(i as u32, *at));
        let reference = global_time(0);
        let error = |i| LargestDeviation {
            ns: (global_time(i) - reference).as_nanos(),
            half_width_ns: None,
            rank: i as u32,
        };
        let is_beyond = |i: &usize| !ranks[*i].0.bound.allows(global_time(*i), reference);
        let is_far = |i: &usize| {
            let stated = ranks[*i].0.quality.stated_error;
            let error = (global_time(*i) - reference).as_nanos() as f64;
            stated.is_some_and(|stated| stated.is_error() && error.abs() > 2.0 * stated.nanos())
        };
        TrueErrors {
            largest: LargestDeviation::among((0..ranks.len()).map(error)),
            beyond_bound: Some((0..ranks.len()).filter(is_beyond).count()),
            beyond_error: Some((0..ranks.len()).filter(is_far).count()),
        }
    };
    let errors: Vec<_> = check_times.iter().map(errors_at).collect();
    Ok((
        RunRecord::new(trial, run, tried, &errors),
        simulated.messages,
    ))
}
