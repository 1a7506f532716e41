//! Records as JSON Lines: one object for each group.

use core::fmt;
use core::marker::PhantomData;
use std::io::{self, Read, Write};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::content::{GroupRows, Keep, LaunchBuilder, LaunchContent, Tally};
use super::error::RecordFlaw;
use super::pieces::PieceReader;
use crate::{Factors, GroupKey, MeasuredGroup, ObservationState};
use downbeat_files::{ChecksumLine, Checksums, Lines};

const SCHEMA: &str = "downbeat.launch";
const VERSION: u32 = 2;
/// Previous version, without checksums.
const UNSEALED: u32 = 1;
pub(super) const CHECKSUM: ChecksumLine = ChecksumLine {
    before: r#"{"crc32":""#,
    after: r#""}"#,
};
pub(super) const COMPLETE: &str = r#"{"complete":true}"#;
/// A group of ten million observations has less than half of that.
const LONGEST_LINE: usize = 1 << 29;

/// A JSON object that keeps the order of its members, and duplicates.
#[derive(Debug)]
struct OrderedMap<V>(Vec<(String, V)>);

impl<V: Serialize> Serialize for OrderedMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for OrderedMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrderedMapVisitor<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for OrderedMapVisitor<V> {
            type Value = OrderedMap<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedMap<V>, A::Error> {
                let mut pairs = vec![];
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(OrderedMap(pairs))
            }
        }
        deserializer.deserialize_map(OrderedMapVisitor(PhantomData))
    }
}

impl From<&Factors> for OrderedMap<String> {
    fn from(factors: &Factors) -> Self {
        Self(
            factors
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }
}

/// Serialized as its name.
impl Serialize for ObservationState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ObservationState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let known = Self::ALL.into_iter().find(|state| state.name() == name);
        known.ok_or_else(|| D::Error::custom(format!("unknown state \"{}\"", name.escape_debug())))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonHeader {
    schema: String,
    version: u32,
    factors: OrderedMap<String>,
    facts: OrderedMap<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupLine {
    operation: String,
    bytes: u64,
    ranks: u32,
    calls: Vec<u64>,
    /// Only if not all observations are valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    states: Option<Vec<ObservationState>>,
    nanos: Vec<f64>,
    counts: OrderedMap<u64>,
    figures: OrderedMap<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactsLine {
    facts: OrderedMap<String>,
}

/// Beginning of a record without checksums.
pub(super) fn unsealed_begin() -> String {
    format!("{{\"schema\":\"{SCHEMA}\",\"version\":{UNSEALED},")
}

/// First line of a file.
pub(super) fn header(factors: &Factors, facts: &Factors) -> String {
    let header = JsonHeader {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        factors: factors.into(),
        facts: facts.into(),
    };
    // Strings and numbers can always be serialized.
    serde_json::to_string(&header).unwrap_or_default() + "\n"
}

/// Returns a line of new facts; nothing if there are none.
pub(super) fn facts_line(facts: &Factors) -> String {
    if facts.iter().next().is_none() {
        return String::new();
    }
    let line = FactsLine {
        facts: facts.into(),
    };
    // Strings can always be serialized.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// Writes the line of a group, after a line of new facts.
pub(super) fn write_group(
    to: &mut impl Write,
    facts: &Factors,
    group: &MeasuredGroup,
    rows: &GroupRows,
    states: bool,
) -> io::Result<()> {
    to.write_all(facts_line(facts).as_bytes())?;
    let GroupKey {
        operation,
        bytes,
        ranks,
    } = group.key.clone();
    let line = GroupLine {
        operation,
        bytes,
        ranks,
        calls: rows.calls.clone(),
        states: states.then(|| rows.states.clone()),
        nanos: rows.nanos.clone(),
        counts: OrderedMap(
            group
                .counts
                .iter()
                .map(|(state, count)| (state.name().to_owned(), *count))
                .collect(),
        ),
        figures: OrderedMap(group.figures.clone()),
    };
    serde_json::to_writer(&mut *to, &line)?;
    writeln!(to)
}

/// Reads a record.
pub(super) fn read(
    file: impl Read,
    keep: Keep,
    checksums: Checksums,
) -> Result<LaunchContent, RecordFlaw> {
    let mut lines = Lines::new(file, LONGEST_LINE);
    let mut builder = LaunchBuilder::new(checksums);
    let first = lines
        .next_line()?
        .map(|line| read_header(line, &mut builder));
    let is_sealed = match first {
        // A header that was cut off is recognized by the beginning before its version.
        None => {
            let begin = format!("{{\"schema\":\"{SCHEMA}\"");
            let common = lines.unfinished().len().min(begin.len());
            let cut_off = lines.unfinished()[..common] == begin.as_bytes()[..common];
            return Err(if cut_off {
                RecordFlaw::NoHeader(1)
            } else {
                lines.flaw(1, not_a_record()).into()
            });
        }
        Some(read) => read.map_err(|why| lines.flaw(0, why))?,
    };
    let mut pieces = PieceReader::new(CHECKSUM, is_sealed, checksums);
    if !pieces.whole_piece(&mut lines, &mut builder)? {
        return Err(RecordFlaw::NoHeader(lines.number() + 1));
    }
    if keep == Keep::Header {
        return Ok(builder.found(pieces.end(&lines)?));
    }
    while lines.advance()? {
        if pieces.take(&mut lines, &mut builder)? {
            continue;
        }
        match read_line(lines.line(), &mut builder).map_err(|why| lines.flaw(0, why))? {
            JsonLine::Fact => {}
            JsonLine::MeasuredGroup | JsonLine::Complete => {
                pieces.piece(&mut lines, &mut builder)?;
            }
        }
    }
    Ok(builder.found(pieces.end(&lines)?))
}

fn not_a_record() -> String {
    format!("a record of a launch begins with {{\"schema\":\"{SCHEMA}\",\"version\":{VERSION}")
}

/// Reads the header; returns true if the record has checksums.
fn read_header(line: &[u8], builder: &mut LaunchBuilder) -> Result<bool, String> {
    #[derive(Deserialize)]
    struct RecordSchema {
        schema: String,
        version: u32,
    }
    let found: RecordSchema = serde_json::from_slice(line).map_err(|_| not_a_record())?;
    let is_sealed = match found {
        RecordSchema { schema, .. } if schema != SCHEMA => return Err(not_a_record()),
        RecordSchema {
            version: version @ (UNSEALED | VERSION),
            ..
        } => version != UNSEALED,
        RecordSchema { version, .. } => {
            return Err(format!("version {version} is not supported"));
        }
    };
    let JsonHeader { factors, facts, .. } = parse(line)?;
    factors
        .0
        .iter()
        .try_for_each(|(name, value)| builder.factor(name, value))?;
    facts
        .0
        .iter()
        .try_for_each(|(name, value)| builder.fact(name, value))?;
    Ok(is_sealed)
}

enum JsonLine {
    MeasuredGroup,
    Fact,
    Complete,
}

fn read_line(line: &[u8], builder: &mut LaunchBuilder) -> Result<JsonLine, String> {
    if line == COMPLETE.as_bytes() {
        builder.complete();
        Ok(JsonLine::Complete)
    } else if line.starts_with(b"{\"facts\"") {
        let FactsLine { facts } = parse(line)?;
        facts
            .0
            .iter()
            .try_for_each(|(name, value)| builder.later_fact(name, value))?;
        Ok(JsonLine::Fact)
    } else {
        read_group(parse(line)?, builder)?;
        Ok(JsonLine::MeasuredGroup)
    }
}

fn read_group(line: GroupLine, builder: &mut LaunchBuilder) -> Result<(), String> {
    let GroupLine {
        operation,
        bytes,
        ranks,
        calls,
        states,
        mut nanos,
        counts: OrderedMap(counts),
        figures,
    } = line;
    let (count, state_count) = (calls.len(), states.as_ref().map_or(calls.len(), Vec::len));
    if nanos.len() != count || state_count != count {
        return Err(format!(
            "there are {count} calls, {state_count} states and {} run-times",
            nanos.len()
        ));
    }
    let state = |i: usize| {
        states
            .as_ref()
            .map_or(ObservationState::Valid, |states| states[i])
    };
    let mut tally = Tally::default();
    calls
        .iter()
        .enumerate()
        .try_for_each(|(i, call)| tally.add(*call, state(i)))?;
    let mut numbers = 0..count;
    nanos.retain(|_| {
        numbers
            .next()
            .is_some_and(|i| state(i) == ObservationState::Valid)
    });
    let counts = read_counts(&counts).ok_or_else(|| {
        format!(
            "the counts are not those of {}",
            ObservationState::ALL.map(ObservationState::name).join(", ")
        )
    })?;
    let key = GroupKey {
        operation,
        bytes,
        ranks,
    };
    builder.group(
        MeasuredGroup {
            key,
            nanos,
            counts,
            figures: figures.0,
        },
        &tally,
        None,
    )
}

/// Returns the counts of all states, which are given in their order. Older records do not count all states.
fn read_counts(given: &[(String, u64)]) -> Option<Vec<(ObservationState, u64)>> {
    let mut given = given.iter().peekable();
    let counts = ObservationState::counts(|state| {
        let (_, count) = given.next_if(|(name, _)| name == state)?;
        Some(Some(*count))
    });
    counts.ok().filter(|_| given.next().is_none())
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|why| {
        let (column, why) = (why.column(), why.to_string());
        // Remove the line number: the parser sees only one line.
        format!(
            "column {column}: {}",
            why.rsplit_once(" at line ")
                .map_or(why.as_str(), |(why, _)| why)
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::read_launch;
    use downbeat_files::Checksums;
    use downbeat_files::testing::Folder;

    const HEAD: &str = "{\"schema\":\"downbeat.launch\",\"version\":1,\"factors\":{\"ranks\":\"4\"},\"facts\":{}}\n";
    const GROUP: &str = "{\"operation\":\"a\",\"bytes\":8,\"ranks\":4,\"calls\":[0,2],\"nanos\":[375.0,-1],\"counts\":\
                         {\"valid\":2,\"late\":1,\"long\":0},\"figures\":{\"b\":2,\"a\":1}}\n";

    fn error(text: &str) -> String {
        let (_folder, path) = Folder::with("a.jsonl", text.as_bytes());
        let why = read_launch(&path, Checksums::Verify)
            .unwrap_err()
            .to_string();
        why.strip_prefix(&format!("{}: ", path.display()))
            .unwrap()
            .to_owned()
    }

    #[test]
    fn unusual_but_valid_files_are_read() {
        let (_folder, path) = Folder::with(
            "a.jsonl",
            format!("{HEAD}{GROUP}").replace('\n', "\r\n").as_bytes(),
        );
        let found = read_launch(&path, Checksums::Verify).unwrap();
        assert_eq!(found.groups[0].nanos, [375.0, -1.0]);
        assert_eq!(
            found.groups[0].figures,
            [("b".to_owned(), 2.0), ("a".to_owned(), 1.0)]
        );
    }

    #[test]
    fn errors_name_the_position_and_the_reason() {
        let none = "line 1: a record of a launch begins with {\"schema\":\"downbeat.launch\",\"version\":2";
        for text in [
            "x",
            "{\"schemb",
            "[]\n",
            "{}\n",
            "\n",
            &HEAD.replace("downbeat.", ""),
            &HEAD.replace('1', "1.5"),
        ] {
            assert_eq!(error(text), none, "{text}");
        }
        assert_eq!(error(""), "line 1: the file ends within the header");
        assert_eq!(
            error(&HEAD.replace('1', "4")),
            "line 1: version 4 is not supported"
        );
        let again = HEAD.replace("\"4\"", "\"4\",\"ranks\":\"5\"");
        assert_eq!(error(&again), "line 1: there is a second factor \"ranks\"");
        let group = |from: &str, to: &str| error(&format!("{HEAD}{}", GROUP.replace(from, to)));
        assert_eq!(
            group("[0,2]", "[0]"),
            "line 2: there are 1 calls, 1 states and 2 run-times"
        );
        assert_eq!(group("[0,2]", "[2,0]"), "line 2: call 0 comes after call 2");
        assert_eq!(
            group("[0,2]", "[0,3]"),
            "line 2: there is a call 3, but the counts add up to 3 calls"
        );
        assert_eq!(
            group("\"valid\":2", "\"valid\":3"),
            "line 2: there are 2 rows in state valid, but their count is 3"
        );
        assert_eq!(
            group("late", "lost"),
            "line 2: the counts are not those of valid, late, long, drifted"
        );
        assert!(group("375.0", "1e999").starts_with("line 2: column "));
        assert!(group("375.0", "NaN").starts_with("line 2: column "));
        assert!(group("375.0", "null").starts_with("line 2: column "));
        assert!(group("\"bytes\"", "\"sizes\"").contains("unknown field `sizes`"));
        let states = group("\"nanos\"", "\"states\":[\"valid\",\"lost\"],\"nanos\"");
        assert!(states.contains("unknown state \"lost\""), "{states}");
        assert_eq!(
            error(&format!("{HEAD}{GROUP}{GROUP}")),
            "line 3: there is a second group of a, 8 bytes, 4 ranks"
        );
        assert_eq!(
            error(&format!("{HEAD}{{\"complete\":true}}\nx")),
            "line 3: something comes after the end of the record"
        );
        assert!(error(&format!("{HEAD}{}\n", "[".repeat(100_000))).starts_with("line 2: column "));
        assert!(error(&format!("{HEAD}\n")).starts_with("line 2: column "));
    }
}
