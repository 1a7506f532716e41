//! Copies of traces in Chrome's JSON with all times shifted, everything else as it is.

use core::cell::Cell;
use core::fmt;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::rc::Rc;

use downbeat_clock_core::Duration;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::parse::{NOT_A_TRACE, nanos};

/// What [`shift_times`] found in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShiftedTrace {
    /// Number of events.
    pub events: u64,
    /// Time of the epoch, in nanoseconds, from which Kineto counts the times of this
    /// trace (`baseTimeNanoseconds`).
    pub base: Option<i64>,
}

/// Reason why a trace cannot be shifted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShiftError {
    /// The source fails, or is not a trace in this format.
    #[error(transparent)]
    Read(serde_json::Error),
    /// The copy cannot be written.
    #[error(transparent)]
    Write(io::Error),
}

/// Copies a trace, event by event, and adds a time to the time (`ts`) of each event. Digits below a nanosecond are kept.
///
/// ```
/// use downbeat_clock_core::Duration;
/// use downbeat_trace::formats::chrome::shift_times;
///
/// let text = br#"{"displayTimeUnit": "ms", "traceEvents": [{"ph": "X", "ts": 10.5, "dur": 4, "name": "gemm"}]}"#;
/// let mut copy = vec![];
/// shift_times(&text[..], &mut copy, Duration::from_nanos(-600))?;
/// let copy = String::from_utf8(copy)?;
/// assert!(copy.contains(r#"{"ph":"X","ts":9.900,"dur":4,"name":"gemm"}"#), "{copy}");
/// # Ok::<_, Box<dyn core::error::Error>>(())
/// ```
///
/// # Errors
/// If the source fails or is not a trace in this format, or the copy cannot be written.
pub fn shift_times(
    from: impl Read,
    to: impl Write,
    by: Duration,
) -> Result<ShiftedTrace, ShiftError> {
    let unused = Rc::default();
    let from = LimitedParts {
        source: BufReader::with_capacity(BUFFER, from),
        unused: Rc::clone(&unused),
    };
    let mut copy = Copy {
        to: BufWriter::new(to),
        by,
        found: ShiftedTrace::default(),
        failed: None,
        unused,
    };
    let mut source = serde_json::Deserializer::from_reader(from);
    let read = source.deserialize_any(File(&mut copy));
    let read = read.and_then(|()| source.end());
    if let Some(why) = copy.failed {
        return Err(ShiftError::Write(why));
    }
    read.map_err(ShiftError::Read)?;
    copy.to.write_all(b"\n").map_err(ShiftError::Write)?;
    copy.to.flush().map_err(ShiftError::Write)?;
    Ok(copy.found)
}

/// Bytes that are read, and inflated if the source is compressed, at once.
const BUFFER: usize = 1 << 16;

/// Longest name or value: the parser holds it in memory, and a compressed file can
/// contain a thousand times its own size.
const LONGEST: u64 = 16 << 20;

/// Source whose parts are limited in length.
struct LimitedParts<R> {
    source: BufReader<R>,
    /// Number of bytes that were read since a part was written.
    unused: Rc<Cell<u64>>,
}

impl<R: Read> Read for LimitedParts<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(bytes)?;
        let unused = self.unused.get() + read as u64;
        self.unused.set(unused);
        if unused > LONGEST {
            let why = format!("a name or a value is longer than {} MiB", LONGEST >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(read)
    }
}

/// The copy while it is written.
struct Copy<W: Write> {
    to: BufWriter<W>,
    by: Duration,
    found: ShiftedTrace,
    /// Why it could not be written, which the parser cannot return.
    failed: Option<io::Error>,
    unused: Rc<Cell<u64>>,
}

impl<W: Write> Copy<W> {
    fn write<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        self.unused.set(0);
        self.to.write_all(text.as_bytes()).map_err(|why| {
            let message = E::custom(&why);
            self.failed = Some(why);
            message
        })
    }

    /// Writes what comes before the member of an object with this key.
    fn write_key<E: serde::de::Error>(&mut self, first: &mut bool, key: &str) -> Result<(), E> {
        let key = serde_json::to_string(key).map_err(E::custom)?;
        let separator = if std::mem::take(first) { "" } else { "," };
        self.write(&format!("{separator}{key}:"))
    }
}

/// A whole file.
struct File<'a, W: Write>(&'a mut Copy<W>);

impl<'de, W: Write> Visitor<'de> for File<'_, W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(super::parse::EXPECTED)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, events: A) -> Result<(), A::Error> {
        Events(self.0).visit_seq(events)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let copy = self.0;
        let (mut first, mut is_trace) = (true, false);
        copy.write("{")?;
        while let Some(key) = map.next_key::<String>()? {
            copy.write_key(&mut first, &key)?;
            if key == "traceEvents" {
                is_trace = true;
                map.next_value_seed(Events(copy))?;
                continue;
            }
            let value = map.next_value::<Box<RawValue>>()?;
            if key == "baseTimeNanoseconds" {
                copy.found.base = value.get().parse().ok();
            }
            copy.write(value.get())?;
        }
        copy.write("}")?;
        is_trace
            .then_some(())
            .ok_or_else(|| A::Error::custom(NOT_A_TRACE))
    }
}

/// The array of all events.
struct Events<'a, W: Write>(&'a mut Copy<W>);

impl<'de, W: Write> DeserializeSeed<'de> for Events<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de, W: Write> Visitor<'de> for Events<'_, W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        let copy = self.0;
        copy.write("[")?;
        while events.next_element_seed(Event(copy))?.is_some() {
            copy.found.events += 1;
        }
        copy.write("\n]")
    }
}

/// One event.
struct Event<'a, W: Write>(&'a mut Copy<W>);

impl<'de, W: Write> DeserializeSeed<'de> for Event<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de, W: Write> Visitor<'de> for Event<'_, W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let copy = self.0;
        let mut first = true;
        copy.write(if copy.found.events == 0 {
            "\n{"
        } else {
            ",\n{"
        })?;
        while let Some(key) = map.next_key::<String>()? {
            copy.write_key(&mut first, &key)?;
            let value = map.next_value::<Box<RawValue>>()?;
            if key == "ts" {
                let time = shifted(value.get(), copy.by).map_err(A::Error::custom)?;
                copy.write(&time)?;
            } else {
                copy.write(value.get())?;
            }
        }
        copy.write("}")
    }
}

/// Adds a time to a number of microseconds, which may be a string.
fn shifted(raw: &str, by: Duration) -> Result<String, String> {
    // Rounded to nanoseconds, whose rest is added again.
    let before = nanos(raw)?;
    let after = before.checked_add(by.as_nanos());
    let after = after.ok_or_else(|| format!("{raw} cannot be shifted by {by}"))?;
    let text = raw.trim_matches('"');
    let below = text.split_once('.').and_then(|(_, part)| part.get(3..));
    let below = below.filter(|below| below.bytes().all(|byte| byte.is_ascii_digit()));
    let quotes = if raw.starts_with('"') { "\"" } else { "" };
    let digits = match below {
        // As many digits as before; the integer part counts units of the last one.
        Some(below) if !below.is_empty() && below.len() <= 12 => {
            let unit = 10_i128.pow(below.len() as u32);
            let sign = if text.starts_with('-') { -1 } else { 1 };
            let rest: i128 = below.parse().map_err(|_| format!("{raw} is not a time"))?;
            // `nanos` rounded away from zero at half a nanosecond.
            let rounded = i128::from(below.as_bytes()[0] >= b'5');
            let whole = i128::from(after) - sign * rounded;
            decimal(whole * unit + sign * rest, 3 + below.len())
        }
        _ if after % 1_000 == 0 && !text.contains('.') => decimal(i128::from(after / 1_000), 0),
        _ => decimal(i128::from(after), 3),
    };
    Ok(format!("{quotes}{digits}{quotes}"))
}

/// Writes a number of units of the last digit behind the point.
fn decimal(units: i128, places: usize) -> String {
    let sign = if units < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    let point = if places == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{part}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy_of(text: &str, by: i64) -> Result<(String, ShiftedTrace), ShiftError> {
        let mut copy = vec![];
        let found = shift_times(text.as_bytes(), &mut copy, Duration::from_nanos(by))?;
        Ok((String::from_utf8(copy).unwrap(), found))
    }

    #[test]
    fn a_value_without_end_takes_no_memory_without_end() {
        for begin in ["{\"traceEvents\": [{\"name\": \"", "[{\"args\": {\"x\": \""] {
            let endless = begin.as_bytes().chain(io::repeat(b'x'));
            let why = shift_times(endless, io::sink(), Duration::ZERO).unwrap_err();
            assert!(
                why.to_string().contains("longer than 16 MiB"),
                "{begin}: {why}"
            );
        }
    }

    #[test]
    fn times_keep_their_digits() {
        let cases = [
            ("0", 0, "0"),
            ("7", 1_000, "8"),
            ("7", 1, "7.001"),
            ("7.5", -8_000, "-0.500"),
            ("7.5004", 1, "7.5014"),
            ("7.5006", 1, "7.5016"),
            ("-7.5006", 1, "-7.4996"),
            ("-0.0006", 1, "0.0004"),
            (
                "1719423517123456.789",
                1_000_000_007,
                "1719423518123456.796",
            ),
            ("\"12.5\"", 1_000, "\"13.500\""),
            ("1e3", 1_000, "1001"),
            ("1.5e3", 0, "1500.000"),
        ];
        for (before, by, after) in cases {
            let moved = shifted(before, Duration::from_nanos(by));
            assert_eq!(moved.as_deref(), Ok(after), "{before}");
        }
        for wrong in ["null", "\"\"", "\"x\"", "9999999999999999999", "{}"] {
            assert!(shifted(wrong, Duration::ZERO).is_err(), "{wrong}");
        }
        assert!(shifted("9223372036854775.807", Duration::from_nanos(1)).is_err());
    }

    #[test]
    fn everything_else_is_copied() {
        let text = "{\"schemaVersion\": 1, \"baseTimeNanoseconds\": 1719392400000000000,\n\
                    \"deviceProperties\": [{\"id\": 0, \"ts\": 5}], \"traceEvents\": [\n\
                    {\"ph\": \"X\", \"cat\": \"k\\u00e9\", \"ts\": 5.25, \"args\": {\"ts\": 5, \"x\": [1.50, null]}},\n\
                    {\"ph\": \"M\", \"name\": \"process_name\"}, {}\n], \"traceName\": \"a\\\"b\"}";
        let (copy, found) = copy_of(text, 750).unwrap();
        let base = Some(1_719_392_400_000_000_000);
        assert_eq!(found, ShiftedTrace { events: 3, base });
        let before: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut after: serde_json::Value = serde_json::from_str(&copy).unwrap();
        assert_eq!(after["traceEvents"][0]["ts"], 6.0);
        after["traceEvents"][0]["ts"] = 5.25.into();
        assert_eq!(before, after);
        assert!(copy.contains("\"x\": [1.50, null]"), "{copy}");
        let (array, found) = copy_of("[]", 1).unwrap();
        assert_eq!((array.as_str(), found.events), ("[\n]\n", 0));
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for (text, reason) in [
            ("", "EOF while parsing a value at line 1"),
            ("{}", "there is no array \"traceEvents\""),
            ("{\"traceEvents\": {}}", "expected an array of events"),
            ("[{\"ts\": 1}, 5]", "expected an event"),
            ("[{\"ts\": 1},\n{\"ts\": true}]", "line 2"),
            ("[{\"ts\": 1}", "EOF"),
            ("[] []", "trailing characters"),
            ("5", "expected events in Chrome's JSON"),
        ] {
            let why = copy_of(text, 1).unwrap_err().to_string();
            assert!(why.contains(reason), "{text}: {why}");
        }
        let full = shift_times(&b"[]"[..], &mut [0; 2][..], Duration::ZERO);
        assert!(matches!(full, Err(ShiftError::Write(_))), "{full:?}");
    }
}
