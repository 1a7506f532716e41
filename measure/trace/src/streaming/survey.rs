//! First pass over a stream.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashSet;

use super::super::trace::check_time;
use super::super::{Action, EventId, LeftOut, LocationId, TraceBuilder, TraceError};
use super::census::{Census, StreamError};
use super::matcher::{Link, Links, Ongoing};

/// Checks all events of a stream once, as a [`TraceBuilder`] does, but without keeping them.
///
/// Locations and communicators are added to a builder, which is passed to the methods.
#[derive(Debug, Default)]
pub struct Survey {
    links: Links,
    last: Vec<Option<Timestamp<Global>>>,
    /// Last event of every clock with its time, by the first location of the clock.
    last_of_clocks: Vec<Option<(EventId, Timestamp<Global>)>>,
    withheld: FxHashSet<(u64, u32)>,
    received: Vec<u64>,
    events: u64,
}

impl Survey {
    /// Takes the next event; `builder` has the locations and communicators that it refers to.
    ///
    /// # Errors
    /// As [`TraceBuilder::push`], and if a message is received before it is sent in the stream.
    pub fn push(
        &mut self,
        builder: &TraceBuilder,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), StreamError> {
        let definitions = &builder.definitions;
        if location.index() >= definitions.places.len() {
            return Err(TraceError::UnknownLocation(location).into());
        }
        if self.last.len() <= location.index() {
            self.last.resize(location.index() + 1, None);
            self.received.resize(location.index() + 1, 0);
            self.last_of_clocks.resize(location.index() + 1, None);
        }
        let id = self.links.next(location)?;
        let last = &mut self.last[location.index()];
        check_time(*last, time, id)?;
        *last = Some(time);
        let clock = definitions.clocks.readers()[location.index()];
        let last = self.last_of_clocks[clock as usize].replace((id, time));
        if let Some((last, _)) = last.filter(|(_, last)| time < *last) {
            return Err(StreamError::ClockDisorder { last, next: id });
        }
        self.events += 1;
        let link = self.links.link(definitions, None, id, action)?;
        if matches!(link, Link::Receive { .. }) {
            self.received[location.index()] += 1;
        }
        self.withheld
            .extend(self.links.over.take().iter().flat_map(Ongoing::withheld));
        Ok(())
    }

    /// Returns the census; `builder` has the locations and communicators that the events referred
    /// to.
    ///
    /// # Errors
    /// As [`TraceBuilder::finish`].
    pub fn finish(mut self, builder: TraceBuilder) -> Result<Census, StreamError> {
        if let Some(event) = self.links.finish() {
            return Err(StreamError::Disorder(event));
        }
        let definitions = builder.definitions;
        let lenient = definitions.matching.lenient;
        let early = || self.links.early.values().flatten().copied();
        let alone = self.links.sent().map(|event| {
            (
                event,
                TraceError::UnmatchedSend as fn(EventId) -> TraceError,
            )
        });
        let alone = alone.chain(early().map(|event| (event, TraceError::UnmatchedReceive as _)));
        if let Some((event, why)) = alone.min_by_key(|(event, _)| *event).filter(|_| !lenient) {
            return Err(why(event).into());
        }
        let sends = self.links.sent().count() as u64;
        let mut left_out = LeftOut {
            sends,
            receives: early().count() as u64,
            collectives: 0,
        };
        let mut ongoing: Vec<_> = self.links.ongoing.iter().collect();
        ongoing.sort_unstable_by_key(|((team, track, index), _)| (*team, *track as u32, *index));
        for ((team, track, index), ongoing) in ongoing {
            self.withheld.extend(ongoing.withheld());
            if ongoing.progress.is_complete(&ongoing.instance) {
                continue;
            }
            if !lenient {
                let turns = &self.links.counts[*team as usize][*track as usize].members;
                let counts: Vec<_> = turns.iter().map(|of| (of.entered, of.left)).collect();
                let members = definitions.members(*team);
                let enters = |rank: usize| ongoing.enters[rank];
                let refusal = ongoing
                    .progress
                    .refusal(*track, *index, members, &counts, enters);
                return Err(refusal
                    .unwrap_or(TraceError::NotLeft(ongoing.progress.seen))
                    .into());
            }
            left_out.collectives += 1;
        }
        let Links {
            operations,
            counts,
            posted,
            ..
        } = self.links;
        let Self {
            withheld,
            events,
            received,
            ..
        } = self;
        let messages = received.iter().sum();
        Ok(Census {
            definitions,
            counts,
            overtaking: posted.overtaking,
            withheld,
            received,
            events,
            messages,
            collectives: operations,
            left_out,
        })
    }
}
