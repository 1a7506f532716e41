//! Late receiver: a send that waits for its receive is entered before it.

use downbeat_clock_core::{Duration, Global, Timestamp};

/// Returns the time that a send loses if its receive is entered late. A send that ended before did not wait.
pub(super) fn late_receiver(
    [enter, leave]: [Timestamp<Global>; 2],
    receive_enter: Timestamp<Global>,
) -> Duration {
    if leave <= receive_enter {
        return Duration::ZERO;
    }
    (receive_enter - enter).max(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_send_that_lasts_until_its_receive_waits() {
        let lost = |send: [i64; 2], receive: i64| {
            let send = send.map(Timestamp::from_nanos);
            late_receiver(send, Timestamp::from_nanos(receive)).as_nanos()
        };
        assert_eq!(lost([100, 200], 150), 50);
        assert_eq!(lost([100, 120], 150), 0, "the message was buffered");
        assert_eq!(lost([100, 150], 150), 0);
        assert_eq!(lost([100, 200], 90), 0, "the receive is early");
    }
}
