//! Definitions that records refer to: one line of text each.

use std::fmt;

use downbeat_files::{format_ranges, parse_ranges};

/// A definition.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// `process RANK SIZE NODE`: the process, in the communicator of all ranks.
    Process {
        /// Its rank.
        rank: u32,
        /// Number of ranks.
        size: u32,
        /// Name of its node.
        node: String,
    },
    /// `run ID`: a number that the ranks of one run share.
    Run(u64),
    /// `clock TICKS NANOS TICKS NANOS`: two points of the local time.
    Clock([(u64, i64); 2]),
    /// `live TICKS NANOS TICKS NANOS`: two points of the global time as the rank knew it,
    /// from the first one on.
    Live([(u64, i64); 2]),
    /// `call NUMBER NAME`: a function, or a region of the program.
    Call {
        /// Number in records.
        number: u16,
        /// Name.
        name: String,
    },
    /// `communicator NUMBER PARENT KEY MEMBERS REMOTE`.
    Communicator(CommunicatorDefinition),
    /// `sample SESSION TICKS NANOS`.
    Sample(Sample),
    /// `cost TICKS EVENTS`: what it took to record this number of events when the program
    /// began.
    Cost {
        /// Time of all of them.
        ticks: u64,
        /// Their number.
        events: u64,
    },
}

/// Global time at a reading of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Session, counted from 0.
    pub session: u32,
    /// Reading of the counter.
    pub ticks: u64,
    /// Time by the clock of rank 0.
    pub nanos: i64,
}

/// A communicator of a process.
///
/// The process numbers its communicators itself. Members find out which of theirs are the
/// same by parent, key and members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommunicatorDefinition {
    /// Number in records.
    pub number: u32,
    /// Communicator that it was made from, if all of its members took part.
    pub parent: Option<u32>,
    /// Call that made it, among those that the members made in one order; without spaces.
    pub key: String,
    /// Ranks of its members among all ranks, in the order of their ranks in it.
    pub members: Vec<u32>,
    /// The same for the remote group of an inter-communicator.
    pub remote: Vec<u32>,
}

/// Number of the communicator of all ranks.
pub const WORLD: u32 = 0;

/// Number of the communicator of a rank alone.
pub const OWN: u32 = 1;

impl Definition {
    /// Reads a line; `None` if it is none of a definition.
    pub fn parse(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ')?;
        let mut words = rest.split(' ');
        let mut word = || words.next();
        let definition = match kind {
            "process" => {
                let (rank, size) = (word()?.parse().ok()?, word()?.parse().ok()?);
                let node = rest.splitn(3, ' ').nth(2)?.to_owned();
                let is_valid = rank < size && size as usize <= MOST_MEMBERS;
                return is_valid.then_some(Self::Process { rank, size, node });
            }
            "run" => Self::Run(word()?.parse().ok()?),
            "call" => {
                let (number, name) = rest.split_once(' ')?;
                let (number, name) = (number.parse().ok()?, name.to_owned());
                return Some(Self::Call { number, name });
            }
            "clock" | "live" => {
                let mut point = || Some((word()?.parse().ok()?, word()?.parse().ok()?));
                let points: [(u64, i64); 2] = [point()?, point()?];
                if points[0].0 >= points[1].0 || points[0].1 >= points[1].1 {
                    return None;
                }
                match kind {
                    "clock" => Self::Clock(points),
                    _ => Self::Live(points),
                }
            }
            "communicator" => Self::Communicator(CommunicatorDefinition {
                number: word()?.parse().ok()?,
                parent: match word()? {
                    "-" => None,
                    number => Some(number.parse().ok()?),
                },
                key: word()?.to_owned(),
                members: parse_ranks(word()?)?,
                remote: parse_ranks(word()?)?,
            }),
            "sample" => Self::Sample(Sample {
                session: word()?.parse().ok()?,
                ticks: word()?.parse().ok()?,
                nanos: word()?.parse().ok()?,
            }),
            "cost" => Self::Cost {
                ticks: word()?.parse().ok()?,
                events: word()?.parse().ok()?,
            },
            _ => return None,
        };
        word().is_none().then_some(definition)
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { rank, size, node } => write!(f, "process {rank} {size} {node}"),
            Self::Run(id) => write!(f, "run {id}"),
            Self::Clock([a, b]) => write!(f, "clock {} {} {} {}", a.0, a.1, b.0, b.1),
            Self::Live([a, b]) => write!(f, "live {} {} {} {}", a.0, a.1, b.0, b.1),
            Self::Call { number, name } => write!(f, "call {number} {name}"),
            Self::Communicator(of) => {
                let parent = of.parent.map(|parent| parent.to_string());
                let parent = parent.unwrap_or("-".to_owned());
                let [members, remote] = [&of.members, &of.remote].map(|ranks| format_ranges(ranks));
                let (number, key) = (of.number, &of.key);
                // No ranks are a `-`.
                write!(
                    f,
                    "communicator {number} {parent} {key} {members:->1} {remote:->1}"
                )
            }
            Self::Sample(of) => write!(f, "sample {} {} {}", of.session, of.ticks, of.nanos),
            Self::Cost { ticks, events } => write!(f, "cost {ticks} {events}"),
        }
    }
}

/// Most members of a communicator, so that a hostile file does not fill the memory.
const MOST_MEMBERS: usize = 1 << 24;

/// Parses ranks as they are written: as ranges, or `-` if there are none.
fn parse_ranks(text: &str) -> Option<Vec<u32>> {
    let mut ranks = vec![];
    for range in parse_ranges(text).filter(|_| text != "-") {
        let range = range?;
        if range.is_empty() || ranks.len() + (range.end() - range.start()) as usize >= MOST_MEMBERS
        {
            return None;
        }
        ranks.extend(range);
    }
    Some(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_read_as_they_were_written() {
        for line in [
            "process 3 8 node with spaces",
            "clock 0 -5 4294967296 1600000000",
            "live 7 -5 4294967296 1600000000",
            "call 17 MPI_Send",
            "call 18 two words",
            "communicator 2 0 c1 0-3,7,9-10,2 -",
            "communicator 3 - i7.0 4 0-2",
            "sample 0 18446744073709551615 -1",
            "cost 4600 100",
        ] {
            let parsed = Definition::parse(line).unwrap();
            assert_eq!(parsed.to_string(), line);
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "process",
            "process 8 8 node",
            "process a 8 node",
            "clock 1 2 1 3",
            "clock 1 2 3",
            "call 65536 MPI_Send",
            "communicator 2 0 c1 3-1 -",
            "communicator 2 0 c1 0-4294967295 -",
            "communicator 2 0 c1",
            "sample 0 1 2 3",
            "other 1",
        ] {
            assert_eq!(Definition::parse(line), None, "{line}");
        }
    }
}
