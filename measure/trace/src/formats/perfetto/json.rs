//! Events in Chrome's JSON, the Trace Event Format. Times are in microseconds, with three decimals.

use std::io::Write as _;

use rustc_hash::{FxHashMap, FxHashSet};

use super::packets::{Annotation, Counter, InternedName, TrackEvent, TrackEventKind};
use super::packets::{category_name, event_names, pid, word_names};
use crate::formats::Quantity;

/// Names that events refer to, and arrows that have begun.
#[derive(Debug, Default)]
pub(super) struct JsonEvents {
    /// Encoded names of events by their numbers.
    names: FxHashMap<u64, String>,
    /// Encoded words of annotations.
    words: Vec<String>,
    /// First location of the process of each location.
    first: Vec<u32>,
    arrows: FxHashSet<u64>,
}

impl JsonEvents {
    pub(super) fn begin(&mut self, to: &mut Vec<u8>) {
        self.names = (1..).zip(event_names().map(quoted)).collect();
        self.words = word_names().map(quoted).collect();
        to.extend_from_slice(
            b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"producer\",\"args\":{\"name\":\"downbeat\"}}",
        );
    }

    pub(super) fn end(&mut self, to: &mut Vec<u8>) {
        to.extend_from_slice(b"\n]}\n");
    }

    pub(super) fn name(&mut self, number: InternedName<'_>, name: &str) {
        if let InternedName::Number(number) = number {
            self.names.insert(number, quoted(name));
        }
    }

    pub(super) fn process(&mut self, to: &mut Vec<u8>, first: u32, name: &str) {
        let pid = pid(first);
        put(
            to,
            format_args!(
                ",\n{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}\
             ,\n{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{first}}}}}",
                quoted(name)
            ),
        );
    }

    pub(super) fn thread(
        &mut self,
        to: &mut Vec<u8>,
        (location, first): (u32, u32),
        [name, shown]: [&str; 2],
    ) {
        self.words.push(quoted(name));
        self.first.push(first);
        let (pid, tid) = (pid(first), pid(location));
        put(
            to,
            format_args!(
                ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}\
             ,\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{location}}}}}",
                quoted(shown)
            ),
        );
    }

    pub(super) fn event(&mut self, to: &mut Vec<u8>, event: &TrackEvent<'_>) {
        let TrackEvent {
            kind,
            time,
            location,
            name,
            annotations,
            flow,
        } = *event;
        let first = self.first.get(location as usize).copied();
        let (pid, tid) = (pid(first.unwrap_or(location)), pid(location));
        let (micros, nanos) = (time / 1_000, time % 1_000);
        let begin = |to: &mut Vec<u8>, phase: &str| {
            put(
                to,
                format_args!(
                    ",\n{{\"ph\":{phase},\"pid\":{pid},\"tid\":{tid},\"ts\":{micros}.{nanos:03}"
                ),
            );
        };
        // Arrows begin and end at slices.
        let phase = match (kind, flow) {
            (TrackEventKind::SliceBegin, _) => "\"B\"",
            (TrackEventKind::SliceEnd, _) => "\"E\"",
            (TrackEventKind::Instant, Some(_)) => "\"X\",\"dur\":0",
            (TrackEventKind::Instant, None) => "\"i\",\"s\":\"t\"",
        };
        begin(to, phase);
        if let Some((name, category)) = name {
            put(
                to,
                format_args!(",\"cat\":\"{}\",\"name\":", category_name(category)),
            );
            match name {
                InternedName::Text(text) => to.extend_from_slice(quoted(text).as_bytes()),
                InternedName::Number(number) => {
                    let known = self.names.get(&number);
                    to.extend_from_slice(known.map_or("\"\"", String::as_str).as_bytes());
                }
            }
        }
        for (index, annotation) in annotations.iter().enumerate() {
            to.extend_from_slice(if index == 0 { b",\"args\":{" } else { b"," });
            self.annotation(to, *annotation);
        }
        to.extend_from_slice(if annotations.is_empty() { b"}" } else { b"}}" });
        if let Some(flow) = flow {
            let ends = self.arrows.remove(&flow);
            if !ends {
                self.arrows.insert(flow);
            }
            let phase = if ends { "\"f\",\"bp\":\"e\"" } else { "\"s\"" };
            begin(to, phase);
            put(
                to,
                format_args!(",\"cat\":\"message\",\"name\":\"message\",\"id\":{flow}}}"),
            );
        }
    }

    /// Adds a value of a counter, which has the number of its location as its id.
    pub(super) fn value(
        &mut self,
        to: &mut Vec<u8>,
        counter: Counter<'_>,
        time: u64,
        value: Quantity,
    ) {
        let location = counter.location;
        let first = self.first.get(location as usize).copied();
        let (pid, tid) = (pid(first.unwrap_or(location)), pid(location));
        let (micros, nanos) = (time / 1_000, time % 1_000);
        let name = match counter.unit {
            "" => quoted(counter.name),
            unit => quoted(&format!("{} [{unit}]", counter.name)),
        };
        put(
            to,
            format_args!(
                ",\n{{\"ph\":\"C\",\"pid\":{pid},\"tid\":{tid},\"ts\":{micros}.{nanos:03},\"id\":{tid},\"name\":{name},\"args\":{{\"value\":"
            ),
        );
        match value {
            Quantity::Whole(value) => put(to, format_args!("{value}}}}}")),
            Quantity::Real(value) if value.is_finite() => put(to, format_args!("{value:?}}}}}")),
            // JSON has no such numbers.
            Quantity::Real(_) => put(to, format_args!("null}}}}")),
        }
    }

    fn annotation(&self, to: &mut Vec<u8>, annotation: Annotation) {
        let word = |number: u64| {
            // They are numbered from 1.
            let index = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
            self.words.get(index).map_or("null", String::as_str)
        };
        match annotation {
            Annotation::To(to_word) => put(to, format_args!("\"to\":{}", word(to_word.number()))),
            Annotation::From(from) => put(to, format_args!("\"from\":{}", word(from.number()))),
            Annotation::Communicator(number) => put(to, format_args!("\"communicator\":{number}")),
            Annotation::Tag(tag) => put(to, format_args!("\"tag\":{tag}")),
            Annotation::Kind(kind) => put(to, format_args!("\"kind\":{}", word(kind.number()))),
            Annotation::Root(root) => put(to, format_args!("\"root\":{root}")),
            Annotation::Data(data) => put(to, format_args!("\"data\":{}", word(data.number()))),
            Annotation::Team(team) => put(to, format_args!("\"team\":{team}")),
            Annotation::NotBegun => put(to, format_args!("\"not begun\":true")),
            Annotation::Bytes(bytes) => put(to, format_args!("\"bytes\":{bytes}")),
        }
    }
}

fn put(to: &mut Vec<u8>, text: core::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = to.write_fmt(text);
}

/// Returns a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\0'..='\x1f' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(
            quoted("a \"b\"\\\n\u{1f}é"),
            "\"a \\\"b\\\"\\\\\\u000a\\u001fé\""
        );
    }
}
