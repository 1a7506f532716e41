//! Readings of a reference clock between readings of a counter.

use downbeat_clock_core::{Clock, Duration, TickRate, Ticks};

/// A reading of a reference clock between two readings of a counter: the reference showed `reference` at some instant
/// between `before` and `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bracket {
    /// Counter before the reference was read.
    pub before: Ticks,
    /// Reference clock, in nanoseconds.
    pub reference: Ticks,
    /// Counter after the reference was read.
    pub after: Ticks,
}

impl Bracket {
    /// The mean of the narrower half of [`BRACKETS`] brackets.
    ///
    /// The wider half was taken with cold caches or interrupted. Of the others none is best: processors count in steps of up
    /// to ten nanoseconds, and the step determines which bracket looks narrowest. Their mean is a valid bracket, because
    /// both clocks run at constant rates meanwhile.
    ///
    /// Returns `None` if the counter ran backwards in all of them.
    pub fn measure(counter: &impl Clock, reference: &impl Clock) -> Option<Self> {
        BracketSeries::measure(counter, reference).mean()
    }

    /// Uncertainty of the instant in ticks.
    pub fn width(&self) -> u64 {
        self.after.0.saturating_sub(self.before.0)
    }

    /// Middle of the bracket: the best estimate of the counter at the instant when the reference was read.
    pub fn middle(&self) -> Ticks {
        self.before.saturating_add(self.width() / 2)
    }

    /// The bracket with an earlier begin and a later end.
    pub(crate) fn widened(self, ticks: u64) -> Self {
        Self {
            before: Ticks(self.before.0.saturating_sub(ticks)),
            after: self.after.saturating_add(ticks),
            ..self
        }
    }
}

/// Number of brackets at either end of a calibration: enough for half of them to be undisturbed on a busy machine. They
/// take some tens of microseconds.
pub const BRACKETS: usize = 200;

/// [`BRACKETS`] brackets in quick succession: one end of a [`Calibration`](crate::calibrate::Calibration).
#[derive(Clone, Debug)]
pub struct BracketSeries {
    /// The narrowest first; those in which the counter ran backwards last.
    brackets: [Bracket; BRACKETS],
    /// Number of brackets in which the counter did not run backwards.
    sound: usize,
    /// Steps of the clocks: that of the counter in ticks, that of the reference in nanoseconds.
    grains: [u64; 2],
}

impl BracketSeries {
    /// Takes the brackets, in some tens of microseconds.
    pub fn measure(counter: &impl Clock, reference: &impl Clock) -> Self {
        let mut brackets = [(); BRACKETS].map(|()| Bracket {
            before: counter.open(),
            reference: reference.ticks(),
            after: counter.close(),
        });
        let backwards = |bracket: &Bracket| bracket.after < bracket.before;
        brackets.sort_unstable_by_key(|bracket| (backwards(bracket), bracket.width()));
        let sound = brackets.partition_point(|bracket| !backwards(bracket));
        Self {
            brackets,
            sound,
            grains: [counter.grain(), reference.grain()],
        }
    }

    /// Returns the mean of the narrower half; `None` without brackets.
    pub(crate) fn mean(&self) -> Option<Bracket> {
        let brackets = &self.brackets[..self.sound.div_ceil(2)];
        let count = u128::try_from(brackets.len())
            .ok()
            .filter(|count| *count > 0)?;
        // Rounded outwards, so that the bracket stays valid. A mean is at most the largest value, so the casts are exact.
        let sum = |stamp: fn(&Bracket) -> Ticks| {
            brackets
                .iter()
                .map(|bracket| u128::from(stamp(bracket).0))
                .sum::<u128>()
        };
        let before = sum(|bracket| bracket.before) / count;
        let reference = (sum(|bracket| bracket.reference) + count / 2) / count;
        let after = sum(|bracket| bracket.after).div_ceil(count);
        Some(Bracket {
            before: Ticks(before as u64),
            reference: Ticks(reference as u64),
            after: Ticks(after as u64),
        })
    }

    /// Returns the bracket that the narrowest has in common with all that are at most `near` nanoseconds away, for a counter
    /// with about this rate: its ends are the shortest delays before and after a reading of the reference. `None` if they
    /// have none in common.
    pub(crate) fn common(&self, rate: TickRate, near: u64) -> Option<Bracket> {
        let narrowest = *self.brackets[..self.sound].first()?;
        let [counter_lag, reference_lag] = self.lags(rate).map(|lag| lag as f64);
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for bracket in &self.brackets[..self.sound] {
            let nanos = bracket.reference.signed_since(narrowest.reference);
            if nanos.unsigned_abs() > near {
                continue;
            }
            let at_reference = |ticks: Ticks, nanos: f64| {
                ticks.signed_since(narrowest.before) as f64 - nanos / rate.nanos_per_tick()
            };
            let nanos = nanos as f64;
            low = low.max(at_reference(bracket.before, nanos + reference_lag));
            high = high.min(at_reference(bracket.after, nanos) + counter_lag);
        }
        let tick = |offset: i64| Ticks(narrowest.before.0.wrapping_add_signed(offset));
        (low <= high).then(|| Bracket {
            before: tick(floor(low)),
            reference: narrowest.reference,
            after: tick(-floor(-high)),
        })
    }

    /// The most by which readings can be behind their clocks and not behind each other: of the counter in ticks, and of the
    /// reference in nanoseconds.
    ///
    /// A reference that the system computes from the counter has the same steps, which cancel. Then readings are behind by
    /// their truncation to ticks and to nanoseconds.
    fn lags(&self, rate: TickRate) -> [u64; 2] {
        let [counter, reference] = self.grains;
        let tick = rate.nanos_per_tick();
        let apart = counter as f64 * tick - reference as f64;
        // Steps are known to a tick and to a nanosecond.
        if apart.abs() <= tick + 1.0 {
            [1, 1]
        } else {
            self.grains.map(|grain| grain + 1)
        }
    }

    /// The lags that the bound of a calibration does not assume, in ticks.
    pub(crate) fn excess_lag(&self, rate: TickRate) -> u64 {
        let [counter, reference] = self.lags(rate).map(|lag| lag.saturating_sub(1));
        counter.saturating_add(rate.ticks(Duration::from_nanos(
            i64::try_from(reference).unwrap_or(i64::MAX),
        )))
    }
}

/// Rounds down, also without std.
fn floor(number: f64) -> i64 {
    let whole = number as i64;
    whole - i64::from(whole as f64 > number)
}
