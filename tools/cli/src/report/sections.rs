//! Sections of the page, one per file.

mod comparison;
mod conditions;
mod distributions;
mod headline;
mod launches;
mod medians;
mod orders;
mod states;
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
        ("states", "States"),
        ("conditions", "Conditions"),
        ("tables", "Tables"),
    ];
    let states = states::split(experiments);
    sections.retain(|(id, _)| match *id {
        "comparison" => !compared.is_empty(),
        "states" => states.is_some(),
        _ => true,
    });
    page.links(&sections);
    medians::write(page, experiments, &operations);
    comparison::write(page, experiments, &operations, &compared);
    launches::write(page, experiments, &operations);
    distributions::write(page, experiments, &operations);
    orders::write(page, experiments, &operations);
    if let Some(states) = &states {
        states::write(page, experiments, states);
    }
    conditions::write(page, experiments);
    tables::write(page, experiments, &operations);
    headline::title(experiments)
}
