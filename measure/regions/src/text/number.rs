//! Formatting of ticks and seconds.

use downbeat_clock_core::Duration;

/// Length of a tick, for formatting.
pub(super) struct TickFormat {
    nanos: u128,
    /// Number of decimal places of a tick in seconds.
    digits: usize,
}

const DIGITS: usize = 9;

impl TickFormat {
    pub(super) fn new(tick: Duration) -> Self {
        let nanos = u128::from(tick.as_nanos().unsigned_abs());
        let zeros = (1..=6)
            .take_while(|zeros| nanos.is_multiple_of(10_u128.pow(*zeros)))
            .count();
        Self {
            nanos,
            digits: DIGITS - zeros,
        }
    }

    /// Time as `6.262 sec (6262 ticks)`.
    pub(super) fn time(&self, ticks: u128) -> String {
        let seconds = ColumnFormat {
            unit: UNITS[0],
            digits: self.digits,
            width: 0,
        };
        format!("{} sec ({ticks} ticks)", seconds.time(self, ticks))
    }

    /// Returns the format of columns of times, given those of which each must show
    /// something: the unit is that of the longest, and there are two decimal places as in
    /// the paper, and more until the shortest has two digits or ticks are exact.
    pub(super) fn column(
        &self,
        times: impl Iterator<Item = u128>,
        least_width: usize,
    ) -> ColumnFormat {
        let nanos = times.map(|ticks| ticks.saturating_mul(self.nanos));
        let all: Vec<u128> = nanos.filter(|nanos| *nanos > 0).collect();
        let longest = all.iter().max().copied().unwrap_or(0);
        let fits = |unit: &Unit| longest >= 10_u128.pow(unit.zeros as u32);
        let unit = UNITS
            .into_iter()
            .find(fits)
            .unwrap_or(UNITS[UNITS.len() - 1]);
        let exact = self.digits.saturating_sub(DIGITS - unit.zeros);
        let shortest = all.iter().min().copied().unwrap_or(1);
        // Tenths of the last decimal place.
        let shows = |digits: &usize| {
            shortest.saturating_mul(10_u128.pow(*digits as u32))
                >= 10_u128.pow(unit.zeros as u32 + 1)
        };
        let digits = (2..exact).find(shows).unwrap_or(exact);
        let mut format = ColumnFormat {
            unit,
            digits,
            width: least_width,
        };
        format.width = least_width.max(format.nanos(longest).len());
        format
    }
}

/// Unit of times.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    /// It has 1 with this number of zeros nanoseconds.
    zeros: usize,
}

const UNITS: [Unit; 4] = [
    Unit {
        name: "s",
        zeros: 9,
    },
    Unit {
        name: "ms",
        zeros: 6,
    },
    Unit {
        name: "us",
        zeros: 3,
    },
    Unit {
        name: "ns",
        zeros: 0,
    },
];

/// Format of columns of times in one unit.
pub(super) struct ColumnFormat {
    pub(super) unit: Unit,
    /// Number of decimal places.
    digits: usize,
    /// Least width.
    pub(super) width: usize,
}

impl ColumnFormat {
    /// Time in the unit, rounded down.
    pub(super) fn time(&self, tick: &TickFormat, ticks: u128) -> String {
        self.nanos(ticks.saturating_mul(tick.nanos))
    }

    fn nanos(&self, nanos: u128) -> String {
        let zeros = self.unit.zeros;
        let unit = 10_u128.pow(zeros as u32);
        let whole = nanos / unit;
        let fraction = format!("{:0zeros$}", nanos % unit);
        match self.digits.min(zeros) {
            0 => whole.to_string(),
            digits => format!("{whole}.{}", &fraction[..digits]),
        }
    }
}

/// Formats picoseconds as nanoseconds: `9.2 ns`.
pub(super) fn nanos(picos: u64) -> String {
    format!("{}.{} ns", picos / 1_000, picos % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_as_many_digits_as_a_tick() {
        let time = |nanos, ticks| TickFormat::new(Duration::from_nanos(nanos)).time(ticks);
        assert_eq!(time(1_000_000, 6_262), "6.262 sec (6262 ticks)");
        assert_eq!(time(1, 6_262), "0.000006262 sec (6262 ticks)");
        assert_eq!(time(1_000_000_000, 3), "3.000 sec (3 ticks)");
        assert_eq!(time(2_500, 3), "0.0000075 sec (3 ticks)");
        assert!(time(1, u128::MAX).starts_with("340282366920938463463374607431.768211455 sec"));
    }

    #[test]
    fn columns_have_two_digits_or_as_many_as_show_something() {
        let shown = |nanos, times: &[u128]| {
            let tick = TickFormat::new(Duration::from_nanos(nanos));
            let column = tick.column(times.iter().copied(), 0);
            let times: Vec<_> = times.iter().map(|time| column.time(&tick, *time)).collect();
            format!("{} {}", times.join(" "), column.unit.name)
        };
        assert_eq!(shown(1_000_000, &[841_110, 4_690, 0]), "841.11 4.69 0.00 s");
        assert_eq!(shown(1_000_000, &[841_110, 3]), "841.110 0.003 s");
        assert_eq!(shown(1_000_000, &[12, 3]), "12 3 ms");
        assert_eq!(shown(1, &[12_819_345, 203_456]), "12.81 0.20 ms");
        assert_eq!(shown(1, &[1_200_000_000, 3_000_000]), "1.2000 0.0030 s");
        assert_eq!(shown(1, &[841, 20]), "841 20 ns");
        assert_eq!(shown(1_000, &[0]), "0 ns");
    }
}
