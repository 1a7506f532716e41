//! Convex hulls of the messages of a stream.

use downbeat_clock_core::{Global, Timestamp};

use super::super::Latencies;
use super::super::presync::MessageHulls;
use super::stays::StreamedStays;
use super::{Census, Link, Linked, UnderWay};

/// Computes [`MessageHulls::of_trace`] of a stream.
#[derive(Debug)]
pub struct StreamedHulls<'a> {
    census: &'a Census,
    latencies: Latencies,
    /// Messages under way: their senders, and when they were sent.
    sent: UnderWay<(u32, Timestamp<Global>)>,
    stays: StreamedStays,
    hulls: MessageHulls,
}

impl<'a> StreamedHulls<'a> {
    /// Returns the state before the first event.
    pub fn new(census: &'a Census, latencies: Latencies) -> Self {
        Self {
            census,
            latencies,
            sent: UnderWay::none(census),
            stays: StreamedStays::default(),
            hulls: MessageHulls::default(),
        }
    }

    /// Takes the next event and its time.
    pub fn take(&mut self, event: Linked, time: Timestamp<Global>) {
        let location = event.id.location.0;
        match event.link {
            Link::Send { message } => {
                self.sent.insert(message, (location, time));
            }
            Link::Receive { message } => {
                if let Some((from, sent)) = self.sent.remove(message) {
                    let sites = [from, location].map(|location| self.census.site(location));
                    self.hulls.add_message(sites, [sent, time], &self.latencies);
                }
            }
            _ => {
                let stays = self.stays.take(self.census, event, time);
                let stays = stays.into_iter();
                stays.for_each(|of| self.hulls.add_operation(&of, &self.latencies));
            }
        }
    }

    /// Returns the hulls after the last event.
    pub fn finish(mut self) -> MessageHulls {
        let left = self.stays.finish();
        left.for_each(|of| self.hulls.add_operation(&of, &self.latencies));
        self.hulls
    }
}
