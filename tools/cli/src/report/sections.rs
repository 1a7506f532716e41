//! Sections of the page, one per file.

mod comparison;
mod conditions;
mod distributions;
mod headline;
mod launches;
mod medians;
mod orders;
mod tables;

use super::measured::Experiments;
use downbeat_common::page::Page;

/// Writes all sections; returns the title of the page.
pub(crate) fn fill(page: &mut Page, experiments: &Experiments) -> String {
    let operations = experiments.operations();
    let compared = comparison::compare(experiments);
    headline::write(page, experiments, &operations, &compared);
    let mut sections = vec![
        ("medians", "Run-times"),
        ("comparison", "Comparison"),
        ("launches", "Launches"),
        ("distributions", "Distributions"),
        ("order", "Order"),
        ("conditions", "Conditions"),
        ("tables", "Tables"),
    ];
    sections.retain(|(id, _)| *id != "comparison" || !compared.is_empty());
    page.links(&sections);
    medians::write(page, experiments, &operations);
    comparison::write(page, experiments, &operations, &compared);
    launches::write(page, experiments, &operations);
    distributions::write(page, experiments, &operations);
    orders::write(page, experiments, &operations);
    conditions::write(page, experiments);
    tables::write(page, experiments, &operations);
    headline::title(experiments)
}
