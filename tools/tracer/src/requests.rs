//! Requests that are under way, by handle.
//!
//! A library uses handles again at once, also in another thread: an entry is looked up before the call that may complete its request,
//! while the handle cannot belong to another, and is removed afterwards only if it is still the same.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use downbeat_recording::{Envelope, Operation};
use rustc_hash::FxHashMap;

use crate::constants::Handle;
use crate::exchanges::ExchangeKey;

/// A request that matters when it completes or starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) what: Pending,
    /// Id in records; that of a persistent request changes with each start.
    pub(crate) id: u64,
    pub(crate) is_persistent: bool,
    pub(crate) is_active: bool,
    pub(crate) is_cancelled: bool,
}

/// Operation of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    /// Send, which only matters when it starts; `None` to nobody.
    Send(Option<Envelope>),
    /// Receive; `None` from nobody.
    Receive(Option<Wanted>),
    /// Collective operation.
    Collective(Operation),
    /// One-sided access, by window and target.
    Access(u32, i32),
    /// Messages with neighbors.
    Exchange(ExchangeKey),
}

impl Pending {
    /// Number of ids that a request takes when it starts.
    pub(crate) const fn ids(&self) -> u64 {
        match self {
            Self::Exchange(exchange) => exchange.receives as u64,
            _ => 1,
        }
    }
}

/// Message that a receive waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) communicator: u32,
    pub(crate) source: i32,
    pub(crate) tag: i32,
    /// False if the library does not fill the status.
    pub(crate) has_status: bool,
}

/// A request of a list that may be complete after a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    /// Index in the list.
    pub(crate) index: usize,
    pub(crate) handle: Handle,
    pub(crate) request: Request,
}

const SHARDS: usize = 64;

static TABLE: LazyLock<[Mutex<FxHashMap<Handle, Request>>; SHARDS]> =
    LazyLock::new(|| core::array::from_fn(|_| Mutex::default()));

fn shard(handle: Handle) -> MutexGuard<'static, FxHashMap<Handle, Request>> {
    // Handles are addresses or small numbers.
    let index = (handle ^ handle >> 6 ^ handle >> 12) % SHARDS;
    TABLE[index].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a request, in place of an earlier one with the same handle.
pub(crate) fn add(handle: Handle, request: Request) {
    shard(handle).insert(handle, request);
}

/// Finds a request.
pub(crate) fn find(handle: Handle) -> Option<Request> {
    shard(handle).get(&handle).copied()
}

/// Changes a request, and returns what it is then.
pub(crate) fn change(handle: Handle, f: impl FnOnce(&mut Request)) -> Option<Request> {
    let mut shard = shard(handle);
    let request = shard.get_mut(&handle)?;
    f(request);
    Some(*request)
}

/// Ends a request that is complete: a persistent one becomes inactive.
pub(crate) fn end(handle: Handle, id: u64) {
    let mut shard = shard(handle);
    if let Some(request) = shard.get_mut(&handle)
        && request.id == id
    {
        if request.is_persistent {
            request.is_active = false;
        } else {
            shard.remove(&handle);
        }
    }
}

/// Removes a request.
pub(crate) fn remove(handle: Handle) -> Option<Request> {
    shard(handle).remove(&handle)
}

impl Request {
    /// A request that is under way at once.
    pub(crate) const fn active(what: Pending, id: u64) -> Self {
        Self {
            what,
            id,
            is_persistent: false,
            is_active: true,
            is_cancelled: false,
        }
    }

    /// A request that is started later, any number of times.
    pub(crate) const fn persistent(what: Pending) -> Self {
        Self {
            what,
            id: 0,
            is_persistent: true,
            is_active: false,
            is_cancelled: false,
        }
    }
}
