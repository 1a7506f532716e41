//! Events of a location, and their order.

use core::cmp::Reverse;

use crate::Event;

/// Interval in a region, which may never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) begin: i64,
    pub(super) end: Option<i64>,
    pub(super) region: u32,
}

/// Order of events at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// End of an interval that began before; the inner ones first.
    Left {
        begun: Reverse<i64>,
    },
    /// Begin of an interval; the outer ones first.
    Entered {
        end: Reverse<i64>,
    },
    Point,
    /// End of an interval without a duration; the inner ones first.
    Empty {
        index: Reverse<usize>,
    },
}

/// Returns all events in their order: intervals are nested as far as possible, and points at the begin
/// of an interval are inside of it.
pub(super) fn ordered<'a>(
    intervals: &[Interval],
    points: impl Iterator<Item = (i64, Event<'a>)>,
) -> Vec<(i64, Event<'a>)> {
    let mut all: Vec<((i64, Rank), Event<'a>)> = vec![];
    for (index, interval) in intervals.iter().enumerate() {
        let Interval { begin, end, region } = *interval;
        let entered = Rank::Entered {
            end: Reverse(end.unwrap_or(i64::MAX)),
        };
        all.push(((begin, entered), Event::Enter { region }));
        if let Some(end) = end {
            let rank = match end > begin {
                true => Rank::Left {
                    begun: Reverse(begin),
                },
                false => Rank::Empty {
                    index: Reverse(index),
                },
            };
            all.push(((end.max(begin), rank), Event::Leave { region }));
        }
    }
    all.extend(points.map(|(time, event)| ((time, Rank::Point), event)));
    // Stable, for points at one time.
    all.sort_by_key(|(key, _)| *key);
    all.into_iter()
        .map(|((time, _), event)| (time, event))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_at_one_time_are_nested() {
        let interval = |begin, end: i64, region| Interval {
            begin,
            end: (end >= 0).then_some(end),
            region,
        };
        let intervals = [
            interval(5, 5, 3),
            interval(0, 5, 1),
            interval(2, 5, 2),
            interval(5, 9, 5),
            interval(5, 12, 4),
            interval(5, 5, 6),
            interval(7, -1, 7),
        ];
        let point = (5, Event::Note("point"));
        let shown = |(time, event): (i64, Event<'_>)| match event {
            Event::Enter { region } => format!("{time} +{region}"),
            Event::Leave { region } => format!("{time} -{region}"),
            _ => format!("{time} point"),
        };
        let found: Vec<_> = ordered(&intervals, [point].into_iter())
            .into_iter()
            .map(shown)
            .collect();
        let expected = [
            "0 +1", "2 +2", "5 -2", "5 -1", "5 +4", "5 +5", "5 +3", "5 +6", "5 point", "5 -6",
            "5 -3", "7 +7", "9 -5", "12 -4",
        ];
        assert_eq!(found, expected);
    }
}
