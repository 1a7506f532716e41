//! Constants of the MPI library, and its statuses.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));

/// Handle, as an argument: an address in Open MPI, and a number in MPICH.
pub(crate) type Handle = usize;

#[cfg(open_mpi)]
mod library {
    use super::Handle;
    use crate::objects::Symbol;

    /// Words of 32 bits of a status, and the indices of its parts.
    pub(crate) const STATUS_WORDS: usize = 6;
    pub(crate) const SOURCE: usize = 0;
    pub(crate) const TAG: usize = 1;
    pub(crate) const ERROR: usize = 2;
    /// Statuses that C programs ignore.
    pub(crate) const IGNORED: usize = 0;
    /// Buffer that stands for the one that receives.
    pub(crate) const IN_PLACE: usize = 1;
    /// Topologies of communicators.
    pub(crate) const CART: i32 = 1;
    pub(crate) const GRAPH: i32 = 2;
    pub(crate) const DIST_GRAPH: i32 = 3;

    /// Handles are addresses of variables.
    macro_rules! handles {
        ($($function:ident = $symbol:literal;)*) => {
            $(
                #[inline(always)]
                pub(crate) fn $function() -> Handle {
                    static VARIABLE: Symbol = Symbol::new($symbol);
                    VARIABLE.address()
                }
            )*
        };
    }

    handles! {
        comm_world = c"ompi_mpi_comm_world";
        comm_self = c"ompi_mpi_comm_self";
        comm_null = c"ompi_mpi_comm_null";
        request_null = c"ompi_request_null";
        byte = c"ompi_mpi_byte";
        datatype_null = c"ompi_mpi_datatype_null";
    }
}

#[cfg(not(open_mpi))]
mod library {
    use super::Handle;

    /// Words of 32 bits of a status, and the indices of its parts.
    pub(crate) const STATUS_WORDS: usize = 5;
    pub(crate) const SOURCE: usize = 2;
    pub(crate) const TAG: usize = 3;
    pub(crate) const ERROR: usize = 4;
    /// Statuses that C programs ignore.
    pub(crate) const IGNORED: usize = 1;
    /// Buffer that stands for the one that receives.
    pub(crate) const IN_PLACE: usize = usize::MAX;
    /// Topologies of communicators.
    pub(crate) const GRAPH: i32 = 1;
    pub(crate) const CART: i32 = 2;
    pub(crate) const DIST_GRAPH: i32 = 3;

    // The binary interface of MPICH fixes these.
    pub(crate) fn comm_world() -> Handle {
        0x4400_0000
    }
    pub(crate) fn comm_self() -> Handle {
        0x4400_0001
    }
    pub(crate) fn comm_null() -> Handle {
        0x0400_0000
    }
    pub(crate) fn request_null() -> Handle {
        0x2c00_0000
    }
    pub(crate) fn byte() -> Handle {
        0x4c00_010d
    }
    pub(crate) fn datatype_null() -> Handle {
        0x0c00_0000
    }
}

pub(crate) use library::*;

/// A status of the MPI library.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Status(pub(crate) [i32; STATUS_WORDS]);

impl Status {
    /// No message.
    pub(crate) const EMPTY: Self = Self([0; STATUS_WORDS]);

    /// Rank of the sender.
    pub(crate) const fn source(&self) -> i32 {
        self.0[SOURCE]
    }

    /// Tag of the message.
    pub(crate) const fn tag(&self) -> i32 {
        self.0[TAG]
    }

    /// Error code, where a call completes several.
    pub(crate) const fn error(&self) -> i32 {
        self.0[ERROR]
    }
}
