//! Cost of recording: time that a tracer adds to an event, in that of one `rdtscp`, and
//! bytes on disk for each call. EZTrace cannot be switched within a run: its added time
//! is that of launches with and without it, in turns, and ours is also found like that.

use std::path::Path;
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command, succeeds_quietly};
use downbeat_launch::mpi::MpiLibrary;

use crate::recorder::{Recorder, bytes_on_disk};

const TURNS: usize = 9;
/// Figures of `overhead.c`, as it names them.
const FIGURES: [&str; 2] = ["MPI_Send to MPI_PROC_NULL / 2", "8-byte ping-pong / 4"];
/// Largest allowed added time of ours, of each figure.
const PROMISED: f64 = 1.3;

/// Arguments of `many.c`: every call is one of a ping-pong.
const PING_PONGS: [&str; 3] = ["1", "200000", "0"];
const BYTES: &str = "bytes on disk per call with its message";
/// Largest allowed bytes on disk of ours for each call with its message.
const PROMISED_BYTES: f64 = 24.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tracer {
    Ours,
    EzTrace,
}

/// A tracer with a way to find what it adds, and the added time of each figure in each
/// turn.
struct Contestant {
    name: &'static str,
    tracer: Tracer,
    is_switched: bool,
    added: [Vec<f64>; 2],
}

/// Compares the tracers over the library that the environment names.
pub(crate) fn print_table(gate: bool) -> Outcome {
    let recorder = Recorder::find()?;
    let contestants = added_times(&recorder)?;
    let many = recorder.compile("many")?;
    let of_tracer = |tracer| bytes_per_call(&recorder, &many, tracer);
    let ours = of_tracer(Tracer::Ours)?;
    let is_compared = Tracer::EzTrace.is_installed();
    let eztrace = is_compared
        .then(|| of_tracer(Tracer::EzTrace))
        .transpose()?;

    let mut table = Table::begin(recorder.library());
    for (index, figure) in FIGURES.into_iter().enumerate() {
        for contestant in &contestants {
            let name = format!("{figure}: {}", contestant.name);
            let promised = contestant.is_switched.then_some(PROMISED);
            table.row(&name, &contestant.added[index], promised);
        }
    }
    table.row(&format!("{BYTES}: ours"), &[ours], Some(PROMISED_BYTES));
    match eztrace {
        Some(bytes) => table.row(&format!("{BYTES}: EZTrace"), &[bytes], None),
        None => println!("| EZTrace: not installed | | | | |"),
    }
    table.finish(gate)
}

impl Tracer {
    fn is_installed(self) -> bool {
        match self {
            Self::Ours => true,
            Self::EzTrace => succeeds_quietly("eztrace_avail"),
        }
    }

    /// Returns the command of a rank whose recording goes to the folder `out`.
    fn rank(self, recorder: &Recorder, out: &Path, program: &Command) -> Command {
        match self {
            Self::Ours => recorder.record_rank(out, program),
            Self::EzTrace => {
                let mut eztrace = command("eztrace -t");
                eztrace.arg(recorder.library().suffix()).arg("-o").arg(out);
                shell::started_by(eztrace, program)
            }
        }
    }
}

/// Runs the program under each tracer and without, in turns.
fn added_times(recorder: &Recorder) -> Result<Vec<Contestant>, String> {
    let program = recorder.compile("overhead")?;
    let [mut switched, mut whole] = [Command::new(&program), Command::new(&program)];
    switched.arg("switched");
    whole.arg("whole");
    let contestant = |name, tracer, is_switched| Contestant {
        name,
        tracer,
        is_switched,
        added: Default::default(),
    };
    let mut contestants = vec![
        contestant("ours, switched in a run", Tracer::Ours, true),
        contestant("ours, launches in turns", Tracer::Ours, false),
        contestant("EZTrace, launches in turns", Tracer::EzTrace, false),
    ];
    contestants.retain(|contestant| contestant.tracer.is_installed());
    for _ in 0..TURNS {
        let without = medians(&mut recorder.launched(&whole))?;
        for contestant in &mut contestants {
            let is_switched = contestant.is_switched;
            let program = if is_switched { &switched } else { &whole };
            let out = recorder.absent("overhead-recorded");
            let rank = contestant.tracer.rank(recorder, &out, program);
            let with = medians(&mut recorder.launched(&rank))?;
            for (figure, added) in contestant.added.iter_mut().enumerate() {
                let base = if is_switched { 0.0 } else { without[figure] };
                added.push(with[figure] - base);
            }
        }
    }
    Ok(contestants)
}

/// Runs the program, and returns the median of each of its figures.
fn medians(job: &mut Command) -> Result<[f64; 2], String> {
    let text = shell::read(job)?;
    let median = |figure: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(figure))?;
        rest.split_whitespace().nth(1)?.parse().ok()
    };
    match FIGURES.map(median) {
        [Some(send), Some(ping_pong)] => Ok([send, ping_pong]),
        _ => Err(format!("no medians: {text}")),
    }
}

fn bytes_per_call(recorder: &Recorder, many: &Path, tracer: Tracer) -> Result<f64, String> {
    let out = recorder.absent("bytes-recorded");
    let mut program = Command::new(many);
    program.args(PING_PONGS);
    let text = shell::read(&mut recorder.launched(&tracer.rank(recorder, &out, &program)))?;
    let calls = text.split_once(" calls, ").map(|(calls, _)| calls);
    let calls: Option<f64> = calls.and_then(|calls| calls.trim().parse().ok());
    let calls = calls.ok_or_else(|| format!("no number of calls: {text}"))?;
    Ok(bytes_on_disk(&out)? as f64 / calls)
}

/// Table of figures, and the names of those that miss their bound.
struct Table {
    missed: Vec<String>,
}

impl Table {
    fn begin(library: MpiLibrary) -> Self {
        println!(
            "Added time per event in that of one rdtscp; {TURNS} launches each.\n\n\
             | over {} | median | least | greatest | must not exceed |\n|---|---|---|---|---|",
            library.name()
        );
        Self { missed: vec![] }
    }

    fn row(&mut self, name: &str, found: &[f64], promised: Option<f64>) {
        let mut found = found.to_vec();
        found.sort_by(f64::total_cmp);
        let median = found[found.len() / 2];
        let cells = if let [one] = found[..] {
            format!("{one:.1} | |")
        } else {
            format!(
                "{median:.2} | {:.2} | {:.2}",
                found[0],
                found[found.len() - 1]
            )
        };
        let bound = promised.map(|promised| promised.to_string());
        println!("| {name} | {cells} | {} |", bound.unwrap_or_default());
        if promised.is_some_and(|promised| median > promised) {
            self.missed.push(name.to_owned());
        }
    }

    fn finish(self, gate: bool) -> Outcome {
        if gate && !self.missed.is_empty() {
            Err(format!("missed: {}", self.missed.join(", ")))
        } else {
            Ok(())
        }
    }
}
