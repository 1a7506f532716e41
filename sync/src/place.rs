//! Places of ranks in a cluster: the units of several levels that contain them.

use core::fmt;
use core::str::FromStr;

use crate::scramble::scramble;
use crate::stable_hash::StableHasher;

/// Level of the units of a cluster, from the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PlaceLevel {
    /// Racks behind a common switch.
    Island,
    /// Nodes behind a common leaf switch.
    Rack,
    /// Ranks under one kernel: see [`node_identity`].
    Node,
    /// Ranks on one processor of a node.
    Socket,
    /// Ranks near one part of the memory of a node.
    Numa,
}

impl PlaceLevel {
    /// All levels, from the largest units to the smallest.
    pub const ALL: [Self; 5] = [
        Self::Island,
        Self::Rack,
        Self::Node,
        Self::Socket,
        Self::Numa,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Island => "island",
            Self::Rack => "rack",
            Self::Node => "node",
            Self::Socket => "socket",
            Self::Numa => "numa",
        }
    }
}

/// Formats as `island`, `rack`, `node`, `socket` or `numa`.
impl fmt::Display for PlaceLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses the form that is printed.
impl FromStr for PlaceLevel {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| PlaceError::Level(text.to_owned()))
    }
}

/// Units that contain a rank. Numbers of a level are compared only between ranks that share the unit of the level above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankPlacement {
    /// Equal on ranks that share an island.
    pub island: u32,
    /// Equal on ranks that share a rack.
    pub rack: u32,
    /// Equal on ranks that share a node.
    pub node: u32,
    /// Equal on ranks that share a node and a socket.
    pub socket: u32,
    /// Equal on ranks that share a node, a socket and a NUMA domain.
    pub numa: u32,
}

impl RankPlacement {
    /// Creates the place of a rank whose cluster has no levels but nodes and sockets.
    pub const fn new(node: u32, socket: u32) -> Self {
        Self {
            island: 0,
            rack: 0,
            node,
            socket,
            numa: 0,
        }
    }

    /// Returns the number of the unit of a level.
    pub fn unit_at(&self, level: PlaceLevel) -> u32 {
        match level {
            PlaceLevel::Island => self.island,
            PlaceLevel::Rack => self.rack,
            PlaceLevel::Node => self.node,
            PlaceLevel::Socket => self.socket,
            PlaceLevel::Numa => self.numa,
        }
    }

    /// Sets the units above the node.
    #[must_use]
    pub fn within(self, place: NodePlace) -> Self {
        Self {
            island: place.island,
            rack: place.rack,
            ..self
        }
    }
}

/// Variable that names the node of a process, where its kernel does not tell.
const NODE: &str = "DOWNBEAT_NODE";

/// Returns a number that is equal for processes on one node: those to which
/// `DOWNBEAT_NODE` gives one name, or else those under one kernel until its next boot, in
/// one time namespace. Containers on a node share it, though they share no memory. `None`
/// where the system does not tell.
pub fn node_identity() -> Option<u64> {
    if let Some(name) = std::env::var_os(NODE).filter(|name| !name.is_empty()) {
        return Some(StableHasher::hash_of(&(NODE, name)));
    }
    let boot = boot_id()?;
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Some(StableHasher::hash_of(&(boot, namespace)))
}

/// Returns the identifier of the kernel until its next boot; `None` where the system does
/// not tell.
pub fn boot_id() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// Units above a node, by hashes of their names: should two be equal, their units count as one, which costs time and no correctness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodePlace {
    /// Island of the node.
    pub island: u32,
    /// Rack of the node.
    pub rack: u32,
}

/// Returns a number for the name of a unit, which MPI takes as a color.
fn number(name: &str) -> u32 {
    (scramble(StableHasher::hash_of(name)) >> 33) as u32
}

impl NodePlace {
    /// Returns the place of this node by the switches that Slurm names, if its plug-in `topology/tree` or `topology/block` does: the
    /// switch or block next to the node is its rack, the one above its island.
    pub fn of_slurm() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let [address, pattern] =
            ["SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN"].map(variable);
        Self::by_address(&address?, &pattern?)
    }

    /// Returns the place of a node by its address and the kinds of its parts, from the top level down to the node.
    fn by_address(address: &str, pattern: &str) -> Option<Self> {
        // The name of a node may contain periods.
        let units = pattern
            .split('.')
            .take_while(|kind| *kind != "node")
            .count();
        let names: Vec<&str> = address.splitn(units + 1, '.').collect();
        let [above @ .., _] = names.as_slice() else {
            return None;
        };
        let rack = above.last().filter(|_| above.len() == units)?;
        let island = above
            .len()
            .checked_sub(2)
            .and_then(|island| above.get(island));
        Some(Self {
            island: island.map_or(0, |island| number(island)),
            rack: number(rack),
        })
    }
}

/// Places of all nodes of a cluster, which a file lists.
///
/// ```
/// use downbeat_sync::NodePlaces;
///
/// let places: NodePlaces = "
/// downbeat places 1
/// host     island  rack
/// node001  west    r1
/// node002  west    r2    # behind the same switch
/// "
/// .parse()?;
/// let [first, second] = ["node001", "node002.example.org"].map(|host| places.of_host(host));
/// assert_eq!(first.map(|place| place.island), second.map(|place| place.island));
/// assert_ne!(first.map(|place| place.rack), second.map(|place| place.rack));
/// # Ok::<(), downbeat_sync::PlaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlaces {
    levels: Vec<PlaceLevel>,
    /// In the order of hosts.
    places: Vec<(String, NodePlace)>,
}

/// First line of a file of places.
const FIRST_LINE: &str = "downbeat places 1";

impl NodePlaces {
    /// Returns the place of a node by the name of its host: the same name, or else the first that is the same without its domain.
    pub fn of_host(&self, host: &str) -> Option<NodePlace> {
        let short = |name: &str| name.split('.').next().map(str::to_owned);
        let same = |(known, _): &&(String, NodePlace)| known == host;
        let alike = |(known, _): &&(String, NodePlace)| short(known) == short(host);
        let found = self.places.iter().find(same);
        let found = found.or_else(|| self.places.iter().find(alike));
        found.map(|(_, place)| *place)
    }

    /// Returns true if the places tell the units of a level.
    pub fn has(&self, level: PlaceLevel) -> bool {
        self.levels.contains(&level)
    }
}

/// Parses the text of a file of places: a line with its version, one with the names of the columns, `host` and then `island`, `rack` or
/// both, and one for each host. Empty lines and text from `#` on do not count.
impl FromStr for NodePlaces {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let content = |line: &'_ str| line.split('#').next().unwrap_or_default().trim().to_owned();
        let mut lines = (1..)
            .zip(text.lines().map(content))
            .filter(|(_, line)| !line.is_empty());
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let first = lines.next().map(|(_, line)| words(&line).join(" "));
        if first.as_deref() != Some(FIRST_LINE) {
            return Err(PlaceError::Version);
        }
        let (line, columns) = lines.next().ok_or(PlaceError::NoHosts)?;
        let columns = words(&columns);
        let is_above = |level: &PlaceLevel| *level < PlaceLevel::Node;
        let levels = columns
            .iter()
            .skip(1)
            .map(|name| name.parse().ok().filter(is_above));
        let levels: Option<Vec<PlaceLevel>> = levels.collect();
        let is_host = columns.first().is_some_and(|name| name == "host");
        let levels = levels
            .filter(|levels| is_host && !levels.is_empty() && levels.is_sorted_by(|a, b| a < b));
        let levels = levels.ok_or(PlaceError::Columns { line })?;
        let mut places: Vec<(String, NodePlace)> = Vec::new();
        for (line, host) in lines {
            let names = words(&host);
            let [host, units @ ..] = names.as_slice() else {
                continue;
            };
            if units.len() != levels.len() {
                return Err(PlaceError::Fields {
                    line,
                    expected: columns.len(),
                    found: names.len(),
                });
            }
            let mut place = NodePlace::default();
            for (level, name) in levels.iter().zip(units) {
                match level {
                    PlaceLevel::Island => place.island = number(name),
                    _ => place.rack = number(name),
                }
            }
            places.push((host.clone(), place));
        }
        places.sort_by(|(a, _), (b, _)| a.cmp(b));
        if let Some([(host, _), ..]) = places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(PlaceError::Twice(host.clone()));
        }
        match places.is_empty() {
            true => Err(PlaceError::NoHosts),
            false => Ok(Self { levels, places }),
        }
    }
}

/// Error in the name of a level, or in a file of places.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceError {
    /// No level has this name.
    Level(String),
    /// The text does not begin with the version of its format, or with another one.
    Version,
    /// The columns have other names than a host and levels above the node, in their order.
    Columns {
        /// Number of the line, from 1.
        line: usize,
    },
    /// A line has more or fewer fields than there are columns.
    Fields {
        /// Number of the line, from 1.
        line: usize,
        /// Number of columns.
        expected: usize,
        /// Number of fields.
        found: usize,
    },
    /// A host has two lines.
    Twice(String),
    /// No host has a line.
    NoHosts,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(name) => {
                write!(
                    f,
                    "there is no level \"{name}\"; the levels are island, rack, node, socket and numa"
                )
            }
            Self::Version => write!(f, "line 1: a file of places begins with \"{FIRST_LINE}\""),
            Self::Columns { line } => write!(
                f,
                "line {line}: the columns must be host, and then island, rack or both"
            ),
            Self::Fields {
                line,
                expected,
                found,
            } => write!(
                f,
                "line {line}: {found} fields where there are {expected} columns"
            ),
            Self::Twice(host) => write!(f, "host {host} has two lines"),
            Self::NoHosts => f.write_str("it lists no hosts"),
        }
    }
}

impl core::error::Error for PlaceError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_found_with_and_without_their_domains() {
        let text =
            "downbeat places 1\nhost rack\nb.cluster r1\na r2 # a comment\n\nc.x r3\nc.y r4\n";
        let places: NodePlaces = text.parse().unwrap();
        let rack = |host| places.of_host(host).map(|place| place.rack);
        let racks = ["a", "a.cluster", "b", "c.x", "c.y"].map(|host| rack(host).unwrap());
        assert_eq!(racks, ["r2", "r2", "r1", "r3", "r4"].map(number));
        assert_eq!(rack("d"), None);
        assert!(places.has(PlaceLevel::Rack) && !places.has(PlaceLevel::Island));
    }

    #[test]
    fn wrong_files_are_refused_with_the_line() {
        let cases = [
            ("", "line 1: "),
            ("downbeat places 2\nhost rack\na b", "line 1: "),
            ("downbeat places 1", "no hosts"),
            ("downbeat places 1\nhost rack", "no hosts"),
            ("downbeat places 1\n\nrack host\na b", "line 3: the columns"),
            ("downbeat places 1\nhost node\na b", "line 2: the columns"),
            (
                "downbeat places 1\nhost rack island\na b c",
                "line 2: the columns",
            ),
            ("downbeat places 1\nhost\na", "line 2: the columns"),
            (
                "downbeat places 1\nhost rack\na b\n# x\na",
                "line 5: 1 fields",
            ),
            (
                "downbeat places 1\nhost rack\na b\nc b\na d",
                "host a has two lines",
            ),
        ];
        for (text, says) in cases {
            let why = text.parse::<NodePlaces>().unwrap_err().to_string();
            assert!(why.contains(says) && !why.contains('\n'), "{text}: {why}");
        }
    }

    #[test]
    fn addresses_of_slurm_name_switches_from_the_top() {
        let place = |address, pattern| NodePlace::by_address(address, pattern);
        let three = place("top.s2.s7.node.5", "switch.switch.switch.node").unwrap();
        assert_eq!([three.island, three.rack], ["s2", "s7"].map(number));
        let one = place("s7.node5", "switch.node").unwrap();
        assert_eq!([one.island, one.rack], [0, number("s7")]);
        assert_eq!(
            place("b1.node5", "block.node"),
            place("b1.node6", "block.node")
        );
        assert_eq!(place("node5", "node"), None);
        assert_eq!(place("node5", "switch.node"), None);
        assert_eq!(place("", ""), None);
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text: String, other: String) {
            let _ = text.parse::<NodePlaces>();
            let _ = format!("{FIRST_LINE}\n{text}\n{other}").parse::<NodePlaces>();
            let _ = NodePlace::by_address(&text, &other);
        }
    }
}
