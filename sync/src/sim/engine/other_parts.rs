//! What an engine tells other parts of the cluster, and hears from them.

use std::sync::Arc;

use super::Engine;
use crate::sim::exchange::WindowReport;
use crate::sim::messages::{MessageKind, MessageStage, SimMessage};
use crate::sim::news::{Crossing, CrossingMessage, Departure, SplitArrivals};
use crate::sim::rank_state::RankWait;
use crate::sim::traffic::CardEvent;

impl Engine {
    /// Moves a message, and its bytes if it is long, to the part of its receiver.
    pub(in crate::sim) fn send_crossing(&mut self, message: SimMessage, number: u32) {
        let parcel = match message.kind {
            MessageKind::Parcel => self.parcels.remove(&message.words[0]),
            _ => None,
        };
        let mail = &mut self.mail[self.part.of(message.to)];
        mail.push(Crossing::Message(Box::new(CrossingMessage {
            message,
            number,
            parcel,
        })));
    }

    /// Takes a message from another part.
    pub(in crate::sim) fn take_crossing(&mut self, crossing: CrossingMessage) {
        let CrossingMessage {
            mut message,
            number,
            parcel,
        } = crossing;
        if self.is_gone(message.to) {
            return;
        }
        if let Some(bytes) = parcel {
            message.words[0] = self.keep_parcel(bytes);
        }
        if self.traffic.is_some() {
            message.stage = MessageStage::Travelling;
        }
        let id = self.messages.keep(message);
        if let Some(traffic) = &mut self.traffic {
            traffic.push(message.time, message.from, number, id);
        }
        self.append(id);
    }

    /// Tells a rank that its synchronous message was received.
    pub(in crate::sim) fn deliver(&mut self, rank: u32, at: u64) {
        if self.ranks.contains(rank) {
            self.release(rank, at, RankWait::Delivered);
        } else {
            self.mail[self.part.of(rank)].push(Crossing::Delivered { rank, at });
        }
    }

    /// Tells all other parts that a rank has left a communicator or, without one, has returned; but
    /// not before its last messages have left its card, which that must not overtake.
    pub(in crate::sim) fn tell_departure(&mut self, departure: Departure) {
        if self.mail.len() == 1 {
            return;
        }
        let Some(traffic) = &mut self.traffic else {
            self.tell_others(departure);
            return;
        };
        let state = &self.ranks[departure.member];
        let number = state.sent.wrapping_add(1);
        let id = self.messages.keep(departure.as_message(state.node));
        traffic.push(departure.at, departure.member, number, id);
    }

    pub(in crate::sim) fn tell_others(&mut self, departure: Departure) {
        for (part, mail) in self.mail.iter_mut().enumerate() {
            if part != self.part.index {
                mail.push(Crossing::Departure(departure));
            }
        }
    }

    /// Sends the arrivals at a split to all parts, this one included, so that all parts take splits
    /// in the same order.
    pub(in crate::sim) fn tell_arrivals(&mut self, arrivals: SplitArrivals) {
        let arrivals = Arc::new(arrivals);
        for mail in &mut self.mail {
            mail.push(Crossing::Split(Arc::clone(&arrivals)));
        }
    }

    /// Ends the waits for a rank of another part that has returned.
    pub(in crate::sim) fn retire_other(&mut self, rank: u32, at: u64) {
        self.returned.insert(rank, at);
        self.wake_waiters(rank, at, |_| true);
        self.remote_waiters.remove(&rank);
    }

    /// Returns the `n`th of the numbers that belong to this part.
    pub(in crate::sim) fn number_of_part(&self, n: u32) -> u32 {
        n.wrapping_mul(self.mail.len() as u32)
            .wrapping_add(self.part.index as u32)
    }

    /// Ends a window: returns the news for every part, and the time of the earliest event that is
    /// left. No rank is ready.
    pub(in crate::sim) fn end_window(&mut self, failed: bool) -> WindowReport<Crossing> {
        let mail: Vec<_> = self.mail.iter_mut().map(core::mem::take).collect();
        let traffic = self.traffic.as_ref();
        let event = traffic.and_then(|traffic| traffic.first(u64::MAX));
        let crossings = mail.iter().flatten().map(Crossing::time);
        WindowReport {
            earliest: crossings.chain(event.map(CardEvent::at)).min(),
            mail,
            failed,
        }
    }
}
