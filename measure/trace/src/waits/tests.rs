//! Tests of wait states of whole traces.

use std::path::Path;

use downbeat_clock_core::Duration;
use proptest::prelude::*;

use super::{WaitPattern, WaitStates, WaitSums};
use crate::calls::{CallWalk, LeftOpen, ProgramNames};
use crate::formats::TraceReader;

/// Head of a trace of three locations.
const HEAD: &str = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\nlocation 2 2 2 c\n\
                    communicator 0 0 1 2\ncommunicator 1 1 2\nregion 0 main\nregion 1 MPI_Send\nregion 2 MPI_Recv\n\
                    region 3 MPI_Allreduce\nregion 4 MPI_Waitall\nregion 5 MPI_Isend\nregion 6 MPI_Sendrecv\n\
                    region 7 MPI_Irecv\nregion 8 MPI_Wait\nregion 9 MPI_Testall\n";

fn sums(events: &str) -> (WaitSums, ProgramNames, LeftOpen) {
    let count = events.lines().count();
    let text = format!("{HEAD}{events}end {count}\n");
    let mut reader = TraceReader::new(Path::new("test"), text.as_bytes()).unwrap();
    let (mut walk, mut states) = (CallWalk::default(), WaitStates::default());
    while let Some(item) = reader.next_item().unwrap() {
        walk.add_item(&item, &mut |found| states.add_finding(found));
    }
    let (names, left) = walk.finish(&mut |found| states.add_finding(found));
    (states.finish(), names, left)
}

/// Returns the waits by location: the pattern, and the times that were lost in calls together.
fn waits(events: &str) -> Vec<(u32, WaitPattern, u64, i64)> {
    let found = sums(events).0.by_location();
    let found = found.into_iter();
    found
        .map(|((location, pattern), sum)| (location, pattern, sum.calls, sum.lost.as_nanos()))
        .collect()
}

#[test]
fn a_receive_waits_for_a_late_sender() {
    let events = "1 100 enter 2\n0 160 enter 1\n0 165 send 1 0 7\n0 170 leave 1\n\
                  1 180 receive 0 0 7\n1 190 leave 2\n";
    assert_eq!(waits(events), [(1, WaitPattern::LateSender, 1, 60)]);
    let (found, names, left) = sums(events);
    let (region, pattern) = *found.by_region().keys().next().unwrap();
    assert_eq!(
        (names.region(region), pattern),
        ("MPI_Recv", WaitPattern::LateSender)
    );
    assert_eq!((left.events, left.sends + left.receives), (6, 0));
    assert_eq!(found.time(), Duration::from_nanos(10 + 90));
}

#[test]
fn a_send_that_waits_has_a_late_receiver() {
    let events = |send: u32, leave: i64| {
        format!(
            "0 100 enter {send}\n0 101 send 1 0 7\n0 {leave} leave {send}\n\
             1 150 enter 2\n1 155 receive 0 0 7\n1 160 leave 2\n"
        )
    };
    assert_eq!(
        waits(&events(1, 158)),
        [(0, WaitPattern::LateReceiver, 1, 50)]
    );
    assert_eq!(waits(&events(1, 110)), [], "it was buffered");
    assert_eq!(waits(&events(5, 158)), [], "it only starts");
}

/// The receive of a message begins where it is posted, not where it is complete.
#[test]
fn a_posted_receive_is_not_late() {
    let events = |post: i64| {
        format!(
            "0 100 enter 1\n0 101 send 1 0 7\n0 200 leave 1\n\
             1 {post} enter 7\n1 {post} receive-post 3\n1 {post} leave 7\n\
             1 180 enter 8\n1 190 receive-complete 0 0 7 3\n1 200 leave 8\n"
        )
    };
    assert_eq!(waits(&events(90)), []);
    assert_eq!(waits(&events(130)), [(0, WaitPattern::LateReceiver, 1, 30)]);
}

#[test]
fn a_wait_for_a_non_blocking_send_has_a_late_receiver() {
    let wait = |region: u32| {
        format!(
            "0 100 enter 5\n0 101 send-start 1 0 7 4\n0 102 leave 5\n\
             0 120 enter {region}\n0 158 send-complete 4\n0 159 leave {region}\n"
        )
    };
    let receive = "1 150 enter 2\n1 155 receive 0 0 7\n1 160 leave 2\n";
    let expected = [(0, WaitPattern::LateReceiver, 1, 30)];
    // Whichever end passes first.
    assert_eq!(waits(&(wait(8) + receive)), expected);
    assert_eq!(waits(&(receive.to_owned() + &wait(8))), expected);
    assert_eq!(waits(&(wait(4) + receive)), expected);
    assert_eq!(waits(&(wait(9) + receive)), [], "a test does not wait");
    let early = receive.replace("150", "110");
    assert_eq!(waits(&(wait(8) + &early)), [], "the receive is early");
    // A call that waits for a sender, too, may have waited for that alone.
    let both = "0 100 enter 5\n0 101 send-start 1 0 7 4\n0 102 leave 5\n\
                0 110 enter 7\n0 111 receive-post 5\n0 112 leave 7\n0 120 enter 4\n\
                1 140 enter 1\n1 141 send 0 0 9\n1 142 leave 1\n1 150 enter 2\n1 155 receive 0 0 7\n1 160 leave 2\n\
                0 170 receive-complete 1 0 9 5\n0 170 send-complete 4\n0 171 leave 4\n";
    assert_eq!(waits(both), [(0, WaitPattern::LateSender, 1, 20)]);
}

#[test]
fn a_test_of_requests_does_not_wait() {
    let events = "1 10 receive-post 1\n1 100 enter 9\n0 120 enter 1\n0 121 send 1 0 1\n0 122 leave 1\n\
                  1 160 receive-complete 0 0 1 1\n1 162 leave 9\n";
    assert_eq!(waits(events), []);
    assert_eq!(
        waits(
            &events
                .replace("enter 9", "enter 8")
                .replace("leave 9", "leave 8")
        ),
        [(1, WaitPattern::LateSender, 1, 20)]
    );
}

#[test]
fn a_call_that_receives_several_messages_waits_once() {
    let events = "1 100 enter 4\n0 120 enter 5\n0 121 send 1 0 1\n0 122 leave 5\n\
                  2 150 enter 5\n2 151 send 1 0 1\n2 152 leave 5\n\
                  1 160 receive 0 0 1\n1 161 receive 2 0 1\n1 170 leave 4\n";
    assert_eq!(waits(events), [(1, WaitPattern::LateSender, 1, 50)]);
}

#[test]
fn posted_receives_keep_their_order() {
    // The second post completes first, with the second message.
    let events = "1 10 receive-post 1\n1 11 receive-post 2\n\
                  0 120 enter 5\n0 121 send 1 0 1\n0 122 leave 5\n0 150 enter 5\n0 151 send 1 0 1\n0 152 leave 5\n\
                  1 100 enter 4\n1 160 receive-complete 0 0 1 2\n1 162 leave 4\n\
                  1 163 enter 4\n1 164 receive-complete 0 0 1 1\n1 165 leave 4\n";
    assert_eq!(waits(events), [(1, WaitPattern::LateSender, 1, 50)]);
}

#[test]
fn messages_outside_of_calls_of_mpi_do_not_wait() {
    let events = "1 100 enter 0\n0 160 enter 0\n0 165 send 1 0 7\n0 170 leave 0\n\
                  1 180 receive 0 0 7\n1 190 leave 0\n";
    assert_eq!(waits(events), []);
    // A send and a receive in one call: the receive waits, the send is not blamed.
    let both = "0 100 enter 6\n0 101 send 1 0 1\n1 140 enter 6\n1 141 send 0 0 1\n\
                0 150 receive 1 0 1\n0 151 leave 6\n1 152 receive 0 0 1\n1 153 leave 6\n";
    assert_eq!(waits(both), [(0, WaitPattern::LateSender, 1, 40)]);
}

#[test]
fn members_wait_for_the_last_one() {
    // The last location records no region.
    let events = "0 10 enter 3\n0 10 collective 0\n1 40 enter 3\n1 40 collective 0\n2 25 collective 0\n\
                  0 50 collective-end 0 allreduce 0 both\n0 51 leave 3\n\
                  1 50 collective-end 0 allreduce 0 both\n1 51 leave 3\n\
                  2 52 collective-end 0 allreduce 0 both\n";
    let (found, names, left) = sums(events);
    assert_eq!(left.operations, 0);
    let found = found.by_region().into_iter();
    let found =
        found.map(|((region, _), sum)| (names.region(region).to_owned(), sum.lost.as_nanos()));
    let expected = [
        ("MPI_Allreduce".to_owned(), 30),
        ("allreduce".to_owned(), 15),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

/// In a team, each thread is a member, and not only its process.
#[test]
fn threads_wait_for_each_other() {
    let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nthread 1 0 b\ncommunicator 0 0\ncommunicator 1 0 1\n\
                region 0 MPI_Barrier\n0 10 enter 0\n0 10 collective 1\n1 40 enter 0\n1 40 collective 1\n\
                0 50 collective-end 1 barrier 0 none\n0 50 leave 0\n1 50 collective-end 1 barrier 0 none\n1 50 leave 0\n\
                1 60 collective 0\n1 70 collective-end 0 barrier 0 none\nend 10\n";
    let mut reader = TraceReader::new(Path::new("test"), text.as_bytes()).unwrap();
    let (mut walk, mut states) = (CallWalk::default(), WaitStates::default());
    while let Some(item) = reader.next_item().unwrap() {
        walk.add_item(&item, &mut |found| states.add_finding(found));
    }
    let (_, left) = walk.finish(&mut |found| states.add_finding(found));
    assert_eq!(left.operations, 0);
    let found = states.finish().by_pattern()[&WaitPattern::Barrier];
    assert_eq!((found.calls, found.lost.as_nanos()), (1, 30));
}

#[test]
fn a_non_blocking_operation_waits_where_it_is_completed() {
    let events = "1 10 collective-start 1 5\n2 60 collective-start 1 5\n\
                  1 40 enter 4\n1 70 collective-complete 1 barrier 0 none 5\n1 71 leave 4\n\
                  2 75 enter 4\n2 80 collective-complete 1 barrier 0 none 5\n2 81 leave 4\n";
    assert_eq!(waits(events), [(1, WaitPattern::Barrier, 1, 20)]);
}

/// As in the recording of a rank that was killed.
#[test]
fn a_receive_that_is_never_complete_does_not_hold_others() {
    let events = "1 10 enter 7\n1 11 receive-post 1\n1 12 leave 7\n1 100 enter 2\n0 160 enter 1\n\
                  0 165 send 1 0 7\n0 170 leave 1\n1 180 receive 0 0 7\n1 190 leave 2\n";
    assert_eq!(waits(events), [(1, WaitPattern::LateSender, 1, 60)]);
    let (_, _, left) = sums(events);
    assert_eq!((left.sends, left.receives), (0, 0));
}

#[test]
fn what_is_incomplete_is_counted() {
    let (found, _, left) = sums("0 1 enter 1\n0 2 send 1 0 1\n0 3 leave 1\n1 4 enter 2\n");
    assert_eq!(
        (left.sends + left.receives, found.by_pattern().len()),
        (1, 0)
    );
}

/// A message: its ends, and the times of its send and its receive.
#[derive(Clone, Debug)]
struct TestMessage {
    from: usize,
    to: usize,
    lengths: [i64; 4],
}

fn message() -> impl Strategy<Value = TestMessage> {
    let ends = (0_usize..3, 1_usize..3);
    (ends, prop::array::uniform4(0_i64..200)).prop_map(|((from, by), lengths)| TestMessage {
        from,
        to: (from + by) % 3,
        lengths,
    })
}

proptest! {
    /// Sums of single messages, whose times follow from those of their calls alone; in any order of the locations.
    #[test]
    fn waits_are_those_of_the_calls(messages in prop::collection::vec(message(), 0..40), picks in prop::collection::vec(0_usize..3, 400)) {
        let mut now = [1_000_i64; 3];
        let mut lines: [Vec<String>; 3] = Default::default();
        let mut expected = [[0_i64; 3]; 2];
        for TestMessage { from, to, lengths } in messages {
            let mut call = |location: usize, gap: i64, length: i64, region: u32, what: String| {
                let enter = now[location] + gap;
                now[location] = enter + length;
                let leave = now[location];
                let of = &mut lines[location];
                of.push(format!("{location} {enter} enter {region}"));
                of.push(format!("{location} {enter} {what}"));
                of.push(format!("{location} {leave} leave {region}"));
                [enter, leave]
            };
            let send = call(from, lengths[0], lengths[1], 1, format!("send {to} 0 3"));
            let receive = call(to, lengths[2], lengths[3], 2, format!("receive {from} 0 3"));
            expected[0][to] += (send[0].min(receive[1]) - receive[0]).max(0);
            if send[1] > receive[0] {
                expected[1][from] += (receive[0] - send[0]).max(0);
            }
        }
        let mut text = String::new();
        let mut lines = lines.map(Vec::into_iter);
        for location in picks.into_iter().chain([0, 1, 2].into_iter().flat_map(|all| [all; 400])) {
            if let Some(line) = lines[location].next() {
                text += &(line + "\n");
            }
        }
        let (found, _, left) = sums(&text);
        prop_assert_eq!(left.sends + left.receives, 0);
        let mut sums = [[0_i64; 3]; 2];
        for ((location, pattern), sum) in found.by_location() {
            let pattern = usize::from(pattern == WaitPattern::LateReceiver);
            sums[pattern][location as usize] = sum.lost.as_nanos();
        }
        prop_assert_eq!(sums, expected);
    }
}
