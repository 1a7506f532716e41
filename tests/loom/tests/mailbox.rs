//! `Mailbox` and `Sleeper` under the C11 memory model: loom runs every interleaving, and every value that a load may
//! return.
//!
//! Nudges are left out, because they may miss: here, waiting for a message means polling. The departure of the other
//! end must wake all sleepers, so here they sleep without a timeout.
//!
//! `RUSTFLAGS="--cfg downbeat_loom" cargo test --release --manifest-path tests/loom/Cargo.toml --test mailbox -- --nocapture`

use std::sync::atomic::Ordering;

use downbeat_loom::explore;
use downbeat_sync::internal::{Departure, Mailbox, MailboxBlocked, Sleeper};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

/// Returns the words of a message; a mixture of two messages is invalid.
fn words(number: u64) -> [u64; 2] {
    [number, !number]
}

/// Retries until the attempt succeeds or the other end has left.
fn retry<T>(mut attempt: impl FnMut() -> Result<T, MailboxBlocked>) -> Result<T, Departure> {
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(MailboxBlocked::Gone(how)) => return Err(how),
            Err(MailboxBlocked::NotYet) => thread::yield_now(),
        }
    }
}

/// All messages arrive, whole and in order, followed by the departure of the sender.
#[test]
fn three_messages() {
    explore("three messages", None, || {
        let mailbox = Arc::new(Mailbox::<2>::new());
        let sender = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || {
                for number in 0..3 {
                    assert_eq!(retry(|| mailbox.try_put(&words(number), 2)), Ok(()));
                }
                mailbox.end_sending(Departure::Left);
            }
        });
        for number in 0..3 {
            assert_eq!(retry(|| mailbox.try_take(2)), Ok((words(number), 2)));
        }
        assert_eq!(retry(|| mailbox.try_take(2)), Err(Departure::Left));
        sender.join().expect("the sender panicked");
    });
}

/// Earlier writes of each side are visible to the other: to the receiver with a message, to the sender when there is space
/// again, or when it finds that the message was received.
///
/// This keeps the next message from overwriting one that is still being read, and is the purpose of a synchronous send.
#[test]
fn earlier_writes_are_visible() {
    for synchronous in [false, true] {
        explore("earlier writes", None, move || {
            let mailbox = Arc::new(Mailbox::<1>::new());
            let notes = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let sender = thread::spawn({
                let (mailbox, notes) = (Arc::clone(&mailbox), Arc::clone(&notes));
                move || {
                    for number in 1..3 {
                        notes[0].store(number, Ordering::Relaxed);
                        assert_eq!(retry(|| mailbox.try_put(&[number], 1)), Ok(()));
                        let taken = if synchronous {
                            retry(|| mailbox.check_taken()).map(|()| number)
                        } else {
                            Ok(number - 1)
                        };
                        assert!(
                            notes[1].load(Ordering::Relaxed)
                                >= taken.expect("the receiver took all messages")
                        );
                    }
                }
            });
            for number in 1..3 {
                notes[1].store(number, Ordering::Relaxed);
                assert_eq!(retry(|| mailbox.try_take(1)), Ok(([number], 1)));
                assert!(notes[0].load(Ordering::Relaxed) >= number);
            }
            mailbox.end_receiving(Departure::Left);
            sender.join().expect("the sender panicked");
        });
    }
}

/// A receiver leaves after one message: the sender finishes its second message or learns of the departure, and never hangs.
#[test]
fn a_receiver_that_leaves() {
    explore("a receiver that leaves", None, || {
        let mailbox = Arc::new(Mailbox::<1>::new());
        let sender = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || {
                assert_eq!(retry(|| mailbox.try_put(&[1], 1)), Ok(()));
                // There may have been space before the receiver left, but no receiver remains.
                let second = retry(|| mailbox.try_put(&[2], 1));
                assert_eq!(
                    second.and_then(|()| retry(|| mailbox.check_taken())),
                    Err(Departure::Panicked)
                );
            }
        });
        assert_eq!(retry(|| mailbox.try_take(1)), Ok(([1], 1)));
        mailbox.end_receiving(Departure::Panicked);
        sender.join().expect("the sender panicked");
    });
}

/// Two ranks sleep, one waiting for a message, one waiting for space; the third one, for which they wait,
/// leaves. Loom reports a deadlock if one does not wake up.
#[test]
fn a_departure_wakes_all_sleepers() {
    explore("a departure wakes all", None, || {
        let (inbox, outbox) = (Arc::new(Mailbox::<1>::new()), Arc::new(Mailbox::<1>::new()));
        assert_eq!(
            outbox.try_put(&[1], 1),
            Ok(()),
            "the box that is going to be full"
        );
        let sleepers = Arc::new([Sleeper::new(), Sleeper::new()]);
        let receiver = thread::spawn({
            let (inbox, sleepers) = (Arc::clone(&inbox), Arc::clone(&sleepers));
            move || {
                let take = || sleepers[0].wait_until(|| settled(inbox.try_take(1)));
                assert_eq!(take(), Ok(([1], 1)));
                assert_eq!(take(), Err(Departure::Left));
            }
        });
        let sender = thread::spawn({
            let (outbox, sleepers) = (Arc::clone(&outbox), Arc::clone(&sleepers));
            move || {
                assert_eq!(
                    sleepers[1].wait_until(|| settled(outbox.try_put(&[2], 1))),
                    Err(Departure::Left)
                );
            }
        });
        assert_eq!(inbox.try_put(&[1], 1), Ok(()));
        inbox.end_sending(Departure::Left);
        outbox.end_receiving(Departure::Left);
        sleepers.iter().for_each(Sleeper::wake);
        receiver.join().expect("the receiver panicked");
        sender.join().expect("the sender panicked");
    });
}

/// Converts a final result; `None` if a retry may succeed.
fn settled<T>(result: Result<T, MailboxBlocked>) -> Option<Result<T, Departure>> {
    match result {
        Ok(done) => Some(Ok(done)),
        Err(MailboxBlocked::Gone(how)) => Some(Err(how)),
        Err(MailboxBlocked::NotYet) => None,
    }
}
