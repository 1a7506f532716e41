//! Parser of Chrome's JSON, event by event.

use core::cell::Cell;
use core::fmt;
use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use crate::Quantity;

/// Event as it is in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawEvent {
    ph: String,
    name: Option<String>,
    cat: Option<String>,
    pid: Option<Box<RawValue>>,
    tid: Option<Box<RawValue>>,
    id: Option<Box<RawValue>>,
    ts: Option<Box<RawValue>>,
    dur: Option<Box<RawValue>>,
    args: Option<Box<RawValue>>,
}

/// Phase of an event that has a meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Complete,
    Begin,
    End,
    Instant,
    Counter,
    FlowStart,
    FlowEnd,
    Metadata,
}

impl RawEvent {
    pub(super) fn phase(&self) -> Option<Phase> {
        Some(match self.ph.as_str() {
            "X" => Phase::Complete,
            "B" => Phase::Begin,
            "E" => Phase::End,
            "i" | "I" | "R" => Phase::Instant,
            "C" => Phase::Counter,
            "s" => Phase::FlowStart,
            "f" => Phase::FlowEnd,
            "M" => Phase::Metadata,
            _ => return None,
        })
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns the id of the process; 0 if there is none.
    pub(super) fn pid(&self) -> String {
        id(self.pid.as_deref())
    }

    /// Returns the id of the thread; 0 if there is none.
    pub(super) fn tid(&self) -> String {
        id(self.tid.as_deref())
    }

    /// Returns what tells a flow from others.
    pub(super) fn flow(&self) -> String {
        let category = self.cat.as_deref().unwrap_or_default();
        format!("{}\n{category}\n{}", id(self.id.as_deref()), self.name())
    }

    /// Returns the name that a metadata event gives.
    pub(super) fn named(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let named: Named = serde_json::from_str(self.args.as_ref()?.get()).ok()?;
        Some(named.name)
    }

    /// Returns the values of a counter; those that are not numbers are left out.
    pub(super) fn values(&self) -> Vec<(String, Quantity)> {
        let args = self.args.as_deref().map_or("{}", RawValue::get);
        let values: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(args).unwrap_or_default();
        let quantity = |(key, value): (String, serde_json::Value)| {
            let whole = value.as_i64().map(Quantity::Whole);
            Some((key, whole.or(value.as_f64().map(Quantity::Real))?))
        };
        values.into_iter().filter_map(quantity).collect()
    }

    /// Returns the time in nanoseconds.
    pub(super) fn time(&self) -> Result<i64, String> {
        let time = self.ts.as_deref().ok_or("an event has no time (ts)")?;
        nanos(time.get())
    }

    /// Returns the duration in nanoseconds; 0 if there is none.
    pub(super) fn duration(&self) -> Result<i64, String> {
        let duration = self.dur.as_deref().map_or("0", RawValue::get);
        nanos(duration).map(|nanos| nanos.max(0))
    }
}

/// Returns the text of an id, which is a number or a string.
fn id(raw: Option<&RawValue>) -> String {
    let raw = raw.map_or("0", RawValue::get);
    serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned())
}

/// Converts a number of microseconds, which may be a string, to nanoseconds without loss of digits.
pub(super) fn nanos(raw: &str) -> Result<i64, String> {
    let text = raw.trim_matches('"');
    let wrong = || format!("{raw} is not a time in microseconds");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) {
        // With an exponent.
        let micros: f64 = text.parse().map_err(|_| wrong())?;
        let nanos = (micros * 1e3).round();
        let fits = nanos.abs() < i64::MAX as f64;
        return fits.then_some(nanos as i64).ok_or_else(wrong);
    }
    let part: Vec<i64> = part
        .bytes()
        .map(|byte| i64::from(byte - b'0'))
        .chain([0; 4])
        .take(4)
        .collect();
    let below = part[0] * 100 + part[1] * 10 + part[2] + i64::from(part[3] >= 5);
    let nanos = whole.parse::<i64>().ok().and_then(|whole| {
        let nanos = whole.checked_mul(1_000)?.checked_add(below)?;
        nanos.checked_mul(sign)
    });
    nanos.ok_or_else(wrong)
}

/// Passes all events to `take`: those of an array, or of the array `traceEvents` of an object.
/// Returns true if a file that is an array of events has no end, which the format allows: a writer
/// that was killed leaves none, and may leave a part of an event.
pub(super) fn each_event(
    from: impl Read,
    mut take: impl FnMut(&RawEvent) -> Result<(), String>,
) -> Result<bool, serde_json::Error> {
    let has_ended = Cell::new(false);
    let from = Watched(from, &has_ended);
    let mut source = serde_json::Deserializer::from_reader(from);
    let mut is_array_of_events = false;
    let file = File {
        take: &mut take,
        is_array_of_events: &mut is_array_of_events,
    };
    match source.deserialize_any(file) {
        // A number that is cut is not an error of the end of the file.
        Err(why) if is_array_of_events && has_ended.get() && !why.is_io() => Ok(true),
        Err(why) => Err(why),
        Ok(()) => source.end().map(|()| false),
    }
}

pub(super) const EXPECTED: &str =
    "events in Chrome's JSON: an object with an array \"traceEvents\", or an array";

pub(super) const NOT_A_TRACE: &str = "this is not a trace: there is no array \"traceEvents\"";

/// Source that states when its end was reached.
struct Watched<'a, R>(R, &'a Cell<bool>);

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.set(read == 0 && !buffer.is_empty());
        Ok(read)
    }
}

/// A whole file.
struct File<'a, F> {
    take: &'a mut F,
    is_array_of_events: &'a mut bool,
}

impl<'de, F: FnMut(&RawEvent) -> Result<(), String>> Visitor<'de> for File<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<RawEvent>()? {
            (self.take)(&event).map_err(A::Error::custom)?;
            *self.is_array_of_events = true;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                found = true;
                map.next_value_seed(Events(self.take))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        match found {
            true => Ok(()),
            false => Err(A::Error::custom(NOT_A_TRACE)),
        }
    }
}

/// The array of all events.
struct Events<'a, F>(&'a mut F);

impl<'de, F: FnMut(&RawEvent) -> Result<(), String>> DeserializeSeed<'de> for Events<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(File {
            take: self.0,
            is_array_of_events: &mut false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_all_digits() {
        for (text, expected) in [
            ("0", 0),
            ("12", 12_000),
            ("1700000000123456.789", 1_700_000_000_123_456_789),
            ("1700000000123456.7894", 1_700_000_000_123_456_789),
            ("1.9996", 2_000),
            ("-3.5", -3_500),
            ("1e3", 1_000_000),
            ("\"7.25\"", 7_250),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
        for text in [
            "1e300",
            "\"a\"",
            "null",
            "9223372036854775807",
            "-",
            "[]",
            ".5.5",
        ] {
            let why = nanos(text).unwrap_err();
            assert_eq!(why, format!("{text} is not a time in microseconds"));
        }
    }
}
