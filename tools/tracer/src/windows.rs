//! Windows of one-sided communication, by handle: what their synchronizations depend on. Accesses do not need it.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::communicators;
use crate::constants::{Handle, MODE_NOPRECEDE, MODE_NOSUCCEED};
use crate::pmpi::{self, out};

/// A window.
#[derive(Debug)]
struct Window {
    /// True if members wait for each other when they free it.
    frees_together: bool,
    /// True if the last fence has begun an epoch, which the next one ends.
    is_fenced: bool,
    /// Ranks in the window of the others of open epochs, by [`Epoch`].
    open: [Vec<i32>; 2],
}

/// Epoch that one member and a group have with each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Epoch {
    /// The member accesses memory of the group.
    Access,
    /// The group accesses memory of the member.
    Exposure,
}

static TABLE: LazyLock<Mutex<FxHashMap<Handle, Window>>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, FxHashMap<Handle, Window>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a window that was just made.
pub(crate) fn add(handle: Handle) {
    let window = Window {
        frees_together: !has_no_locks(handle),
        is_fenced: false,
        open: [vec![], vec![]],
    };
    table().insert(handle, window);
}

/// Removes a window, and returns true if its members wait for each other when they free it.
pub(crate) fn remove(handle: Handle) -> bool {
    let window = table().remove(&handle);
    window.is_some_and(|window| window.frees_together)
}

/// Takes note of a fence, and returns true if members wait for each other: it ends an epoch. All members know the same of that.
pub(crate) fn fence(handle: Handle, assertion: i32) -> bool {
    let mut table = table();
    let Some(window) = table.get_mut(&handle) else {
        return false;
    };
    let was_fenced = window.is_fenced;
    window.is_fenced = assertion & MODE_NOSUCCEED == 0;
    was_fenced && assertion & MODE_NOPRECEDE == 0
}

/// Begins an epoch with a group.
pub(crate) fn open(handle: Handle, epoch: Epoch, group: Handle) {
    let ranks = communicators::ranks(group);
    let communicator = communicators::find(handle);
    if let Some(of) = communicator
        && let Some(window) = table().get_mut(&handle)
    {
        let rank_of = |rank: &u32| {
            of.definition
                .members
                .iter()
                .position(|member| member == rank)
        };
        let others = ranks.iter().filter_map(rank_of);
        window.open[epoch as usize] = others.map(|rank| rank as i32).collect();
    }
}

/// Ends an epoch, and returns the ranks of the others in the window.
pub(crate) fn close(handle: Handle, epoch: Epoch) -> Vec<i32> {
    let mut table = table();
    let window = table.get_mut(&handle);
    window.map_or(vec![], |window| {
        core::mem::take(&mut window.open[epoch as usize])
    })
}

/// Returns true if the program has promised not to lock the window: then a member may free it alone.
fn has_no_locks(handle: Handle) -> bool {
    const KEY: &core::ffi::CStr = c"no_locks";
    let (mut info, mut flag, mut value) = (0_usize, 0_i32, [0_u8; 16]);
    // SAFETY: the window was just made.
    if unsafe { pmpi::win_get_info(handle, out(&mut info)) } != 0 {
        return true;
    }
    let (key, length) = (KEY.as_ptr().expose_provenance(), value.len() - 1);
    let to = value.as_mut_ptr().expose_provenance();
    // SAFETY: the value has room for this length and a zero.
    unsafe { pmpi::info_get(info, key, length, to, out(&mut flag)) };
    // SAFETY: it was made for this process.
    unsafe { pmpi::info_free(out(&mut info)) };
    flag != 0 && value.starts_with(b"true")
}
