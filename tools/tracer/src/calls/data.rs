//! Data that a collective call is given: positions of counts and datatypes, and the lengths that follow.

use crate::arguments::Arguments;
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
        let count = match self.count {
            // SAFETY: the caller guarantees it.
            Parameter::All(at) => unsafe { B::count(a.at(at)) },
            // SAFETY: as above.
            Parameter::Each(at) => unsafe { B::count_of(a.at(at), index) },
        };
        let datatype = match self.datatype {
            // SAFETY: as above.
            Parameter::All(at) => unsafe { B::datatype(a.at(at)) },
            // SAFETY: as above.
            Parameter::Each(at) => unsafe { B::datatype_of(a.at(at), index) },
        };
        bytes(count, datatype)
    }
}
