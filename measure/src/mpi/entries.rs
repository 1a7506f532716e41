//! Table of all operations.
#![expect(unsafe_code, reason = "MPI is a C library")]

use super::calls::{EMPTY, MpiCall, PING_PONG, REDUCE_LOCAL, SENDRECV};
use super::forms::{CallForms, collective};
use super::one_sided::{ACCUMULATE, COMPARE_AND_SWAP, FETCH_AND_OP, GET, GET_ACCUMULATE, PUT};
use super::persistent_pair::{
    PARTITIONED, PARTITIONED_PING_PONG, PERSISTENT, PERSISTENT_PING_PONG,
};
use super::reference::VerifyCase;
use super::transfers::{BANDWIDTH, BIDIRECTIONAL, PAIR_PING_PONG, partner, source, target};

/// Properties of an operation.
#[derive(Debug)]
pub(super) struct OperationEntry {
    /// Names of the operation, and of its non-blocking, persistent and overlapped form.
    pub(super) names: [&'static str; 4],
    /// Size of what a rank contributes, and of what it gets.
    pub(super) send: BufferExtent,
    pub(super) recv: BufferExtent,
    pub(super) has_root: bool,
    pub(super) reduces: bool,
    pub(super) in_place: InPlace,
    pub(super) min_ranks: u32,
    /// True if many messages are in flight at once.
    pub(super) has_many_in_flight: bool,
    /// True if ranks are neighbours in a topology.
    pub(super) among_neighbours: bool,
    pub(super) calls: CallForms,
    /// Buffer of the target that a one-sided operation accesses.
    pub(super) exposed: Option<Exposed>,
    /// True if the message is one element.
    pub(super) single_element: bool,
    /// True if elements are compared.
    pub(super) compares: bool,
    /// True if the message consists of parts that become ready one after the other.
    pub(super) is_partitioned: bool,
    /// Returns the element at an index of a rank's receive buffer before a call, if the result depends on it.
    pub(super) begins_with: fn(&VerifyCase, usize) -> Option<i64>,
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
    TwoBlocks,
    /// One block for every rank.
    BlockPerRank,
    /// One block for every neighbour.
    BlockPerNeighbour,
    /// One block for every rank, on the root only.
    AtRoot,
    /// Part of a block: the ranks' parts are equal, or the first ones have one element more.
    Share,
}

/// Buffer of the target that a one-sided operation accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exposed {
    Send,
    Recv,
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

/// Names of the forms of a collective operation.
macro_rules! named {
    ($name:literal) => {
        [
            $name,
            concat!("i", $name),
            concat!($name, "_init"),
            concat!("i", $name, "+compute"),
        ]
    };
}

/// Properties of most operations.
const USUAL: OperationEntry = OperationEntry {
    names: ["", "", "", ""],
    send: BufferExtent::Block,
    recv: BufferExtent::Block,
    has_root: false,
    reduces: false,
    in_place: InPlace::No("MPI does not define it"),
    min_ranks: 1,
    has_many_in_flight: false,
    among_neighbours: false,
    calls: CallForms::only_blocking(EMPTY),
    exposed: None,
    single_element: false,
    compares: false,
    is_partitioned: false,
    begins_with: |_, _| None,
    expects: |_, _| None,
};

/// Properties of operations by which each rank sends another block to each rank.
const TO_ALL: OperationEntry = OperationEntry {
    send: BufferExtent::BlockPerRank,
    recv: BufferExtent::BlockPerRank,
    in_place: InPlace::Whole(InPlaceRanks::All),
    expects: |at, place| Some(at.input(place / at.block, at.rank * at.block + place % at.block)),
    ..USUAL
};

/// Properties of operations by which each rank sends one block to all of its neighbours.
const FROM_NEIGHBOURS: OperationEntry = OperationEntry {
    recv: BufferExtent::BlockPerNeighbour,
    among_neighbours: true,
    expects: |at, place| Some(at.input(at.source(place / at.block), place % at.block)),
    ..USUAL
};

/// Properties of operations by which each rank sends another block to each of its neighbours.
const TO_NEIGHBOURS: OperationEntry = OperationEntry {
    send: BufferExtent::BlockPerNeighbour,
    // The blocks of a rank that is a neighbour several times arrive in this order in Open MPI, and in the opposite one in MPICH.
    expects: |at, place| {
        at.neighbours_differ()
            .then(|| at.input(at.source(place / at.block), place))
    },
    ..FROM_NEIGHBOURS
};

/// Properties of most operations between pairs of ranks.
const OF_PAIRS: OperationEntry = OperationEntry {
    min_ranks: 2,
    in_place: InPlace::No("it is not a collective operation"),
    ..USUAL
};

/// Properties of operations by which ranks 0 and 1 exchange messages.
const BETWEEN_TWO: OperationEntry = OperationEntry {
    expects: |at, place| (at.rank < 2).then(|| at.input(1 - at.rank, place)),
    ..OF_PAIRS
};

/// Properties of operations by which one rank of a pair writes to memory of the other.
const WRITES: OperationEntry = OperationEntry {
    exposed: Some(Exposed::Recv),
    expects: |at, place| Some(at.input(source(at.rank, at.ranks)?, place)),
    ..OF_PAIRS
};

/// Properties of operations by which one rank of a pair reads memory of the other.
const READS: OperationEntry = OperationEntry {
    exposed: Some(Exposed::Send),
    expects: |at, place| Some(at.input(target(at.rank, at.ranks)?, place)),
    ..OF_PAIRS
};

/// Properties of operations that combine the origin's contribution with what the target has.
const UPDATES: OperationEntry = OperationEntry {
    reduces: true,
    begins_with: |at, place| {
        source(at.rank, at.ranks)?;
        Some(at.input(at.rank, place))
    },
    expects: |at, place| at.combined([at.rank, source(at.rank, at.ranks)?], place),
    ..WRITES
};

/// Properties of operations that also return what the target had.
const FETCHES: OperationEntry = OperationEntry {
    expects: |at, place| match target(at.rank, at.ranks) {
        Some(target) => Some(at.input(target, place)),
        None => (UPDATES.expects)(at, place),
    },
    ..UPDATES
};

/// Returns the forms of a one-sided operation with one access, or with many.
const fn accesses([one, many]: [MpiCall; 2], are_many: bool) -> CallForms {
    CallForms::only_blocking(if are_many { many } else { one })
}

pub(super) static ENTRIES: [OperationEntry; 39] = [
    OperationEntry {
        names: named!("barrier"),
        send: BufferExtent::Nothing,
        recv: BufferExtent::Nothing,
        in_place: InPlace::No("it has no message"),
        calls: collective!(MPI_Barrier, MPI_Ibarrier, MPIX_Barrier: comm),
        ..USUAL
    },
    OperationEntry {
        names: named!("bcast"),
        has_root: true,
        in_place: InPlace::No("it has only one buffer"),
        calls: collective!(MPI_Bcast, MPI_Ibcast, MPIX_Bcast: buffer count datatype root comm),
        expects: |at, place| (!at.is_root()).then(|| at.input(at.root, place)),
        ..USUAL
    },
    OperationEntry {
        names: named!("reduce"),
        has_root: true,
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::Root),
        calls: collective!(MPI_Reduce, MPI_Ireduce, MPIX_Reduce: send recv count datatype reduction root comm),
        expects: |at, place| at.combined(0..at.ranks, place).filter(|_| at.is_root()),
        ..USUAL
    },
    OperationEntry {
        names: named!("allreduce"),
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Allreduce, MPI_Iallreduce, MPIX_Allreduce: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, place),
        ..USUAL
    },
    OperationEntry {
        names: named!("gather"),
        recv: BufferExtent::AtRoot,
        has_root: true,
        in_place: InPlace::OwnBlock(InPlaceRanks::Root),
        calls: collective!(MPI_Gather, MPI_Igather, MPIX_Gather: send count datatype recv count datatype root comm),
        expects: |at, place| {
            at.is_root()
                .then(|| at.input(place / at.block, place % at.block))
        },
        ..USUAL
    },
    OperationEntry {
        names: named!("gatherv"),
        recv: BufferExtent::AtRoot,
        has_root: true,
        in_place: InPlace::OwnBlock(InPlaceRanks::Root),
        calls: collective!(MPI_Gatherv, MPI_Igatherv, MPIX_Gatherv: send count datatype recv counts starts datatype root comm),
        expects: |at, place| {
            at.is_root()
                .then(|| at.input(place / at.block, place % at.block))
        },
        ..USUAL
    },
    OperationEntry {
        names: named!("scatter"),
        send: BufferExtent::AtRoot,
        has_root: true,
        in_place: InPlace::Kept,
        calls: collective!(MPI_Scatter, MPI_Iscatter, MPIX_Scatter: send count datatype recv count datatype root comm),
        expects: |at, place| Some(at.input(at.root, at.rank * at.block + place)),
        ..USUAL
    },
    OperationEntry {
        names: named!("scatterv"),
        send: BufferExtent::AtRoot,
        has_root: true,
        in_place: InPlace::Kept,
        calls: collective!(MPI_Scatterv, MPI_Iscatterv, MPIX_Scatterv: send counts starts datatype recv count datatype root comm),
        expects: |at, place| Some(at.input(at.root, at.rank * at.block + place)),
        ..USUAL
    },
    OperationEntry {
        names: named!("allgather"),
        recv: BufferExtent::BlockPerRank,
        in_place: InPlace::OwnBlock(InPlaceRanks::All),
        calls: collective!(MPI_Allgather, MPI_Iallgather, MPIX_Allgather: send count datatype recv count datatype comm),
        expects: |at, place| Some(at.input(place / at.block, place % at.block)),
        ..USUAL
    },
    OperationEntry {
        names: named!("allgatherv"),
        recv: BufferExtent::BlockPerRank,
        in_place: InPlace::OwnBlock(InPlaceRanks::All),
        calls: collective!(MPI_Allgatherv, MPI_Iallgatherv, MPIX_Allgatherv: send count datatype recv counts starts datatype comm),
        expects: |at, place| Some(at.input(place / at.block, place % at.block)),
        ..USUAL
    },
    OperationEntry {
        names: named!("alltoall"),
        calls: collective!(MPI_Alltoall, MPI_Ialltoall, MPIX_Alltoall: send count datatype recv count datatype comm),
        ..TO_ALL
    },
    OperationEntry {
        names: named!("alltoallv"),
        calls: collective!(MPI_Alltoallv, MPI_Ialltoallv, MPIX_Alltoallv: send counts starts datatype recv counts starts datatype comm),
        ..TO_ALL
    },
    OperationEntry {
        names: named!("alltoallw"),
        calls: collective!(MPI_Alltoallw, MPI_Ialltoallw, MPIX_Alltoallw: send counts offsets datatypes recv counts offsets datatypes comm),
        ..TO_ALL
    },
    OperationEntry {
        names: named!("neighbor_allgather"),
        calls: collective!(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, MPIX_Neighbor_allgather: send count datatype recv count datatype comm),
        ..FROM_NEIGHBOURS
    },
    OperationEntry {
        names: named!("neighbor_allgatherv"),
        calls: collective!(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, MPIX_Neighbor_allgatherv: send count datatype recv counts starts datatype comm),
        ..FROM_NEIGHBOURS
    },
    OperationEntry {
        names: named!("neighbor_alltoall"),
        calls: collective!(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, MPIX_Neighbor_alltoall: send count datatype recv count datatype comm),
        ..TO_NEIGHBOURS
    },
    OperationEntry {
        names: named!("neighbor_alltoallv"),
        calls: collective!(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, MPIX_Neighbor_alltoallv: send counts starts datatype recv counts starts datatype comm),
        ..TO_NEIGHBOURS
    },
    OperationEntry {
        names: named!("neighbor_alltoallw"),
        calls: collective!(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, MPIX_Neighbor_alltoallw: send counts byte_offsets datatypes recv counts byte_offsets datatypes comm),
        ..TO_NEIGHBOURS
    },
    OperationEntry {
        names: named!("reduce_scatter"),
        recv: BufferExtent::Share,
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPIX_Reduce_scatter: send recv counts datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, at.share + place),
        ..USUAL
    },
    OperationEntry {
        names: named!("reduce_scatter_block"),
        send: BufferExtent::BlockPerRank,
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPIX_Reduce_scatter_block: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, at.rank * at.block + place),
        ..USUAL
    },
    OperationEntry {
        names: named!("scan"),
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Scan, MPI_Iscan, MPIX_Scan: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.rank + 1, place),
        ..USUAL
    },
    OperationEntry {
        names: named!("exscan"),
        reduces: true,
        in_place: InPlace::Whole(InPlaceRanks::All),
        calls: collective!(MPI_Exscan, MPI_Iexscan, MPIX_Exscan: send recv count datatype reduction comm),
        // No rank is before rank 0, whose result is undefined.
        expects: |at, place| at.combined(0..at.rank, place),
        ..USUAL
    },
    OperationEntry {
        names: ["reduce_local", "", "", ""],
        reduces: true,
        in_place: InPlace::No("it is not a collective operation"),
        calls: CallForms::only_blocking(REDUCE_LOCAL),
        ..USUAL
    },
    OperationEntry {
        names: ["ping-pong", "", "", ""],
        calls: CallForms::only_blocking(PING_PONG),
        ..BETWEEN_TWO
    },
    OperationEntry {
        names: ["persistent-ping-pong", "", "", ""],
        calls: CallForms::by_requests(PERSISTENT, PERSISTENT_PING_PONG),
        ..BETWEEN_TWO
    },
    OperationEntry {
        names: ["partitioned-ping-pong", "", "", ""],
        is_partitioned: true,
        calls: CallForms::by_requests(PARTITIONED, PARTITIONED_PING_PONG),
        ..BETWEEN_TWO
    },
    OperationEntry {
        names: ["pair-ping-pong", "", "", ""],
        calls: CallForms::only_blocking(PAIR_PING_PONG),
        expects: |at, place| Some(at.input(partner(at.rank, at.ranks)?, place)),
        ..OF_PAIRS
    },
    OperationEntry {
        names: ["bandwidth", "", "", ""],
        has_many_in_flight: true,
        calls: CallForms::only_blocking(BANDWIDTH),
        expects: |at, place| Some(at.input(source(at.rank, at.ranks)?, place)),
        ..OF_PAIRS
    },
    OperationEntry {
        names: ["bidirectional", "", "", ""],
        has_many_in_flight: true,
        calls: CallForms::only_blocking(BIDIRECTIONAL),
        expects: |at, place| Some(at.input(partner(at.rank, at.ranks)?, place)),
        ..OF_PAIRS
    },
    OperationEntry {
        names: ["put", "", "", ""],
        calls: accesses(PUT, false),
        ..WRITES
    },
    OperationEntry {
        names: ["get", "", "", ""],
        calls: accesses(GET, false),
        ..READS
    },
    OperationEntry {
        names: ["put-bandwidth", "", "", ""],
        has_many_in_flight: true,
        calls: accesses(PUT, true),
        ..WRITES
    },
    OperationEntry {
        names: ["get-bandwidth", "", "", ""],
        has_many_in_flight: true,
        calls: accesses(GET, true),
        ..READS
    },
    OperationEntry {
        names: ["accumulate", "", "", ""],
        calls: accesses(ACCUMULATE, false),
        ..UPDATES
    },
    OperationEntry {
        names: ["get_accumulate", "", "", ""],
        calls: accesses(GET_ACCUMULATE, false),
        ..FETCHES
    },
    OperationEntry {
        names: ["fetch_and_op", "", "", ""],
        single_element: true,
        calls: accesses(FETCH_AND_OP, false),
        ..FETCHES
    },
    OperationEntry {
        names: ["compare_and_swap", "", "", ""],
        // What is stored, and what it replaces.
        send: BufferExtent::TwoBlocks,
        single_element: true,
        compares: true,
        calls: accesses(COMPARE_AND_SWAP, false),
        begins_with: |at, _| Some(at.input(source(at.rank, at.ranks)?, 1)),
        expects: |at, _| match target(at.rank, at.ranks) {
            Some(_) => Some(at.input(at.rank, 1)),
            None => Some(at.input(source(at.rank, at.ranks)?, 0)),
        },
        ..WRITES
    },
    OperationEntry {
        names: ["sendrecv", "", "", ""],
        in_place: InPlace::No("it is not a collective operation"),
        calls: CallForms::only_blocking(SENDRECV),
        expects: |at, place| Some(at.input((at.rank + at.ranks - 1) % at.ranks, place)),
        ..USUAL
    },
    OperationEntry {
        names: ["empty", "", "", ""],
        send: BufferExtent::Nothing,
        recv: BufferExtent::Nothing,
        in_place: InPlace::No("it has no message"),
        ..USUAL
    },
];
