//! Report of `downbeat clocks` as text.

use std::fmt::Write as _;

use downbeat_common::output::count;
use downbeat_common::{Table, Text};

use super::report::{
    ClocksReport, CoreAgreement, OrderingReport, SourceProperties, SourceReport, TscReport,
};

/// Width of the longest bar, in characters.
const BAR: usize = 10;

/// Renders the report as text, with bars for the read costs if `bars` is true.
pub(crate) fn render(report: &ClocksReport, bars: bool) -> Text {
    let machine = &report.machine;
    let mut text = Text::from(format!(
        "Time sources of {} ({}), {} on {}{}\n\n",
        if machine.cpu_model == "unknown" {
            "an unknown processor"
        } else {
            &machine.cpu_model
        },
        machine.architecture,
        count(machine.cores.len(), "core"),
        machine.sockets.map_or_else(
            || "an unknown number of sockets".to_owned(),
            |sockets| count(sockets, "socket")
        ),
        machine
            .hypervisor
            .as_ref()
            .map(|host| format!(", under {host}"))
            .unwrap_or_default(),
    ));
    text += sources(&report.sources, bars);
    for source in &report.sources {
        if let Some(why) = &source.unavailable {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(text, "{}: not available: {why}", source.name);
        }
    }
    text += "\nread, 99 %: median and 99th percentile of the read cost. step: smallest difference between consecutive readings.\n\
             grain: step of the counter. cores: upper limit of the difference between two cores.\n\n";
    text += tsc(&report.tsc);
    text += report.health.kernel_text();
    text += "\n";
    let _ = writeln!(
        text,
        "Recommended: {}\n  {}",
        report.recommended.source, report.recommended.why
    );
    text
}

fn sources(sources: &[SourceReport], bars: bool) -> Table {
    let all: Vec<(&SourceReport, &SourceProperties)> = sources
        .iter()
        .filter_map(|source| Some((source, source.found.as_ref()?)))
        .collect();
    let highest = all
        .iter()
        .map(|(_, found)| found.read_cost_median_ns)
        .fold(0.0, f64::max);
    let mut table = Table::new([
        "source", "read", "99 %", "order", "step", "grain", "rate", "cores",
    ]);
    for (source, found) in all {
        let cost = nanos(Some(found.read_cost_median_ns));
        table.row([
            source.name.clone(),
            if bars {
                format!("{} {cost}", bar(found.read_cost_median_ns / highest))
            } else {
                cost
            },
            nanos(Some(found.read_cost_p99_ns)),
            order(found.ordering).to_owned(),
            nanos(found.resolution_ns),
            nanos(found.grain_ns),
            steadiness(found),
            agreement(&found.cores),
        ]);
    }
    table
}

fn nanos(value: Option<f64>) -> String {
    match value {
        None => "never moved".to_owned(),
        Some(nanos) if nanos < 100.0 => format!("{nanos:.1} ns"),
        Some(nanos) if nanos < 1e4 => format!("{nanos:.0} ns"),
        Some(nanos) if nanos < 1e7 => format!("{:.0} us", nanos / 1e3),
        Some(nanos) => format!("{:.0} ms", nanos / 1e6),
    }
}

/// Draws a bar in eighths of a character, padded with blanks.
fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{:<BAR$}", "█".repeat(eighths / 8) + part)
}

fn order(ordering: OrderingReport) -> &'static str {
    match ordering {
        OrderingReport::Unordered => "none",
        OrderingReport::Ordered => "ordered",
        OrderingReport::Fenced => "fenced",
    }
}

fn steadiness(found: &SourceProperties) -> String {
    // A clock that can be set is adjusted, too.
    let mut words = match (found.can_step, found.slewed) {
        (true, _) => "can step",
        (false, true) => "adjusted",
        (false, false) => "its own",
    }
    .to_owned();
    if found.backwards > 0 {
        words += ", RAN BACKWARDS";
    }
    words
}

fn agreement(cores: &CoreAgreement) -> String {
    match cores {
        CoreAgreement::Same { within_ns, .. } => format!("<= {}", nanos(Some(*within_ns as f64))),
        CoreAgreement::Differ {
            core,
            reference,
            offset_ns,
            half_width_ns,
        } => {
            format!("core {core} is {offset_ns:+} +- {half_width_ns} ns from {reference}")
        }
        CoreAgreement::OneCore => "one core".to_owned(),
        CoreAgreement::Unknown { why } => format!("unknown: {why}"),
    }
}

fn tsc(tsc: &TscReport) -> String {
    let mut text = String::new();
    if let Some(calibration) = &tsc.calibration {
        let _ = writeln!(
            text,
            "{}: {:.0} ticks per second of {}, steady to {:.4} ppm, certain to {:.4} ppm{}",
            calibration.title,
            calibration.ticks_per_second,
            calibration.against,
            calibration.steady_ppm,
            calibration.certain_ppm,
            calibration
                .loaded_from
                .as_ref()
                .map_or(String::new(), |file| format!(", by {file}"))
        );
    }
    if let Some(facts) = &tsc.facts {
        let yes = |there| if there { "yes" } else { "no" };
        let _ = write!(
            text,
            "  invariant {}, TSC_ADJUST {}",
            yes(facts.invariant),
            yes(facts.tsc_adjust)
        );
        if let Some(hz) = facts.stated_hz {
            let _ = write!(text, ", stated frequency {:.6} GHz", hz as f64 / 1e9);
        }
        if let Some(kernel) = &facts.kernel {
            let _ = write!(
                text,
                "; kernel: clocksource {}, constant {}, nonstop {}, known frequency {}",
                kernel.clocksource,
                yes(kernel.constant_tsc),
                yes(kernel.nonstop_tsc),
                yes(kernel.tsc_known_freq)
            );
        }
        text.push('\n');
    }
    for doubt in &tsc.doubts {
        let _ = writeln!(text, "  warning: {doubt}");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_bar_is_its_share() {
        assert_eq!(bar(1.0), "█".repeat(BAR));
        assert_eq!(bar(0.0), " ".repeat(BAR));
        assert_eq!(bar(1.0 / 96.0).trim_end(), "▏");
        assert_eq!(bar(f64::NAN), " ".repeat(BAR));
    }

    #[test]
    fn nanoseconds_keep_their_significant_digits() {
        assert_eq!(nanos(Some(9.53)), "9.5 ns");
        assert_eq!(nanos(Some(1_000.4)), "1000 ns");
        assert_eq!(nanos(Some(4e6)), "4000 us");
        assert_eq!(nanos(Some(12e6)), "12 ms");
        assert_eq!(nanos(None), "never moved");
    }
}
