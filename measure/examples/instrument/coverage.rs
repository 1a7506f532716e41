//! Coverage of nominal 95 % intervals of the mean of one launch, by batch means and by the usual formula.
//!
//! Nothing shows a dependence that is longer than the measurement: a state that does not change within it looks constant. Cases
//! with less than twice the memory of the noise are printed, but not checked.

use downbeat_records::stats::{BatchMeans, Confidence};
use fastrand::Rng;

use crate::noise::MODELS;
use crate::{Checks, share};

const COUNTS: [usize; 6] = [30, 50, 100, 200, 2_000, 20_000];

/// Share of trials whose interval may miss the mean.
const MISSED: f64 = 0.08;

pub(crate) fn table(trials: u32, checks: &mut Checks) {
    println!(
        "\n## Intervals of the mean of one launch: {trials} trials each\n\n\
         | noise | its memory | observations | refused | hold the mean | miss it | miss it by the usual formula |\n\
         |---|---|---|---|---|---|---|"
    );
    let mut random = Rng::with_seed(1);
    for noise in &MODELS {
        for count in COUNTS {
            let (mut refused, mut covered, mut usual) = (0, 0, 0);
            for _ in 0..trials {
                let means: BatchMeans = noise.series(random.fork()).take(count).collect();
                match means.interval(Confidence::USUAL) {
                    Ok(found) => covered += u32::from(found.contains(noise.mean)),
                    Err(_) => refused += 1,
                }
                let found = means.independent_interval(Confidence::USUAL);
                usual += u32::from(found.is_some_and(|found| found.contains(noise.mean)));
            }
            let missed = trials - refused - covered;
            let shares = [refused, covered, missed, trials - usual].map(|part| share(part, trials));
            println!(
                "| {} | {} | {count} | {} |",
                noise.name,
                noise.memory,
                shares.join(" | ")
            );
            if count >= 2 * noise.memory {
                let case = || format!("{count} calls, {}", noise.name);
                checks.rate("intervals that miss the mean", case, missed, trials, MISSED);
            }
        }
    }
}
