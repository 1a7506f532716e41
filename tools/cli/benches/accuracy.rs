//! Time to accuracy: how long algorithms take until the true errors of all ranks stay
//! small, how well `auto` keeps its time, and in what share of their time it is as
//! accurate as the settings of the papers: `cargo bench -p downbeat-cli --bench
//! accuracy`, about ten minutes on two idle cores.
//!
//! With `-- --gate`, the exit code is 1 when a figure that the project promises is
//! missed. Names of clusters limit the tables to them. The benchmark `cube` of
//! `downbeat-sync` compares the cube with HCA3 in equal time instead.

#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]
#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]

use std::collections::HashMap;
use std::fmt;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread::{available_parallelism, scope};

use serde_json::Value;

/// Errors that are to stay below, in nanoseconds.
const LIMITS: [f64; 3] = [1_000.0, 100.0, 30.0];
/// Time for which an error must stay below a limit, in microseconds.
const LASTING: u64 = 10_000;
/// Times of the checks after [`LASTING`]: these parts of each power of ten, in
/// microseconds.
const PARTS: [u64; 10] = [100, 125, 160, 200, 250, 320, 400, 500, 630, 800];
const DECADES: [u64; 4] = [100, 1_000, 10_000, 100_000];
const SECOND: u64 = 1_000_000;
/// Times whose errors are printed.
const AFTER: [u64; 3] = [0, SECOND, 10 * SECOND];
/// More ranks are checked at fewer times.
const MOST_CHECKED: u32 = 1_024;

/// Algorithms: a family, its settings, and most ranks of all seeds together that a
/// setting is tried with, as some take too long to simulate. Where one rank of a node
/// measures for all, nodes are counted.
const FAMILIES: [(&str, &[(&str, u32)]); 5] = [
    (
        "skampi",
        &[
            ("skampi/skampi/10", ANY),
            ("skampi/skampi/100", ANY),
            ("skampi/skampi/1000", FEW),
            ("hca3-offset/skampi/10", ANY),
            ("hca3-offset/skampi/100", ANY),
        ],
    ),
    (
        "jk",
        &[
            ("jk/10/skampi/10", ANY),
            ("jk/100/skampi/10", ANY),
            (JK, FEW),
        ],
    ),
    (
        "hca3",
        &[
            ("hca3/10/skampi/10", ANY),
            ("hca3/30/skampi/10", ANY),
            ("hca3/100/skampi/10", ANY),
            ("hca3/100/skampi/100", ONE_SEED),
            ("hca3/300/skampi/100", FEW),
            (HCA3, FEW),
            ("h2hca(hca3/10/skampi/10,prop)", ANY),
            ("h2hca(hca3/100/skampi/10,prop)", ANY),
            ("h2hca(hca3/100/skampi/100,prop)", FEW),
            ("h2hca(hca3/300/skampi/100,prop)", FEW),
            (H2HCA, FEW),
        ],
    ),
    (
        "cube",
        &[
            ("cube/2/4", ANY),
            ("cube/5/10", ANY),
            ("cube/10/20", ANY),
            ("cube/10/40", ONE_SEED),
            ("cube/100/20", FEW),
        ],
    ),
    (
        AUTO,
        &[
            ("auto/1ms", ANY),
            ("auto/2ms", ANY),
            ("auto/5ms", ANY),
            ("auto/10ms", ANY),
            ("auto/20ms", ANY),
            ("auto/50ms", ANY),
            ("auto/100ms", ONE_SEED),
            ("auto/300ms", FEW),
        ],
    ),
];
const ANY: u32 = u32::MAX;
const ONE_SEED: u32 = 1_024;
const FEW: u32 = 3 * 64;
const AUTO: &str = "auto";
/// Settings of the papers.
const PAPERS: [&str; 3] = [JK, HCA3, H2HCA];
const JK: &str = "jk/1000/skampi/20";
const HCA3: &str = "hca3/1000/skampi/100";
const H2HCA: &str = "h2hca(hca3/1000/skampi/100,prop)";
/// Shows the least time that `auto` needs.
const LEAST: &str = "auto/1us";
/// Budgets whose keeping is shown, in milliseconds.
const BUDGETS: [(&str, f64); 2] = [("auto/20ms", 20.0), ("auto/100ms", 100.0)];

/// Simulated cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SimulatedCluster {
    name: &'static str,
    ranks: u32,
    per_node: u32,
    seeds: u32,
}

impl fmt::Display for SimulatedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.name, self.ranks, self.per_node)
    }
}

impl SimulatedCluster {
    const fn new(name: &'static str, ranks: u32, per_node: u32, seeds: u32) -> Self {
        Self {
            name,
            ranks,
            per_node,
            seeds,
        }
    }

    /// Returns the settings of a family that are tried on this cluster.
    fn settings(self, family: &[(&'static str, u32)]) -> Vec<&'static str> {
        let nodes = self.ranks.div_ceil(self.per_node);
        let is_tried = |(label, most): &&(&str, u32)| {
            let within_nodes = label.ends_with(')');
            let one_measures = within_nodes || label.starts_with(AUTO);
            let measuring = if one_measures { nodes } else { self.ranks };
            self.seeds * measuring <= *most && (self.per_node > 1 || !within_nodes)
        };
        let tried = family.iter().filter(is_tried).map(|(label, _)| *label);
        match cfg!(debug_assertions) {
            true => tried.take(2).collect(),
            false => tried.collect(),
        }
    }

    /// Returns the times of the checks after the synchronization, in microseconds.
    fn check_times(self) -> Vec<u64> {
        if self.ranks > MOST_CHECKED {
            return vec![0, LASTING, SECOND, 10 * SECOND];
        }
        let decade = |decade: &u64| PARTS.map(|part| part * decade);
        let after = DECADES.iter().flat_map(decade);
        [0].into_iter().chain(after).collect()
    }

    /// Simulates an algorithm.
    fn simulate(self, label: &str) -> Runs {
        let times = self.check_times();
        let checks: Vec<String> = times.iter().map(|time| format!("{time}us")).collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        let simulate = "simulate --json --threads 1 --seed 0 --check-by skampi/1";
        command.args(simulate.split(' '));
        // The true errors are known: what messages measure besides must only take little
        // time.
        let sample = (10.0 / f64::from(self.ranks)).min(1.0);
        command.args(["--sample", &sample.to_string()]);
        command.args(["--cluster", self.name, "--algorithm", label]);
        command.args(["--check", &checks.join(",")]);
        command.args(["--ranks", &self.ranks.to_string()]);
        command.args(["--per-node", &self.per_node.to_string()]);
        command.args(["--repeat", &self.seeds.to_string()]);
        let output = command.output().expect("the program of this package");
        assert!(output.status.success(), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("a JSON document");
        let runs = document["runs"].as_array().expect("a list of runs");
        Runs::new(&times, runs)
    }
}

/// Runs of one algorithm on one cluster, one for each seed.
#[derive(Clone, Debug)]
struct Runs {
    /// Longest duration, without the comparison of the clocks around cycles of ranks.
    took_ms: f64,
    /// Times after the synchronization in microseconds, and the largest true errors of
    /// each run in nanoseconds, in ascending order.
    errors: Vec<(u64, Vec<f64>)>,
    /// Clocks whose error exceeded what was stated.
    beyond: u64,
}

impl Runs {
    fn new(times: &[u64], runs: &[Value]) -> Self {
        let seconds = |run: &Value, name: &str| run[name].as_f64().expect("a duration");
        // What a comparison of the clocks only states is no part of the algorithm.
        let took = runs
            .iter()
            .map(|run| seconds(run, "duration_s") - seconds(run, "compared_s"));
        let error = |(i, time): (usize, &u64)| {
            let errors = runs.iter().map(|run| {
                let error = &run["checks"][i]["largest_error"]["ns"];
                error.as_f64().expect("an error").abs()
            });
            let mut errors: Vec<f64> = errors.collect();
            errors.sort_by(f64::total_cmp);
            (*time, errors)
        };
        let checks = runs.iter().filter_map(|run| run["checks"].as_array());
        let beyond = checks
            .flatten()
            .filter_map(|check| check["beyond_bound"].as_u64());
        Self {
            took_ms: 1e3 * took.fold(0.0, f64::max),
            errors: times.iter().enumerate().map(error).collect(),
            beyond: beyond.sum(),
        }
    }

    fn errors_after(&self, time: u64) -> &[f64] {
        let found = self.errors.iter().find(|(at, _)| *at == time);
        &found.expect("a time of a check").1
    }

    /// Returns the error of the worst seed.
    fn error_after(&self, time: u64) -> f64 {
        self.errors_after(time)[self.errors_after(time).len() - 1]
    }

    /// Returns the error of the median seed.
    fn median_error_after(&self, time: u64) -> f64 {
        self.errors_after(time)[self.errors_after(time).len() / 2]
    }

    /// Returns the time, in microseconds, until which the errors stay below a limit, if
    /// they do for long enough.
    fn stays_below(&self, limit: f64) -> Option<u64> {
        let is_below = |errors: &[f64]| errors.iter().all(|error| *error < limit);
        let below = self
            .errors
            .iter()
            .take_while(|(_, errors)| is_below(errors));
        below.map(|(at, _)| *at).last().filter(|at| *at >= LASTING)
    }
}

/// Results of all simulations so far.
#[derive(Default)]
struct Results(HashMap<(SimulatedCluster, &'static str), Runs>);

impl Results {
    /// Simulates algorithms on a cluster, as many at a time as there are cores.
    fn simulate(&mut self, cluster: SimulatedCluster, labels: &[&'static str]) {
        let missing = labels
            .iter()
            .copied()
            .filter(|label| !self.0.contains_key(&(cluster, label)));
        // The last ones take longest, and begin first.
        let left = Mutex::new(missing.collect::<Vec<_>>());
        let found = Mutex::new(&mut self.0);
        let next = || left.lock().expect("no panic").pop();
        let work = || {
            while let Some(label) = next() {
                let runs = cluster.simulate(label);
                let mut found = found.lock().expect("no panic");
                found.insert((cluster, label), runs);
            }
        };
        scope(|threads| {
            for _ in 0..available_parallelism().map_or(1, usize::from) {
                threads.spawn(work);
            }
        });
    }

    fn runs_of(&self, cluster: SimulatedCluster, label: &'static str) -> Option<&Runs> {
        self.0.get(&(cluster, label))
    }

    /// Returns the least duration of these algorithms after which the error stays below a
    /// limit, in milliseconds, and the longest time for which it stays there, in seconds.
    fn time_to(
        &self,
        cluster: SimulatedCluster,
        labels: &[&'static str],
        limit: f64,
    ) -> Option<(f64, f64)> {
        let all = labels
            .iter()
            .filter_map(|label| self.runs_of(cluster, label));
        let reached = all.filter_map(|runs| Some((runs.took_ms, runs.stays_below(limit)? as f64)));
        reached
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .map(|(took, until)| (took, until / SECOND as f64))
    }
}

/// Figures that were promised and missed.
#[derive(Default)]
struct Missed(Vec<String>);

impl Missed {
    fn require(&mut self, holds: bool, figure: String) {
        if !holds {
            self.0.push(figure);
        }
    }
}

/// Most milliseconds to the last limit, for [`AUTO`] on these clusters.
const SOONEST: f64 = 20.0;
const SOON: [SimulatedCluster; 2] = [
    SimulatedCluster::new("wandering", 1_024, 1, 1),
    SimulatedCluster::new("wandering", 1_024, 128, 3),
];

/// Prints the times to accuracy.
fn print_times(clusters: &[SimulatedCluster], results: &mut Results, missed: &mut Missed) {
    let names: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
    println!(
        "| cluster, ranks/a node | error below | {} |\n|---|{}",
        names.join(" | "),
        "---|".repeat(1 + names.len())
    );
    for cluster in clusters {
        let settings = FAMILIES.map(|(_, family)| cluster.settings(family));
        results.simulate(*cluster, &settings.concat());
        for limit in LIMITS {
            let cells = settings.each_ref().map(|labels| {
                let found = results.time_to(*cluster, labels, limit);
                found.map_or("never".to_owned(), |(after, lasting)| {
                    format!("{after:.1} ms; {lasting:.2} s")
                })
            });
            println!("| {cluster} | {limit} ns | {} |", cells.join(" | "));
        }
        if SOON.contains(cluster) {
            let [.., auto] = &settings;
            let [.., limit] = LIMITS;
            let after = results.time_to(*cluster, auto, limit);
            let holds = after.is_some_and(|(after, _)| after <= SOONEST);
            missed.require(holds, format!("{cluster}: time to {limit} ns"));
        }
    }
}

/// Errors up to this multiple are equal: clocks wander otherwise while one
/// synchronization takes longer than the other.
const AS_ACCURATE: f64 = 1.05;

/// Prints in what share of the time of the papers' settings `auto` is as accurate.
fn print_shares(clusters: &[SimulatedCluster], results: &Results) {
    println!(
        "\n| cluster, ranks/a node | setting of the papers | took, ms | right after; 1 s; 10 s, ns \
         | shortest auto as accurate right after | after 1 s | after 10 s |\n|---|---|---|---|---|---|---|"
    );
    let [.., (_, family)] = FAMILIES;
    let all = clusters
        .iter()
        .flat_map(|cluster| PAPERS.map(|label| (*cluster, label)));
    for (cluster, label) in all {
        let Some(runs) = results.runs_of(cluster, label) else {
            continue;
        };
        let errors = AFTER.map(|time| format!("{:.0}", runs.error_after(time)));
        let as_accurate = AFTER.map(|time| {
            let most = AS_ACCURATE * runs.error_after(time);
            let tried = cluster.settings(family).into_iter();
            let mut tried = tried.filter_map(|auto| Some((auto, results.runs_of(cluster, auto)?)));
            let found = tried.find(|(_, runs)| runs.error_after(time) <= most);
            found.map_or("none".to_owned(), |(auto, found)| {
                let share = 100.0 * found.took_ms / runs.took_ms;
                format!("{auto}: {:.0} ns, {share:.1} %", found.error_after(time))
            })
        });
        println!(
            "| {cluster} | {label} | {:.1} | {} | {} |",
            runs.took_ms,
            errors.join("; "),
            as_accurate.join(" | ")
        );
    }
}

/// Promised errors of `auto` on nodes of at least 16 ranks of the typical cluster, in
/// nanoseconds: right after by each budget, of the worst seed, and by the second one
/// after 10 s, when clocks have wandered, the median of the seeds.
const FAT: u32 = 16;
const MOST_RIGHT_AFTER: [f64; 2] = [12.0, 10.0];
const MOST_LATER: f64 = 1_000.0;
/// Promised durations as shares of the budget, where the least time is a smaller share
/// than the last one.
const OF_BUDGET: [f64; 2] = [0.84, 1.01];
const OF_BUDGET_WITH_SPELLS: f64 = 1.2;
const LEAST_OF_BUDGET: f64 = 0.7;

/// Prints how well `auto` keeps its time, and its errors.
fn print_budgets(clusters: &[SimulatedCluster], results: &mut Results, missed: &mut Missed) {
    let columns = BUDGETS
        .map(|(label, _)| format!("{label}: took / budget | right after, ns | 1 s, ns | 10 s, ns"));
    println!(
        "\n| cluster, ranks/a node | seeds | least time, ms | {} |\n|{}",
        columns.join(" | "),
        "---|".repeat(3 + 4 * BUDGETS.len())
    );
    for cluster in clusters {
        let labels = BUDGETS.map(|(label, _)| label);
        results.simulate(*cluster, &[&[LEAST][..], &labels].concat());
        let find = |label| results.runs_of(*cluster, label).expect("simulated");
        let least = find(LEAST).took_ms;
        let cells = BUDGETS.map(|(label, budget)| {
            let runs = find(label);
            let share = runs.took_ms / budget;
            let [now, second, ten] = AFTER.map(|time| runs.error_after(time));
            let holds = keeps_budget(*cluster, budget, least, share);
            missed.require(holds, format!("{cluster}: {label} took {share:.3} of it"));
            format!("{share:.3} | {now:.0} | {second:.0} | {ten:.0}")
        });
        println!(
            "| {cluster} | {} | {least:.2} | {} |",
            cluster.seeds,
            cells.join(" | ")
        );
        if cluster.name == "typical" && cluster.per_node >= FAT {
            let right_after = labels.map(|label| find(label).error_after(0));
            let later = find(labels[1]).median_error_after(10 * SECOND);
            let holds = right_after
                .iter()
                .zip(MOST_RIGHT_AFTER)
                .all(|(error, most)| *error <= most);
            missed.require(
                holds,
                format!("{cluster}: error right after {right_after:?}"),
            );
            missed.require(later <= MOST_LATER, format!("{cluster}: error after 10 s"));
        }
    }
}

/// Returns false if a duration is not as promised, by its share of the budget.
fn keeps_budget(cluster: SimulatedCluster, budget: f64, least: f64, share: f64) -> bool {
    let [from, to] = OF_BUDGET;
    match cluster.name {
        "titan" => budget < 100.0 || share <= OF_BUDGET_WITH_SPELLS,
        _ => least > LEAST_OF_BUDGET * budget || (from..=to).contains(&share),
    }
}

/// Clusters of both kinds of tables: times to accuracy, and budgets.
fn clusters() -> [Vec<SimulatedCluster>; 2] {
    let new = SimulatedCluster::new;
    if cfg!(debug_assertions) {
        return [
            vec![new("typical", 4, 1, 1)],
            vec![new("typical", 4, 2, 1), new("tcp", 2, 1, 1)],
        ];
    }
    let all = ["typical", "wandering", "hydra", "titan", "tcp"];
    // The last ranks of a thousand differ little from seed to seed.
    let sizes = |name| {
        [
            new(name, 64, 1, 3),
            new(name, 1_024, 128, 3),
            new(name, 1_024, 1, 1),
        ]
    };
    let timed = all.into_iter().flat_map(sizes).collect();
    let budgets = vec![
        new("typical", 2, 1, 3),
        new("typical", 8, 1, 3),
        new("typical", 64, 1, 3),
        new("typical", 1_024, 1, 1),
        new("typical", 1_024, 16, 3),
        new("typical", 1_024, 64, 3),
        new("typical", 1_024, 128, 3),
        new("typical", 16_384, 128, 3),
        new("typical", 16_384, 64, 3),
        new("typical", 16_384, 16, 1),
        new("wandering", 64, 1, 3),
        new("wandering", 1_024, 1, 1),
        new("wandering", 1_024, 128, 3),
        new("wandering", 16_384, 128, 3),
        new("hydra", 64, 1, 3),
        new("hydra", 1_024, 128, 3),
        new("hydra", 16_384, 128, 3),
        new("tcp", 2, 1, 3),
        new("tcp", 64, 1, 3),
        new("tcp", 100, 1, 3),
        new("tcp", 1_024, 1, 1),
        new("tcp", 1_024, 128, 3),
        new("tcp", 16_384, 128, 3),
        new("cloud", 2, 1, 3),
        new("cloud", 64, 1, 3),
        new("cloud", 1_024, 1, 1),
        new("cloud", 1_024, 128, 3),
        new("cloud", 16_384, 128, 3),
        new("titan", 64, 1, 3),
        new("titan", 1_024, 16, 3),
        new("titan", 1_024, 128, 3),
    ];
    [timed, budgets]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = arguments
        .iter()
        .filter(|name| !name.starts_with('-'))
        .collect();
    let is_wanted = |cluster: &SimulatedCluster| {
        names.is_empty() || names.iter().any(|name| *name == cluster.name)
    };
    let [timed, budgets] =
        clusters().map(|all| all.into_iter().filter(is_wanted).collect::<Vec<_>>());
    println!(
        "True errors, largest of all ranks and worst seed. Least duration after which an error \
         stays below a limit for 10 ms, and the longest time that it stays there, of all settings \
         of an algorithm.\n"
    );
    let (mut results, mut missed) = (Results::default(), Missed::default());
    print_times(&timed, &mut results, &mut missed);
    print_shares(&timed, &results);
    print_budgets(&budgets, &mut results, &mut missed);
    let beyond: u64 = results.0.values().map(|runs| runs.beyond).sum();
    println!("\nTrue errors beyond the stated bound of their clock: {beyond}.");
    missed.require(beyond == 0, "bounds".to_owned());
    for figure in &missed.0 {
        println!("missed: {figure}");
    }
    match missed.0.is_empty() || !arguments.iter().any(|name| name == "--gate") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
