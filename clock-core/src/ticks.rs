//! Raw counter readings.

/// A reading of a counter, exactly as the hardware or the system returned it.
///
/// Ticks have no unit: a [`TickRate`](crate::TickRate) or a [`ClockModel`](crate::ClockModel) converts them to time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Ticks counted since `earlier`, or `None` if the counter ran backwards.
    #[inline]
    pub const fn checked_since(self, earlier: Self) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }

    /// Ticks counted since `earlier`, negative if the counter ran backwards; saturates.
    #[inline]
    pub const fn signed_since(self, earlier: Self) -> i64 {
        if self.0 >= earlier.0 {
            let ahead = self.0 - earlier.0;
            if ahead > i64::MAX as u64 {
                i64::MAX
            } else {
                ahead as i64
            }
        } else {
            0_i64.saturating_sub_unsigned(earlier.0 - self.0)
        }
    }

    /// This reading plus a number of ticks; saturates.
    #[inline]
    pub const fn saturating_add(self, ticks: u64) -> Self {
        Self(self.0.saturating_add(ticks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_ran_backwards_is_detected() {
        assert_eq!(Ticks(5).checked_since(Ticks(7)), None);
        assert_eq!(Ticks(5).signed_since(Ticks(7)), -2);
        assert_eq!(Ticks(7).checked_since(Ticks(5)), Some(2));
        assert_eq!(Ticks(u64::MAX).signed_since(Ticks(0)), i64::MAX);
        assert_eq!(Ticks(0).signed_since(Ticks(u64::MAX)), i64::MIN);
        assert_eq!(Ticks(u64::MAX).saturating_add(1), Ticks(u64::MAX));
    }
}
