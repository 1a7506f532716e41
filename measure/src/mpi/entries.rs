//! The operations there are: each is one entry here.
#![expect(unsafe_code, reason = "MPI is a C library")]

use super::calls::{Calls, EMPTY, PING_PONG, SENDRECV, collective};
use super::reference::Case;

/// Everything there is to know of an operation.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its name, and that of its non-blocking form.
    pub(super) names: [&'static str; 2],
    /// What a rank contributes, and what it gets.
    pub(super) send: Extent,
    pub(super) recv: Extent,
    pub(super) has_root: bool,
    pub(super) reduces: bool,
    pub(super) in_place: InPlace,
    pub(super) least_ranks: u32,
    pub(super) calls: Calls,
    /// What a rank must find at a place of what it gets; `None` where anything may be.
    pub(super) expects: fn(&Case, usize) -> Option<i64>,
}

/// How much memory a rank needs for what it contributes or gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Nothing,
    /// One block.
    Block,
    /// One block for every rank.
    BlockPerRank,
    /// The same, but only the root needs it.
    AtRoot,
    /// A part of a block: the ranks' parts are equal, or some have one element more.
    Share,
}

/// How `MPI_IN_PLACE` is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InPlace {
    /// It is not, for this reason.
    No(&'static str),
    /// What a rank contributes stands at the beginning of what it gets.
    Whole(Who),
    /// It stands where the rank's own block is.
    OwnBlock(Who),
    /// The root leaves its own block where it is.
    Kept,
}

/// Who is to use `MPI_IN_PLACE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    All,
    Root,
}

/// What most operations are like.
const USUAL: Entry = Entry {
    names: ["", ""],
    send: Extent::Block,
    recv: Extent::Block,
    has_root: false,
    reduces: false,
    in_place: InPlace::No("MPI does not define it"),
    least_ranks: 1,
    calls: EMPTY,
    expects: |_, _| None,
};

pub(super) static ENTRIES: [Entry; 19] = [
    Entry {
        names: ["barrier", "ibarrier"],
        send: Extent::Nothing,
        recv: Extent::Nothing,
        in_place: InPlace::No("it has no message"),
        calls: collective!(MPI_Barrier, MPI_Ibarrier: comm),
        ..USUAL
    },
    Entry {
        names: ["bcast", "ibcast"],
        has_root: true,
        in_place: InPlace::No("it has only one buffer anyway"),
        calls: collective!(MPI_Bcast, MPI_Ibcast: buffer count datatype root comm),
        expects: |at, place| (!at.is_root()).then(|| at.input(at.root, place)),
        ..USUAL
    },
    Entry {
        names: ["reduce", "ireduce"],
        has_root: true,
        reduces: true,
        in_place: InPlace::Whole(Who::Root),
        calls: collective!(MPI_Reduce, MPI_Ireduce: send recv count datatype reduction root comm),
        expects: |at, place| at.combined(0..at.ranks, place).filter(|_| at.is_root()),
        ..USUAL
    },
    Entry {
        names: ["allreduce", "iallreduce"],
        reduces: true,
        in_place: InPlace::Whole(Who::All),
        calls: collective!(MPI_Allreduce, MPI_Iallreduce: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, place),
        ..USUAL
    },
    Entry {
        names: ["gather", "igather"],
        recv: Extent::AtRoot,
        has_root: true,
        in_place: InPlace::OwnBlock(Who::Root),
        calls: collective!(MPI_Gather, MPI_Igather: send count datatype recv count datatype root comm),
        expects: |at, place| {
            at.is_root()
                .then(|| at.input(place / at.block, place % at.block))
        },
        ..USUAL
    },
    Entry {
        names: ["gatherv", "igatherv"],
        recv: Extent::AtRoot,
        has_root: true,
        in_place: InPlace::OwnBlock(Who::Root),
        calls: collective!(MPI_Gatherv, MPI_Igatherv: send count datatype recv counts starts datatype root comm),
        expects: |at, place| {
            at.is_root()
                .then(|| at.input(place / at.block, place % at.block))
        },
        ..USUAL
    },
    Entry {
        names: ["scatter", "iscatter"],
        send: Extent::AtRoot,
        has_root: true,
        in_place: InPlace::Kept,
        calls: collective!(MPI_Scatter, MPI_Iscatter: send count datatype recv count datatype root comm),
        expects: |at, place| Some(at.input(at.root, at.rank * at.block + place)),
        ..USUAL
    },
    Entry {
        names: ["scatterv", "iscatterv"],
        send: Extent::AtRoot,
        has_root: true,
        in_place: InPlace::Kept,
        calls: collective!(MPI_Scatterv, MPI_Iscatterv: send counts starts datatype recv count datatype root comm),
        expects: |at, place| Some(at.input(at.root, at.rank * at.block + place)),
        ..USUAL
    },
    Entry {
        names: ["allgather", "iallgather"],
        recv: Extent::BlockPerRank,
        in_place: InPlace::OwnBlock(Who::All),
        calls: collective!(MPI_Allgather, MPI_Iallgather: send count datatype recv count datatype comm),
        expects: |at, place| Some(at.input(place / at.block, place % at.block)),
        ..USUAL
    },
    Entry {
        names: ["allgatherv", "iallgatherv"],
        recv: Extent::BlockPerRank,
        in_place: InPlace::OwnBlock(Who::All),
        calls: collective!(MPI_Allgatherv, MPI_Iallgatherv: send count datatype recv counts starts datatype comm),
        expects: |at, place| Some(at.input(place / at.block, place % at.block)),
        ..USUAL
    },
    Entry {
        names: ["alltoall", "ialltoall"],
        send: Extent::BlockPerRank,
        recv: Extent::BlockPerRank,
        in_place: InPlace::Whole(Who::All),
        calls: collective!(MPI_Alltoall, MPI_Ialltoall: send count datatype recv count datatype comm),
        expects: |at, place| {
            Some(at.input(place / at.block, at.rank * at.block + place % at.block))
        },
        ..USUAL
    },
    Entry {
        names: ["alltoallv", "ialltoallv"],
        send: Extent::BlockPerRank,
        recv: Extent::BlockPerRank,
        in_place: InPlace::Whole(Who::All),
        calls: collective!(MPI_Alltoallv, MPI_Ialltoallv: send counts starts datatype recv counts starts datatype comm),
        expects: |at, place| {
            Some(at.input(place / at.block, at.rank * at.block + place % at.block))
        },
        ..USUAL
    },
    Entry {
        names: ["reduce_scatter", "ireduce_scatter"],
        recv: Extent::Share,
        reduces: true,
        in_place: InPlace::Whole(Who::All),
        calls: collective!(MPI_Reduce_scatter, MPI_Ireduce_scatter: send recv counts datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, at.share + place),
        ..USUAL
    },
    Entry {
        names: ["reduce_scatter_block", "ireduce_scatter_block"],
        send: Extent::BlockPerRank,
        reduces: true,
        in_place: InPlace::Whole(Who::All),
        calls: collective!(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.ranks, at.rank * at.block + place),
        ..USUAL
    },
    Entry {
        names: ["scan", "iscan"],
        reduces: true,
        in_place: InPlace::Whole(Who::All),
        calls: collective!(MPI_Scan, MPI_Iscan: send recv count datatype reduction comm),
        expects: |at, place| at.combined(0..at.rank + 1, place),
        ..USUAL
    },
    Entry {
        names: ["exscan", "iexscan"],
        reduces: true,
        in_place: InPlace::Whole(Who::All),
        calls: collective!(MPI_Exscan, MPI_Iexscan: send recv count datatype reduction comm),
        // Nothing is before rank 0, which may find anything.
        expects: |at, place| at.combined(0..at.rank, place),
        ..USUAL
    },
    Entry {
        names: ["ping-pong", ""],
        least_ranks: 2,
        in_place: InPlace::No("it is no collective operation"),
        calls: PING_PONG,
        expects: |at, place| (at.rank < 2).then(|| at.input(1 - at.rank, place)),
        ..USUAL
    },
    Entry {
        names: ["sendrecv", ""],
        in_place: InPlace::No("it is no collective operation"),
        calls: SENDRECV,
        expects: |at, place| Some(at.input((at.rank + at.ranks - 1) % at.ranks, place)),
        ..USUAL
    },
    Entry {
        names: ["empty", ""],
        send: Extent::Nothing,
        recv: Extent::Nothing,
        in_place: InPlace::No("it has no message"),
        ..USUAL
    },
];
