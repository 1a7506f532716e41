//! Stress test of mailboxes on real cores, with all reordering of the compiler and the processor.
//! Loom cannot show that a message was read before the next one overwrites it.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use downbeat_sync::internal::{Departure, Mailbox, MailboxBlocked};

/// Maximum number of messages; on busy cores the time limit ends the test earlier.
const MESSAGES: u64 = 300_000;
const LONGEST: Duration = Duration::from_secs(1);

/// Each word of a message is derived differently from its number.
fn message(number: u64) -> [u64; 6] {
    [1_u64, 3, 5, 7, 9, 11].map(|factor| number.wrapping_mul(factor).rotate_left(factor as u32))
}

/// Spins a little, because the other thread may be on another core, and then yields, because it may
/// not be.
fn retry<T>(mut attempt: impl FnMut() -> Result<T, MailboxBlocked>) -> Result<T, Departure> {
    loop {
        for _ in 0..100 {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(MailboxBlocked::Gone(how)) => return Err(how),
                Err(MailboxBlocked::NotYet) => hint::spin_loop(),
            }
        }
        thread::yield_now();
    }
}

fn send_all(mailbox: &Mailbox<6>) {
    let began = Instant::now();
    for number in (0..MESSAGES).take_while(|_| began.elapsed() < LONGEST) {
        assert_eq!(
            retry(|| mailbox.try_put(&message(number), 6)),
            Ok(()),
            "message {number}"
        );
    }
    mailbox.end_sending(Departure::Left);
}

/// Returns the number of received messages.
fn receive_all(mailbox: &Mailbox<6>) -> u64 {
    for number in 0.. {
        match retry(|| mailbox.try_take(6)) {
            Ok(found) => assert_eq!(found, (message(number), 6), "message {number}"),
            Err(how) => {
                assert_eq!(how, Departure::Left);
                return number;
            }
        }
    }
    unreachable!("there are fewer messages than numbers")
}

#[test]
fn every_message_arrives_whole_and_once() {
    let mailbox = Mailbox::new();
    thread::scope(|scope| {
        scope.spawn(|| send_all(&mailbox));
        assert!(receive_all(&mailbox) > 0);
    });
}

#[test]
fn adjacent_mailboxes_do_not_affect_each_other() {
    let mailboxes = [(); 3].map(|()| Mailbox::new());
    thread::scope(|scope| {
        for mailbox in &mailboxes {
            scope.spawn(|| send_all(mailbox));
            scope.spawn(|| assert!(receive_all(mailbox) > 0));
        }
    });
}
