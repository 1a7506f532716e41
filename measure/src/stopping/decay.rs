//! mpicroscope's decay: the longer no new minimum run-time is found, the fewer observations remain.

use core::fmt;

/// Reduction of the number of remaining observations after a batch without a new minimum run-time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decay {
    /// By the size of a batch.
    Linear,
    /// By half.
    Exponential,
}

impl Decay {
    /// Returns the reduced number of remaining observations.
    pub(super) fn remaining_after(self, remaining: u32, batch: u32) -> u32 {
        match self {
            Self::Linear => remaining.saturating_sub(batch),
            Self::Exponential => remaining / 2,
        }
    }
}

/// Writes `linear` or `exponential`.
impl fmt::Display for Decay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linear => "linear",
            Self::Exponential => "exponential",
        })
    }
}

/// Number of remaining observations, and minimum run-time so far.
#[derive(Clone, Debug)]
pub(super) struct RemainingObservations {
    remaining: u32,
    /// Number of observations at the last check.
    checked: u32,
    minimum: f64,
}

impl RemainingObservations {
    pub(super) fn new(most: u32) -> Self {
        Self {
            remaining: most,
            checked: 0,
            minimum: f64::INFINITY,
        }
    }

    /// Returns the number of remaining observations, after the valid run-times of further observations.
    pub(super) fn after(
        &mut self,
        run_times: &[f64],
        observations: u32,
        decay: Decay,
        batch: u32,
    ) -> u32 {
        let made = observations.saturating_sub(self.checked);
        let minimum = run_times.iter().copied().fold(self.minimum, f64::min);
        self.remaining = self.remaining.saturating_sub(made);
        if made > 0 && minimum >= self.minimum {
            self.remaining = decay.remaining_after(self.remaining, batch);
        }
        (self.checked, self.minimum) = (observations, minimum);
        self.remaining
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_observations_decay_without_a_new_minimum() {
        let run = |decay: Decay, batches: &[&[f64]]| {
            let mut remaining = RemainingObservations::new(100);
            let mut observations = 0;
            let mut left = vec![remaining.after(&[], 0, decay, 10)];
            for batch in batches {
                observations += 10;
                left.push(remaining.after(batch, observations, decay, 10));
            }
            left
        };
        let batches: [&[f64]; 5] = [&[5.0, 4.0], &[4.0, 6.0], &[3.0], &[], &[3.0]];
        assert_eq!(run(Decay::Linear, &batches), [100, 90, 70, 60, 40, 20]);
        assert_eq!(run(Decay::Exponential, &batches), [100, 90, 40, 30, 10, 0]);
    }
}
