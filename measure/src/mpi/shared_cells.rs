//! Memory that neighbouring ranks of one node share, by which the latency between their cores is measured.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};

use downbeat_sync::{Comm, CommError, MpiComm, MpiError, block_on_ready, collective};
use mpi::ffi::{self, MPI_Aint, MPI_Win};

use crate::link::LinkCell;

/// Memory of one rank.
#[repr(C)]
struct Segment {
    /// Number of this rank in the group.
    rank: LinkCell,
    /// Cell that this rank shares with the next one.
    cell: LinkCell,
}

/// Cells that this rank shares with the next rank of a group, and with the one before, where these are on its node.
///
/// Their window lives until MPI ends: all ranks would have to free it together, and a rank that fails alone would make others wait.
#[derive(Debug)]
pub(super) struct SharedCells {
    /// Cells with the rank before, and with the next one.
    cells: [Option<NonNull<AtomicU64>>; 2],
}

impl SharedCells {
    /// Allocates memory of each rank of `comm`, which all call this.
    pub(super) fn new(comm: &MpiComm) -> Result<Self, CommError> {
        let node = comm.of_node()?;
        // SAFETY: constants.
        let (mut window, no_info) = unsafe { (ffi::RSMPI_WIN_NULL, ffi::RSMPI_INFO_NULL) };
        let mut base = ptr::null_mut::<Segment>();
        // SAFETY: MPI is running, the communicator is valid, and both results can be written to; the ranks of the communicator share
        // memory, and all of them call this.
        let code = unsafe {
            ffi::MPI_Win_allocate_shared(
                2 * size_of::<Segment>() as MPI_Aint,
                1,
                no_info,
                node.raw()?,
                (&raw mut base).cast(),
                &raw mut window,
            )
        };
        MpiError::check("MPI_Win_allocate_shared", code)?;
        let (me, ranks) = (node.rank(), node.size());
        let own = segment(window, me)?;
        // SAFETY: the segment is aligned memory of the window, which other ranks use atomically, too.
        let own_memory = unsafe { own.as_ref() };
        own_memory.cell.0.store(0, Ordering::Relaxed);
        own_memory
            .rank
            .0
            .store(comm.rank().into(), Ordering::Release);
        block_on_ready(collective::barrier(&node))?;
        let cell_with = |neighbour: Option<u32>, distance: i64| -> Result<_, CommError> {
            let Some(neighbour) = neighbour.filter(|rank| *rank < ranks) else {
                return Ok(None);
            };
            let theirs = segment(window, neighbour)?;
            // SAFETY: as above.
            let rank = unsafe { theirs.as_ref() }.rank.0.load(Ordering::Acquire);
            let lower = if distance < 0 { theirs } else { own };
            // SAFETY: as above.
            let cell = NonNull::from(unsafe { &lower.as_ref().cell.0 });
            Ok((rank as i64 - i64::from(comm.rank()) == distance).then_some(cell))
        };
        Ok(Self {
            cells: [
                cell_with(me.checked_sub(1), -1)?,
                cell_with(me.checked_add(1), 1)?,
            ],
        })
    }

    /// Returns the cell of this rank and a neighbour in the group; `None` if that is on another node.
    pub(super) fn cell(&self, with_next: bool) -> Option<&AtomicU64> {
        // SAFETY: the cell is memory of the window, which lives until MPI ends, and is only used atomically.
        self.cells[usize::from(with_next)].map(|cell| unsafe { cell.as_ref() })
    }
}

/// Returns the memory of a rank of the node.
fn segment(window: MPI_Win, rank: u32) -> Result<NonNull<Segment>, CommError> {
    let (mut bytes, mut unit, mut base) = (0, 0, ptr::null_mut::<Segment>());
    // SAFETY: MPI is running, the window is valid, and the results can be written to.
    let code = unsafe {
        ffi::MPI_Win_shared_query(
            window,
            rank as c_int,
            &raw mut bytes,
            &raw mut unit,
            (&raw mut base).cast(),
        )
    };
    MpiError::check("MPI_Win_shared_query", code)?;
    // MPI aligns memory as it likes; there is room for one segment behind any place.
    let base = base.map_addr(|address| address.next_multiple_of(align_of::<Segment>()));
    NonNull::new(base).ok_or(CommError::Left { rank })
}
