//! Allan deviation of a clock.

/// Returns the overlapping Allan deviation of offsets, in nanoseconds at times in seconds, for averaging times of once, twice, four times ...
/// the usual distance of the offsets, each with its time. Offsets at other distances are interpolated.
pub(super) fn allan_deviation(points: &[[f64; 2]]) -> Vec<(f64, f64)> {
    let mut steps: Vec<f64> = points
        .windows(2)
        .map(|pair| pair[1][0] - pair[0][0])
        .collect();
    steps.sort_by(f64::total_cmp);
    let Some(step) = steps
        .get(steps.len() / 2)
        .copied()
        .filter(|step| *step > 0.0)
    else {
        return Vec::new();
    };
    let offsets = evenly(points, step);
    let factors = core::iter::successors(Some(1), |factor| Some(2 * factor));
    let deviation = |factor: usize| {
        let differences = offsets.windows(2 * factor + 1);
        let count = differences.len();
        let squares =
            differences.map(|part| (part[2 * factor] - 2.0 * part[factor] + part[0]).powi(2));
        let time = step * factor as f64;
        // Nanoseconds in a second.
        let variance = squares.sum::<f64>() / (2.0 * count as f64) * (1e-9 / time).powi(2);
        (count > 0).then(|| (time, variance.sqrt()))
    };
    factors.map_while(deviation).collect()
}

/// Returns offsets at even distances from the first on, by straight lines between the points.
fn evenly(points: &[[f64; 2]], step: f64) -> Vec<f64> {
    let Some(([first, _], [last, _])) = points.first().zip(points.last()) else {
        return Vec::new();
    };
    let count = ((last - first) / step + 0.5) as usize;
    let mut next = 0;
    let offset = |index: usize| {
        let at = first + index as f64 * step;
        while next + 2 < points.len() && points[next + 1][0] < at {
            next += 1;
        }
        let [[from, before], [to, after]] =
            [points[next], points[(next + 1).min(points.len() - 1)]];
        let share = if to > from {
            (at - from) / (to - from)
        } else {
            0.0
        };
        before + share * (after - before)
    };
    (0..=count).map(offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_noise_falls_with_time_and_a_drift_does_not_count() {
        let mut random = fastrand::Rng::with_seed(1);
        let point = |i: u32| {
            [
                10.0 * f64::from(i),
                7e3 * f64::from(i) + 5.0 * crate::sim::normal(&mut random),
            ]
        };
        let points: Vec<[f64; 2]> = (0..2_000).map(point).collect();
        for (time, deviation) in allan_deviation(&points).into_iter().take(6) {
            let expected = 3_f64.sqrt() * 5e-9 / time;
            assert!(
                (deviation / expected).ln().abs() < 0.15,
                "{time}: {deviation} {expected}"
            );
        }
    }

    #[test]
    fn a_rate_that_wanders_shows_at_long_times() {
        let mut random = fastrand::Rng::with_seed(2);
        let (mut offset, mut rate) = (0.0, 0.0);
        let points = (0..20_000).map(|i| {
            offset += rate;
            rate += 5.0 * crate::sim::normal(&mut random);
            [f64::from(i), offset]
        });
        let points: Vec<[f64; 2]> = points.collect();
        for (time, deviation) in allan_deviation(&points).into_iter().skip(2).take(6) {
            let expected = 5e-9 * (time / 3.0).sqrt();
            assert!(
                (deviation / expected).ln().abs() < 0.2,
                "{time}: {deviation} {expected}"
            );
        }
    }

    #[test]
    fn offsets_at_uneven_times_are_interpolated() {
        let points = [0.0, 1.0, 1.5, 3.0, 4.0, 5.0].map(|at| [at, 2.0 * at]);
        assert_eq!(evenly(&points, 1.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert!(allan_deviation(&points[..1]).is_empty());
        assert!(allan_deviation(&[]).is_empty());
    }
}
