//! Events of one location as properly nested slices.

use super::packets::{self, Annotation, Category, EventName, FixedName, InternedName};
use super::packets::{TrackEvent, TrackEventKind};
use super::summary::PerfettoSummary;

/// Perfetto drops slices nested deeper than 512, and then mistakes their ends for others.
pub(super) const DEEPEST: usize = 500;
/// Maximum number of bytes that wait until the name of their collective operation is known.
const MOST_HELD: usize = 16 << 10;

/// Slice, which has a beginning and an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimelineSlice {
    Region(u32),
    Collective(u32),
    Fork(u32),
    Thread(u32),
}

/// Slice that has begun and not ended.
#[derive(Debug)]
struct OpenSlice {
    slice: TimelineSlice,
    begun: u64,
    /// For a collective operation, whose name is known only at its end: position of its beginning
    /// in the held packets.
    unnamed: Option<usize>,
}

/// Open slices of one location, and packets that wait.
#[derive(Debug)]
pub(super) struct Timeline {
    location: u32,
    open: Vec<OpenSlice>,
    /// Packets since the first collective operation without a name.
    held: Vec<u8>,
    unnamed: usize,
}

/// Generic name of a collective operation.
const COLLECTIVE: EventName<'_> = (
    InternedName::Fixed(FixedName::Collective),
    Category::Collective,
);

/// Role of an event on the timeline.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventShape {
    Instant,
    /// Begin of a slice.
    Begin(TimelineSlice),
    /// End of a slice, and of all slices inside of it. If it was not begun, an instant.
    End(TimelineSlice),
}

impl Timeline {
    pub(super) fn new(location: u32) -> Self {
        Self {
            location,
            open: vec![],
            held: vec![],
            unnamed: 0,
        }
    }

    /// Adds the next event.
    pub(super) fn add(
        &mut self,
        to: &mut Vec<u8>,
        shape: EventShape,
        event: &TrackEvent<'_>,
        summary: &mut PerfettoSummary,
    ) {
        match shape {
            EventShape::Instant => self.put(to, TrackEventKind::Instant, event),
            EventShape::Begin(slice) => self.begin(to, slice, event, summary),
            EventShape::End(slice) => self.end(to, slice, event, summary),
        }
    }

    fn begin(
        &mut self,
        to: &mut Vec<u8>,
        slice: TimelineSlice,
        event: &TrackEvent<'_>,
        summary: &mut PerfettoSummary,
    ) {
        let mut unnamed = None;
        if self.open.len() >= DEEPEST {
            summary.too_deep += 1;
        } else if let TimelineSlice::Collective(_) = slice {
            self.unnamed += 1;
            unnamed = Some(self.held.len());
        } else {
            self.put(to, TrackEventKind::SliceBegin, event);
        }
        self.open.push(OpenSlice {
            slice,
            begun: event.time,
            unnamed,
        });
    }

    fn end(
        &mut self,
        to: &mut Vec<u8>,
        slice: TimelineSlice,
        event: &TrackEvent<'_>,
        summary: &mut PerfettoSummary,
    ) {
        // The search is bounded, as a trace may consist only of beginnings and of unrelated ends.
        let mut open = self.open.iter().rev().take(DEEPEST);
        let Some(above) = open.position(|open| open.slice == slice) else {
            summary.not_begun += 1;
            let annotations = &[event.annotations, &[Annotation::NotBegun]].concat();
            let event = TrackEvent {
                annotations,
                ..*event
            };
            return self.put(to, TrackEventKind::Instant, &event);
        };
        let inner = TrackEvent {
            name: COLLECTIVE,
            annotations: &[],
            ..*event
        };
        for _ in 0..above {
            summary.cut_short += 1;
            self.end_last(to, &inner);
        }
        self.end_last(to, event);
    }

    /// Ends the timeline after the last event.
    pub(super) fn finish(&mut self, to: &mut Vec<u8>, summary: &mut PerfettoSummary) {
        self.flush(to);
        summary.not_ended += self.open.len() as u64;
    }

    fn end_last(&mut self, to: &mut Vec<u8>, event: &TrackEvent<'_>) {
        let Some(OpenSlice { begun, unnamed, .. }) = self.open.pop() else {
            return;
        };
        if self.open.len() >= DEEPEST {
            return;
        }
        if let Some(at) = unnamed {
            self.name(at, begun, event.name);
            self.unnamed -= 1;
            if self.unnamed == 0 {
                to.append(&mut self.held);
            }
        }
        self.put(to, TrackEventKind::SliceEnd, event);
    }

    fn put(&mut self, to: &mut Vec<u8>, kind: TrackEventKind, event: &TrackEvent<'_>) {
        if self.unnamed == 0 {
            return packets::event(to, self.location, kind, event);
        }
        packets::event(&mut self.held, self.location, kind, event);
        if self.held.len() > MOST_HELD {
            self.flush(to);
        }
    }

    /// Inserts the beginning of a collective operation whose name is now known.
    fn name(&mut self, at: usize, time: u64, name: EventName<'_>) {
        let event = TrackEvent {
            time,
            name,
            annotations: &[],
            flow: None,
        };
        let mut packet = vec![];
        packets::event(
            &mut packet,
            self.location,
            TrackEventKind::SliceBegin,
            &event,
        );
        self.held.splice(at..at, packet);
    }

    /// Adds the held packets without waiting for names any longer.
    fn flush(&mut self, to: &mut Vec<u8>) {
        // From the last to the first, so that positions remain valid.
        for index in (0..self.open.len().min(DEEPEST)).rev() {
            let OpenSlice { begun, unnamed, .. } = &mut self.open[index];
            if let (begun, Some(at)) = (*begun, unnamed.take()) {
                self.name(at, begun, COLLECTIVE);
            }
        }
        self.unnamed = 0;
        to.append(&mut self.held);
    }
}
