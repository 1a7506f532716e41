//! `Mailbox` and `Sleeper` under the C11 memory model: loom runs every interleaving, and every value that a load may
//! return.
//!
//! A nudge is left out, because it may miss; whoever waits here for a message does so awake. To be left by the other
//! end must wake everyone, so here sleepers sleep without an end.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile loom -p downbeat-tests --test loom_mailbox -- --nocapture`
#![cfg(loom)]

mod explore;

use std::sync::atomic::Ordering;

use downbeat_sync::internal::{Departure, Mailbox, MailboxBlocked, Sleeper};
use explore::explore;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

/// The words of a message: a mixture of two messages is none.
fn words(number: u64) -> [u64; 2] {
    [number, !number]
}

/// Tries until there is no obstacle, or one for ever.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, MailboxBlocked>) -> Result<T, Departure> {
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(MailboxBlocked::Gone(how)) => return Err(how),
            Err(MailboxBlocked::NotYet) => thread::yield_now(),
        }
    }
}

/// All messages arrive, whole and in order, and then the news that there will be no more.
#[test]
fn three_messages() {
    explore("three messages", None, || {
        let mailbox = Arc::new(Mailbox::<2>::new());
        let sender = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || {
                for number in 0..3 {
                    assert_eq!(patiently(|| mailbox.try_put(&words(number), 2)), Ok(()));
                }
                mailbox.end_sending(Departure::Left);
            }
        });
        for number in 0..3 {
            assert_eq!(patiently(|| mailbox.try_take(2)), Ok((words(number), 2)));
        }
        assert_eq!(patiently(|| mailbox.try_take(2)), Err(Departure::Left));
        sender.join().expect("the sender panicked");
    });
}

/// What each side did before is seen by the other: by the receiver with a message, by the sender when there is room
/// again, or when it asks whether the message was taken.
///
/// This is what keeps the next message from overwriting one that is still being read, and what a synchronous send is
/// for.
#[test]
fn what_was_done_before_is_seen() {
    for synchronous in [false, true] {
        explore("what was done before", None, move || {
            let mailbox = Arc::new(Mailbox::<1>::new());
            let notes = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let sender = thread::spawn({
                let (mailbox, notes) = (Arc::clone(&mailbox), Arc::clone(&notes));
                move || {
                    for number in 1..3 {
                        notes[0].store(number, Ordering::Relaxed);
                        assert_eq!(patiently(|| mailbox.try_put(&[number], 1)), Ok(()));
                        let taken = if synchronous {
                            patiently(|| mailbox.check_taken()).map(|()| number)
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
                assert_eq!(patiently(|| mailbox.try_take(1)), Ok(([number], 1)));
                assert!(notes[0].load(Ordering::Relaxed) >= number);
            }
            mailbox.end_receiving(Departure::Left);
            sender.join().expect("the sender panicked");
        });
    }
}

/// A receiver goes after one message: the sender is done with its second, or learns of it, and does not wait for ever.
#[test]
fn a_receiver_that_goes() {
    explore("a receiver that goes", None, || {
        let mailbox = Arc::new(Mailbox::<1>::new());
        let sender = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || {
                assert_eq!(patiently(|| mailbox.try_put(&[1], 1)), Ok(()));
                // There may have been room before the receiver went, but nobody is there to take it.
                let second = patiently(|| mailbox.try_put(&[2], 1));
                assert_eq!(
                    second.and_then(|()| patiently(|| mailbox.check_taken())),
                    Err(Departure::Panicked)
                );
            }
        });
        assert_eq!(patiently(|| mailbox.try_take(1)), Ok(([1], 1)));
        mailbox.end_receiving(Departure::Panicked);
        sender.join().expect("the sender panicked");
    });
}

/// Two ranks sleep, one because it waits for a message, one because it waits for room; the third one, which owes it to
/// them, leaves. Loom calls it a deadlock if one does not wake.
#[test]
fn who_leaves_wakes_all_sleepers() {
    explore("who leaves wakes all", None, || {
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

/// What will not change any more.
fn settled<T>(result: Result<T, MailboxBlocked>) -> Option<Result<T, Departure>> {
    match result {
        Ok(done) => Some(Ok(done)),
        Err(MailboxBlocked::Gone(how)) => Some(Err(how)),
        Err(MailboxBlocked::NotYet) => None,
    }
}
