//! A cache line through which one thread sends to another.

use core::array;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};

/// Room for one message of up to `N` words, with one thread that sends and one that receives.
///
/// It never waits: a [`ThreadComm`](crate::ThreadComm) does, and a [`Sleeper`](crate::Sleeper) helps it.
///
/// Sender and receiver each count the messages in a word that only they write; the box is full when the counts
/// differ. An end that goes away says so in its word, too, so the other learns it where it is looking anyway, and
/// after the last message. With six words for the message everything lies in one cache line, and that line is all that
/// has to move between two cores.
///
/// ```
/// use downbeat_sync::internal::{Mailbox, MailboxBlocked};
///
/// let mailbox = Mailbox::<6>::new();
/// assert_eq!(mailbox.try_put(&[7, 8, 0, 0, 0, 0], 2), Ok(()));
/// assert_eq!(mailbox.try_put(&[9; 6], 6), Err(MailboxBlocked::NotYet));
/// assert_eq!(mailbox.try_take(2), Ok(([7, 8, 0, 0, 0, 0], 2)));
/// assert_eq!(mailbox.try_take(2), Err(MailboxBlocked::NotYet));
/// ```
#[derive(Debug)]
#[repr(align(64))]
pub struct Mailbox<const N: usize> {
    /// Written by the sender: how many messages were sent, the length of the last, and whether the sender has gone.
    sent: AtomicU64,
    words: [AtomicU64; N],
    /// Written by the receiver: how many messages were taken, and whether the receiver has gone.
    taken: AtomicU64,
}

/// Why a [`Mailbox`] could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxBlocked {
    /// It is still full, or still empty.
    NotYet,
    /// The other end has gone, and nothing will change any more.
    Gone(Departure),
}

/// How the end of a [`Mailbox`] went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// As planned.
    Left,
    /// Its thread panicked.
    Panicked,
}

/// The parts of `sent` and `taken`: three bits for the length, two for the departure, the rest counts.
const LENGTH: u64 = 0b111;
const LEFT: u64 = 0b01 << 3;
const PANICKED: u64 = 0b10 << 3;
const ONE: u64 = 1 << 5;
const COUNT: u64 = !(ONE - 1);

impl Departure {
    const fn bits(self) -> u64 {
        match self {
            Self::Left => LEFT,
            Self::Panicked => PANICKED,
        }
    }
}

impl MailboxBlocked {
    /// What stands in the way when the other end's word is this.
    const fn from_bits(word: u64) -> Self {
        if word & PANICKED != 0 {
            Self::Gone(Departure::Panicked)
        } else if word & LEFT != 0 {
            Self::Gone(Departure::Left)
        } else {
            Self::NotYet
        }
    }
}

impl<const N: usize> Mailbox<N> {
    /// An empty mailbox.
    pub fn new() -> Self {
        const { assert!(N as u64 <= LENGTH, "a mailbox has at most seven words") };
        Self {
            sent: AtomicU64::new(0),
            words: array::from_fn(|_| AtomicU64::new(0)),
            taken: AtomicU64::new(0),
        }
    }

    /// The sender's: leaves the first `used` words as a message, unless the last one has not been taken.
    ///
    /// Whoever takes the message sees what this thread did before; and this thread, if there is room for a message, what
    /// the receiver did before it took the last one.
    ///
    /// # Errors
    /// What stands in the way.
    #[inline]
    pub fn try_put(&self, words: &[u64; N], used: usize) -> Result<(), MailboxBlocked> {
        let count = self.sent.load(Ordering::Relaxed) & COUNT;
        // Acquire, with Release in `try_take`: the receiver has read the last message before this one overwrites it.
        // The words themselves cannot show that this is needed: x86, and loom, take the loads of a thread in their
        // order, but a compiler or an ARM core may let a relaxed load take effect after a later store, and find a word
        // of the next message. Loom therefore watches something that the receiver *wrote* before it took a message.
        let taken = self.taken.load(Ordering::Acquire);
        if taken != count {
            return Err(MailboxBlocked::from_bits(taken));
        }
        let used = used.min(N);
        for (cell, word) in self.words.iter().zip(words).take(used) {
            cell.store(*word, Ordering::Relaxed);
        }
        // Release: who sees the count finds the words.
        self.sent
            .store(count.wrapping_add(ONE) | used as u64, Ordering::Release);
        Ok(())
    }

    /// The receiver's: takes the message, if there is one. Returns its first `wanted` words, and how many it has.
    ///
    /// # Errors
    /// What stands in the way.
    #[inline]
    pub fn try_take(&self, wanted: usize) -> Result<([u64; N], usize), MailboxBlocked> {
        let count = self.taken.load(Ordering::Relaxed) & COUNT;
        let sent = self.sent.load(Ordering::Acquire);
        if sent & COUNT == count {
            return Err(MailboxBlocked::from_bits(sent));
        }
        let words = array::from_fn(|i| {
            if i < wanted {
                self.words[i].load(Ordering::Relaxed)
            } else {
                0
            }
        });
        self.taken.store(sent & COUNT, Ordering::Release);
        Ok((words, (sent & LENGTH) as usize))
    }

    /// The sender's: whether the last message was taken.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn check_taken(&self) -> Result<(), MailboxBlocked> {
        let taken = self.taken.load(Ordering::Acquire);
        if taken & COUNT == self.sent.load(Ordering::Relaxed) & COUNT {
            return Ok(());
        }
        Err(MailboxBlocked::from_bits(taken))
    }

    /// The sender's: no message follows. What was sent can still be taken.
    pub fn end_sending(&self, how: Departure) {
        // Release: a receiver that sees this, and never saw the count without it, finds the last message, too.
        self.sent.store(
            self.sent.load(Ordering::Relaxed) | how.bits(),
            Ordering::Release,
        );
    }

    /// The receiver's: no message will be taken any more.
    pub fn end_receiving(&self, how: Departure) {
        // Release: a sender that sees this, and never saw the count without it, learns no less from it.
        self.taken.store(
            self.taken.load(Ordering::Relaxed) | how.bits(),
            Ordering::Release,
        );
    }
}

impl<const N: usize> Default for Mailbox<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_is_one_cache_line() {
        assert_eq!(
            (size_of::<Mailbox<6>>(), align_of::<Mailbox<6>>()),
            (64, 64)
        );
    }

    #[test]
    fn it_holds_one_message_at_a_time() {
        let mailbox = Mailbox::<2>::new();
        assert_eq!(mailbox.check_taken(), Ok(()));
        for i in 0..5 {
            assert_eq!(mailbox.try_take(2), Err(MailboxBlocked::NotYet));
            assert_eq!(mailbox.try_put(&[i, !i], 2), Ok(()));
            assert_eq!(mailbox.try_put(&[99, 99], 2), Err(MailboxBlocked::NotYet));
            assert_eq!(mailbox.check_taken(), Err(MailboxBlocked::NotYet));
            assert_eq!(mailbox.try_take(2), Ok(([i, !i], 2)));
            assert_eq!(mailbox.check_taken(), Ok(()));
        }
    }

    #[test]
    fn the_length_of_a_message_is_what_was_sent() {
        let mailbox = Mailbox::<2>::new();
        mailbox.try_put(&[5, 6], 1).unwrap();
        assert_eq!(mailbox.try_take(2), Ok(([5, 0], 1)));
        mailbox.try_put(&[7, 8], 9).unwrap();
        assert_eq!(mailbox.try_take(1), Ok(([7, 0], 2)));
        mailbox.try_put(&[9, 9], 0).unwrap();
        assert_eq!(mailbox.try_take(0), Ok(([0, 0], 0)));
    }

    #[test]
    fn a_sender_that_goes_leaves_its_last_message() {
        let mailbox = Mailbox::<1>::new();
        mailbox.try_put(&[5], 1).unwrap();
        mailbox.end_sending(Departure::Left);
        assert_eq!(mailbox.try_take(1), Ok(([5], 1)));
        assert_eq!(
            mailbox.try_take(1),
            Err(MailboxBlocked::Gone(Departure::Left))
        );
    }

    #[test]
    fn a_receiver_that_goes_takes_no_more() {
        let mailbox = Mailbox::<1>::new();
        mailbox.try_put(&[5], 1).unwrap();
        mailbox.try_take(1).unwrap();
        mailbox.end_receiving(Departure::Panicked);
        // The message before was taken, and stays so.
        assert_eq!(mailbox.check_taken(), Ok(()));
        assert_eq!(
            mailbox.try_put(&[6], 1),
            Err(MailboxBlocked::Gone(Departure::Panicked))
        );

        let full = Mailbox::<1>::new();
        full.try_put(&[5], 1).unwrap();
        full.end_receiving(Departure::Left);
        assert_eq!(
            full.check_taken(),
            Err(MailboxBlocked::Gone(Departure::Left))
        );
        assert_eq!(
            full.try_put(&[6], 1),
            Err(MailboxBlocked::Gone(Departure::Left))
        );
    }
}
