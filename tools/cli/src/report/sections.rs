//! The parts of the page, one per file, in the order in which they are read.

mod comparison;
mod conditions;
mod distributions;
mod headline;
mod medians;
mod orders;
mod tables;

use super::measured::Experiments;
use downbeat_common::page::Page;

/// The title of the page and all that is on it.
pub(crate) fn fill(page: &mut Page, experiments: &Experiments) -> String {
    let kinds = experiments.kinds();
    let compared = comparison::compare(experiments);
    headline::write(page, experiments, &kinds, &compared);
    let mut sections = vec![
        ("medians", "Run-times"),
        ("comparison", "Comparison"),
        ("distributions", "Distributions"),
    ];
    sections.extend([
        ("order", "Order"),
        ("conditions", "Conditions"),
        ("tables", "Tables"),
    ]);
    sections.retain(|(id, _)| *id != "comparison" || !compared.is_empty());
    page.links(&sections);
    medians::write(page, experiments, &kinds);
    comparison::write(page, experiments, &kinds, &compared);
    distributions::write(page, experiments, &kinds);
    orders::write(page, experiments, &kinds);
    conditions::write(page, experiments);
    tables::write(page, experiments, &kinds);
    headline::title(experiments)
}
