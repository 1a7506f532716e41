//! Notes below the table of a launch, on what its figures do not show.

use downbeat_measure::ClockChecks;

use super::summary::GroupSummary;
use crate::output::{self, count, percent};

/// Slack, as a multiple of a broadcast, above which it is worth a note.
const MUCH_SLACK: f64 = 4.0;

/// Returns all notes, each a line.
pub(super) fn notes(groups: &[GroupSummary]) -> String {
    let worst = [
        drift(groups),
        slack(groups),
        dependence(groups),
        thinning(groups),
    ];
    let each = groups
        .iter()
        .flat_map(|group| [no_interval(group), discarded(group)]);
    let lines: Vec<String> = worst.into_iter().chain(each).flatten().collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}\n", lines.join("\n"))
}

/// Names a group.
fn named(group: &GroupSummary) -> String {
    format!(
        "{}, {} bytes, {}",
        group.operation,
        group.bytes,
        count(group.ranks as usize, "rank")
    )
}

/// Measurements that were discarded because of `--within`.
fn discarded(group: &GroupSummary) -> Option<String> {
    let figures: Vec<String> = group
        .discarded_ns
        .iter()
        .map(|ns| output::time(*ns))
        .collect();
    (!figures.is_empty()).then(|| {
        format!(
            "{}: --within discarded {}: {}.",
            named(group),
            count(figures.len(), "measurement"),
            figures.join(", ")
        )
    })
}

/// Clocks that may have drifted by more than the permitted share of a figure.
fn drift(groups: &[GroupSummary]) -> Option<String> {
    let share = |group: &GroupSummary| Some(group.figure(ClockChecks::DRIFT)? / group.reported()?);
    let (group, share, times) = worst(groups, share, ClockChecks::PERMITTED_SHARE)?;
    let drift = output::time(group.figure(ClockChecks::DRIFT)?);
    Some(format!(
        "Clocks may have drifted by more than {} of a time in {times}; the most by {drift} ({}) in {}.",
        percent(ClockChecks::PERMITTED_SHARE),
        percent(share),
        named(group)
    ))
}

/// Starts of rounds that were announced long before, because ranks were late.
fn slack(groups: &[GroupSummary]) -> Option<String> {
    let factor = |group: &GroupSummary| Some(group.figure("slack")? / group.figure("broadcast")?);
    let (group, factor, times) = worst(groups, factor, MUCH_SLACK)?;
    Some(format!(
        "Ranks needed a slack of more than {MUCH_SLACK} broadcasts to start in time in {times}; the most, {factor:.0}, in {}.",
        named(group)
    ))
}

/// Observations that depend on those before them.
fn dependence(groups: &[GroupSummary]) -> Option<String> {
    /// Observations per independent one above which it is worth a note.
    const MANY: f64 = 10.0;
    let each = |group: &GroupSummary| Some(group.valid as f64 / group.effective?);
    let (group, each, times) = worst(groups, each, MANY)?;
    Some(format!(
        "Observations depend on those before them: more than {MANY} count as one in {times}; the most, {each:.0}, in {}.",
        named(group)
    ))
}

/// Observations that were not kept.
fn thinning(groups: &[GroupSummary]) -> Option<String> {
    let each = |group: &GroupSummary| Some(f64::from(group.made) / group.all() as f64);
    let (group, _, times) = worst(groups, each, 1.0)?;
    Some(format!(
        "Evenly spaced observations were kept in {times}; the most, {}, were made in {}.",
        group.made,
        named(group)
    ))
}

/// Observations whose mean has no interval.
fn no_interval(group: &GroupSummary) -> Option<String> {
    let why = group.no_interval.as_ref()?;
    Some(format!("{}: no interval of the mean: {why}.", named(group)))
}

/// Returns the group of which a figure is greatest, that figure, and the groups in which it is above a limit.
fn worst(
    groups: &[GroupSummary],
    figure: impl Fn(&GroupSummary) -> Option<f64>,
    limit: f64,
) -> Option<(&GroupSummary, f64, String)> {
    let above = groups
        .iter()
        .filter_map(|group| Some((group, figure(group)?)))
        .filter(|(_, figure)| *figure > limit);
    let above: Vec<_> = above.collect();
    let worst = above.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let times = format!("{} of {}", above.len(), count(groups.len(), "group"));
    Some((worst.0, worst.1, times))
}
