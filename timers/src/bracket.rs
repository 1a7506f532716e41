//! Readings of a reference clock between readings of a counter.

use downbeat_clock_core::{Clock, TickRate, Ticks};

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
        BracketSeries::take(counter, reference).mean()
    }

    /// Uncertainty of the instant in ticks.
    pub fn width(&self) -> u64 {
        self.after.0.saturating_sub(self.before.0)
    }

    /// Middle of the bracket: the best estimate of the counter at the instant when the reference was read.
    pub fn middle(&self) -> Ticks {
        self.before.saturating_add(self.width() / 2)
    }
}

/// Number of brackets at either end of a calibration: enough for half of them to be undisturbed on a busy machine. They
/// take some tens of microseconds.
pub const BRACKETS: usize = 200;

/// [`BRACKETS`] brackets in quick succession: one end of a [`Calibration`](crate::Calibration).
#[derive(Clone, Debug)]
pub struct BracketSeries {
    /// The narrowest first; those in which the counter ran backwards last.
    brackets: [Bracket; BRACKETS],
    /// Number of brackets in which the counter did not run backwards.
    sound: usize,
}

impl BracketSeries {
    /// Takes the brackets, in some tens of microseconds.
    pub fn take(counter: &impl Clock, reference: &impl Clock) -> Self {
        let mut brackets = [(); BRACKETS].map(|()| Bracket {
            before: counter.open(),
            reference: reference.ticks(),
            after: counter.close(),
        });
        let backwards = |bracket: &Bracket| bracket.after < bracket.before;
        brackets.sort_unstable_by_key(|bracket| (backwards(bracket), bracket.width()));
        let sound = brackets.partition_point(|bracket| !backwards(bracket));
        Self { brackets, sound }
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
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for bracket in &self.brackets[..self.sound] {
            let nanos = bracket.reference.signed_since(narrowest.reference);
            if nanos.unsigned_abs() > near {
                continue;
            }
            let at_reference = |ticks: Ticks, nanos: i64| {
                ticks.signed_since(narrowest.before) as f64 - nanos as f64 / rate.nanos_per_tick()
            };
            // The reference truncates to nanoseconds, and the counter to ticks.
            low = low.max(at_reference(bracket.before, nanos + 1));
            high = high.min(at_reference(bracket.after, nanos) + 1.0);
        }
        let tick = |offset: i64| Ticks(narrowest.before.0.wrapping_add_signed(offset));
        (low <= high).then(|| Bracket {
            before: tick(floor(low)),
            reference: narrowest.reference,
            after: tick(-floor(-high)),
        })
    }
}

/// Rounds down, also without std.
fn floor(number: f64) -> i64 {
    let whole = number as i64;
    whole - i64::from(whole as f64 > number)
}
