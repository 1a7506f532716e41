//! Epochs of one-sided operations, and the memory of their windows.

use crate::names::name_values;

/// Synchronization that a call of a one-sided operation includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Epoch {
    /// `MPI_Win_flush` after the transfer; the window is locked by `MPI_Win_lock_all` from beginning to end.
    Flush,
    /// `MPI_Win_lock`, shared, and `MPI_Win_unlock` around the transfer.
    Lock,
    /// `MPI_Win_start` and `MPI_Win_complete` around the transfer, `MPI_Win_post` and `MPI_Win_wait` on the target.
    Pscw,
    /// `MPI_Win_fence` before and after the transfer, on all ranks.
    Fence,
}

name_values! {
    Epoch, "epoch":
    Flush = "flush",
    Lock = "lock",
    Pscw = "pscw",
    Fence = "fence",
}

/// Memory of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WindowMemory {
    /// That of `MPI_Win_allocate`, which ranks on a node may share.
    Allocate,
    /// That of the program, by `MPI_Win_create`.
    Create,
}

name_values! {
    WindowMemory, "window memory":
    Allocate = "allocate",
    Create = "create",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_parsed() {
        for epoch in Epoch::ALL {
            assert_eq!(epoch.to_string().parse(), Ok(epoch));
        }
        for memory in WindowMemory::ALL {
            assert_eq!(memory.to_string().parse(), Ok(memory));
        }
        let why = "barrier".parse::<Epoch>().unwrap_err().to_string();
        assert_eq!(
            why,
            "there is no epoch \"barrier\"; there are flush, lock, pscw, fence"
        );
        assert!("share".parse::<WindowMemory>().is_err());
    }
}
