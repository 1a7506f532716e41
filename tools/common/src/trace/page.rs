//! HTML page of a correction or a check, with pictures of violations and of moved events.

mod intervals;
mod violations;

use std::path::{Path, PathBuf};

use clap::Args;

use super::document::stay_within_clocks;
use super::{ArchiveReport, Contents, DeviationReport, Document, LatencyReport};
use crate::page::Page;
use crate::units::counted;
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
        let mut remarks = self.contents.remarks() + &self.contents.archive.damage();
        remarks += &self.correction.map(conditions).unwrap_or_default();
        page.notes(remarks.lines());
        page.section("violations", "Violations");
        let arrivals = self.contents.totals.arrivals;
        let explicit = self
            .correction
            .map(|found| [found.explicitly_corrected, arrivals]);
        let bars = violations::picture(&self.stages, explicit);
        page.pictures([("violations", bars)]);
        page.table("Violations", &violations::table(&self.stages));
        violations::faults(page, &self.stages);
        if let Some((since, deviation)) = &self.deviation {
            page.section("intervals", &format!("{since}: changed intervals"));
            let shares = intervals::picture(&deviation.0);
            page.pictures([("shares-changed", shares)]);
            page.note(
                "The position of an event is the interval from the first event of its location, its distance that from the \
                 event before it.",
            );
            intervals::add_tables(page, &deviation.0);
        }
    }

    /// Adds the main results.
    fn headlines(&self, page: &mut Page) {
        let (wrong, within_clocks) = self.stages.last().map_or((0, 0), |(_, last)| {
            (last.count(), last.within_clocks.reversed)
        });
        let examined = match self.contents.archive.not_examined.is_empty() {
            true => "",
            false => " that was examined",
        };
        let verdict = match wrong {
            0 if within_clocks > 0 => format!(
                "No message and no collective operation{examined} between clocks violates its latency; {}.",
                stay_within_clocks(within_clocks)
            ),
            0 => format!("No message and no collective operation{examined} violates its latency."),
            wrong => format!(
                "There are {}.",
                counted(wrong as usize, "violation", "violations")
            ),
        };
        page.paragraph("lead", &verdict);
        if let Some((since, deviation)) = &self.deviation {
            page.paragraph("lead", &format!("{since}, {}", deviation.sentence()));
        }
        if let Some(truth) = self.correction.and_then(|document| document.truth.as_ref()) {
            page.paragraph("lead", &truth.sentence());
        }
    }
}

/// Formats what the correction was made with, in lines.
fn conditions(document: &Document) -> String {
    let archive = document.archive.as_ref().map(ArchiveReport::text);
    format!(
        "Pre-synchronization: {}\n{}{}{}{}",
        document.pre_synchronization.text(),
        document.pre_synchronization.remarks(),
        document.latencies.remarks(),
        document.passes_line(),
        archive.unwrap_or_default()
    )
}
