//! `downbeat regions show -o`: reports as one HTML page with plots.

mod detail;
mod histogram;
mod strip;
mod summary;

use downbeat_regions::{ProfileReport, TextOptions};

use downbeat_common::page::Page;
use downbeat_common::page::bins::BinUnit;

/// Builds the page of named reports; headings contain the names if there are several.
pub(super) fn build(reports: &[(String, ProfileReport)], options: &TextOptions) -> Page {
    let mut page = Page::default();
    let several = reports.len() > 1;
    let id = |number: usize| format!("report-{number}");
    if several {
        let ids: Vec<String> = (1..=reports.len()).map(id).collect();
        let links: Vec<(&str, &str)> = ids
            .iter()
            .zip(reports)
            .map(|(id, (name, _))| (id.as_str(), name.as_str()))
            .collect();
        page.links(&links);
    }
    for (number, (name, report)) in (1..).zip(reports) {
        let unit = BinUnit::new(report.tick);
        if several {
            page.section(&id(number), name);
        }
        summary::write(&mut page, number, report, unit, options);
        if number == 1 && options.most_details > 0 {
            summary::explain(&mut page);
        }
        for (place, region) in (1..).zip(report.regions().into_iter().take(options.most_details)) {
            let heading = if several {
                format!("{name}: {}", region.name)
            } else {
                region.name.clone()
            };
            let id = summary::region_id(number, place);
            page.section(&id, &heading);
            detail::write(&mut page, &id, region, report.ranks, unit, options);
        }
    }
    page
}

/// Title of the page.
pub(super) fn title(reports: &[(String, ProfileReport)]) -> String {
    match reports {
        [(name, _)] => format!("Regions of {name}"),
        several => format!("Regions of {} reports", several.len()),
    }
}
