//! HTML page of a correction or a check, with pictures of violations and of moved events.

mod intervals;
mod violations;

use std::path::{Path, PathBuf};

use clap::Args;

use super::document::control_factor;
use super::{ArchiveReport, Contents, DeviationReport, Document, LatencyReport, TruthStages};
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
    /// Minimum latencies of messages.
    pub latencies: &'a LatencyReport,
    /// Violations at each stage, in order.
    pub stages: Vec<ViolationStage<'a>>,
    /// Changes of times, and the stage to which they refer, if times were changed.
    pub deviation: Option<(String, &'a DeviationReport)>,
    /// Report of the correction, unless this is a check.
    pub correction: Option<&'a Document>,
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
    /// Creates the contents for a correction.
    pub fn correction(document: &'a Document) -> Self {
        Self {
            contents: &document.contents,
            latencies: &document.latencies,
            stages: vec![
                ("as measured", &document.as_measured),
                ("pre-synchronized", &document.pre_synchronized),
                ("corrected", &document.corrected),
            ],
            deviation: Some(("Since pre-synchronization".to_owned(), &document.deviation)),
            correction: Some(document),
        }
    }

    fn fill(&self, page: &mut Page) {
        self.headlines(page);
        page.note(&self.contents.counts());
        let latencies = self.latencies.text();
        page.note(&format!("Minimum latencies of messages: {latencies}"));
        let mut remarks = self.contents.remarks();
        remarks += &self.correction.map(conditions).unwrap_or_default();
        remarks.lines().for_each(|line| page.note(line));
        page.section("violations", "Violations");
        let arrivals = self.contents.totals.arrivals;
        let explicit = self
            .correction
            .map(|found| [found.explicitly_corrected, arrivals]);
        let bars = violations::picture(&self.stages, explicit);
        page.pictures([("violations".to_owned(), bars)]);
        page.table(&violations::table(&self.stages));
        violations::faults(page, &self.stages);
        if let Some((since, deviation)) = &self.deviation {
            page.section("intervals", &format!("{since}: changed intervals"));
            let shares = intervals::picture(&deviation.0);
            page.pictures([("shares-changed".to_owned(), shares)]);
            page.note(
                "The position of an event is the interval from the first event of its location, its distance that from the \
                 event before it.",
            );
            for table in intervals::tables(&deviation.0) {
                page.table(&table);
            }
        }
        let Some(document) = self.correction else {
            return;
        };
        add_truth(page, document.truth.as_ref());
        if !document.passes.is_empty() {
            page.section("passes", "Passes");
            page.table(&passes(document));
        }
    }

    /// Adds the main results.
    fn headlines(&self, page: &mut Page) {
        let wrong = self.stages.last().map_or(0, |(_, last)| last.count());
        let examined = match self.contents.archive.not_examined.is_empty() {
            true => "",
            false => " that was examined",
        };
        let verdict = match wrong {
            0 => format!("No message and no collective operation{examined} violates its latency."),
            wrong => format!(
                "There are {}.",
                counted(wrong as usize, "violation", "violations")
            ),
        };
        page.paragraph("lead", &verdict);
        if let Some((since, deviation)) = &self.deviation {
            let found = &deviation.0.displacement;
            let text = format!(
                "{since}, {} of {} events ({}) were moved, by {} at most; {} is the mean of all.",
                count(found.moved),
                count(found.events),
                deviation.moved_share(),
                time(found.largest.as_nanos() as f64),
                time(found.mean())
            );
            page.paragraph("lead", &text);
        }
        if let Some(truth) = self.correction.and_then(|document| document.truth.as_ref()) {
            let [before, after] =
                [truth.pre_synchronized, truth.corrected].map(|found| time(found.centred()));
            let text =
                format!("Without bias, the error against the truth went from {before} to {after}.");
            page.paragraph("lead", &text);
        }
    }
}

/// Formats what the correction was made with, in lines.
fn conditions(document: &Document) -> String {
    let archive = document.archive.as_ref().map(ArchiveReport::text);
    format!(
        "Pre-synchronization: {}\n{}{}{}",
        document.pre_synchronization.text(),
        document.pre_synchronization.remarks(),
        document.latencies.remarks(),
        archive.unwrap_or_default()
    )
}

/// Adds the errors against the true times, if these are known.
fn add_truth(page: &mut Page, truth: Option<&TruthStages>) {
    let Some(truth) = truth else {
        return;
    };
    page.section("truth", "Error against the truth");
    let headings = ["times", "bias", "without bias", "at most, without bias"];
    let mut table = HtmlTable::of_numbers("Error against the truth", headings);
    for (stage, found) in [
        ("pre-synchronized", truth.pre_synchronized),
        ("corrected", truth.corrected),
    ] {
        let cells = [found.bias(), found.centred(), found.largest_centred()].map(time);
        table.row([stage.to_owned()].into_iter().chain(cells));
    }
    page.table(&table);
    page.note(
        "A correction only moves events forward, so all of them are ahead of the truth on average: this is the \
         bias, which does no harm within the trace. The remaining error does.",
    );
}

fn passes(document: &Document) -> HtmlTable {
    let headings = ["pass", "control factor", "events moved by up to"];
    let mut table = HtmlTable::of_numbers("Passes", headings);
    for (number, pass) in (1..).zip(&document.passes) {
        table.row([
            number.to_string(),
            control_factor(pass.control),
            time(pass.largest_displacement_nanos as f64),
        ]);
    }
    table
}
