//! Data that a collective call is given: positions of counts and datatypes, and the lengths that follow.

use crate::arguments::Arguments;
use crate::binding::HandleKind::Datatype;
use crate::binding::{Binding, bytes};

/// Data for several ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    count: Parameter,
    datatype: Parameter,
}

/// Position of a parameter: one for all ranks, or an array with one for each.
#[derive(Clone, Copy, Debug)]
enum Parameter {
    All(usize),
    Each(usize),
}

impl Data {
    /// All ranks have one count and one datatype.
    pub(crate) const fn even(count: usize, datatype: usize) -> Self {
        Self {
            count: Parameter::All(count),
            datatype: Parameter::All(datatype),
        }
    }

    /// Each rank has its count.
    pub(crate) const fn uneven(counts: usize, datatype: usize) -> Self {
        Self {
            count: Parameter::Each(counts),
            datatype: Parameter::All(datatype),
        }
    }

    /// Each rank has its count and its datatype.
    pub(crate) const fn mixed(counts: usize, datatypes: usize) -> Self {
        Self {
            count: Parameter::Each(counts),
            datatype: Parameter::Each(datatypes),
        }
    }

    /// Returns the length of the data of the rank with this index in bytes.
    ///
    /// # Safety
    /// The caller passes the arguments of the function, in which arrays have such an element.
    pub(super) unsafe fn length<B: Binding>(self, a: &impl Arguments, index: usize) -> u64 {
        // SAFETY: the caller guarantees it.
        let count = unsafe { self.elements::<B>(a, index) };
        let datatype = match self.datatype {
            // SAFETY: as above.
            Parameter::All(at) => unsafe { B::handle(Datatype, a.at(at)) },
            // SAFETY: as above.
            Parameter::Each(at) => unsafe { B::handle_at(Datatype, a.at(at), index) },
        };
        bytes(count, datatype)
    }

    /// Returns the length of the data of this number of ranks. The size of a datatype is asked for once if it is the same for all.
    ///
    /// # Safety
    /// The caller passes the arguments of the function, in which arrays have an element for each rank.
    pub(super) unsafe fn total<B: Binding>(self, a: &impl Arguments, ranks: usize) -> u64 {
        match self.datatype {
            Parameter::All(at) => {
                // SAFETY: the caller guarantees it.
                let elements = (0..ranks).map(|rank| unsafe { self.elements::<B>(a, rank) });
                // SAFETY: as above.
                bytes(elements.sum(), unsafe { B::handle(Datatype, a.at(at)) })
            }
            // SAFETY: as above.
            Parameter::Each(_) => (0..ranks)
                .map(|rank| unsafe { self.length::<B>(a, rank) })
                .sum(),
        }
    }

    /// Returns the number of elements of the rank with this index.
    unsafe fn elements<B: Binding>(self, a: &impl Arguments, index: usize) -> i64 {
        match self.count {
            // SAFETY: the caller passes the arguments of the function, in which arrays have such an element.
            Parameter::All(at) => unsafe { B::count(a.at(at)) },
            // SAFETY: as above.
            Parameter::Each(at) => unsafe { B::count_of(a.at(at), index) },
        }
    }
}
