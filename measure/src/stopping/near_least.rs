//! mpptest's rule: the minimum run-time is trusted when other run-times are near it.

/// Number of run-times near the minimum.
#[derive(Clone, Debug)]
pub(super) struct NearLeast {
    minimum: f64,
    count: u32,
    times: u32,
}

impl Default for NearLeast {
    fn default() -> Self {
        Self {
            minimum: f64::INFINITY,
            count: 0,
            times: 0,
        }
    }
}

impl NearLeast {
    /// Returns the number of run-times within a share of the minimum since it was found, without the first `least` ones.
    pub(super) fn after(&mut self, run_times: &[f64], bound: f64, least: u32) -> u32 {
        for run_time in run_times {
            if *run_time < self.minimum {
                (self.minimum, self.times) = (*run_time, 0);
            } else if self.count >= least && *run_time < self.minimum * (1.0 + bound) {
                self.times = self.times.saturating_add(1);
            }
            self.count = self.count.saturating_add(1);
        }
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_minimum_restarts_the_count() {
        let mut near = NearLeast::default();
        // The first three do not count, however near they are.
        assert_eq!(near.after(&[100.0, 101.0, 100.0], 0.05, 3), 0);
        assert_eq!(near.after(&[104.9, 105.1, 100.0], 0.05, 3), 2);
        assert_eq!(near.after(&[99.0, f64::NAN], 0.05, 3), 0);
        assert_eq!(near.after(&[103.0], 0.05, 3), 1);
        assert_eq!(near.after(&[], 0.05, 3), 1);
    }
}
