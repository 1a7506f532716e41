//! Experiments of several launches: false stars between equal ones, power between different ones, and coverage of the interval of
//! the median of launches.

use std::error::Error;

use downbeat_measure::scheme::{RoundTime, Scheme};
use downbeat_records::stats::{Confidence, MannWhitney, Sample};
use fastrand::Rng;

use crate::noise::{MODELS, Noise, normal};
use crate::simulated::{Conditions, Launch, QUICK, method, stated_is_above_true, wandering};
use crate::{Checks, share};

const LEVEL: f64 = 0.05;

/// Launches differ by this standard deviation of all run-times, which nothing within them shows.
const BETWEEN: f64 = 0.02;

/// Difference of experiments that should be found.
const SHIFT: f64 = 1.05;

/// Launches of an experiment.
const LAUNCHES: usize = 10;

pub(crate) fn table(is_full: bool, checks: &mut Checks) -> Result<(), Box<dyn Error>> {
    let (experiments, calls) = if is_full { (200, 200) } else { (2, 20) };
    println!(
        "\n## {experiments} simulated experiments of {LAUNCHES} launches of {calls} rounds, by clocks that drift and wander\n\n\
         Launches differ by {:.0} % (standard deviation).\n\n\
         | noise | false stars of pairs | stars if 5 % apart | intervals of the median that hold it | their confidence |\n\
         |---|---|---|---|---|",
        100.0 * BETWEEN
    );
    for noise in [&MODELS[0], &MODELS[3], &MODELS[5], &MODELS[6]] {
        let equal = medians(noise, 1.0, calls, experiments * LAUNCHES, 3, checks)?;
        let apart = medians(noise, SHIFT, calls, experiments * LAUNCHES, 4, checks)?;
        let mut all = equal.clone();
        let centre = Sample::new(&mut all)?.median();

        let (mut held, mut confidence) = (0, 0.0);
        for experiment in equal.chunks(LAUNCHES) {
            let mut medians = experiment.to_vec();
            let found = Sample::new(&mut medians)?.median_interval(Confidence::USUAL);
            let found = found.ok_or("too few launches")?;
            held += u32::from(found.interval.contains(centre));
            confidence = found.confidence;
        }
        let of_pairs: Vec<&[f64]> = equal.chunks(LAUNCHES).collect();
        let pairs = of_pairs.chunks(2).map(|pair| (pair[0], pair[1]));
        let false_stars = stars(pairs)?;
        let found = stars(equal.chunks(LAUNCHES).zip(apart.chunks(LAUNCHES)))?;
        let (pairs, experiments) = ((experiments / 2) as u32, experiments as u32);
        println!(
            "| {} | {} | {} | {} | {:.1} % |",
            noise.name,
            share(false_stars, pairs),
            share(found, experiments),
            share(held, experiments),
            100.0 * confidence
        );
        let case = || noise.name.to_owned();
        checks.rate("false stars", case, false_stars, pairs, LEVEL);
        let missed = experiments - held;
        checks.rate(
            "intervals without the median",
            case,
            missed,
            experiments,
            1.0 - confidence,
        );
    }
    Ok(())
}

/// Medians of launches.
fn medians(
    noise: &Noise,
    factor: f64,
    calls: u32,
    launches: usize,
    seed: u64,
    checks: &mut Checks,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut random = Rng::with_seed(seed);
    let method = method(Scheme::RoundTime(RoundTime::default()), calls);
    let median = |_| {
        let conditions = Conditions {
            clocks: wandering(),
            noise,
            factor: factor * (1.0 + BETWEEN * normal(&mut random)),
            algorithm: QUICK,
            seed: random.u64(..),
        };
        let launch = Launch::new(&method, &conditions)?;
        stated_is_above_true(&launch, noise.name, checks);
        let figures = launch.measured.figures;
        Ok(figures.first().ok_or("no figures")?.nanos)
    };
    (0..launches).map(median).collect()
}

/// Number of pairs of experiments with a star.
fn stars<'a>(pairs: impl Iterator<Item = (&'a [f64], &'a [f64])>) -> Result<u32, Box<dyn Error>> {
    let mut stars = 0;
    for (one, other) in pairs {
        let (mut one, mut other) = (one.to_vec(), other.to_vec());
        let found = MannWhitney::new(&Sample::new(&mut one)?, &Sample::new(&mut other)?);
        stars += u32::from(found.p.two_sided <= LEVEL);
    }
    Ok(stars)
}
