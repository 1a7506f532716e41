//! `downbeat import`: results of other benchmark suites as records of launches.

mod target;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::cli::FactorOptions;
use downbeat_common::records::Factors;
use downbeat_common::{Failure, PrintOptions, Table, Text};
use downbeat_files::open;
use downbeat_records::Launch;
use downbeat_records::import::{AVERAGES, ImportFormat, ImportSettings, Imported, import};
use serde::Serialize;

use crate::experiments::launches;
use target::{STANDARD_INPUT, Source, Target};

#[derive(Args, Debug)]
#[command(
    after_help = "The suite of each file is recognized: osu (OSU Micro-Benchmarks), imb (Intel MPI Benchmarks), reprompi (raw data of \
                  ReproMPI) and hyperfine (its export as JSON). A file is one launch; if it has the output of several runs, \
                  the n-th output of an operation belongs to the n-th launch. Every run of hyperfine is a launch, and every \
                  command a folder of its own.\n\n\
                  OSU and IMB print averages of many calls, so that a launch has one observation for each size: `compare` \
                  tests whether launches differ, and needs several of them. Import each experiment into its own folder.\n\n\
                  Examples:\n  downbeat import openmpi-1.txt openmpi-2.txt --ranks 4 --out results/openmpi\n  \
                  downbeat import --from osu --factor library=MPICH - --ranks 4 --out results/mpich\n  \
                  hyperfine --export-json runs.json 'sort a' 'sort b'\n  downbeat import runs.json --out results/sort"
)]
pub(crate) struct ImportOptions {
    /// Files that a suite printed or exported, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Folder for the records, launch-001.csv and so on
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Suite of all files: osu, imb, reprompi or hyperfine [default: recognized]
    #[arg(long, value_name = "SUITE")]
    from: Option<ImportFormat>,
    /// Column of osu and imb that becomes the observation: avg, min, max or another one of the table; avg is what both suites
    /// always print, and max is the average of the slowest rank [default: avg]
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Number of ranks of outputs that do not state it, as those of osu
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    #[command(flatten)]
    factors: FactorOptions,
    /// Add launches to those of the folder; what was imported from the same file is not added again
    #[arg(long)]
    append: bool,
    #[command(flatten)]
    print: PrintOptions,
}

/// Content of a file that belongs into one folder.
#[derive(Debug, Serialize)]
struct ImportedRow {
    file: String,
    suite: &'static str,
    folder: String,
    launches: usize,
    groups: usize,
    observations: usize,
}

/// Imported files as one JSON document.
#[derive(Debug, Serialize)]
struct ImportReport<'a> {
    schema: &'static str,
    version: u32,
    files: &'a [ImportedRow],
    written: usize,
    unchanged: usize,
    notes: &'a [String],
}

pub(crate) fn run(options: &ImportOptions) -> Result<(), Failure> {
    refuse_repeated(&options.files)?;
    let (mut rows, mut targets, mut notes) = (Vec::new(), Vec::<Target>::new(), Vec::new());
    for file in &options.files {
        let found = options.read(file)?;
        notes.extend(found.left_out.iter().map(|operation| {
            let file = file.display();
            format!("{file}: the table of {operation} has no times and is left out")
        }));
        add(options, file, found, &mut rows, &mut targets)?;
    }
    // All are checked before the first is written.
    let planned = targets.iter().map(|target| target.plan(options.append));
    let planned = planned.collect::<Result<Vec<_>, _>>()?;
    let mut written = 0;
    for (target, names) in targets.iter().zip(&planned) {
        written += target.write(names)?;
    }
    let unchanged = planned.iter().flatten().count() - written;
    notes.extend(targets.iter().flat_map(worth));
    options.print.print(
        || ImportReport {
            schema: "downbeat.import",
            version: 1,
            files: &rows,
            written,
            unchanged,
            notes: &notes,
        },
        || render(&rows, [written, unchanged], &notes),
    )
}

/// A file that is given twice would be two launches with the same observations.
fn refuse_repeated(files: &[PathBuf]) -> Result<(), Failure> {
    let places: Vec<PathBuf> = files
        .iter()
        .map(|file| file.canonicalize().unwrap_or_else(|_| file.clone()))
        .collect();
    for (i, place) in places.iter().enumerate() {
        if places[..i].contains(place) {
            let file = files[i].display();
            return Err(Failure::Input(format!("{file}: this file is given twice")));
        }
    }
    Ok(())
}

impl ImportOptions {
    fn read(&self, file: &Path) -> Result<Imported, Failure> {
        let settings = ImportSettings {
            from: self.from,
            column: self.column.clone(),
            ranks: self.ranks,
        };
        let found = if file == Path::new(STANDARD_INPUT) {
            import(io::stdin().lock(), &settings)
        } else {
            import(
                open(file).map_err(|why| Failure::Input(why.to_string()))?,
                &settings,
            )
        };
        let shown = if file == Path::new(STANDARD_INPUT) {
            Path::new("standard input")
        } else {
            file
        };
        found.map_err(|flaw| Failure::Input(flaw.in_file(shown).to_string()))
    }
}

/// Sorts the launches of a file into the folders to which they belong.
fn add(
    options: &ImportOptions,
    file: &Path,
    found: Imported,
    rows: &mut Vec<ImportedRow>,
    targets: &mut Vec<Target>,
) -> Result<(), Failure> {
    let several = found.launches.len() > 1;
    let first_row = rows.len();
    for (i, imported) in found.launches.into_iter().enumerate() {
        let folder = imported
            .variant
            .as_ref()
            .map_or_else(|| options.out.clone(), |variant| options.out.join(variant));
        let shown = folder.display().to_string();
        let place = rows[first_row..]
            .iter()
            .position(|row| row.folder == shown)
            .map(|place| first_row + place);
        let place = place.unwrap_or_else(|| {
            rows.push(ImportedRow {
                file: file.display().to_string(),
                suite: found.format.name(),
                folder: shown,
                launches: 0,
                groups: 0,
                observations: 0,
            });
            rows.len() - 1
        });
        let row = &mut rows[place];
        row.launches += 1;
        row.groups = row.groups.max(imported.launch.groups.len());
        row.observations += imported
            .launch
            .groups
            .iter()
            .map(|group| group.nanos.len())
            .sum::<usize>();
        let source = Source {
            file: file.to_owned(),
            // Runs of hyperfine have a number of their own.
            output: (several && imported.variant.is_none()).then_some(i + 1),
        };
        let launch = stated(imported.launch, &source, &options.factors)?;
        let target = targets.iter().position(|target| target.folder() == folder);
        let target = target.unwrap_or_else(|| {
            targets.push(Target::new(folder));
            targets.len() - 1
        });
        targets[target].add(source, launch);
    }
    Ok(())
}

/// Adds the factors that the user states, and the source.
fn stated(mut launch: Launch, source: &Source, factors: &FactorOptions) -> Result<Launch, Failure> {
    launch.factors = factors.add_to(launch.factors, &format!(" in {}", source.file.display()))?;
    let mut facts = Factors::default().with("imported from", source);
    for (name, value) in launch.facts.iter() {
        facts = facts.with(name, &value);
    }
    launch.facts = facts;
    Ok(launch)
}

/// Notes on what the records of a folder are worth.
fn worth(target: &Target) -> Vec<String> {
    let folder = target.folder().display();
    let count =
        |is: &dyn Fn(&Launch) -> bool| target.launches().filter(|launch| is(launch)).count();
    let mut notes = Vec::new();
    let cut_off = count(&|launch| !launch.complete);
    if cut_off > 0 {
        notes.push(format!(
            "{folder}: the output of {} was cut off; what it has is recorded",
            launches(cut_off)
        ));
    }
    let failed = count(&|launch| {
        launch
            .facts
            .get("exit code")
            .is_some_and(|code| code != "0")
    });
    if failed > 0 {
        notes.push(format!(
            "{folder}: {} ended with another exit code than 0",
            launches(failed)
        ));
    }
    let averages = target
        .launches()
        .find_map(|launch| launch.facts.get(AVERAGES));
    if let Some(calls) = averages {
        notes.push(format!(
            "{folder}: observations are averages of {calls}: only launches can be compared"
        ));
    }
    notes
}

fn render(rows: &[ImportedRow], [written, unchanged]: [usize; 2], notes: &[String]) -> Text {
    let mut table = Table::new([
        "file",
        "suite",
        "folder",
        "launches",
        "groups",
        "observations",
    ])
    .named_by(1);
    for row in rows {
        table.row([
            row.file.clone(),
            row.suite.to_owned(),
            row.folder.clone(),
            row.launches.to_string(),
            row.groups.to_string(),
            row.observations.to_string(),
        ]);
    }
    let mut text = Text::default();
    text += table;
    let records = |number: usize| {
        if number == 1 {
            "1 record".to_owned()
        } else {
            format!("{number} records")
        }
    };
    let unchanged = match unchanged {
        0 => String::new(),
        number => format!(", {} as before", records(number)),
    };
    text += format!("\n{} written{unchanged}.\n", records(written));
    for note in notes {
        text += format!("Note: {note}.\n");
    }
    text
}
