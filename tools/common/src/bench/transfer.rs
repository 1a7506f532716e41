//! One-way time and throughput of messages between two ranks, beside the time of the whole call, and overlap, as OSU and IMB report them.

use downbeat_measure::Measurement;
use downbeat_records::{Factors, GroupKey};
use serde::Serialize;

use crate::{output, units};

/// One-way time and throughput of an operation that transfers messages between pairs of ranks, or overlap of one with computation.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Transfer {
    /// Half of the round trip, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) half_ns: Option<f64>,
    /// Throughput in units of 10^6 bytes per second: of one message in half of a round trip, of both messages of a rank that sends
    /// and receives, or of all messages of all pairs; `None` for empty messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mb_per_s: Option<f64>,
    /// Messages per second, if many are in flight at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) messages_per_s: Option<f64>,
    /// Share of the shorter one of operation and computation that costs no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) overlap: Option<f64>,
}

/// Name of the factor that states the number of messages in flight at once.
pub const IN_FLIGHT: &str = "in flight";

/// Name of the factor that states the number of threads of each rank, if there are several.
pub const THREADS: &str = "threads";

/// Name of the figure that states how long an operation takes without the computation that it overlaps.
pub const ALONE: &str = "alone";

/// Name of the figure, and of the factor, that states how long each rank computes in a call.
pub const COMPUTE: &str = "compute";

/// Heading of a column, and its cell, if there is one.
pub(super) type TransferColumn = (&'static str, fn(&Transfer) -> Option<String>);

impl Transfer {
    /// Columns of tables.
    pub(super) const COLUMNS: [TransferColumn; 4] = [
        ("half", |transfer| transfer.half_ns.map(output::time)),
        ("MB/s", |transfer| {
            transfer.mb_per_s.map(|speed| format!("{speed:.1}"))
        }),
        ("msg/s", |transfer| {
            let rate = transfer.messages_per_s?;
            Some(units::count(rate.round() as u64))
        }),
        ("overlap", |transfer| {
            transfer
                .overlap
                .map(|share| format!("{:.1} %", 100.0 * share))
        }),
    ];

    /// Computes them from the reported figure; `None` for operations that are no such transfer. The number of messages in flight at
    /// once is one of the factors.
    pub(super) fn of(key: &GroupKey, nanos: f64, factors: &Factors) -> Option<Self> {
        let pairs = f64::from(key.ranks / 2);
        let in_flight = || factors.get(IN_FLIGHT)?.parse::<f64>().ok();
        let (messages, half_ns, many) = match key.operation.as_str() {
            "ping-pong" | "persistent-ping-pong" | "partitioned-ping-pong" => {
                (1.0, Some(nanos / 2.0), false)
            }
            "pair-ping-pong" => (pairs, Some(nanos / 2.0), false),
            "sendrecv" => (2.0, None, false),
            "put" | "get" | "accumulate" | "get_accumulate" => (pairs, None, false),
            "bandwidth" | "put-bandwidth" | "get-bandwidth" => (pairs * in_flight()?, None, true),
            "bidirectional" => (2.0 * pairs * in_flight()?, None, true),
            _ => return None,
        };
        let threads = factors
            .get(THREADS)
            .and_then(|threads| threads.parse::<f64>().ok());
        let per_ns = threads.unwrap_or(1.0) * messages / half_ns.unwrap_or(nanos);
        let is_timed = nanos > 0.0;
        Some(Self {
            half_ns,
            mb_per_s: (key.bytes > 0 && is_timed).then_some(1e3 * per_ns * key.bytes as f64),
            messages_per_s: (many && is_timed).then_some(1e9 * per_ns),
            overlap: None,
        })
    }

    /// Computes the overlap with a computation; `None` without one. It is negative if both together take longer than one after the other.
    pub(super) fn of_overlap(measured: &Measurement) -> Option<Self> {
        let detail = |name| {
            let found = measured.details.iter().find(|(found, _)| *found == name);
            found.map(|(_, time)| time.as_nanos() as f64)
        };
        let (alone, compute) = (detail(ALONE)?, detail(COMPUTE)?);
        let both = measured.figures.first()?.nanos;
        Some(Self {
            overlap: Some((alone + compute - both) / alone.min(compute)),
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use downbeat_clock_core::Duration;

    use super::super::test_measurement::measurement;
    use super::*;

    #[test]
    fn overlap_is_the_time_that_both_save() {
        let micros = Duration::from_micros;
        let with = |details: Vec<(&'static str, Duration)>| Measurement {
            details,
            ..measurement(120e3)
        };
        let overlap = |alone, compute| {
            let measured = with(vec![(ALONE, micros(alone)), (COMPUTE, micros(compute))]);
            Transfer::of_overlap(&measured).and_then(|found| found.overlap)
        };
        // All, half and less than nothing of the operation; and half of a computation that is shorter.
        assert_eq!(overlap(20, 120), Some(1.0));
        assert_eq!(overlap(80, 80), Some(0.5));
        assert_eq!(overlap(50, 60), Some(-0.2));
        assert_eq!(overlap(100, 40), Some(0.5));
        assert_eq!(Transfer::of_overlap(&with(vec![])), None);
    }

    #[test]
    fn transfers_are_counted_as_by_suites() {
        let factors = Factors::default().with(IN_FLIGHT, &64);
        let of_ranks = |operation: &str, bytes, nanos, ranks| {
            let key = GroupKey {
                operation: operation.to_owned(),
                bytes,
                ranks,
            };
            Transfer::of(&key, nanos, &factors)
        };
        let of = |operation: &str, bytes, nanos| {
            let found = of_ranks(operation, bytes, nanos, 2)?;
            Some((found.half_ns, found.mb_per_s))
        };
        // 1,000 bytes in 500 ns, and 2,000 bytes in 1,000 ns.
        assert_eq!(
            of("ping-pong", 1_000, 1_000.0),
            Some((Some(500.0), Some(2_000.0)))
        );
        assert_eq!(of("sendrecv", 1_000, 1_000.0), Some((None, Some(2_000.0))));
        assert_eq!(of("put", 1_000, 1_000.0), Some((None, Some(1_000.0))));
        assert_eq!(of("ping-pong", 0, 1_000.0), Some((Some(500.0), None)));
        assert_eq!(of("sendrecv", 8, 0.0), Some((None, None)));
        assert_eq!(of("allreduce", 8, 1_000.0), None);
        // Two pairs of five ranks.
        let found = of_ranks("pair-ping-pong", 1_000, 1_000.0, 5).unwrap();
        assert_eq!(
            (found.half_ns, found.mb_per_s),
            (Some(500.0), Some(4_000.0))
        );
        // 64 messages of 1,000 bytes from each of two ranks in 16 us, and from each of four.
        let found = ["get-bandwidth", "bidirectional"].map(|operation| {
            let found = of_ranks(operation, 1_000, 16_000.0, 4).unwrap();
            (found.mb_per_s.unwrap(), found.messages_per_s.unwrap())
        });
        assert_eq!(found, [(8_000.0, 8e6), (16_000.0, 16e6)]);
        // Four times as many.
        let of_threads = factors.clone().with(THREADS, &4);
        let key = GroupKey {
            operation: "ping-pong".to_owned(),
            bytes: 1_000,
            ranks: 2,
        };
        let found = Transfer::of(&key, 1_000.0, &of_threads).unwrap();
        assert_eq!(
            (found.half_ns, found.mb_per_s),
            (Some(500.0), Some(8_000.0))
        );
        let unknown = GroupKey {
            operation: "bandwidth".to_owned(),
            bytes: 8,
            ranks: 2,
        };
        assert_eq!(Transfer::of(&unknown, 9.0, &Factors::default()), None);
    }
}
