//! HTML page of a correction or a check, with pictures of violations and of moved events.

mod intervals;
mod truth;
mod violations;

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_clock_core::Duration;

use super::{
    ArchiveReport, Contents, DeviationReport, Document, LatencyReport, PassReport, TruthStages,
    percent,
};
use crate::page::{HtmlTable, Page};
use crate::units::{count, counted, time};
use crate::{Failure, Outputs};
use violations::ViolationStage;

/// Output options of the page.
#[derive(Args, Debug)]
pub struct PageOptions {
    /// Also write an HTML page with pictures to this file
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Also write every picture of the page to this folder, as a separate file
    #[arg(long, value_name = "DIR", requires = "page")]
    svg: Option<PathBuf>,
}

/// Contents of the page.
#[derive(Debug)]
pub struct PageContents<'a> {
    /// Number of items of each kind in the trace.
    pub contents: &'a Contents,
    /// Further information, in lines.
    pub conditions: String,
    /// Minimum latencies of messages.
    pub latencies: &'a LatencyReport,
    /// Violations at each stage, in order.
    pub stages: Vec<ViolationStage<'a>>,
    /// Number of receives and exits that were corrected explicitly.
    pub corrected: Option<usize>,
    /// Passes of the correction, in order; the last one is the result.
    pub passes: &'a [PassReport],
    /// Stage to which deviations refer.
    pub since: String,
    /// Changes of times, if they were changed.
    pub deviation: Option<&'a DeviationReport>,
    /// Errors against the true times, if these are known.
    pub truth: Option<&'a TruthStages>,
    /// Names of locations.
    pub names: &'a [String],
}

impl PageOptions {
    /// Adds the page and the folder of its pictures to the outputs of the command.
    ///
    /// # Errors
    /// Names the option and the reason.
    pub fn add_to(&self, outputs: &mut Outputs) -> Result<(), Failure> {
        let Some(page) = &self.page else {
            return Ok(());
        };
        if page == Path::new("-") {
            return Err(Failure::option(
                "--page",
                "standard output is for the text; the page needs a file",
            ));
        }
        outputs.file("--page", page)?;
        match &self.svg {
            Some(folder) => outputs.folder("--svg", folder, "svg"),
            None => Ok(()),
        }
    }

    /// Writes the page, if requested.
    ///
    /// # Errors
    /// When a file cannot be created or written, with the option that named it.
    pub fn write(&self, title: &str, shown: &PageContents<'_>) -> Result<(), Failure> {
        let Some(output) = &self.page else {
            return Ok(());
        };
        let mut page = Page::default();
        shown.fill(&mut page);
        page.write(title, "--page", output, self.svg.as_deref())
    }
}

impl<'a> PageContents<'a> {
    /// Creates the contents for a correction, given the names of locations.
    pub fn correction(document: &'a Document, names: &'a [String]) -> Self {
        let archive = document.archive.as_ref().map(ArchiveReport::text);
        Self {
            contents: &document.contents,
            conditions: format!(
                "Pre-synchronization: {}\n{}{}{}",
                document.pre_synchronization.text(),
                document.pre_synchronization.remarks(),
                document.latencies.remarks(),
                archive.unwrap_or_default()
            ),
            latencies: &document.latencies,
            stages: vec![
                ("as measured", &document.as_measured),
                ("pre-synchronized", &document.pre_synchronized),
                ("corrected", &document.corrected),
            ],
            corrected: Some(document.explicitly_corrected),
            passes: &document.passes,
            since: "Since pre-synchronization".to_owned(),
            deviation: Some(&document.deviation),
            truth: document.truth.as_ref(),
            names,
        }
    }

    fn fill(&self, page: &mut Page) {
        self.headlines(page);
        page.note(&self.contents.counts());
        let remarks = self.contents.remarks();
        for line in remarks.lines().chain(self.conditions.lines()) {
            page.note(line);
        }
        page.section("violations", "Violations");
        let corrected = self
            .corrected
            .map(|corrected| (corrected, self.contents.arrivals));
        page.pictures([(
            "violations".to_owned(),
            violations::picture(&self.stages, corrected),
        )]);
        page.table(&violations::table(&self.stages));
        violations::faults(page, &self.stages);
        if let Some(deviation) = self.deviation {
            self.changes(page, deviation);
        }
        if let Some(found) = self.truth {
            page.section("truth", "Error against the truth");
            page.table(&truth::table(found));
            page.note(
                "A correction only moves events forward, so all of them are ahead of the truth on average: this is the \
                 bias, which does no harm within the trace. The remaining error does.",
            );
        }
        page.section("settings", "Latencies and passes");
        page.table(&latencies(self.latencies));
        page.table(&passes(self.passes));
    }

    /// Adds the main results.
    fn headlines(&self, page: &mut Page) {
        let Some((_, last)) = self.stages.last() else {
            return;
        };
        page.paragraph(
            "lead",
            &match last.count() {
                0 if !self.contents.not_examined.is_empty() => {
                    "No message and no collective operation that was examined violates its latency."
                        .to_owned()
                }
                0 => "No message and no collective operation violates its latency.".to_owned(),
                wrong => format!(
                    "There are {}.",
                    counted(wrong as usize, "violation", "violations")
                ),
            },
        );
        if let Some(DeviationReport {
            displacement: found,
            ..
        }) = self.deviation
        {
            let share = percent(found.moved as f64 / found.events.max(1) as f64);
            let moved = format!(
                "{} of {} events ({share})",
                count(found.moved),
                count(found.events)
            );
            let [most, mean] = [found.largest_nanos as f64, found.mean_nanos].map(time);
            let since = &self.since;
            page.paragraph(
                "lead",
                &format!(
                    "{since}, {moved} were moved, by {most} at most; {mean} is the mean of all."
                ),
            );
        }
        if let Some(TruthStages {
            pre_synchronized,
            corrected,
            ..
        }) = self.truth
        {
            let [before, after] =
                [pre_synchronized, corrected].map(|error| time(error.centred_nanos));
            page.paragraph(
                "lead",
                &format!(
                    "Without bias, the error against the truth went from {before} to {after}."
                ),
            );
        }
    }

    fn changes(&self, page: &mut Page, deviation: &DeviationReport) {
        page.section("intervals", &format!("{}: changed intervals", self.since));
        let shares = intervals::picture(deviation);
        page.pictures([("shares-changed".to_owned(), shares)]);
        page.note(
            "The position of an event is the interval from the first event of its location, its distance that from the \
             event before it.",
        );
        intervals::tables(deviation)
            .iter()
            .for_each(|table| page.table(table));
    }
}

fn latencies(found: &LatencyReport) -> HtmlTable {
    let caption = format!("Minimum latencies of messages ({})", found.source);
    let mut table = HtmlTable::of_numbers(&caption, ["in a process", "on a node", "between nodes"]);
    let levels = [
        found.same_process_nanos,
        found.same_node_nanos,
        found.other_node_nanos,
    ];
    table.row(levels.map(|nanos| Duration::from_nanos(nanos).to_string()));
    table
}

fn passes(passes: &[PassReport]) -> HtmlTable {
    let mut table = HtmlTable::of_numbers(
        "Passes",
        ["pass", "control factor", "events moved by up to"],
    );
    for (
        number,
        PassReport {
            control,
            largest_displacement_nanos,
        },
    ) in (1..).zip(passes)
    {
        table.row([
            number.to_string(),
            super::document::control_factor(*control),
            time(*largest_displacement_nanos as f64),
        ]);
    }
    table
}
