//! Sizes of buffers, and positions of blocks.

use core::ffi::c_int;

use mpi::Threading;
use mpi::environment::threading_support;

use super::entries::{BufferExtent, Counts, InPlace, InPlaceRanks, OperationEntry};
use super::error::OperationError;
use super::kind::OperationKind;
use super::message_layout::Placement;
use super::settings::{OperationSettings, Root};
use crate::cache::CacheState;

/// Layout of an operation's buffers, in elements.
#[derive(Clone, Debug)]
pub(super) struct BufferLayout {
    /// Size of an element in bytes.
    pub(super) width: usize,
    /// Places of elements in memory.
    pub(super) placement: Placement,
    /// Size of a block.
    pub(super) count: c_int,
    /// Size of each rank's block, and the index of its first element.
    pub(super) counts: Vec<c_int>,
    pub(super) starts: Vec<c_int>,
    /// Size of this rank's contribution, or of what it would contribute as the root; also if in place.
    pub(super) input: usize,
    /// Size of this rank's result.
    pub(super) output: usize,
    /// Sizes of the buffers.
    pub(super) send: usize,
    pub(super) recv: usize,
    /// Number of requests that are pending at once.
    pub(super) requests: usize,
}

impl BufferLayout {
    pub(super) fn new(
        kind: OperationKind,
        rank: u32,
        ranks: u32,
        bytes: u64,
        settings: &OperationSettings,
    ) -> Result<Self, OperationError> {
        check(kind, ranks, bytes, settings)?;
        let width = settings.datatype.bytes();
        let blocks = BlockSizes {
            elements: bytes / width,
            rank: rank.into(),
            ranks: ranks.into(),
            neighbours: 2 * u64::from(settings.radius),
        };
        blocks.check(kind.entry(), width, settings)?;

        let root = settings.root == Root::Rotating || settings.root == Root::Rank(rank);
        let (input, output, send, recv) = blocks.buffers(kind.entry(), root, settings.in_place);
        let counts: Vec<c_int> = match kind.entry().recv {
            BufferExtent::Share => (0..blocks.ranks)
                .map(|rank| blocks.share(rank) as c_int)
                .collect(),
            _ => vec![blocks.elements as c_int; blocks.most(kind.entry()) as usize],
        };
        let starts = counts.iter().scan(0, |next: &mut c_int, count| {
            let start = *next;
            // They are only known to fit if MPI is given them.
            *next = next.wrapping_add(*count);
            Some(start)
        });
        Ok(Self {
            width: width as usize,
            placement: Placement::new(settings.layout, blocks.elements as usize),
            count: blocks.elements as c_int,
            starts: starts.collect(),
            counts,
            input: input as usize,
            output: output as usize,
            send: send as usize,
            recv: recv as usize,
            requests: if kind.has_many_in_flight() {
                2 * settings.in_flight as usize
            } else {
                let of_root = kind.persistent().map_or(0, |call| call.requests);
                of_root * settings.roots(kind, ranks).1 as usize
            },
        })
    }
}

/// Number of elements of a block, and of blocks: one per rank, or one per neighbour.
struct BlockSizes {
    elements: u64,
    rank: u64,
    ranks: u64,
    neighbours: u64,
}

impl BlockSizes {
    /// Returns the greatest number of blocks in a buffer.
    fn most(&self, entry: &OperationEntry) -> u64 {
        match entry.among_neighbours {
            true => self.neighbours,
            false => self.ranks,
        }
    }

    /// Returns a rank's share of a block that is distributed evenly; the first ranks get the remainder.
    fn share(&self, rank: u64) -> u64 {
        self.elements / self.ranks + u64::from(rank < self.elements % self.ranks)
    }

    fn extent(&self, extent: BufferExtent, root: bool) -> u64 {
        match extent {
            BufferExtent::Nothing => 0,
            BufferExtent::AtRoot if !root => 0,
            BufferExtent::Block => self.elements,
            BufferExtent::TwoBlocks => 2 * self.elements,
            BufferExtent::BlockPerRank | BufferExtent::AtRoot => self.elements * self.ranks,
            BufferExtent::BlockPerNeighbour => self.elements * self.neighbours,
            BufferExtent::Share => self.share(self.rank),
        }
    }

    /// Returns the sizes of what a rank contributes, of what it gets, and of its send and receive buffers.
    fn buffers(&self, entry: &OperationEntry, root: bool, in_place: bool) -> (u64, u64, u64, u64) {
        let (input, output) = (self.extent(entry.send, root), self.extent(entry.recv, root));
        match entry.in_place {
            // One buffer for both.
            InPlace::Whole(InPlaceRanks::All) if in_place => (input, output, 0, input.max(output)),
            InPlace::OwnBlock(InPlaceRanks::All) if in_place => (input, output, 0, output),
            _ => (input, output, input, output),
        }
    }

    /// Checks that MPI can count the elements, and that the rank that needs the most memory stays within the limit: all ranks
    /// get the same result.
    fn check(
        &self,
        entry: &OperationEntry,
        width: u64,
        settings: &OperationSettings,
    ) -> Result<(), OperationError> {
        let memory = settings.memory;
        let too_large = |bytes| Err(OperationError::TooLarge { bytes, memory });
        // Size of both buffers with all blocks.
        let Some(most) = width
            .checked_mul(2)
            .and_then(|both| both.checked_mul(self.elements))
        else {
            return too_large(None);
        };
        if most.checked_mul(self.most(entry)).is_none() {
            return too_large(None);
        }
        let (_, _, send, recv) = self.buffers(entry, true, settings.in_place);
        // Elements may be far from each other.
        let [block, stride] = settings.layout.blocks().map_or([1, 1], |blocks| {
            [blocks.block(), blocks.stride()].map(u64::from)
        });
        let places = |elements: u64| (elements / block).checked_mul(stride);
        let of_threads = |places: u64| {
            places
                .checked_mul(width)?
                .checked_mul(settings.threads.into())
        };
        let Some(bytes) = places(send + recv).and_then(of_threads) else {
            return too_large(None);
        };
        if bytes > memory || usize::try_from(bytes).is_err() {
            return too_large(Some(bytes));
        }
        let elements = match entry.counts() {
            Counts::Elements => self.elements,
            Counts::Starts | Counts::Offsets => self.elements * self.most(entry),
        };
        if c_int::try_from(elements).is_err() {
            return Err(OperationError::TooMany { elements });
        }
        // As much as all blocks, within the limit.
        let bytes = elements / block * stride * width;
        match entry.counts() {
            Counts::Offsets if c_int::try_from(bytes).is_err() => {
                Err(OperationError::TooFar { bytes })
            }
            _ => Ok(()),
        }
    }
}

/// Checks everything but the sizes of buffers.
fn check(
    kind: OperationKind,
    ranks: u32,
    bytes: u64,
    settings: &OperationSettings,
) -> Result<(), OperationError> {
    let OperationSettings {
        datatype,
        reduction,
        root,
        in_place,
        cache,
        ..
    } = *settings;
    if ranks < kind.min_ranks() {
        return Err(OperationError::TooFewRanks { kind, ranks });
    }
    if !kind.has_message() && bytes > 0 {
        return Err(OperationError::NoMessage { kind, bytes });
    }
    if kind.has_reduction() && !datatype.allows(reduction) {
        return Err(OperationError::Reduction {
            datatype,
            reduction,
        });
    }
    if !bytes.is_multiple_of(datatype.bytes()) {
        return Err(OperationError::PartialElement { bytes, datatype });
    }
    if cache == CacheState::ColdByWalking && (kind.persistent().is_some() || kind.is_one_sided()) {
        return Err(OperationError::Moved(kind));
    }
    if settings.threads > 1 && threading_support() < Threading::Multiple {
        return Err(OperationError::NoThreads);
    }
    check_division(kind, bytes, settings)?;
    if kind.entry().compares && !datatype.can_be_compared() {
        return Err(OperationError::NotComparable { kind, datatype });
    }
    if in_place && !kind.has_in_place() {
        return Err(OperationError::NotInPlace(kind));
    }
    if let Root::Rank(root) = root
        && kind.has_root()
        && root >= ranks
    {
        return Err(OperationError::Root { root, ranks });
    }
    match kind.persistent() {
        Some(call) if call.find().is_none() => {
            let function = call.function();
            Err(OperationError::Missing { kind, function })
        }
        _ => Ok(()),
    }
}

/// Checks that a message of whole elements can be divided into its blocks and partitions.
fn check_division(
    kind: OperationKind,
    bytes: u64,
    settings: &OperationSettings,
) -> Result<(), OperationError> {
    let OperationSettings {
        datatype,
        layout,
        partitions,
        ..
    } = *settings;
    let elements = bytes / datatype.bytes();
    if let Some(blocks) = layout.blocks() {
        if !kind.takes_derived() {
            return Err(OperationError::NotDerived(kind));
        }
        if !elements.is_multiple_of(blocks.block().into()) {
            return Err(OperationError::PartialBlock { elements, layout });
        }
    }
    if kind.is_partitioned() && !elements.is_multiple_of(partitions.into()) {
        return Err(OperationError::PartialPartition {
            elements,
            partitions,
        });
    }
    if kind.is_single_element() && elements != 1 {
        return Err(OperationError::SingleElement {
            kind,
            bytes,
            datatype,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::datatype::{Datatype, Reduction};
    use super::super::epoch::{Epoch, WindowMemory};
    use super::super::message_layout::MessageLayout;
    use super::*;

    const SETTINGS: OperationSettings = OperationSettings {
        datatype: Datatype::Double,
        layout: MessageLayout::Contiguous,
        reduction: Reduction::Sum,
        root: Root::Rank(1),
        in_place: false,
        alignment: crate::aligned::Alignment::CACHE_LINE,
        cache: CacheState::Warm,
        cache_bytes: 0,
        memory: 1 << 20,
        in_flight: 64,
        threads: 1,
        partitions: 4,
        radius: 2,
        epoch: Epoch::Flush,
        window_memory: WindowMemory::Allocate,
    };
    const IN_PLACE: OperationSettings = OperationSettings {
        in_place: true,
        ..SETTINGS
    };

    /// Buffers of rank 1 of 3, with messages of 80 bytes.
    fn buffers(name: &str, settings: &OperationSettings) -> [usize; 2] {
        let layout = BufferLayout::new(name.parse().unwrap(), 1, 3, 80, settings).unwrap();
        [layout.send, layout.recv]
    }

    #[test]
    fn buffer_sizes_agree_with_the_documentation() {
        let two_blocks = [
            "bcast",
            "reduce",
            "iallreduce",
            "scan",
            "exscan",
            "ping-pong",
            "pair-ping-pong",
            "bandwidth",
            "bidirectional",
            "sendrecv",
            "put",
            "get_accumulate",
        ];
        assert!(
            two_blocks
                .iter()
                .all(|name| buffers(name, &SETTINGS) == [10, 10])
        );
        let expected = [
            ("gather", [10, 30], [10, 0]),
            ("ialltoallw", [30, 30], [30, 30]),
            ("neighbor_allgatherv", [10, 40], [10, 40]),
            ("ineighbor_alltoall", [40, 40], [40, 40]),
            ("scatterv", [30, 10], [0, 10]),
            ("iallgather", [10, 30], [10, 30]),
            ("alltoallv", [30, 30], [30, 30]),
            // Four elements for rank 0, and three for the others.
            ("reduce_scatter", [10, 3], [10, 3]),
            ("reduce_scatter_block", [30, 10], [30, 10]),
        ];
        let (other_root, rotating) = (Root::Rank(2), Root::Rotating);
        for (name, at_root, elsewhere) in expected {
            assert_eq!(buffers(name, &SETTINGS), at_root, "{name}");
            assert_eq!(
                buffers(
                    name,
                    &OperationSettings {
                        root: rotating,
                        ..SETTINGS
                    }
                ),
                at_root,
                "{name}"
            );
            assert_eq!(
                buffers(
                    name,
                    &OperationSettings {
                        root: other_root,
                        ..SETTINGS
                    }
                ),
                elsewhere,
                "{name}"
            );
        }
        let in_place = [
            ("reduce", [10, 10]),
            ("allreduce", [0, 10]),
            ("gather", [10, 30]),
            ("allgatherv", [0, 30]),
            ("alltoall", [0, 30]),
            ("reduce_scatter", [0, 10]),
            ("reduce_scatter_block", [0, 30]),
        ];
        for (name, expected) in in_place {
            assert_eq!(buffers(name, &IN_PLACE), expected, "{name}");
        }
    }

    #[test]
    fn shares_of_a_result_are_even() {
        let layout =
            BufferLayout::new("reduce_scatter".parse().unwrap(), 2, 4, 8 * 11, &SETTINGS).unwrap();
        assert_eq!(
            (layout.counts, layout.starts),
            (vec![3, 3, 3, 2], vec![0, 3, 6, 9])
        );
        let layout =
            BufferLayout::new("gatherv".parse().unwrap(), 2, 4, 8 * 11, &SETTINGS).unwrap();
        assert_eq!(
            (layout.counts, layout.starts),
            (vec![11; 4], vec![0, 11, 22, 33])
        );
    }

    fn refused(name: &str, ranks: u32, bytes: u64, settings: &OperationSettings) -> String {
        BufferLayout::new(name.parse().unwrap(), 0, ranks, bytes, settings)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn undefined_operations_are_refused() {
        let derived = OperationSettings {
            layout: "vector/2/3".parse().unwrap(),
            ..SETTINGS
        };
        let expected = [
            (
                refused("ping-pong", 1, 8, &SETTINGS),
                "ping-pong takes 2 ranks or more, not 1",
            ),
            (
                refused("ibarrier", 2, 8, &SETTINGS),
                "ibarrier has no message: its size is 0, not 8 bytes",
            ),
            (
                refused("empty", 2, 8, &SETTINGS),
                "empty has no message: its size is 0, not 8 bytes",
            ),
            (
                refused("scan", 2, 12, &SETTINGS),
                "a message of 12 bytes is no multiple of double, which takes 8",
            ),
            (
                refused(
                    "reduce",
                    2,
                    8,
                    &OperationSettings {
                        reduction: Reduction::Bor,
                        ..SETTINGS
                    },
                ),
                "MPI has no reduction bor of double: floating-point numbers have no bitwise and no logical reductions",
            ),
            (
                refused(
                    "iscan",
                    2,
                    8,
                    &OperationSettings {
                        datatype: Datatype::Byte,
                        ..SETTINGS
                    },
                ),
                "MPI has no reduction sum of byte: bytes are no numbers, and have only bits",
            ),
            (
                refused("partitioned-ping-pong", 2, 48, &SETTINGS),
                "a message of 6 elements has no 4 equal partitions",
            ),
            (
                refused("partitioned-ping-pong", 2, 64, &derived),
                "partitioned-ping-pong takes no derived datatypes: its messages are contiguous",
            ),
            (
                refused("bcast", 2, 40, &derived),
                "a message of 5 elements has no whole blocks of vector/2/3",
            ),
            (
                refused("iallreduce", 2, 16, &derived),
                "iallreduce takes no derived datatypes: its messages are contiguous",
            ),
            (
                refused(
                    "bcast",
                    2,
                    1 << 19,
                    &OperationSettings {
                        layout: "vector/1/1024".parse().unwrap(),
                        ..SETTINGS
                    },
                ),
                "the messages of a rank would take 1073741824 bytes, which exceeds the limit of 1048576",
            ),
            (
                refused("fetch_and_op", 2, 16, &SETTINGS),
                "fetch_and_op has one element: with double, its size is 8, not 16 bytes",
            ),
            (
                refused("compare_and_swap", 2, 8, &SETTINGS),
                "compare_and_swap takes integers and bytes, not double",
            ),
            (
                refused(
                    "put",
                    2,
                    8,
                    &OperationSettings {
                        cache: CacheState::ColdByWalking,
                        ..SETTINGS
                    },
                ),
                "put is made for one buffer, so that its messages cannot walk through memory; use cold-overwrite",
            ),
            (
                refused("bcast", 2, 8, &IN_PLACE),
                "bcast cannot be done in place: it has only one buffer",
            ),
            (
                refused("ibarrier", 2, 0, &IN_PLACE),
                "ibarrier cannot be done in place: it has no message",
            ),
            (
                refused("sendrecv", 2, 8, &IN_PLACE),
                "sendrecv cannot be done in place: it is not a collective operation",
            ),
            (
                refused(
                    "gather",
                    3,
                    8,
                    &OperationSettings {
                        root: Root::Rank(3),
                        ..SETTINGS
                    },
                ),
                "there is no root 3 among 3 ranks",
            ),
        ];
        for (found, expected) in expected {
            assert_eq!(found, expected);
        }
        // Operations without a root or a reduction ignore invalid ones.
        let settings = OperationSettings {
            root: Root::Rank(3),
            reduction: Reduction::Bor,
            ..SETTINGS
        };
        assert!(BufferLayout::new("allgather".parse().unwrap(), 0, 3, 8, &settings).is_ok());
    }

    #[test]
    fn sizes_that_are_too_large_are_refused_on_all_ranks() {
        let large = OperationSettings {
            datatype: Datatype::Byte,
            reduction: Reduction::Bor,
            memory: u64::MAX,
            ..SETTINGS
        };
        let most = i32::MAX as u64;
        assert!(BufferLayout::new("gather".parse().unwrap(), 0, 3, most, &large).is_ok());
        let too_many = format!(
            "{} elements are more than MPI can count, which is 2147483647",
            most + 1
        );
        assert_eq!(refused("gather", 3, most + 1, &large), too_many);
        assert_eq!(refused("gatherv", 2, most.div_ceil(2), &large), too_many);
        let ints = OperationSettings {
            datatype: Datatype::Int32,
            ..large
        };
        assert!(BufferLayout::new("alltoallv".parse().unwrap(), 0, 2, 1 << 30, &ints).is_ok());
        assert_eq!(
            refused("alltoallw", 2, 1 << 30, &ints),
            "the blocks of a message begin up to 2147483648 bytes from its begin, and MPI states offsets up to 2147483647"
        );
        for bytes in [u64::MAX, u64::MAX / 2 + 1, u64::MAX / 6 + 1] {
            let why = refused("alltoall", 3, bytes, &large);
            assert_eq!(
                why,
                format!(
                    "the messages of a rank would take 2^64 bytes or more, which exceeds the limit of {}",
                    u64::MAX
                )
            );
        }
        let small = OperationSettings {
            memory: 4 * 800 - 1,
            ..SETTINGS
        };
        for rank in 0..3 {
            let found =
                BufferLayout::new("gather".parse().unwrap(), rank, 3, 800, &small).unwrap_err();
            let why =
                "the messages of a rank would take 3200 bytes, which exceeds the limit of 3199";
            assert_eq!(found.to_string(), why);
        }
        assert!(BufferLayout::new("gather".parse().unwrap(), 0, 3, 792, &small).is_ok());
    }
}
