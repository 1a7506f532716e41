//! References to definitions, and mappings of those of a location to those of the archive.

use crate::field::Field;
use crate::raw::{Decoder, Order};

/// Defines types of references. The number is that of the table that maps a location's own references.
macro_rules! references {
    ($($(#[$doc:meta])* $name:ident($number:ident) $(in $table:literal)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// Number of the definition.
            pub $number,
        );

        impl $name {
            /// Reference to no definition.
            pub const UNDEFINED: Self = Self($number::MAX);
        }

        impl Field<'_> for $name {
            #[inline]
            fn decode(from: &mut Decoder<'_>) -> Option<Self> {
                let number = $number::decode(from)?;
                $(let number = match from.mappings().tables[$table].map(number.into()) {
                    u64::MAX => $number::MAX,
                    mapped => mapped.try_into().ok()?,
                };)?
                Some(Self(number))
            }

            fn encode(&self, order: Order, to: &mut Vec<u8>) {
                self.0.encode(order, to);
            }
        }
    )*};
}

references! {
    /// Reference to a string.
    StringRef(u32) in 0;
    /// Reference to an attribute of events.
    AttributeRef(u32) in 1;
    /// Reference to a location, which names its files.
    LocationRef(u64) in 2;
    /// Reference to a region of the program.
    RegionRef(u32) in 3;
    /// Reference to a group of locations, ranks, regions or metrics.
    GroupRef(u32) in 4;
    /// Reference to a class or an instance of metrics.
    MetricRef(u32) in 5;
    /// Reference to a communicator, or a team of threads.
    CommRef(u32) in 6;
    /// Reference to a parameter.
    ParameterRef(u32) in 7;
    /// Reference to a window of one-sided communication.
    RmaWinRef(u32) in 8;
    /// Reference to a line of a source file.
    SourceCodeLocationRef(u32) in 9;
    /// Reference to a calling context.
    CallingContextRef(u32) in 10;
    /// Reference to a generator of samples.
    InterruptGeneratorRef(u32) in 11;
    /// Reference to a file or a directory.
    IoFileRef(u32) in 12;
    /// Reference to a handle of a file.
    IoHandleRef(u32) in 13;
    /// Reference to a location group: a process, or an accelerator.
    LocationGroupRef(u32) in 14;
    /// Reference to a node of the system tree.
    SystemTreeNodeRef(u32);
    /// Reference to a call site.
    CallsiteRef(u32);
    /// Reference to a call path.
    CallpathRef(u32);
    /// Reference to a metric.
    MetricMemberRef(u32);
    /// Reference to a dimension of a Cartesian topology.
    CartDimensionRef(u32);
    /// Reference to a Cartesian topology.
    CartTopologyRef(u32);
    /// Reference to an interface of input and output.
    IoParadigmRef(u8);
}

/// Number of kinds of references that are mapped.
const KINDS: usize = 15;

/// Mappings of the references of a location to those of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mappings {
    tables: [Table; KINDS],
}

impl Default for Mappings {
    fn default() -> Self {
        Self::NONE
    }
}

/// Mapping of one kind of references. As in OTF2, those without a mapping stay the same.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Table {
    Same,
    /// References of the archive of 0, 1, 2 and so on.
    Dense(Vec<u64>),
    /// Pairs of references, sorted.
    Pairs(Vec<(u64, u64)>),
}

impl Table {
    #[inline]
    fn map(&self, number: u64) -> u64 {
        match self {
            Self::Same => number,
            Self::Dense(all) => usize::try_from(number)
                .ok()
                .and_then(|number| all.get(number).copied())
                .unwrap_or(number),
            Self::Pairs(pairs) => {
                let found = pairs.binary_search_by_key(&number, |(local, _)| *local);
                found.map_or(number, |at| pairs[at].1)
            }
        }
    }
}

impl Mappings {
    /// No mapping: all references are those of the archive.
    pub const NONE: Self = Self {
        tables: [const { Table::Same }; KINDS],
    };

    /// Decodes the record of one mapping, which replaces that of the same kind of references. Unknown
    /// kinds are skipped.
    pub(crate) fn add(&mut self, mut from: Decoder<'_>) -> Option<()> {
        let (kind, count, layout) = (from.u8()?, from.u64()?, from.u8()?);
        let Some(table) = self.tables.get_mut(usize::from(kind)) else {
            return Some(());
        };
        // An entry has a byte at least, so a wrong count takes no memory.
        *table = if layout == DENSE {
            Table::Dense((0..count).map(|_| from.u64()).collect::<Option<_>>()?)
        } else {
            let pair = |_| Some((from.u64()?, from.u64()?));
            let mut pairs: Vec<_> = (0..count).map(pair).collect::<Option<_>>()?;
            pairs.sort_by_key(|(local, _)| *local);
            Table::Pairs(pairs)
        };
        Some(())
    }
}

/// Layout of a table: the references of the archive of 0, 1, 2 and so on.
const DENSE: u8 = 0;
