//! Ticks as times.

use downbeat_clock_core::{DecimalBin, Duration};

use crate::page::units::{self, TimeUnit};

/// What a report counts in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    nanos: f64,
}

impl Unit {
    pub(crate) fn of(tick: Duration) -> Self {
        Self { nanos: tick.as_nanos() as f64 }
    }

    pub(crate) fn nanos(self, ticks: u128) -> f64 {
        ticks as f64 * self.nanos
    }

    /// `6.262 ms`.
    pub(crate) fn time(self, ticks: u128) -> String {
        units::time(self.nanos(ticks))
    }

    /// Where a bin begins, as short as it can be said: `6 ms`.
    pub(crate) fn begin(self, bin: DecimalBin) -> String {
        let nanos = self.nanos(bin.low().into());
        if nanos == 0.0 {
            return "0".to_owned();
        }
        let unit = TimeUnit::for_nanos(nanos * 1.000_1);
        format!("{} {}", short(nanos / unit.nanos), unit.name)
    }

    /// From where to where a bin is: `6 to 7 ms`.
    pub(crate) fn span(self, bin: DecimalBin) -> String {
        self.span_by(bin, " to ")
    }

    /// The same for terminals, which get ASCII: `6-7 ms`.
    pub(crate) fn plain_span(self, bin: DecimalBin) -> String {
        self.span_by(bin, "-").replace('µ', "u")
    }

    fn span_by(self, bin: DecimalBin, between: &str) -> String {
        let (low, end) = (self.nanos(bin.low().into()), self.nanos(u128::from(bin.high()) + 1));
        let unit = TimeUnit::for_nanos(if low > 0.0 { low } else { end } * 1.000_1);
        format!("{}{between}{} {}", short(low / unit.nanos), short(end / unit.nanos), unit.name)
    }
}

/// Without needless zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_said_in_short() {
        let span = |nanos, length| Unit::of(Duration::from_nanos(nanos)).span(DecimalBin::of(length));
        assert_eq!([span(1, 0), span(1, 7), span(1, 950)], ["0 to 1 ns", "7 to 8 ns", "900 to 1000 ns"]);
        assert_eq!([span(1_000_000, 6_262), span(2_500, 3)], ["6 to 7 s", "7.5 to 10 µs"]);
        assert_eq!(Unit::of(Duration::from_nanos(2_500)).plain_span(DecimalBin::of(3)), "7.5-10 us");
        assert!(span(1, u64::MAX).ends_with(" s"));
        let begin = |length| Unit::of(Duration::from_nanos(1)).begin(DecimalBin::of(length));
        assert_eq!([begin(0), begin(7), begin(1_000_000)], ["0", "7 ns", "1 ms"]);
    }
}
