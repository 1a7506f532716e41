//! Mailbox of one cache line between two threads.

use core::array;

#[cfg(downbeat_loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

#[cfg(not(downbeat_loom))]
use core::sync::atomic::{AtomicU64, Ordering};

/// Buffer of one message of up to `N` words between one thread that sends and one that receives.
///
/// It never blocks: a [`ThreadComm`](crate::ThreadComm) waits with the help of a
/// [`Sleeper`](super::Sleeper).
///
/// Sender and receiver each count the messages in a word that only they write; the mailbox is full
/// when the counts differ. An end that goes away sets a flag in its word, which the other end reads
/// anyway, and sees after the last message. With six words for the message everything is in one
/// cache line, the only one that moves between the two cores.
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
    /// Written by the sender: number of messages sent, length of the last one, and the departure of
    /// the sender.
    sent: AtomicU64,
    words: [AtomicU64; N],
    /// Written by the receiver: number of messages taken, and the departure of the receiver.
    taken: AtomicU64,
}

/// Reason why a [`Mailbox`] cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxBlocked {
    /// The mailbox is still full, or still empty.
    NotYet,
    /// The other end is gone: the state will not change.
    Gone(Departure),
}

/// Reason why an end of a [`Mailbox`] is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The thread dropped its communicator.
    Left,
    /// The thread panicked.
    Panicked,
}

/// Fields of `sent` and `taken`: three bits of length, two of departure; the others count.
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
    /// Decodes the state of the other end's word.
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
    /// Creates an empty mailbox.
    pub fn new() -> Self {
        const { assert!(N as u64 <= LENGTH, "a mailbox has at most seven words") };
        Self {
            sent: AtomicU64::new(0),
            words: array::from_fn(|_| AtomicU64::new(0)),
            taken: AtomicU64::new(0),
        }
    }

    /// Sender: puts the first `used` words as a message, if the last one was taken.
    ///
    /// The thread that takes the message sees all writes that this thread made before; and if the
    /// mailbox is empty, this thread sees the writes that the receiver made before it took the last
    /// message.
    ///
    /// # Errors
    /// If the mailbox is full or the receiver is gone.
    #[inline]
    pub fn try_put(&self, words: &[u64; N], used: usize) -> Result<(), MailboxBlocked> {
        let count = self.sent.load(Ordering::Relaxed) & COUNT;
        // Acquire, with Release in `try_take`: the receiver has read the last message before this
        // one overwrites it. The words themselves cannot show that this is needed: x86, and loom,
        // execute the loads of a thread in order, but a compiler or an ARM core may let a relaxed
        // load take effect after a later store, and read a word of the next message. Loom therefore
        // checks a value that the receiver *wrote* before it took a message.
        let taken = self.taken.load(Ordering::Acquire);
        if taken != count {
            return Err(MailboxBlocked::from_bits(taken));
        }
        let used = used.min(N);
        for (cell, word) in self.words.iter().zip(words).take(used) {
            cell.store(*word, Ordering::Relaxed);
        }
        // Release: a thread that sees the count sees the words.
        self.sent
            .store(count.wrapping_add(ONE) | used as u64, Ordering::Release);
        Ok(())
    }

    /// Receiver: takes the message, if there is one. Returns its first `wanted` words, and its
    /// length.
    ///
    /// # Errors
    /// If the mailbox is empty or the sender is gone.
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

    /// Sender: checks that the last message was taken.
    ///
    /// # Errors
    /// If it was not, or the receiver is gone.
    pub fn check_taken(&self) -> Result<(), MailboxBlocked> {
        let taken = self.taken.load(Ordering::Acquire);
        if taken & COUNT == self.sent.load(Ordering::Relaxed) & COUNT {
            return Ok(());
        }
        Err(MailboxBlocked::from_bits(taken))
    }

    /// Sender: records that no message follows. The last one can still be taken.
    pub fn end_sending(&self, how: Departure) {
        // Release: a receiver that sees only this store, and not the count before it, sees the last
        // message, too.
        self.sent.store(
            self.sent.load(Ordering::Relaxed) | how.bits(),
            Ordering::Release,
        );
    }

    /// Receiver: records that no further message will be taken.
    pub fn end_receiving(&self, how: Departure) {
        // Release: a sender that sees only this store, and not the count before it, sees as much as
        // by the count.
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

#[cfg(test)]
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
    fn the_last_message_of_a_sender_that_left_can_be_taken() {
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
    fn sending_to_a_receiver_that_left_fails() {
        let mailbox = Mailbox::<1>::new();
        mailbox.try_put(&[5], 1).unwrap();
        mailbox.try_take(1).unwrap();
        mailbox.end_receiving(Departure::Panicked);
        // The message before was taken, and remains so.
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
