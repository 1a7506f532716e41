//! One-way time and throughput of messages between two ranks, beside the time of the whole call, as OSU and IMB report them.

use downbeat_records::GroupKey;
use serde::Serialize;

use crate::output;

/// One-way time and throughput of an operation that transfers messages between pairs of ranks.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Transfer {
    /// Half of the round trip, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) half_ns: Option<f64>,
    /// Throughput in units of 10^6 bytes per second: of one message in half of a round trip, or of both messages of a rank that sends
    /// and receives; `None` for empty messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mb_per_s: Option<f64>,
}

/// Heading of a column, and its cell, if there is one.
pub(super) type TransferColumn = (&'static str, fn(&Transfer) -> Option<String>);

impl Transfer {
    /// Columns of tables.
    pub(super) const COLUMNS: [TransferColumn; 2] = [
        ("half", |transfer| transfer.half_ns.map(output::time)),
        ("MB/s", |transfer| {
            transfer.mb_per_s.map(|speed| format!("{speed:.1}"))
        }),
    ];

    /// Computes them from the reported figure; `None` for operations that are no such transfer.
    pub(super) fn of(key: &GroupKey, nanos: f64) -> Option<Self> {
        let (messages, half_ns) = match key.operation.as_str() {
            "ping-pong" => (1.0, Some(nanos / 2.0)),
            "sendrecv" => (2.0, None),
            _ => return None,
        };
        let bytes_per_ns = messages * key.bytes as f64 / half_ns.unwrap_or(nanos);
        Some(Self {
            half_ns,
            mb_per_s: (key.bytes > 0 && nanos > 0.0).then_some(1e3 * bytes_per_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_counted_as_by_suites() {
        let of = |operation: &str, bytes, nanos| {
            let key = GroupKey {
                operation: operation.to_owned(),
                bytes,
                ranks: 2,
            };
            let found = Transfer::of(&key, nanos)?;
            Some((found.half_ns, found.mb_per_s))
        };
        // 1,000 bytes in 500 ns, and 2,000 bytes in 1,000 ns.
        assert_eq!(
            of("ping-pong", 1_000, 1_000.0),
            Some((Some(500.0), Some(2_000.0)))
        );
        assert_eq!(of("sendrecv", 1_000, 1_000.0), Some((None, Some(2_000.0))));
        assert_eq!(of("ping-pong", 0, 1_000.0), Some((Some(500.0), None)));
        assert_eq!(of("sendrecv", 8, 0.0), Some((None, None)));
        assert_eq!(of("allreduce", 8, 1_000.0), None);
    }
}
