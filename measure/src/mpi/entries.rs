//! Table of all operations.
#![expect(unsafe_code, reason = "MPI is a C library")]

use super::calls::{CallPair, EMPTY, PING_PONG, SENDRECV, collective};
use super::reference::VerifyCase;
use super::transfers::{BANDWIDTH, BIDIRECTIONAL, PAIR_PING_PONG, partner, source};

/// Properties of an operation.
#[derive(Debug)]
pub(super) struct OperationEntry {
    /// Name of the operation, and of its non-blocking form.
    pub(super) names: [&'static str; 2],
    /// Size of what a rank contributes, and of what it gets.
    pub(super) send: BufferExtent,
    pub(super) recv: BufferExtent,
    pub(super) has_root: bool,
    pub(super) reduces: bool,
    pub(super) in_place: InPlace,
    pub(super) min_ranks: u32,
    /// True if many messages are in flight at once.
    pub(super) has_window: bool,
    /// True if ranks are neighbours in a topology.
    pub(super) among_neighbours: bool,
    pub(super) calls: CallPair,
    /// Returns the expected element at an index of a rank's result; `None` where any value is allowed.
    pub(super) expects: fn(&VerifyCase, usize) -> Option<i64>,
}

impl OperationEntry {
    pub(super) fn has_message(&self) -> bool {
        self.send != BufferExtent::Nothing
    }

    /// Returns what MPI counts with an `int`.
    pub(super) fn counts(&self) -> Counts {
        match self.names[0] {
            // Offsets in other functions are addresses.
            "alltoallw" => Counts::Offsets,
            name if name.ends_with(['v', 'w']) => Counts::Starts,
            _ => Counts::Elements,
        }
    }
}

/// Quantity that MPI counts with an `int`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Elements of a block.
    Elements,
    /// Elements of all blocks, as the index of every block is stated.
    Starts,
    /// Bytes of all blocks.
    Offsets,
}

/// Size of what a rank contributes or gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferExtent {
    Nothing,
    /// One block.
    Block,
    /// One block for every rank.
    BlockPerRank,
    /// One block for every neighbour.
    BlockPerNeighbour,
    /// One block for every rank, on the root only.
    AtRoot,
    /// Part of a block: the ranks' parts are equal, or the first ones have one element more.
    Share,
}

/// Use of `MPI_IN_PLACE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InPlace {
    /// Not supported, for this reason.
    No(&'static str),
    /// The contribution is at the beginning of the receive buffer.
    Whole(InPlaceRanks),
    /// The contribution is at the rank's own block of the receive buffer.
    OwnBlock(InPlaceRanks),
    /// The root keeps its own block in the send buffer.
    Kept,
}

/// Ranks that pass `MPI_IN_PLACE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InPlaceRanks {
    All,
    Root,
}

/// Properties of most operations.
const USUAL: OperationEntry = OperationEntry {
    names: ["", ""],
    send: BufferExtent::Block,
    recv: BufferExtent::Block,
    has_root: false,
    reduces: false,
    in_place: InPlace::No("MPI does not define it"),
    min_ranks: 1,
    has_window: false,
    among_neighbours: false,
    calls: EMPTY,
    expects: |_, _| None,
};

/// Properties of most operations among neighbours.
const AMONG_NEIGHBOURS: OperationEntry = OperationEntry {
    recv: BufferExtent::BlockPerNeighbour,
    among_neighbours: true,
    ..USUAL
};

/// Properties of most operations between pairs of ranks.
const OF_PAIRS: OperationEntry = OperationEntry {
    min_ranks: 2,
    in_place: InPlace::No("it is not a collective operation"),
    ..USUAL
};

pub(super) static ENTRIES: [OperationEntry; 28] = [
    OperationEntry {
        names: ["barrier", "ibarrier"],
        send: BufferExtent::Nothing,
        recv: BufferExtent::Nothing,
        in_place: InPlace::No("it has no message"),
        calls: collective!(MPI_Barrier, MPI_Ibarrier: comm),
        ..USUAL
    },
    OperationEntry {
        names: ["bcast", "ibcast"],
        has_root: true,
        in_place: InPlace::No("it has only one buffer"),
        calls: collective!(MPI_Bcast, MPI_Ibcast: buffer count datatype root comm),
        expects: |at, place| (!at.is_root()).then(|| at.input(at.root, place)),
        ..USUAL
    },
    OperationEntry {
        names: ["reduce", "ireduce"],
        has_root: true,
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::Root),
        calls: collective!(MPI_Reduce, MPI_Ireduce: send recv count datatype reduction root comm),
        expects: |at, place| at.combined(0..at.ranks, place).filter(|_| at.is_root()),
        ..USUAL
    },
    OperationEntry {
        names: ["allreduce", "iallreduce"],
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Allreduce, MPI_Iallreduce: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, place),
        ..USUAL
    },
    OperationEntry {
        names: ["gather", "igather"],
        recv: BufferExtent::AtRoot,
        has_root: true,
        in_place: InPlace::OwnBlock(InPlaceRanks::Root),
        calls: collective!(MPI_Gather, MPI_Igather: send count datatype recv count datatype root comm),
        expects: |at, place| {
            at.is_root()
                .then(|| at.input(place / at.block, place % at.block))
        },
        ..USUAL
    },
    OperationEntry {
        names: ["gatherv", "igatherv"],
        recv: BufferExtent::AtRoot,
        has_root: true,
        in_place: InPlace::OwnBlock(InPlaceRanks::Root),
        calls: collective!(MPI_Gatherv, MPI_Igatherv: send count datatype recv counts starts datatype root comm),
        expects: |at, place| {
            at.is_root()
                .then(|| at.input(place / at.block, place % at.block))
        },
        ..USUAL
    },
    OperationEntry {
        names: ["scatter", "iscatter"],
        send: BufferExtent::AtRoot,
        has_root: true,
        in_place: InPlace::Kept,
        calls: collective!(MPI_Scatter, MPI_Iscatter: send count datatype recv count datatype root comm),
        expects: |at, place| Some(at.input(at.root, at.rank * at.block + place)),
        ..USUAL
    },
    OperationEntry {
        names: ["scatterv", "iscatterv"],
        send: BufferExtent::AtRoot,
        has_root: true,
        in_place: InPlace::Kept,
        calls: collective!(MPI_Scatterv, MPI_Iscatterv: send counts starts datatype recv count datatype root comm),
        expects: |at, place| Some(at.input(at.root, at.rank * at.block + place)),
        ..USUAL
    },
    OperationEntry {
        names: ["allgather", "iallgather"],
        recv: BufferExtent::BlockPerRank,
        in_place: InPlace::OwnBlock(InPlaceRanks::All),
        calls: collective!(MPI_Allgather, MPI_Iallgather: send count datatype recv count datatype comm),
        expects: |at, place| Some(at.input(place / at.block, place % at.block)),
        ..USUAL
    },
    OperationEntry {
        names: ["allgatherv", "iallgatherv"],
        recv: BufferExtent::BlockPerRank,
        in_place: InPlace::OwnBlock(InPlaceRanks::All),
        calls: collective!(MPI_Allgatherv, MPI_Iallgatherv: send count datatype recv counts starts datatype comm),
        expects: |at, place| Some(at.input(place / at.block, place % at.block)),
        ..USUAL
    },
    OperationEntry {
        names: ["alltoall", "ialltoall"],
        send: BufferExtent::BlockPerRank,
        recv: BufferExtent::BlockPerRank,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Alltoall, MPI_Ialltoall: send count datatype recv count datatype comm),
        expects: |at, place| {
            Some(at.input(place / at.block, at.rank * at.block + place % at.block))
        },
        ..USUAL
    },
    OperationEntry {
        names: ["alltoallv", "ialltoallv"],
        send: BufferExtent::BlockPerRank,
        recv: BufferExtent::BlockPerRank,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Alltoallv, MPI_Ialltoallv: send counts starts datatype recv counts starts datatype comm),
        expects: |at, place| {
            Some(at.input(place / at.block, at.rank * at.block + place % at.block))
        },
        ..USUAL
    },
    OperationEntry {
        names: ["alltoallw", "ialltoallw"],
        send: BufferExtent::BlockPerRank,
        recv: BufferExtent::BlockPerRank,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Alltoallw, MPI_Ialltoallw: send counts offsets datatypes recv counts offsets datatypes comm),
        expects: |at, place| {
            Some(at.input(place / at.block, at.rank * at.block + place % at.block))
        },
        ..USUAL
    },
    OperationEntry {
        names: ["neighbor_allgather", "ineighbor_allgather"],
        calls: collective!(MPI_Neighbor_allgather, MPI_Ineighbor_allgather: send count datatype recv count datatype comm),
        expects: |at, place| Some(at.input(at.source(place / at.block), place % at.block)),
        ..AMONG_NEIGHBOURS
    },
    OperationEntry {
        names: ["neighbor_allgatherv", "ineighbor_allgatherv"],
        calls: collective!(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv: send count datatype recv counts starts datatype comm),
        expects: |at, place| Some(at.input(at.source(place / at.block), place % at.block)),
        ..AMONG_NEIGHBOURS
    },
    OperationEntry {
        names: ["neighbor_alltoall", "ineighbor_alltoall"],
        send: BufferExtent::BlockPerNeighbour,
        calls: collective!(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall: send count datatype recv count datatype comm),
        expects: |at, place| Some(at.input(at.source(place / at.block), place)),
        ..AMONG_NEIGHBOURS
    },
    OperationEntry {
        names: ["neighbor_alltoallv", "ineighbor_alltoallv"],
        send: BufferExtent::BlockPerNeighbour,
        calls: collective!(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv: send counts starts datatype recv counts starts datatype comm),
        expects: |at, place| Some(at.input(at.source(place / at.block), place)),
        ..AMONG_NEIGHBOURS
    },
    OperationEntry {
        names: ["neighbor_alltoallw", "ineighbor_alltoallw"],
        send: BufferExtent::BlockPerNeighbour,
        calls: collective!(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw: send counts byte_offsets datatypes recv counts byte_offsets datatypes comm),
        expects: |at, place| Some(at.input(at.source(place / at.block), place)),
        ..AMONG_NEIGHBOURS
    },
    OperationEntry {
        names: ["reduce_scatter", "ireduce_scatter"],
        recv: BufferExtent::Share,
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Reduce_scatter, MPI_Ireduce_scatter: send recv counts datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, at.share + place),
        ..USUAL
    },
    OperationEntry {
        names: ["reduce_scatter_block", "ireduce_scatter_block"],
        send: BufferExtent::BlockPerRank,
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, at.rank * at.block + place),
        ..USUAL
    },
    OperationEntry {
        names: ["scan", "iscan"],
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Scan, MPI_Iscan: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.rank + 1, place),
        ..USUAL
    },
    OperationEntry {
        names: ["exscan", "iexscan"],
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Exscan, MPI_Iexscan: send recv count datatype reduction comm),
        // No rank is before rank 0, whose result is undefined.
        expects: |at, place| at.combined(0..at.rank, place),
        ..USUAL
    },
    OperationEntry {
        names: ["ping-pong", ""],
        calls: PING_PONG,
        expects: |at, place| (at.rank < 2).then(|| at.input(1 - at.rank, place)),
        ..OF_PAIRS
    },
    OperationEntry {
        names: ["pair-ping-pong", ""],
        calls: PAIR_PING_PONG,
        expects: |at, place| Some(at.input(partner(at.rank, at.ranks)?, place)),
        ..OF_PAIRS
    },
    OperationEntry {
        names: ["bandwidth", ""],
        has_window: true,
        calls: BANDWIDTH,
        expects: |at, place| Some(at.input(source(at.rank, at.ranks)?, place)),
        ..OF_PAIRS
    },
    OperationEntry {
        names: ["bidirectional", ""],
        has_window: true,
        calls: BIDIRECTIONAL,
        expects: |at, place| Some(at.input(partner(at.rank, at.ranks)?, place)),
        ..OF_PAIRS
    },
    OperationEntry {
        names: ["sendrecv", ""],
        in_place: InPlace::No("it is not a collective operation"),
        calls: SENDRECV,
        expects: |at, place| Some(at.input((at.rank + at.ranks - 1) % at.ranks, place)),
        ..USUAL
    },
    OperationEntry {
        names: ["empty", ""],
        send: BufferExtent::Nothing,
        recv: BufferExtent::Nothing,
        in_place: InPlace::No("it has no message"),
        ..USUAL
    },
];
