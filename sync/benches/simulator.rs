//! Speed of the simulator: `cargo bench -p downbeat-sync --bench simulator`. With `-- --gate`, the
//! exit code is 1 when a figure that the project promises is missed. With `-- --million`, a million
//! ranks are synchronized, too, which takes several minutes and almost 2 GB.
//!
//! Every row is measured in a child process, so that each has its own peak of memory.

#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]
#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]

use std::num::NonZero;
use std::process::{Command, ExitCode};
use std::time::Instant;

use downbeat_sync::sim::{Clocks, Network, NetworkCard, SimCluster};
use downbeat_sync::{Algorithm, SyncError};

/// Argument of the child processes, followed by the index of the row.
const CHILD: &str = "--row";

/// Simulated synchronization.
struct SimulatorRow {
    name: &'static str,
    label: &'static str,
    ranks: u32,
    network: Network,
    ranks_per_node: u32,
    threads: usize,
    /// Promised figures: millions of messages per second, seconds, and megabytes.
    least_rate: f64,
    most_seconds: f64,
    most_megabytes: f64,
}

/// Threads of the rows that use all processors.
const THREADS: usize = 2;

fn rows() -> [SimulatorRow; 5] {
    let contended = Network::typical();
    let free = Network {
        card: None::<NetworkCard>,
        ..Network::typical()
    };
    let hca3 = |name, network, ranks_per_node, threads, least_rate| SimulatorRow {
        name,
        // A test build, which is not optimized, only checks that it runs.
        label: if cfg!(debug_assertions) {
            "hca3/2/skampi/2"
        } else {
            "hca3/20/skampi/20"
        },
        ranks: 16_384,
        ranks_per_node,
        threads,
        network,
        least_rate,
        most_seconds: f64::INFINITY,
        most_megabytes: 64.0,
    };
    [
        hca3("one card per node", contended.clone(), 16, 1, 2.0),
        hca3("no contention", free, 16, 1, 5.0),
        // Every message passes two cards, and no two in a row are of the same ranks.
        hca3("one card per rank", contended.clone(), 1, 1, 0.0),
        hca3("one card per rank", contended.clone(), 1, THREADS, 1.2),
        SimulatorRow {
            name: "one card per node",
            label: "h2hca(hca3/100/skampi/10,prop)",
            ranks: 1 << 20,
            ranks_per_node: 16,
            threads: THREADS,
            network: contended,
            least_rate: 0.0,
            most_seconds: 240.0,
            most_megabytes: 2_000.0,
        },
    ]
}

/// Returns the figures of a row, as a child prints them: messages, seconds, seconds of processor
/// time, bytes of a rank's program, megabytes at the peak, and the largest error of a rank in
/// nanoseconds.
fn measure(row: &SimulatorRow) -> [f64; 6] {
    let cluster = SimCluster {
        ranks: row.ranks,
        ranks_per_node: row.ranks_per_node,
        sockets_per_node: 2,
        nodes_per_rack: None,
        network: row.network.clone(),
        clocks: Clocks::typical(),
        seed: 1,
    };
    let algorithm: Algorithm = row.label.parse().expect("a label");
    let threads = NonZero::new(row.threads).expect("at least one");
    let start = Instant::now();
    let simulated = cluster.simulate_on(threads, async |comm| {
        let clock = comm.clock();
        let found = algorithm
            .synchronize(&comm.local_clock(&clock)?, comm)
            .await?;
        // In a box, because space for the results of all ranks is allocated at the beginning.
        Ok::<_, SyncError>(Box::new(found.model))
    });
    let seconds = start.elapsed().as_secs_f64();
    let (simulated, processor) = (
        simulated.expect("no rank waits for ever"),
        processor_seconds(),
    );
    let megabytes = peak_megabytes();
    let clocks = cluster.true_clocks().expect("it was simulated");
    let shown = (0..).zip(simulated.results).map(|(rank, model)| {
        let ticks = clocks.ticks_at(rank, simulated.ended);
        model.expect("synchronized").apply(ticks).as_nanos()
    });
    let shown: Vec<i64> = shown.collect();
    let worst = shown
        .iter()
        .map(|time| (time - shown[0]).abs())
        .max()
        .unwrap_or_default();
    [
        simulated.messages as f64,
        seconds,
        processor,
        simulated.program_bytes as f64,
        megabytes,
        worst as f64,
    ]
}

/// Returns the processor time of this process, which other programs affect only through the caches.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    // The name of the program is in parentheses, and may contain spaces.
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // Fields 14 and 15, in hundredths of a second: in user mode, and in the kernel.
    fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0)
        .sum()
}

/// Returns the peak memory of this process.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("Linux has it");
    // A kB of the kernel has 1,024 bytes.
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<f64>()
        .expect("a number")
        * 1_024.0
        / 1e6
}

fn measure_in_child(row: usize) -> [f64; 6] {
    let this = std::env::current_exe().expect("this program has a file");
    let output = Command::new(this)
        .args([CHILD, &row.to_string()])
        .output()
        .expect("it can be started again");
    let numbers = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = numbers
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    numbers.try_into().expect("six numbers")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let rows = rows();
    if let Some(at) = arguments.iter().position(|argument| argument == CHILD) {
        let row: usize = arguments[at + 1].parse().expect("a number");
        measure(&rows[row])
            .iter()
            .for_each(|number| println!("{number}"));
        return ExitCode::SUCCESS;
    }
    let asked = |option: &str| arguments.iter().any(|argument| argument == option);
    let wanted = if asked("--million") {
        rows.len()
    } else {
        rows.len() - 1
    };
    println!(
        "| ranks | algorithm | network | threads | messages, M | s | of processors | M/s | bytes per rank | of these program | peak, MB | worst error, ns |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut missed = vec![];
    for (i, row) in rows.iter().enumerate().take(wanted) {
        let [messages, seconds, processor, program, megabytes, worst] = measure_in_child(i);
        let (millions, ranks) = (messages / 1e6, f64::from(row.ranks));
        let rate = millions / seconds;
        println!(
            "| {} | {} | {} | {} | {millions:.1} | {seconds:.2} | {processor:.2} | {rate:.2} | {:.0} | {program} | {megabytes:.0} | {worst} |",
            row.ranks,
            row.label,
            row.name,
            row.threads,
            megabytes * 1e6 / ranks,
        );
        if rate < row.least_rate || seconds > row.most_seconds || megabytes > row.most_megabytes {
            missed.push(format!(
                "{} ranks, {}, {} threads: at least {} M/s, at most {} s and {} MB",
                row.ranks,
                row.name,
                row.threads,
                row.least_rate,
                row.most_seconds,
                row.most_megabytes
            ));
        }
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nmissed: {}", missed.join("; "));
    u8::from(asked("--gate")).into()
}
