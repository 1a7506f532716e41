//! Synchronization primitives of the standard library, or of loom in its tests.

#[cfg(downbeat_loom)]
pub(super) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize},
};

#[cfg(not(downbeat_loom))]
pub(super) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize},
};
