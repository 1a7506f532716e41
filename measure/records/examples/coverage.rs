//! Coverage of nominal 95 % intervals of a mean, by batch means and by the usual formula, for observations that depend on each
//! other: `cargo run --release -p downbeat-records --example coverage -- 10000`.
//!
//! Nothing shows a dependence that is longer than the measurement: a state that does not change within it looks constant. Cases
//! with less than twice the memory of the noise are printed, but not checked.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

use std::error::Error;

use downbeat_records::stats::{BatchMeans, Confidence};
use fastrand::Rng;

/// Run-times with a known mean, in the order of the calls.
struct Noise {
    name: &'static str,
    mean: f64,
    /// Number of calls after which it has forgotten its state, about.
    memory: usize,
    /// Returns the next run-time, by a state that lasts from call to call.
    next: fn(&mut Rng, &mut f64) -> f64,
}

const MODELS: [Noise; 8] = [
    Noise {
        name: "independent, normal",
        mean: 100.0,
        memory: 1,
        next: |random, _| 100.0 + 10.0 * normal(random),
    },
    Noise {
        name: "independent, exponential tail",
        mean: 100.0,
        memory: 1,
        next: |random, _| 80.0 - 20.0 * (1.0 - random.f64()).ln(),
    },
    Noise {
        name: "autocorrelation 0.5",
        mean: 100.0,
        memory: 3,
        next: |random, state| autocorrelated(random, state, 0.5),
    },
    Noise {
        name: "autocorrelation 0.9",
        mean: 100.0,
        memory: 20,
        next: |random, state| autocorrelated(random, state, 0.9),
    },
    Noise {
        name: "autocorrelation 0.99",
        mean: 100.0,
        memory: 200,
        next: |random, state| autocorrelated(random, state, 0.99),
    },
    Noise {
        name: "bursts of 10, one call in 20",
        mean: 110.0,
        memory: 200,
        next: |random, state| {
            switch(random, state, 1.0 / 190.0, 0.1);
            100.0 + 200.0 * *state + normal(random)
        },
    },
    Noise {
        name: "two states of 50 calls",
        mean: 125.0,
        memory: 100,
        next: |random, state| {
            switch(random, state, 0.02, 0.02);
            100.0 + 50.0 * *state + normal(random)
        },
    },
    Noise {
        name: "two states of 500 calls",
        mean: 125.0,
        memory: 1_000,
        next: |random, state| {
            switch(random, state, 0.002, 0.002);
            100.0 + 50.0 * *state + normal(random)
        },
    },
];

/// Share of trials whose interval may miss the mean.
const MISSED: f64 = 0.08;

const COUNTS: [usize; 6] = [30, 50, 100, 200, 2_000, 20_000];

/// Sum of uniform numbers, close enough to a normal one.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

fn autocorrelated(random: &mut Rng, state: &mut f64, correlation: f64) -> f64 {
    *state = correlation * *state + (1.0 - correlation * correlation).sqrt() * normal(random);
    100.0 + 10.0 * *state
}

/// Switches a state of 0 or 1 on and off, with these probabilities.
fn switch(random: &mut Rng, state: &mut f64, on: f64, off: f64) {
    if random.f64() < if *state == 0.0 { on } else { off } {
        *state = 1.0 - *state;
    }
}

/// Calls before the first one that is observed, so that the state is a typical one.
const BEFORE: usize = 3_000;

fn main() -> Result<(), Box<dyn Error>> {
    let trials: u32 = match std::env::args().nth(1) {
        Some(number) => number.parse()?,
        None => 20,
    };
    let mut random = Rng::with_seed(1);
    println!(
        "{trials} trials each\n\n| noise | its memory | observations | refused | covered | missed | missed by the usual formula |\n|---|---|---|---|---|---|---|"
    );
    for Noise {
        name,
        mean,
        memory,
        next,
    } in &MODELS
    {
        for count in COUNTS {
            let (mut refused, mut covered, mut usual) = (0, 0, 0);
            for _ in 0..trials {
                let mut state = 0.0;
                for _ in 0..BEFORE {
                    next(&mut random, &mut state);
                }
                let mut means = BatchMeans::default();
                means.extend((0..count).map(|_| next(&mut random, &mut state)));
                match means.interval(Confidence::USUAL) {
                    Ok(found) => covered += u32::from(found.contains(*mean)),
                    Err(_) => refused += 1,
                }
                let found = means.independent_interval(Confidence::USUAL);
                usual += u32::from(found.is_some_and(|found| found.contains(*mean)));
            }
            let share = |part: u32, whole: u32| match whole {
                0 => "-".to_owned(),
                _ => format!("{:.1} %", 100.0 * f64::from(part) / f64::from(whole)),
            };
            println!(
                "| {name} | {memory} | {count} | {} | {} | {} | {} |",
                share(refused, trials),
                share(covered, trials),
                share(trials - refused - covered, trials),
                share(trials - usual, trials)
            );
            let missed = f64::from(trials - refused - covered) / f64::from(trials);
            let most = MISSED + 3.0 * (MISSED / f64::from(trials)).sqrt();
            if count >= 2 * memory && missed > most {
                return Err(format!("more than {} missed", share(8, 100)).into());
            }
        }
    }
    Ok(())
}
