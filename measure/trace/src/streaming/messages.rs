//! Messages of a stream: their numbers, and those that lack an end.

use rustc_hash::FxHashSet;

use super::super::EventId;
use super::posted::Overtaking;

/// Messages of a stream. The number of a message consists of that of its channel and its index there;
/// signals are counted separately.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) channels: Vec<ChannelCounts>,
    pub(super) overtaking: Overtaking,
    /// Number of signals, and of waits without one.
    pub(super) signals: u64,
    /// Signals that lack an end.
    pub(super) incomplete: FxHashSet<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelCounts {
    /// Sending process.
    pub(super) sender: u32,
    pub(super) sends: u32,
    pub(super) receives: u32,
}

/// Flag of the numbers of signals.
pub(super) const SIGNAL: u64 = 1 << 63;

impl Messages {
    /// Returns the index of the next message of a channel in the order of sends, or else of receives.
    pub(super) fn next(&mut self, channel: u32, sends: bool) -> Option<u32> {
        let of = &mut self.channels[channel as usize];
        let count = match sends {
            true => &mut of.sends,
            false => &mut of.receives,
        };
        *count = count.checked_add(1)?;
        Some(*count - 1)
    }

    /// Returns the number of the message that a receive takes.
    pub(super) fn received(&self, event: EventId, message: u64) -> u64 {
        if self.overtaking.is_empty() {
            return message;
        }
        let index = self.overtaking.get(&event);
        index.map_or(message, |index| {
            message & !u64::from(u32::MAX) | u64::from(*index)
        })
    }

    /// Returns true if a message has both ends.
    pub(super) fn is_complete(&self, message: u64) -> bool {
        if message & SIGNAL != 0 {
            return self.incomplete.is_empty() || !self.incomplete.contains(&message);
        }
        let of = &self.channels[(message >> 32) as usize];
        (message as u32) < of.sends.min(of.receives)
    }

    /// Returns true if a message lacks an end; signals may.
    pub(super) fn is_alone(&self, message: u64) -> bool {
        message & SIGNAL == 0 && !self.is_complete(message)
    }

    /// Returns the process that sends a message, given the one that receives it.
    pub(super) fn sender(&self, message: u64, receiver: u32) -> u32 {
        if message & SIGNAL != 0 {
            return receiver;
        }
        self.channels[(message >> 32) as usize].sender
    }

    /// Returns the numbers of messages without receives, and of those without sends.
    pub(super) fn unmatched(&self) -> [u64; 2] {
        let of = |counts: &ChannelCounts| {
            let ChannelCounts {
                sends, receives, ..
            } = *counts;
            [
                sends.saturating_sub(receives),
                receives.saturating_sub(sends),
            ]
            .map(u64::from)
        };
        let all = self.channels.iter().map(of);
        all.fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
    }
}
