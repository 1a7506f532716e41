//! Compares two simulated MPI libraries.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

use std::error::Error;

use downbeat_records::stats::{
    Comparison, Confidence, ExperimentAverages, Sample, SampleSizeCheck, VarianceParts, stars,
};
use fastrand::Rng;

const LAUNCHES: usize = 20;
const CALLS: usize = 200;

/// Simulated run-times of calls in nanoseconds, a list for each launch: each launch has a random
/// speed, and each call a random delay, sometimes a long one.
fn run_times(random: &mut Rng, nanos: f64) -> Vec<Vec<f64>> {
    let launch = |random: &mut Rng| {
        let pace = nanos * (1.0 + 0.02 * random.f64());
        let call = |random: &mut Rng| {
            pace - 40.0 * random.f64().ln() + if random.u8(..) == 0 { 3_000.0 } else { 0.0 }
        };
        (0..CALLS).map(|_| call(random)).collect()
    };
    (0..LAUNCHES).map(|_| launch(random)).collect()
}

/// Medians and means of the launches of an experiment, without outliers.
fn averages(launches: &[Sample<'_>]) -> [Vec<f64>; 2] {
    let kept: Vec<Sample<'_>> = launches
        .iter()
        .map(|launch| launch.without_outliers(0.0))
        .collect();
    [
        kept.iter().map(Sample::median).collect(),
        kept.iter().map(Sample::mean).collect(),
    ]
}

fn compare(random: &mut Rng, nanos: [f64; 2]) -> Result<Comparison, Box<dyn Error>> {
    let mut found = Vec::new();
    for nanos in nanos {
        let mut launches = run_times(random, nanos);
        let launches = launches
            .iter_mut()
            .map(|calls| Sample::new(calls))
            .collect::<Result<Vec<_>, _>>()?;
        found.push(averages(&launches));
    }
    let mut experiments = Vec::new();
    for [medians, means] in &mut found {
        experiments.push(ExperimentAverages {
            medians: Sample::new(medians)?,
            means: Sample::new(means)?,
        });
    }
    Ok(Comparison::new(
        &experiments[0],
        &experiments[1],
        Confidence::USUAL,
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = Rng::with_seed(1);
    // Message sizes, and nanoseconds per call of each library.
    let libraries = [
        (8, [5_000.0, 5_000.0]),
        (64, [5_200.0, 5_230.0]),
        (512, [6_000.0, 6_600.0]),
    ];
    let comparisons = libraries
        .iter()
        .map(|(_, nanos)| compare(&mut random, *nanos))
        .collect::<Result<Vec<_>, _>>()?;
    println!("bytes  median A  median B    A - B, with 95 %            p  Holm's p       t-test");
    for (((bytes, _), found), adjusted) in libraries
        .iter()
        .zip(&comparisons)
        .zip(Comparison::adjusted(&comparisons))
    {
        let ([a, b], shift) = (found.medians, found.shift);
        print!(
            "{bytes:5}  {a:8.0}  {b:8.0}  {:6.0} [{:5.0}, {:5.0}]",
            shift.shift, shift.interval.low, shift.interval.high
        );
        print!(
            "  {:9.2e}  {:8.1e} {:3}",
            found.mann_whitney.p.two_sided,
            adjusted.two_sided,
            stars(adjusted.two_sided)
        );
        let doubt = if found.means_are_doubtful(0.05) {
            ", means not normal"
        } else {
            ""
        };
        match found.welch {
            Ok(welch) => println!("  {:.1e}{doubt}", welch.p.two_sided),
            Err(error) => println!("  none: {error}"),
        }
    }

    let mut launches = run_times(&mut random, 5_000.0);
    let mut calls = launches.concat();
    let launches = launches
        .iter_mut()
        .map(|calls| Sample::new(calls))
        .collect::<Result<Vec<_>, _>>()?;
    let kept: Vec<Sample<'_>> = launches
        .iter()
        .map(|launch| launch.without_outliers(0.0))
        .collect();
    let parts = VarianceParts::new(&kept)?;
    let share = 100.0 * parts.between_share().unwrap_or_default();
    println!(
        "\n{share:.0} % of the variance of {} calls, outliers set aside, is between their {LAUNCHES} launches",
        parts.observations
    );
    let mut medians: Vec<f64> = kept.iter().map(Sample::median).collect();
    let needed = Sample::new(&mut medians)?.launches_needed(0.002, Confidence::USUAL);
    if let Some(needed) = needed {
        println!(
            "at most {needed} launches are needed to know the median to 0.2 %, with 95 % confidence"
        );
    }
    let check = SampleSizeCheck {
        sizes: vec![10, 30, 100, 300, 1_000],
        ..SampleSizeCheck::as_published(1)
    };
    match check.smallest(&Sample::new(&mut calls)?)? {
        Some(found) => println!(
            "means of {} calls look normal (p = {:.2})",
            found.size(),
            found.normality().p
        ),
        None => println!("not even means of 1,000 calls look normal"),
    }
    Ok(())
}
