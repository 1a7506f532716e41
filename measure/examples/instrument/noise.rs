//! Noise of run-times with a known mean, in the order of the calls.

use fastrand::Rng;

/// Noise around 100.
pub(crate) struct Noise {
    pub(crate) name: &'static str,
    pub(crate) mean: f64,
    /// Number of calls after which it has forgotten its state, about.
    pub(crate) memory: usize,
    /// Returns the next run-time, by a state that lasts from call to call.
    next: fn(&mut Rng, &mut f64) -> f64,
}

/// Run-times by a noise.
pub(crate) struct Series<'a> {
    noise: &'a Noise,
    random: Rng,
    state: f64,
}

pub(crate) const MODELS: [Noise; 8] = [
    Noise {
        name: "independent, normal",
        mean: 100.0,
        memory: 1,
        next: |random, _| 100.0 + 5.0 * normal(random),
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
        next: |random, state| two_states(random, state, [1.0 / 190.0, 0.1], 200.0),
    },
    Noise {
        name: "two states of 50 calls",
        mean: 125.0,
        memory: 100,
        next: |random, state| two_states(random, state, [0.02; 2], 50.0),
    },
    Noise {
        name: "two states of 500 calls",
        mean: 125.0,
        memory: 1_000,
        next: |random, state| two_states(random, state, [0.002; 2], 50.0),
    },
];

impl Noise {
    /// Begins a series in a typical state.
    pub(crate) fn series(&self, random: Rng) -> Series<'_> {
        const FORGOTTEN: usize = 3;
        let state = 0.0;
        let mut series = Series {
            noise: self,
            random,
            state,
        };
        series.nth(FORGOTTEN * self.memory);
        series
    }
}

impl Iterator for Series<'_> {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        Some((self.noise.next)(&mut self.random, &mut self.state))
    }
}

/// Sum of uniform numbers, close enough to a normal one.
pub(crate) fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

fn autocorrelated(random: &mut Rng, state: &mut f64, correlation: f64) -> f64 {
    *state = correlation * *state + (1.0 - correlation * correlation).sqrt() * normal(random);
    100.0 + 5.0 * *state
}

/// Switches a state of 0 or 1 on and off, with these probabilities; calls take longer by this while it is on.
fn two_states(random: &mut Rng, state: &mut f64, [on, off]: [f64; 2], longer: f64) -> f64 {
    if random.f64() < if *state == 0.0 { on } else { off } {
        *state = 1.0 - *state;
    }
    100.0 + longer * *state + normal(random)
}
