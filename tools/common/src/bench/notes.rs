//! Notes below the table of a launch, on what its figures do not show.

use downbeat_measure::processing::Percentile;
use downbeat_measure::{ClockChecks, MeasureError};

use super::summary::{GroupSummary, LeftOut};
use crate::output::{self, count, percent};
use crate::units;

/// Slack, as a multiple of a broadcast, above which it is worth a note.
const MUCH_SLACK: f64 = 4.0;

/// Returns all notes, each a line.
pub(super) fn notes(groups: &[GroupSummary]) -> String {
    let worst = [
        drift(groups),
        slack(groups),
        left_out(groups),
        dependence(groups),
        thinning(groups),
        percentiles(groups),
    ];
    let each = groups.iter().flat_map(|group| {
        let nothing_valid = nothing_valid(group).map(|why| format!("{why}."));
        let failure = failure(group).map(|why| format!("{why}."));
        [failure, nothing_valid, no_interval(group)]
    });
    let lines: Vec<String> = worst.into_iter().chain(each).flatten().collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}\n", lines.join("\n"))
}

/// Percentiles that are left out, because too few observations are above them.
fn percentiles(groups: &[GroupSummary]) -> Option<String> {
    let [first, later @ .., last] = Percentile::ALL;
    let lacks = |group: &GroupSummary| {
        group.figure(first.name).is_some() && group.figure(last.name).is_none()
    };
    let list = |of: fn(Percentile) -> String| {
        let later: Vec<String> = later.into_iter().map(of).collect();
        format!("{} and {}", later.join(", "), of(last))
    };
    groups.iter().any(lacks).then(|| {
        format!(
            "Percentiles {} need {} valid observations.",
            list(|one| one.name.to_owned()),
            list(|one| units::count(one.least as u64))
        )
    })
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
    let factor = |group: &GroupSummary| {
        let factor = group.figure("slack")? / group.figure("broadcast")?;
        Some(tenths(factor))
    };
    let (group, factor, times) = worst(groups, factor, MUCH_SLACK)?;
    Some(format!(
        "Ranks needed a slack of more than {MUCH_SLACK} broadcasts to start in time in {times}; the most, {factor:.1}, in {}.",
        named(group)
    ))
}

/// Calls that exceeded their window.
fn left_out(groups: &[GroupSummary]) -> Option<String> {
    let share = |group: &GroupSummary| group.left_out.as_ref().map(|left_out| left_out.share);
    let (group, share, times) = worst(groups, share, 0.0)?;
    let LeftOut {
        mean_lowered,
        median_lowered,
        ..
    } = group.left_out.as_ref()?;
    Some(format!(
        "Calls that exceed their window are left out in {times}; the most, {}, in {}: that lowers the mean by at most {}, the median \
         by {}, and hides quantiles above {}.",
        percent(share),
        named(group),
        percent(*mean_lowered),
        percent(*median_lowered),
        percent(1.0 - share)
    ))
}

/// Reason why a group was not measured.
pub(super) fn failure(group: &GroupSummary) -> Option<String> {
    let why = group.failure.as_ref()?;
    Some(format!("{}: {why}", named(group)))
}

/// Reason why a group has no figures.
pub(super) fn nothing_valid(group: &GroupSummary) -> Option<String> {
    (group.valid == 0 && group.all() > 0).then(|| {
        let why = MeasureError::NothingValid {
            late: group.late,
            long: group.long,
            drifted: group.drifted,
        };
        format!("{}: {why}", named(group))
    })
}

/// Observations that depend on those before them.
fn dependence(groups: &[GroupSummary]) -> Option<String> {
    /// Observations per independent one above which it is worth a note.
    const MANY: f64 = 10.0;
    let each = |group: &GroupSummary| Some(tenths(group.valid as f64 / group.effective?));
    let (group, each, times) = worst(groups, each, MANY)?;
    Some(format!(
        "Observations depend on those before them: more than {MANY} count as one in {times}; the most, {each:.1}, in {}.",
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

/// Rounds a figure as it is written: one that looks like the limit is not above it.
fn tenths(figure: f64) -> f64 {
    (10.0 * figure).round() / 10.0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_a_limit_looks_larger() {
        let of = |slack_ns: f64| {
            let figures = [("slack", slack_ns), ("broadcast", 1_000.0)];
            let group = GroupSummary {
                figures_ns: figures
                    .map(|(name, nanos)| (name.to_owned(), nanos))
                    .to_vec(),
                ..GroupSummary::default()
            };
            slack(&[group])
        };
        assert_eq!([4_000.0, 4_020.0].map(of), [None, None]);
        let note = of(4_080.0).unwrap();
        assert!(
            note.contains(
                "more than 4 broadcasts to start in time in 1 of 1 group; the most, 4.1, in"
            ),
            "{note}"
        );
    }
}
