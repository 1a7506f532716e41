//! Kinds of calls, known by the names of their regions.

use super::CollectiveKind;

/// Kind of a region of a program: a call of MPI, or anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// Call that sends messages.
    Send,
    /// Call that receives messages, or looks for them.
    Receive,
    /// Call that completes requests.
    Completion,
    /// Barrier.
    Barrier,
    /// Collective operation in which members wait for several others.
    AllToAll,
    /// Collective operation with a root.
    Rooted,
    /// One-sided communication.
    OneSided,
    /// Input and output.
    InputOutput,
    /// Any other call of MPI.
    Other,
    /// Work of the tracer and of libdownbeat, which the program would not wait for without them.
    Tracer,
    /// Region of the program itself.
    User,
}

/// Names of regions of the tracer.
const TRACER: [&str; 2] = ["(clock synchronization)", "(report of timers)"];

const SENDS: [&str; 9] = [
    "send", "bsend", "ssend", "rsend", "isend", "ibsend", "issend", "irsend", "psend",
];
const RECEIVES: [&str; 12] = [
    "recv",
    "irecv",
    "mrecv",
    "imrecv",
    "precv",
    "probe",
    "iprobe",
    "mprobe",
    "improbe",
    "sendrecv",
    "sendrecv_replace",
    "isendrecv",
];
const COMPLETIONS: [&str; 13] = [
    "wait",
    "waitall",
    "waitany",
    "waitsome",
    "test",
    "testall",
    "testany",
    "testsome",
    "start",
    "startall",
    "cancel",
    "request_free",
    "parrived",
];
const ROOTED: [&str; 6] = [
    "bcast", "scatter", "scatterv", "gather", "gatherv", "reduce",
];
const ALL_TO_ALL: [&str; 15] = [
    "allreduce",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
];
const ONE_SIDED: [&str; 11] = [
    "put",
    "get",
    "rput",
    "rget",
    "accumulate",
    "raccumulate",
    "get_accumulate",
    "rget_accumulate",
    "fetch_and_op",
    "compare_and_swap",
    "rfetch_and_op",
];

impl CallKind {
    /// All kinds, in the order in which a legend lists them.
    pub const ALL: [Self; 11] = [
        Self::Send,
        Self::Receive,
        Self::Completion,
        Self::Barrier,
        Self::AllToAll,
        Self::Rooted,
        Self::OneSided,
        Self::InputOutput,
        Self::Other,
        Self::Tracer,
        Self::User,
    ];

    /// Returns the kind of the region with this name: `MPI_Send`, `PMPI_Send`, `mpi_send_`, `MPI_Send_c`.
    pub fn of_name(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix('p').unwrap_or(&name);
        let stem = name.strip_prefix("mpi_").or(name.strip_prefix("mpix_"));
        let Some(stem) = stem else {
            return match TRACER.contains(&name) {
                true => Self::Tracer,
                false => Self::User,
            };
        };
        let stem = stem.trim_end_matches('_');
        let endings = ["_f08ts", "_f08", "_c"];
        let ending = endings.iter().find_map(|end| stem.strip_suffix(end));
        let stem = ending.unwrap_or(stem);
        let has = |known: &[&str]| known.contains(&stem);
        // Non-blocking operations begin with an i.
        let collective = |known: &[&str]| {
            let blocking = stem.strip_prefix('i').unwrap_or(stem);
            known.contains(&stem) || known.contains(&blocking)
        };
        match stem {
            _ if has(&SENDS) => Self::Send,
            _ if has(&RECEIVES) => Self::Receive,
            _ if has(&COMPLETIONS) => Self::Completion,
            _ if collective(&["barrier"]) => Self::Barrier,
            _ if collective(&ALL_TO_ALL) => Self::AllToAll,
            _ if collective(&ROOTED) => Self::Rooted,
            _ if has(&ONE_SIDED) || stem.starts_with("win_") => Self::OneSided,
            _ if stem.starts_with("file_") => Self::InputOutput,
            _ => Self::Other,
        }
    }

    /// Returns true for a call of MPI.
    pub const fn is_mpi(self) -> bool {
        !matches!(self, Self::Tracer | Self::User)
    }

    /// Returns true if a call of this name can wait until messages are received: a
    /// blocking send, or a wait for requests.
    pub(crate) fn waits_for_receivers(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let stem = name.split_once("mpi_").map_or("", |(_, stem)| stem);
        match Self::of_name(&name) {
            Self::Send => !stem.starts_with('i'),
            Self::Completion => stem.starts_with("wait"),
            _ => false,
        }
    }

    /// Returns true if a call of this name can wait until messages are sent, as a test of
    /// requests cannot.
    pub(crate) fn waits_for_senders(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let stem = name.split_once("mpi_").map_or("", |(_, stem)| stem);
        Self::of_name(&name) != Self::Completion || stem.starts_with("wait")
    }

    /// Returns the kind of a call that takes part in a collective operation.
    pub const fn of_collective(kind: CollectiveKind) -> Self {
        match kind {
            CollectiveKind::Barrier => Self::Barrier,
            CollectiveKind::Fork | CollectiveKind::Join => Self::User,
            kind if kind.has_root() => Self::Rooted,
            _ => Self::AllToAll,
        }
    }

    /// Returns the name of the kind in a legend.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Completion => "wait, test",
            Self::Barrier => "barrier",
            Self::AllToAll => "all-to-all",
            Self::Rooted => "with a root",
            Self::OneSided => "one-sided",
            Self::InputOutput => "input, output",
            Self::Other => "other MPI",
            Self::Tracer => "tracer",
            Self::User => "program",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_names_of_all_languages() {
        for (name, kind) in [
            ("MPI_Send", CallKind::Send),
            ("PMPI_Isend", CallKind::Send),
            ("mpi_ssend_", CallKind::Send),
            ("MPI_Send_c", CallKind::Send),
            ("MPI_Sendrecv", CallKind::Receive),
            ("MPI_Recv_f08ts_", CallKind::Receive),
            ("MPI_Waitall", CallKind::Completion),
            ("MPI_Ibarrier", CallKind::Barrier),
            ("MPIX_Iallreduce", CallKind::AllToAll),
            ("MPI_Reduce_scatter_block", CallKind::AllToAll),
            ("MPI_Ireduce", CallKind::Rooted),
            ("MPI_Reduce_local", CallKind::Other),
            ("MPI_Bcast_init", CallKind::Other),
            ("MPI_Init", CallKind::Other),
            ("MPI_Get", CallKind::OneSided),
            ("MPI_Get_count", CallKind::Other),
            ("MPI_Win_fence", CallKind::OneSided),
            ("MPI_File_write", CallKind::InputOutput),
            ("(clock synchronization)", CallKind::Tracer),
            ("(not recorded)", CallKind::User),
            ("main", CallKind::User),
            ("p", CallKind::User),
            ("", CallKind::User),
        ] {
            assert_eq!(CallKind::of_name(name), kind, "{name}");
        }
    }

    #[test]
    fn non_blocking_calls_wait_for_nothing() {
        let blocking = ["MPI_Send", "mpi_ssend_", "PMPI_Wait", "MPI_Waitall"];
        assert!(blocking.into_iter().all(CallKind::waits_for_receivers));
        let others = [
            "MPI_Isend",
            "mpi_irsend_",
            "MPI_Start",
            "MPI_Test",
            "MPI_Sendrecv",
        ];
        assert!(!others.into_iter().any(CallKind::waits_for_receivers));
        let receiving = ["MPI_Recv", "MPI_Sendrecv", "MPI_Wait", "mpi_waitsome_"];
        assert!(receiving.into_iter().all(CallKind::waits_for_senders));
        assert!(
            !["MPI_Test", "PMPI_Testany"]
                .into_iter()
                .any(CallKind::waits_for_senders)
        );
    }

    #[test]
    fn every_kind_has_its_own_label() {
        let mut labels = CallKind::ALL.map(CallKind::label).to_vec();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), CallKind::ALL.len());
    }
}
