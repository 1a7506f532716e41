//! The smallest latencies that the messages of a stream seem to have.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::Latencies;
use super::super::latencies::Least;
use super::{Census, Link, Linked};

/// [`Latencies::measured`], of a stream.
#[derive(Debug)]
pub struct StreamedLatencies<'a> {
    census: &'a Census,
    sent: FxHashMap<u64, (u32, Timestamp<Global>)>,
    least: Least,
}

impl<'a> StreamedLatencies<'a> {
    /// Of no messages yet.
    pub fn new(census: &'a Census) -> Self {
        Self { census, sent: FxHashMap::default(), least: Least::default() }
    }

    /// The next event, and when it was.
    pub fn take(&mut self, event: Linked, time: Timestamp<Global>) {
        let location = event.id.location.0;
        match event.link {
            Link::Send { message } => {
                self.sent.insert(message, (location, time));
            }
            Link::Receive { message } => {
                if let Some((from, sent)) = self.sent.remove(&message) {
                    self.least.add(self.census.site(from), self.census.site(location), time - sent);
                }
            }
            _ => {}
        }
    }

    /// Of all messages.
    pub fn finish(self) -> Latencies {
        self.least.latencies()
    }
}
