//! One pass over a trace that collects what a picture of a selected part shows.

use std::collections::VecDeque;

use downbeat_clock_core::{Global, Timestamp};

use super::bins::{Bar, LocationBins};
use super::ring::BarsAround;
use super::selection::ViewSelection;
use super::viewed::{ViewContent, ViewLimits, ViewMessage, binned, single};
use crate::calls::{Call, CallFinding, CallSegment, MessageEnd, ProgramNames};

/// Maximum number of bins of all locations, and limits on that of one.
const MOST_BINS: usize = 1 << 20;
const BINS: [usize; 2] = [128, 1 << 11];
/// Maximum number of bars before a call on all locations, and limits on that of one; so it is with bars after it.
const MOST_AROUND: usize = 1 << 18;
const AROUND: [usize; 2] = [256, 1 << 14];
/// Maximum number of messages.
const MOST_MESSAGES: usize = 1 << 16;

/// Collects a view of a trace, told by a [`CallWalk`](crate::calls::CallWalk).
#[derive(Debug)]
pub struct TraceView {
    selection: ViewSelection,
    most: ViewLimits,
    /// Time of the first event in the file.
    first: Option<Timestamp<Global>>,
    /// Selected interval, as far as it is known.
    limits: [i64; 2],
    span: Option<[i64; 2]>,
    locations: Vec<ViewedLocation>,
    /// Number of bars. Single ones are kept as long as there are few.
    bars: usize,
    /// True if the selected call was found.
    found: bool,
    messages: VecDeque<ViewMessage>,
    left_out: u64,
}

#[derive(Debug, Default)]
struct ViewedLocation {
    /// Single bars, unless there are too many.
    bars: Vec<Bar>,
    bins: LocationBins,
    around: BarsAround,
    /// Selected events: the first and the last one, and their times.
    events: Option<[u64; 2]>,
    times: [i64; 2],
    /// Number of calls with the selected name, and the selected one.
    calls: u64,
    call: Option<[Timestamp<Global>; 2]>,
}

/// Reason for which there is nothing to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewError {
    /// The trace has no events.
    Empty,
    /// The interval ends before it begins.
    Reversed([Timestamp<Global>; 2]),
    /// The interval has no events; the whole trace has these first and last ones.
    Outside([Timestamp<Global>; 2]),
    /// No region has the name of the selected call.
    UnknownRegion,
    /// No location has that many calls: the largest number of them.
    TooFewCalls(u64),
}

impl TraceView {
    /// Creates a view of a part of a trace.
    pub fn new(selection: ViewSelection, limits: ViewLimits) -> Self {
        Self {
            selection,
            most: limits,
            first: None,
            limits: [i64::MIN, i64::MAX],
            span: None,
            locations: vec![],
            bars: 0,
            found: false,
            messages: VecDeque::new(),
            left_out: 0,
        }
    }

    /// Returns the view, after the last event.
    ///
    /// # Errors
    /// If there is nothing to show.
    pub fn finish(mut self, names: &ProgramNames) -> Result<ViewContent, ViewError> {
        let defined = names.locations().len();
        if self.locations.len() < defined {
            self.locations.resize_with(defined, ViewedLocation::default);
        }
        let limits = self.most;
        let span = self.span.ok_or(ViewError::Empty)?;
        let interval = self.interval(names, span)?;
        let (calls, events) = (
            self.locations.iter().map(|of| of.call).collect(),
            self.locations.iter().map(|of| of.events).collect(),
        );
        let (messages, left_out) = self.messages_in(interval, limits.messages);
        let mut known = vec![];
        if let ViewSelection::Call { .. } = self.selection {
            known = self
                .locations
                .iter_mut()
                .map(|of| of.show_around(interval))
                .collect();
            self.bars = self.locations.iter().map(|of| of.bars.len()).sum();
        }
        let is_detailed = self.bars <= limits.bars;
        let (bars, bins) = self
            .locations
            .into_iter()
            .map(|of| (of.bars, of.bins))
            .unzip();
        let mut rows = match is_detailed {
            true => single(bars, interval, limits.rows),
            false => binned(bins, interval, &limits),
        };
        for row in &mut rows {
            row.known = known.get(row.first as usize).copied().flatten();
        }
        Ok(ViewContent {
            interval: interval.map(Timestamp::from_nanos),
            span: span.map(Timestamp::from_nanos),
            is_detailed,
            rows,
            messages,
            left_out,
            calls,
            events,
        })
    }

    fn interval(&self, names: &ProgramNames, span: [i64; 2]) -> Result<[i64; 2], ViewError> {
        match &self.selection {
            ViewSelection::Between(_) => {
                let [low, high] = self.limits;
                if low > high {
                    return Err(ViewError::Reversed([low, high].map(Timestamp::from_nanos)));
                }
                if low > span[1] || high < span[0] {
                    return Err(ViewError::Outside(span.map(Timestamp::from_nanos)));
                }
                Ok([low.max(span[0]), high.min(span[1])])
            }
            ViewSelection::Events(_) => {
                let times = self.locations.iter().filter(|of| of.events.is_some());
                let times = times.map(|of| of.times);
                times
                    .reduce(|one, two| [one[0].min(two[0]), one[1].max(two[1])])
                    .ok_or(ViewError::Outside(span.map(Timestamp::from_nanos)))
            }
            ViewSelection::Call { name, .. } => self.around_call(names, name, span),
        }
    }

    /// Returns the time of the selected calls, with a quarter of it on both sides.
    fn around_call(
        &self,
        names: &ProgramNames,
        name: &str,
        span: [i64; 2],
    ) -> Result<[i64; 2], ViewError> {
        let calls = self.locations.iter().filter_map(|of| of.call);
        let times = calls.map(|call| call.map(Timestamp::as_nanos));
        let around = times.reduce(|one, two| [one[0].min(two[0]), one[1].max(two[1])]);
        let Some([begin, end]) = around else {
            let most = self.locations.iter().map(|of| of.calls).max().unwrap_or(0);
            let is_known = names.regions().any(|(_, known)| known == name);
            return Err(match is_known {
                true => ViewError::TooFewCalls(most),
                false => ViewError::UnknownRegion,
            });
        };
        let margin = end.saturating_sub(begin) / 4 + 1;
        let wide = [begin.saturating_sub(margin), end.saturating_add(margin)];
        Ok([wide[0].max(span[0]), wide[1].min(span[1])])
    }

    fn messages_in(&mut self, [low, high]: [i64; 2], most: usize) -> (Vec<ViewMessage>, u64) {
        let inside = |message: &ViewMessage| {
            let [send, receive] = message.times.map(Timestamp::as_nanos);
            send.min(receive) <= high && send.max(receive) >= low
        };
        let messages: Vec<_> = std::mem::take(&mut self.messages)
            .into_iter()
            .filter(inside)
            .collect();
        if self.left_out > 0 || messages.len() > most {
            return (vec![], self.left_out + messages.len() as u64);
        }
        (messages, 0)
    }

    /// Returns the share of each location.
    fn share(&self, most: usize, [fewest, limit]: [usize; 2]) -> usize {
        (most / self.locations.len().max(1)).clamp(fewest, limit)
    }

    /// Returns the part of a bar that was selected.
    fn clipped(&self, segment: &CallSegment) -> Option<[i64; 2]> {
        let [begin, end] = segment.times.map(Timestamp::as_nanos);
        let [low, high] = match self.selection {
            ViewSelection::Events(_) => {
                let of = self.locations.get(segment.location as usize)?;
                of.events.map(|_| of.times)?
            }
            _ => self.limits,
        };
        (begin <= high && end >= low).then(|| [begin.max(low), end.min(high)])
    }

    /// Returns true if an event was selected.
    fn contains(&self, location: u32, time: i64, index: u64) -> bool {
        match &self.selection {
            ViewSelection::Between(_) => (self.limits[0]..=self.limits[1]).contains(&time),
            ViewSelection::Call { .. } => false,
            ViewSelection::Events(events) => {
                let range = events.get(location as usize).copied().flatten();
                range.is_some_and(|[first, last]| (first..=last).contains(&index))
            }
        }
    }
}

impl TraceView {
    /// Takes what a walk has found.
    pub fn add_finding(&mut self, found: &CallFinding<'_>) {
        match *found {
            CallFinding::Event {
                location,
                time,
                index,
            } => self.add_event(location, time, index),
            CallFinding::Segment(segment) => self.add_segment(segment),
            CallFinding::Left { call, leave, names } => self.add_call(names, call, leave),
            CallFinding::Message { send, receive } => self.add_message(send, receive),
            _ => {}
        }
    }

    fn add_event(&mut self, location: u32, time: Timestamp<Global>, index: u64) {
        if self.first.is_none() {
            self.first = Some(time);
            if let ViewSelection::Between([from, to]) = &self.selection {
                let nanos = |at: super::selection::ViewTime| at.resolved(time).as_nanos();
                self.limits = [from.map_or(i64::MIN, nanos), to.map_or(i64::MAX, nanos)];
            }
        }
        let nanos = time.as_nanos();
        let [first, last] = self.span.unwrap_or([nanos; 2]);
        self.span = Some([first.min(nanos), last.max(nanos)]);
        let place = location as usize;
        if self.locations.len() <= place {
            self.locations
                .resize_with(place + 1, ViewedLocation::default);
        }
        if self.contains(location, nanos, index) {
            let of = &mut self.locations[place];
            match &mut of.events {
                Some(events) => {
                    events[1] = index;
                    of.times = [of.times[0].min(nanos), of.times[1].max(nanos)];
                }
                None => (of.events, of.times) = (Some([index; 2]), [nanos; 2]),
            }
        }
    }

    fn add_segment(&mut self, segment: &CallSegment) {
        let region = segment.region;
        if let ViewSelection::Call { .. } = self.selection {
            let (found, most) = (self.found, self.share(MOST_AROUND, AROUND));
            let times = segment.times.map(Timestamp::as_nanos);
            if let Some(of) = self.locations.get_mut(segment.location as usize) {
                of.around.add(Bar { region, times }, found, most);
            }
            return;
        }
        let Some(times) = self.clipped(segment) else {
            return;
        };
        let bar = Bar { region, times };
        let most = self.share(MOST_BINS, BINS);
        let Some(of) = self.locations.get_mut(segment.location as usize) else {
            return;
        };
        of.bins.add(bar, most);
        self.bars += 1;
        if self.bars <= self.most.bars {
            of.bars.push(bar);
        } else if self.bars == self.most.bars + 1 {
            self.locations.iter_mut().for_each(|of| of.bars = vec![]);
        }
    }

    fn add_call(&mut self, names: &ProgramNames, call: &Call, leave: Timestamp<Global>) {
        let ViewSelection::Call { name, number } = &self.selection else {
            return;
        };
        if names.region(call.region) != name {
            return;
        }
        if let Some(of) = self.locations.get_mut(call.location as usize) {
            let before = of.calls;
            // The number is that of a note, which may say anything.
            of.calls = before.saturating_add(call.calls);
            if before < *number && *number <= of.calls {
                of.call = Some([call.enter, leave.max(call.enter)]);
                of.around.find();
                self.found = true;
            }
        }
    }

    fn add_message(&mut self, send: &MessageEnd, receive: &MessageEnd) {
        let of_call = matches!(self.selection, ViewSelection::Call { .. });
        let inside = |end: &MessageEnd| self.contains(end.location, end.time.as_nanos(), end.event);
        if !of_call && !inside(send) && !inside(receive) {
            return;
        }
        if self.messages.len() >= MOST_MESSAGES {
            if !of_call {
                self.left_out += 1;
                return;
            }
            if self.found && self.left_out == 0 && self.messages.len() >= 2 * MOST_MESSAGES {
                return;
            }
            if !self.found {
                self.messages.pop_front();
            }
        }
        self.messages.push_back(ViewMessage {
            locations: [send.location, receive.location],
            times: [send.time, receive.time],
        });
    }
}

impl ViewedLocation {
    /// Takes the bars around a call, as far as they are in the interval. Returns the part
    /// of the interval of which they are known, unless it is all of it.
    fn show_around(&mut self, interval: [i64; 2]) -> Option<[Timestamp<Global>; 2]> {
        let (bars, missing) = std::mem::take(&mut self.around).finish();
        let known = known(&bars, missing, interval);
        self.bars = bars;
        self.bars
            .retain(|bar| bar.times[0] <= interval[1] && bar.times[1] >= interval[0]);
        for bar in &self.bars {
            self.bins.add(*bar, BINS[1]);
        }
        known
    }
}

/// Returns the part of the interval of which the bars are known, unless it is all of it.
fn known(
    bars: &[Bar],
    missing: [bool; 2],
    [low, high]: [i64; 2],
) -> Option<[Timestamp<Global>; 2]> {
    let begin = bars
        .first()
        .filter(|_| missing[0])
        .map_or(low, |bar| bar.times[0]);
    let end = bars
        .last()
        .filter(|_| missing[1])
        .map_or(high, |bar| bar.times[1]);
    let is_all = begin <= low && end >= high;
    (!is_all).then(|| [begin, end].map(|time| Timestamp::from_nanos(time.clamp(low, high))))
}
