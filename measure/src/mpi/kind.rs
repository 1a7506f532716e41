//! Kinds of operations.

use core::fmt;
use core::str::FromStr;

use super::calls::MpiCall;
use super::entries::{ENTRIES, InPlace, OperationEntry};
use super::persistent::{PersistentCall, start_and_wait};
use crate::error::MethodError;
use crate::names::{look_up, parse_list};

/// Operation of MPI, blocking, non-blocking or persistent. A non-blocking one is followed by a wait, and can have a computation before it; the
/// request of a persistent one is made in advance, and a call starts it and waits.
///
/// `MPI_Gather_init` and `MPI_Scatter_init` of MPICH 4.0.2 are wrong: [verification](super::MpiOperation::verify) tells. Open MPI 4.1.4 crashes in
/// `MPI_Compare_and_swap` of 8 bytes in [windows that it allocated](super::WindowMemory::Allocate), and its `MPI_Get_accumulate` does nothing
/// with logical reductions in [others](super::WindowMemory::Create).
///
/// Meaning of the message size, for `n` ranks:
///
/// | operation, and its other forms | a message of `bytes` is | a rank has buffers of |
/// |---|---|---|
/// | `barrier`, `empty` | nothing: it is 0 | nothing |
/// | `bcast` | what the root sends | one to send for the root, one to receive for the others |
/// | `reduce`, `allreduce`, `scan`, `exscan` | what a rank contributes, and the result | one to send, one to receive |
/// | `reduce_scatter` | what a rank contributes; the result is distributed evenly, and the first ranks may get one element more | one to send, an `n`th to receive |
/// | `reduce_scatter_block` | what a rank gets | `n` to send, one to receive |
/// | `gather`, `gatherv` | what a rank contributes | one to send, the root `n` to receive |
/// | `scatter`, `scatterv` | what a rank gets | the root `n` to send, one to receive |
/// | `allgather`, `allgatherv` | what a rank contributes | one to send, `n` to receive |
/// | `alltoall`, `alltoallv`, `alltoallw` | what a rank sends to one rank | `n` to send, `n` to receive |
/// | `reduce_local` | each of the buffers that a rank combines, without communication | one to send, one to receive |
/// | `neighbor_allgather`, `neighbor_allgatherv` | what a rank sends to each of its `k` neighbours | one to send, `k` to receive |
/// | `neighbor_alltoall`, `neighbor_alltoallv`, `neighbor_alltoallw` | what a rank sends to one neighbour | `k` to send, `k` to receive |
/// | `ping-pong` | what rank 0 sends to rank 1, and gets back; the other ranks do nothing. Its time is that of the round trip | one to send, one to receive |
/// | `persistent-ping-pong` | the same as `ping-pong` by persistent requests | one to send, one to receive |
/// | `partitioned-ping-pong` | the same by a message in [parts](super::OperationSettings::partitions) that become ready one after the other | one to send, one to receive |
/// | `pair-ping-pong` | the same between all pairs of ranks `i` and `i + n / 2` at once; the last of an odd number of ranks does nothing | one to send, one to receive |
/// | `bandwidth` | one of many messages that rank `i` sends at once to rank `i + n / 2`, which answers when it has all | one to send, one to receive |
/// | `bidirectional` | the same in both directions, without an answer | one to send, one to receive |
/// | `put`, `accumulate` | what rank `i` writes to memory of rank `i + n / 2`, or combines with it | one to send, one to receive |
/// | `get`, `get_accumulate` | what rank `i` reads from memory of rank `i + n / 2`, which `get_accumulate` also combines with what it sends | one to send, one to receive |
/// | `fetch_and_op` | the same as `get_accumulate` with one element | one to send, one to receive |
/// | `compare_and_swap` | one element that replaces another, if that is equal to a third | two to send, one to receive |
/// | `put-bandwidth`, `get-bandwidth` | one of many messages at once | one to send, one to receive |
/// | `sendrecv` | what every rank sends to the next, and gets from the previous one | one to send, one to receive |
///
/// The forms with a `v` or `w` have the same count for every rank. Ranks form a ring, in which those at a distance of at most a
/// [radius](super::OperationSettings::radius) are neighbours on both sides; with few ranks, one may be a neighbour several times, or its own,
/// and what it sends to one and the other side is not verified then. One-sided operations include their
/// [synchronization](super::OperationSettings::epoch). `empty` calls nothing: its time is the cost of measuring.
#[derive(Clone, Copy)]
pub struct OperationKind {
    entry: &'static OperationEntry,
    form: Form,
}

/// Form of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Blocking,
    Nonblocking,
    Persistent,
    Overlapped,
}

impl OperationKind {
    /// Returns all operations, also persistent ones that the library may [lack](Self::is_available).
    pub fn all() -> impl Iterator<Item = Self> {
        ENTRIES.iter().flat_map(|entry| {
            let forms = [
                Some(Form::Blocking),
                entry.calls.immediate.map(|_| Form::Nonblocking),
                entry.calls.persistent.map(|_| Form::Persistent),
                entry.calls.immediate.map(|_| Form::Overlapped),
            ];
            let forms = forms.into_iter().flatten();
            forms.map(|form| Self { entry, form })
        })
    }

    /// Parses a list of names: `allreduce,ibcast`; `blocking`, `nonblocking`, both as `all`, `persistent`, `overlapped`
    /// and `one-sided` name several. Each operation is
    /// listed once, where it is named first.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn list(text: &str) -> Result<Vec<Self>, MethodError> {
        parse_list(text, |name| {
            Ok(match name {
                // Libraries lack persistent ones, or have wrong ones.
                "all" => Self::all()
                    .filter(|kind| matches!(kind.form, Form::Blocking | Form::Nonblocking))
                    .filter(|kind| !kind.is_special())
                    .collect(),
                "blocking" => Self::of_form(Form::Blocking)
                    .into_iter()
                    .filter(|kind| !kind.is_special())
                    .collect(),
                "nonblocking" => Self::of_form(Form::Nonblocking),
                // Few libraries have partitioned messages.
                "persistent" => Self::all()
                    .filter(|kind| kind.persistent().is_some() && !kind.is_partitioned())
                    .collect(),
                "overlapped" => Self::of_form(Form::Overlapped),
                "one-sided" => Self::all().filter(|kind| kind.is_one_sided()).collect(),
                _ => vec![name.parse()?],
            })
        })
    }

    /// Returns true if the request is made in advance.
    pub fn is_persistent(self) -> bool {
        self.form == Form::Persistent
    }

    /// Returns true if the operation is a non-blocking one with a [computation](super::MpiOperation::compute_for) before its wait.
    pub fn is_overlapped(self) -> bool {
        self.form == Form::Overlapped
    }

    /// Returns true if the operation is not one of those that most users measure.
    fn is_special(self) -> bool {
        self.is_one_sided() || self.persistent().is_some()
    }

    fn of_form(form: Form) -> Vec<Self> {
        Self::all().filter(|kind| kind.form == form).collect()
    }

    /// Name in options and records: MPI's name without `MPI_`, in lower case.
    pub fn name(self) -> &'static str {
        self.entry.names[self.form as usize]
    }

    /// Returns true unless the MPI library lacks the operation: persistent collectives belong to MPI 4, and libraries had them before
    /// by other names.
    pub fn is_available(self) -> bool {
        self.persistent().is_none_or(|call| call.find().is_some())
    }

    /// Returns true if the operation is blocking.
    pub fn is_blocking(self) -> bool {
        self.form == Form::Blocking
    }

    /// Returns true if the operation has a message; for others, only the size 0 is allowed.
    pub fn has_message(self) -> bool {
        self.entry.has_message()
    }

    /// Returns true if the operation has a root.
    pub fn has_root(self) -> bool {
        self.entry.has_root
    }

    /// Returns true if the operation is a reduction.
    pub fn has_reduction(self) -> bool {
        self.entry.reduces
    }

    /// Returns true if the operation supports `MPI_IN_PLACE`.
    pub fn has_in_place(self) -> bool {
        !matches!(self.entry.in_place, InPlace::No(_))
    }

    /// Returns true if the operation takes derived datatypes: those that MPI combines or compares are predefined, and a derived
    /// one has no parts.
    pub fn takes_derived(self) -> bool {
        !self.has_reduction() && !self.is_single_element() && !self.is_partitioned()
    }

    /// Returns true if the operation has [many messages](super::OperationSettings::in_flight) in flight at once.
    pub fn has_many_in_flight(self) -> bool {
        self.entry.has_many_in_flight
    }

    /// Returns true if the operation is one among [neighbours](super::OperationSettings::radius).
    pub fn is_among_neighbours(self) -> bool {
        self.entry.among_neighbours
    }

    /// Returns true if ranks access memory of others.
    pub fn is_one_sided(self) -> bool {
        self.entry.exposed.is_some()
    }

    /// Returns true if the message consists of [parts](super::OperationSettings::partitions).
    pub fn is_partitioned(self) -> bool {
        self.entry.is_partitioned
    }

    /// Returns true if the message is one element.
    pub fn is_single_element(self) -> bool {
        self.entry.single_element
    }

    /// Returns the least number of ranks.
    pub fn min_ranks(self) -> u32 {
        self.entry.min_ranks
    }

    pub(super) fn why_not_in_place(self) -> &'static str {
        match self.entry.in_place {
            InPlace::No(why) => why,
            _ => "it can",
        }
    }

    pub(super) fn entry(self) -> &'static OperationEntry {
        self.entry
    }

    /// Returns the function that makes the requests of an operation in advance.
    pub(super) fn persistent(self) -> Option<PersistentCall> {
        match self.form {
            Form::Blocking => self.entry.calls.requests,
            Form::Persistent => self.entry.calls.persistent,
            Form::Nonblocking | Form::Overlapped => None,
        }
    }

    pub(super) fn call(self) -> MpiCall {
        let calls = self.entry.calls;
        let of_form = match self.form {
            Form::Blocking => Some(calls.blocking),
            Form::Nonblocking | Form::Overlapped => calls.immediate,
            Form::Persistent => Some(start_and_wait as MpiCall),
        };
        of_form.unwrap_or(calls.blocking)
    }
}

/// Compares names, which are unique.
impl PartialEq for OperationKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for OperationKind {}

impl fmt::Debug for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OperationKind").field(&self.name()).finish()
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for OperationKind {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        look_up(
            "operation",
            text,
            Self::all().map(|kind| (kind.name(), kind)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_parsed() {
        let all: Vec<OperationKind> = OperationKind::all().collect();
        assert_eq!(all.len(), 4 * 22 + 9 + 8);
        for kind in all {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for wrong in ["", "Barrier", "iping-pong", " bcast"] {
            let why = wrong.parse::<OperationKind>().unwrap_err().to_string();
            assert!(why.starts_with(&format!(
                "there is no operation \"{wrong}\"; there are barrier, ibarrier, barrier_init, ibarrier+compute, bcast,"
            )));
        }
    }

    #[test]
    fn lists_have_no_repetitions() {
        let names = |text| {
            OperationKind::list(text).map(|kinds| kinds.iter().map(|kind| kind.name()).collect())
        };
        assert_eq!(names("scan,ibcast,scan"), Ok(vec!["scan", "ibcast"]));
        assert_eq!(
            names("empty,all").map(|all: Vec<_>| (all.len(), all[0])),
            Ok((51, "empty"))
        );
        assert_eq!(names("blocking").map(|all: Vec<_>| all.len()), Ok(29));
        assert_eq!(
            names("nonblocking,blocking").map(|all: Vec<_>| (all.len(), all[0])),
            Ok((51, "ibarrier"))
        );
        assert_eq!(
            names("persistent").map(|all: Vec<_>| (all.len(), all[0], all[22])),
            Ok((23, "barrier_init", "persistent-ping-pong"))
        );
        assert_eq!(
            names("overlapped").map(|all: Vec<_>| (all.len(), all[1])),
            Ok((22, "ibcast+compute"))
        );
        assert_eq!(
            names("one-sided").map(|all: Vec<_>| (all.len(), all[0])),
            Ok((8, "put"))
        );
        assert!(names("scan,").is_err() && names("").is_err());
    }
}
