//! mpicroscope's decay: the longer no new least run-time is found, the fewer observations are still to be made.

use core::fmt;

/// How many of the remaining observations fall away after a batch without a new least run-time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decay {
    /// As many as a batch has.
    Linear,
    /// Half of them.
    Exponential,
}

impl Decay {
    /// What is left of so many.
    pub(super) fn remaining_after(self, remaining: u32, batch: u32) -> u32 {
        match self {
            Self::Linear => remaining.saturating_sub(batch),
            Self::Exponential => remaining / 2,
        }
    }
}

/// `linear` or `exponential`.
impl fmt::Display for Decay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linear => "linear",
            Self::Exponential => "exponential",
        })
    }
}

/// What is left of the observations, and the least run-time so far.
#[derive(Clone, Debug)]
pub(super) struct RemainingObservations {
    left: u32,
    /// How many observations there were at the last look.
    seen: u32,
    minimum: f64,
}

impl RemainingObservations {
    pub(super) fn new(most: u32) -> Self {
        Self {
            left: most,
            seen: 0,
            minimum: f64::INFINITY,
        }
    }

    /// How many are still to be made, after some more of them with these valid run-times.
    pub(super) fn after(
        &mut self,
        run_times: &[f64],
        observations: u32,
        decay: Decay,
        batch: u32,
    ) -> u32 {
        let made = observations.saturating_sub(self.seen);
        let minimum = run_times.iter().copied().fold(self.minimum, f64::min);
        self.left = self.left.saturating_sub(made);
        if made > 0 && minimum >= self.minimum {
            self.left = decay.remaining_after(self.left, batch);
        }
        (self.seen, self.minimum) = (observations, minimum);
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_falls_while_there_is_no_new_minimum() {
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
