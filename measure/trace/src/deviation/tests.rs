use super::*;
use crate::{Event, Matching, Place, TraceBuilder};
use proptest::prelude::*;

fn at(nanos: i64) -> Timestamp<Global> {
    Timestamp::from_nanos(nanos)
}

/// Deviation of a trace with these times.
fn deviation(before: &[&[i64]], after: &[&[i64]]) -> Deviation {
    let mut builder = TraceBuilder::new(Matching::default());
    for (number, times) in before.iter().enumerate() {
        let place = Place {
            node: number as u32,
            process: number as u32,
        };
        let location = builder.add_location(place).unwrap();
        for time in *times {
            builder
                .push(location, at(*time), Event::Note("work"))
                .unwrap();
        }
    }
    let trace = builder.finish().unwrap();
    let after: Vec<Vec<_>> = after
        .iter()
        .map(|times| times.iter().map(|time| at(*time)).collect())
        .collect();
    Deviation::between(&trace, &after).unwrap()
}

fn above(found: &IntervalChanges) -> Vec<(u64, u128)> {
    found
        .above
        .iter()
        .map(|above| (above.intervals, above.length))
        .collect()
}

/// All numbers were computed by hand.
#[test]
fn tables_are_filled_as_in_the_paper() {
    // Intervals before: 1,000, 10,000, 0; 20,000. After: 1,001, 10,000, 3; 50,000.
    let found = deviation(
        &[&[0, 1_000, 11_000, 11_000], &[], &[5, 20_005]],
        &[&[0, 1_001, 11_001, 11_004], &[], &[4, 50_004]],
    );
    let Displacement {
        events,
        moved,
        largest,
        total,
        forward,
    } = &found.displacement;
    assert_eq!(
        (*events, *moved, *largest),
        (6, 5, Duration::from_nanos(29_999))
    );
    assert_eq!((*total, *forward), (30_006, 30_004));
    assert_eq!(
        (found.displacement.mean(), found.displacement.bias()),
        (5_001.0, 30_004.0 / 6.0)
    );

    let distance = &found.distance;
    assert_eq!(
        (distance.intervals, distance.length, distance.deviation),
        (4, 31_000, 30_004)
    );
    assert_eq!(
        (distance.largest, distance.largest_share),
        (Duration::from_nanos(30_000), f64::INFINITY)
    );
    assert_eq!(
        (distance.mean(), distance.mean_share()),
        (7_501.0, 30_004.0 / 31_000.0)
    );
    // 1 of 1,000 is not above 0.1 %; 3 of 0 is above every threshold, and takes no time.
    let by_share = [
        (3, 21_000),
        (3, 21_000),
        (2, 20_000),
        (2, 20_000),
        (2, 20_000),
        (2, 20_000),
    ];
    assert_eq!(above(distance), by_share);
    assert_eq!(distance.shares()[1], (0.75, 21.0 / 31.0));

    // From the first events: 1,000, 11,000, 11,000; 20,000. After: 1,001, 11,001, 11,004; 50,000.
    let position = &found.position;
    assert_eq!(
        (position.intervals, position.length, position.deviation),
        (4, 43_000, 30_006)
    );
    assert_eq!(
        (position.largest, position.largest_share),
        (Duration::from_nanos(30_000), 1.5)
    );
    assert_eq!(
        above(position),
        [
            (4, 43_000),
            (3, 32_000),
            (1, 20_000),
            (1, 20_000),
            (1, 20_000),
            (1, 20_000)
        ]
    );
}

#[test]
fn an_empty_trace_has_no_deviation() {
    let found = deviation(&[&[1, 2, 4], &[7]], &[&[1, 2, 4], &[7]]);
    assert_eq!(
        (found.displacement.events, found.displacement.moved),
        (4, 0)
    );
    assert_eq!(
        (found.distance.mean_share(), found.distance.largest_share),
        (0.0, 0.0)
    );
    assert_eq!(above(&found.position), [(0, 0); 6]);
    let none = deviation(&[], &[]);
    assert_eq!(
        (
            none.displacement.mean(),
            none.distance.mean(),
            none.position.shares()
        ),
        (0.0, 0.0, [(0.0, 0.0); 6])
    );
}

/// Computed as `mean(e)`, `sqrt(mean((e - mean(e))^2))` and `max(abs(e - mean(e)))` of R 4.
#[test]
fn errors_against_the_truth_are_those_of_r() {
    for far in [0, 1 << 40] {
        let mut error = TruthComparison::default();
        for by in [-31, 4, 15, 92, -65, 35, 89, -79] {
            error.add(at(1_000 + by + far), at(1_000));
        }
        assert_eq!((error.events(), error.bias()), (8, (far as f64) + 7.5));
        assert!(
            (error.centred() - 60.029_159_580_990_3).abs() < 1e-9,
            "{}",
            error.centred()
        );
        assert_eq!(error.largest_centred(), 86.5);
    }
    let none = TruthComparison::default();
    assert_eq!(
        (none.bias(), none.centred(), none.largest_centred()),
        (0.0, 0.0, 0.0)
    );
}

proptest! {
    /// Compares with floating-point numbers computed by definition.
    #[test]
    fn shares_follow_the_definition(steps in prop::collection::vec((0_i64..2_000, 0_i64..2_000), 2..40)) {
        let sum = |steps: &[i64]| steps.iter().scan(0, |at, step| { *at += step; Some(*at) }).collect::<Vec<_>>();
        let [before, after] = [sum(&steps.iter().map(|step| step.0).collect::<Vec<_>>()),
            sum(&steps.iter().map(|step| step.1).collect::<Vec<_>>())];
        let found = deviation(&[&before], &[&after]);
        for (index, threshold) in IntervalChanges::THRESHOLDS.into_iter().enumerate() {
            let is_above = |(was, is): &(f64, f64)| (is - was).abs() > threshold * was * (1.0 + 1e-12);
            let distances: Vec<_> = steps[1..].iter().map(|step| (step.0 as f64, step.1 as f64)).collect();
            let positions: Vec<_> = before[1..].iter().zip(&after[1..])
                .map(|(was, is)| ((was - before[0]) as f64, (is - after[0]) as f64)).collect();
            for (found, intervals) in [(&found.distance, distances), (&found.position, positions)] {
                let above: Vec<_> = intervals.iter().filter(|interval| is_above(interval)).collect();
                prop_assert_eq!(found.above[index].intervals, above.len() as u64);
                prop_assert_eq!(found.above[index].length as f64, above.iter().map(|(was, _)| was).sum::<f64>());
            }
        }
    }
}
