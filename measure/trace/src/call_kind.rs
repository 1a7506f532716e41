//! Kinds of calls, known by the names of their regions.

use super::CollectiveKind;
use super::named::named;

named! {
    /// Kind of a region of a program: a call of MPI, or anything else.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CallKind {
        /// Call that sends messages.
        Send = "send",
        /// Call that receives messages, or looks for them.
        Receive = "receive",
        /// Call that completes requests.
        Completion = "wait, test",
        /// Barrier.
        Barrier = "barrier",
        /// Collective operation in which members wait for several others.
        AllToAll = "all-to-all",
        /// Collective operation with a root.
        Rooted = "with a root",
        /// One-sided communication.
        OneSided = "one-sided",
        /// Input and output.
        InputOutput = "input, output",
        /// Any other call of MPI.
        Other = "other MPI",
        /// Work of the tracer and of libdownbeat, which the program would not wait for
        /// without them.
        Tracer = "tracer",
        /// Region of the program itself.
        User = "program",
    }

    /// Returns the name of the kind in a legend.
    fn label
}

/// Names of regions of the tracer.
const TRACER: [&str; 2] = ["(clock synchronization)", "(report of timers)"];

impl CallKind {
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
        // Non-blocking operations begin with an i.
        let blocking = stem.strip_prefix('i').and_then(Self::of_collective_name);
        let kind = Self::of_stem(stem).or(Self::of_collective_name(stem));
        kind.or(blocking).unwrap_or(Self::Other)
    }

    /// Returns the kind of a call that is not collective, by its name without `mpi_`.
    fn of_stem(stem: &str) -> Option<Self> {
        Some(match stem {
            "send" | "bsend" | "ssend" | "rsend" | "isend" | "ibsend" | "issend" | "irsend"
            | "psend" => Self::Send,
            "recv" | "irecv" | "mrecv" | "imrecv" | "precv" | "probe" | "iprobe" | "mprobe"
            | "improbe" | "sendrecv" | "isendrecv" | "sendrecv_replace" => Self::Receive,
            "wait" | "waitall" | "waitany" | "waitsome" | "test" | "testall" | "testany"
            | "testsome" | "start" | "startall" | "cancel" | "request_free" | "parrived" => {
                Self::Completion
            }
            "put" | "get" | "rput" | "rget" | "accumulate" | "raccumulate" | "get_accumulate"
            | "rget_accumulate" | "fetch_and_op" | "rfetch_and_op" | "compare_and_swap" => {
                Self::OneSided
            }
            _ if stem.starts_with("win_") => Self::OneSided,
            _ if stem.starts_with("file_") => Self::InputOutput,
            _ => return None,
        })
    }

    /// Returns the kind of a collective operation, by its name without `mpi_`.
    fn of_collective_name(stem: &str) -> Option<Self> {
        // Each operation of neighbours has the name of one of all members.
        Some(match stem.strip_prefix("neighbor_").unwrap_or(stem) {
            "barrier" => Self::Barrier,
            "bcast" | "scatter" | "scatterv" | "gather" | "gatherv" | "reduce" => Self::Rooted,
            "allreduce" | "allgather" | "allgatherv" | "alltoall" | "alltoallv" | "alltoallw"
            | "scan" | "exscan" => Self::AllToAll,
            "reduce_scatter" | "reduce_scatter_block" => Self::AllToAll,
            _ => return None,
        })
    }

    /// Returns true for a call of MPI.
    pub const fn is_mpi(self) -> bool {
        !matches!(self, Self::Tracer | Self::User)
    }

    /// Returns true if a call of this name can wait until messages are received: a
    /// blocking send, or a wait for requests.
    pub(crate) fn waits_for_receivers(name: &str) -> bool {
        match Self::of_name(name) {
            Self::Send => !begins_with("i", name),
            Self::Completion => begins_with("wait", name),
            _ => false,
        }
    }

    /// Returns true if a call of this name can wait until messages are sent, as a test of
    /// requests cannot.
    pub(crate) fn waits_for_senders(name: &str) -> bool {
        Self::of_name(name) != Self::Completion || begins_with("wait", name)
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
}

/// Returns true if the name of a call of MPI begins so, behind `mpi_`.
fn begins_with(begin: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let stem = name.split_once("mpi_");
    stem.is_some_and(|(_, stem)| stem.starts_with(begin))
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
