//! How large buffers are, and what is where in them.

use core::ffi::c_int;

use super::entries::{Entry, Extent, InPlace, Who};
use super::{MpiGroup, OperationError, OperationKind, OperationSettings, Root};

/// Numbers of elements.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// How many bytes an element takes.
    pub(super) width: usize,
    /// Of a block.
    pub(super) count: c_int,
    /// Of each rank's block, and where it begins.
    pub(super) counts: Vec<c_int>,
    pub(super) starts: Vec<c_int>,
    /// Of what this rank contributes, or could if it were the root; in place, too.
    pub(super) input: usize,
    /// Of what it gets.
    pub(super) output: usize,
    /// Of its buffers.
    pub(super) send: usize,
    pub(super) recv: usize,
    /// The bytes of these.
    pub(super) memory: u64,
}

impl Layout {
    pub(super) fn new(
        kind: OperationKind,
        group: &MpiGroup,
        bytes: u64,
        settings: &OperationSettings,
    ) -> Result<Self, OperationError> {
        check(kind, group.size(), bytes, settings)?;
        let (entry, width) = (kind.entry(), settings.datatype.bytes());
        let too_large = OperationError::TooLarge { bytes: None, memory: settings.memory };
        let (elements, ranks) = (bytes / width, u64::from(group.size()));
        let in_total = elements.checked_mul(ranks).ok_or(too_large)?;
        let counted = if entry.starts_are_counted() { in_total } else { elements };
        let too_many = OperationError::TooMany { elements: counted };
        if c_int::try_from(counted).is_err() {
            return Err(too_many);
        }

        let could_be_root = matches!(settings.root, Root::Rotating) || settings.root == Root::Rank(group.rank());
        let share = |rank: u64| elements / ranks + u64::from(rank < elements % ranks);
        let of = |extent| match extent {
            Extent::Nothing => 0,
            Extent::Block => elements,
            Extent::BlockPerRank => in_total,
            Extent::AtRoot => {
                if could_be_root {
                    in_total
                } else {
                    0
                }
            }
            Extent::Share => share(group.rank().into()),
        };
        let (input, output) = (of(entry.send), of(entry.recv));
        let (send, recv) = match entry.in_place {
            _ if !settings.in_place => (input, output),
            // The one buffer for both.
            InPlace::Whole(Who::All) => (0, input.max(output)),
            InPlace::OwnBlock(Who::All) => (0, output),
            _ => (input, output),
        };
        let memory = send.checked_add(recv).and_then(|both| both.checked_mul(width)).ok_or(too_large)?;
        if memory > settings.memory || usize::try_from(memory).is_err() {
            return Err(OperationError::TooLarge { bytes: Some(memory), memory: settings.memory });
        }

        // They fit into the type, as their sum does where it is used, and as they are parts of one that does elsewhere.
        let counts: Vec<c_int> = match entry.recv {
            Extent::Share => (0..ranks).map(|rank| share(rank) as c_int).collect(),
            _ => vec![elements as c_int; group.size() as usize],
        };
        let starts = counts.iter().scan(0, |next: &mut c_int, count| {
            let start = *next;
            *next = next.wrapping_add(*count);
            Some(start)
        });
        Ok(Self {
            width: width as usize,
            count: elements as c_int,
            starts: starts.collect(),
            counts,
            input: input as usize,
            output: output as usize,
            send: send as usize,
            recv: recv as usize,
            memory,
        })
    }
}

/// What can be said without a look at numbers of elements.
fn check(kind: OperationKind, ranks: u32, bytes: u64, settings: &OperationSettings) -> Result<(), OperationError> {
    let OperationSettings { datatype, reduction, root, in_place, alignment, .. } = *settings;
    if ranks < kind.least_ranks() {
        return Err(OperationError::TooFewRanks { kind, ranks });
    }
    if !kind.has_message() && bytes > 0 {
        return Err(OperationError::NoMessage { kind, bytes });
    }
    if kind.has_reduction() && !datatype.allows(reduction) {
        return Err(OperationError::Reduction { datatype, reduction });
    }
    if !bytes.is_multiple_of(datatype.bytes()) {
        return Err(OperationError::PartialElement { bytes, datatype });
    }
    if in_place && !kind.has_in_place() {
        return Err(OperationError::NotInPlace(kind));
    }
    if !alignment.is_power_of_two() || alignment > 1 << 30 {
        return Err(OperationError::Alignment(alignment));
    }
    match root {
        Root::Rank(root) if kind.has_root() && root >= ranks => Err(OperationError::Root { root, ranks }),
        _ => Ok(()),
    }
}

impl Entry {
    pub(super) fn has_message(&self) -> bool {
        self.send != Extent::Nothing
    }

    /// Whether MPI is told where blocks begin, so that all of them together are counted.
    fn starts_are_counted(&self) -> bool {
        self.names[0].ends_with('v')
    }
}
