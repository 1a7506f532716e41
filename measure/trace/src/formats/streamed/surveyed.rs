//! Events on their way into temporary files: first by location, then in causal order.

use std::path::Path;

use super::error::StreamedError;
use crate::formats::spill::{EventLists, EventSequence};
use crate::formats::target::{EventTarget, TraceTarget};
use crate::streaming::{Census, StreamError, Survey};
use crate::{Action, CommunicatorId, LocationId, Matching, Place, TraceBuilder, TraceError};
use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;

/// Builder of locations and communicators, and survey of events.
#[derive(Debug)]
pub(super) struct Surveyed {
    builder: TraceBuilder,
    survey: Survey,
    lists: EventLists,
    /// Error of a temporary file.
    pub(super) failed: Option<FileError>,
}

impl Surveyed {
    /// Begins temporary files next to `beside`.
    pub(super) fn new(matching: Matching, beside: &Path) -> Result<Self, StreamedError> {
        let lists = EventLists::new(beside).map_err(StreamedError::Unwritten)?;
        Ok(Self {
            builder: TraceBuilder::new(matching),
            survey: Survey::default(),
            lists,
            failed: None,
        })
    }

    /// Returns an error of a temporary file, if there was one.
    pub(super) fn check(&mut self) -> Result<(), StreamedError> {
        let failed = self.failed.take().map(StreamedError::Unwritten);
        failed.map_or(Ok(()), Err)
    }

    /// Puts the events in order after the last one. Returns the times of the first and the last event,
    /// too. `unfit` converts an error of the trace.
    pub(super) fn finish(
        self,
        beside: &Path,
        unfit: impl Fn(StreamError) -> StreamedError,
    ) -> Result<(Census, EventSequence, Option<Span>), StreamedError> {
        let Self {
            builder,
            survey,
            mut lists,
            ..
        } = self;
        let order = survey.finish(builder).map_err(&unfit)?;
        let events = lists.finish().and_then(|()| EventSequence::new(beside));
        let mut events = events.map_err(StreamedError::Unwritten)?;
        let mut span: Option<Span> = None;
        let ordered = order.run(
            |location| lists.next(location).map_err(Ordering::File),
            |event, time| {
                let [first, last] = span.unwrap_or([time; 2]);
                span = Some([first.min(time), last.max(time)]);
                events.put((event, time)).map_err(Ordering::File)
            },
        );
        let census = ordered.map_err(|why| match why {
            Ordering::Stream(why) => unfit(why),
            Ordering::File(why) => StreamedError::Unwritten(why),
        })?;
        events.finish().map_err(StreamedError::Unwritten)?;
        Ok((census, events, span))
    }
}

/// Times of the first and the last event.
pub(super) type Span = [Timestamp<Global>; 2];

/// Error of the pass that puts events in order.
enum Ordering {
    Stream(StreamError),
    File(FileError),
}

impl From<StreamError> for Ordering {
    fn from(why: StreamError) -> Self {
        Self::Stream(why)
    }
}

impl TraceTarget for Surveyed {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        self.builder.add_location(place)
    }

    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        self.builder.add_thread(rank)
    }

    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.builder.add_communicator(members)
    }
}

impl EventTarget for Surveyed {
    type Error = TraceError;

    fn has(&self, _: LocationId) -> bool {
        true
    }

    #[inline]
    fn take(
        &mut self,
        _: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), TraceError> {
        let event = self.survey.push(&self.builder, location, time, action)?;
        if let Err(why) = self.lists.put(location, &event) {
            self.failed.get_or_insert(why);
        }
        Ok(())
    }
}
