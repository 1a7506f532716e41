//! Events of one location as properly nested slices.

use super::packets::{self, Annotation, Category, InternedName, TrackEvent, TrackEventKind};
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

/// Name and category of a slice.
type SliceName<'a> = (InternedName<'a>, Category);

const COLLECTIVE: SliceName<'_> = (InternedName::COLLECTIVE, Category::Collective);

impl TimelineSlice {
    /// Returns the name, which is a generic one for collective operations.
    fn called(self) -> SliceName<'static> {
        match self {
            Self::Region(region) => (InternedName::region(region), Category::Region),
            Self::Collective(_) => COLLECTIVE,
            Self::Fork(_) => (InternedName::FORK, Category::Thread),
            Self::Thread(_) => (InternedName::THREAD, Category::Thread),
        }
    }
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

    /// Adds an instant.
    pub(super) fn instant(
        &mut self,
        to: &mut Vec<u8>,
        time: u64,
        called: SliceName<'_>,
        annotations: &[Annotation],
        flow: Option<u64>,
    ) {
        let (kind, location) = (TrackEventKind::Instant, self.location);
        self.add(
            to,
            &TrackEvent {
                kind,
                time,
                location,
                name: Some(called),
                annotations,
                flow,
            },
        );
    }

    /// Begins a slice.
    pub(super) fn begin(
        &mut self,
        to: &mut Vec<u8>,
        time: u64,
        slice: TimelineSlice,
        annotations: &[Annotation],
        summary: &mut PerfettoSummary,
    ) {
        let mut unnamed = None;
        if self.open.len() >= DEEPEST {
            summary.too_deep += 1;
        } else if let TimelineSlice::Collective(_) = slice {
            self.unnamed += 1;
            unnamed = Some(self.held.len());
        } else {
            let (kind, location, name) = (
                TrackEventKind::SliceBegin,
                self.location,
                Some(slice.called()),
            );
            self.add(
                to,
                &TrackEvent {
                    kind,
                    time,
                    location,
                    name,
                    annotations,
                    flow: None,
                },
            );
        }
        self.open.push(OpenSlice {
            slice,
            begun: time,
            unnamed,
        });
    }

    /// Ends a slice, and all slices inside of it. If it was not begun, an instant is added.
    pub(super) fn end(
        &mut self,
        to: &mut Vec<u8>,
        time: u64,
        slice: TimelineSlice,
        name: Option<InternedName<'_>>,
        annotations: &[Annotation],
        summary: &mut PerfettoSummary,
    ) {
        let (otherwise, category) = slice.called();
        let called = (name.unwrap_or(otherwise), category);
        // The search is bounded, as a trace may consist only of beginnings and of unrelated ends.
        let Some(above) = self
            .open
            .iter()
            .rev()
            .take(DEEPEST)
            .position(|open| open.slice == slice)
        else {
            summary.not_begun += 1;
            let annotations = [annotations, &[Annotation::NotBegun]].concat();
            return self.instant(to, time, called, &annotations, None);
        };
        for _ in 0..above {
            summary.cut_short += 1;
            self.end_last(to, time, COLLECTIVE, &[]);
        }
        self.end_last(to, time, called, annotations);
    }

    /// Ends the timeline after the last event.
    pub(super) fn finish(&mut self, to: &mut Vec<u8>, summary: &mut PerfettoSummary) {
        self.flush(to);
        summary.not_ended += self.open.len() as u64;
    }

    fn end_last(
        &mut self,
        to: &mut Vec<u8>,
        time: u64,
        called: SliceName<'_>,
        annotations: &[Annotation],
    ) {
        let Some(OpenSlice { begun, unnamed, .. }) = self.open.pop() else {
            return;
        };
        if self.open.len() >= DEEPEST {
            return;
        }
        if let Some(at) = unnamed {
            self.name(at, begun, called);
            self.unnamed -= 1;
            if self.unnamed == 0 {
                to.append(&mut self.held);
            }
        }
        let (kind, location) = (TrackEventKind::SliceEnd, self.location);
        self.add(
            to,
            &TrackEvent {
                kind,
                time,
                location,
                name: None,
                annotations,
                flow: None,
            },
        );
    }

    fn add(&mut self, to: &mut Vec<u8>, event: &TrackEvent<'_>) {
        if self.unnamed == 0 {
            return packets::event(to, event);
        }
        packets::event(&mut self.held, event);
        if self.held.len() > MOST_HELD {
            self.flush(to);
        }
    }

    /// Inserts the beginning of a collective operation whose name is now known.
    fn name(&mut self, at: usize, time: u64, called: SliceName<'_>) {
        let (kind, location, name) = (TrackEventKind::SliceBegin, self.location, Some(called));
        let mut packet = vec![];
        packets::event(
            &mut packet,
            &TrackEvent {
                kind,
                time,
                location,
                name,
                annotations: &[],
                flow: None,
            },
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
