//! Late sender: a receive is entered before its send.

use downbeat_clock_core::{Duration, Global, Timestamp};

/// Returns the time that a receive loses if its send is entered late, as far as the receive lasts.
pub(super) fn late_sender(
    [enter, leave]: [Timestamp<Global>; 2],
    send_enter: Timestamp<Global>,
) -> Duration {
    (send_enter.min(leave) - enter).max(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receive_waits_from_its_enter_to_that_of_the_send() {
        let lost = |receive: [i64; 2], send: i64| {
            let receive = receive.map(Timestamp::from_nanos);
            late_sender(receive, Timestamp::from_nanos(send)).as_nanos()
        };
        assert_eq!(lost([100, 200], 150), 50);
        assert_eq!(lost([100, 200], 90), 0, "the send is early");
        assert_eq!(lost([100, 200], 100), 0);
        assert_eq!(lost([100, 200], 300), 100, "by wrong clocks");
        assert_eq!(lost([100, 100], 300), 0);
    }
}
