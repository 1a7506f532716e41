//! Memory for messages that a plug-in provides.
#![expect(unsafe_code, reason = "plug-ins are written in C")]

use core::ffi::c_void;
use core::fmt;
use std::rc::Rc;

use super::abi::BuffersTable;
use super::crash::{CrashHandlers, CrashPlace};
use super::error::PlugInError;
use super::library::{self, LoadedTable, PlugInName};
use crate::aligned::Alignment;

/// Memory of a kind of its own, as that of a device, by functions of a plug-in.
#[derive(Clone)]
pub struct BufferHook(Rc<LoadedHook>);

struct LoadedHook {
    name: PlugInName,
    table: BuffersTable,
    place: *const BuffersTable,
    allocate: Box<CrashPlace>,
    copy: Box<CrashPlace>,
    free: Box<CrashPlace>,
    _handlers: CrashHandlers,
}

impl fmt::Debug for BufferHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BufferHook").field(&self.0.name).finish()
    }
}

impl BufferHook {
    /// Loads the functions. The library stays loaded. Crashes are reported as for [`PlugIn::load`](super::PlugIn::load).
    ///
    /// # Errors
    /// If there is no such library or table, or if it is for another version of this interface or another MPI library.
    pub fn load(name: &PlugInName, crash_prefix: &str) -> Result<Self, PlugInError> {
        let LoadedTable { table, place, .. } = library::load::<BuffersTable>(name, crash_prefix)?;
        let described = name.described(crash_prefix);
        let crash_place = |function| CrashPlace::new(&described, function);
        Ok(Self(Rc::new(LoadedHook {
            name: name.clone(),
            table,
            place,
            allocate: crash_place("allocate"),
            copy: crash_place("copy"),
            free: crash_place("free"),
            _handlers: CrashHandlers::install(),
        })))
    }

    /// Returns the name.
    pub fn name(&self) -> &PlugInName {
        &self.0.name
    }

    /// Returns the table for another plug-in.
    pub(super) fn table(&self) -> *const BuffersTable {
        self.0.place
    }

    /// Allocates memory.
    pub(in crate::mpi) fn allocate(
        &self,
        bytes: usize,
        alignment: Alignment,
    ) -> Result<HookedMemory, PlugInError> {
        let hook = &self.0;
        // A size of 0 could return NULL.
        let wanted = bytes.max(1);
        let memory = hook
            .table
            .allocate
            .map_or(core::ptr::null_mut(), |allocate| {
                // SAFETY: the interface; the alignment is a power of two.
                hook.allocate
                    .inside(|| unsafe { allocate(wanted, alignment.bytes()) })
            });
        if memory.is_null() {
            let message = format!("{} has no memory for {bytes} bytes", hook.name);
            return Err(PlugInError::Failed {
                function: "allocate",
                code: -1,
                message,
            });
        }
        Ok(HookedMemory {
            hook: self.clone(),
            memory,
            bytes,
        })
    }
}

/// Memory of a [`BufferHook`].
#[derive(Debug)]
pub(in crate::mpi) struct HookedMemory {
    hook: BufferHook,
    memory: *mut c_void,
    bytes: usize,
}

impl HookedMemory {
    /// Returns the address of the byte at an offset, which programs on the host may not be able to read.
    pub(in crate::mpi) fn address(&self, offset: usize) -> *mut c_void {
        self.memory.wrapping_byte_add(offset)
    }

    /// Copies all bytes to the memory.
    pub(in crate::mpi) fn write(&mut self, from: &[u8]) -> Result<(), PlugInError> {
        let bytes = self.bytes.min(from.len());
        self.copy(self.memory, from.as_ptr().cast(), bytes)
    }

    /// Copies all bytes from the memory.
    pub(in crate::mpi) fn read(&self, to: &mut [u8]) -> Result<(), PlugInError> {
        let bytes = self.bytes.min(to.len());
        self.copy(to.as_mut_ptr().cast(), self.memory, bytes)
    }

    /// Copies between this memory and a slice, both of which have that many bytes.
    fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize) -> Result<(), PlugInError> {
        let hook = &self.hook.0;
        let code = hook.table.copy.map_or(-1, |copy| {
            // SAFETY: the interface: both have that many bytes, and do not overlap.
            hook.copy.inside(|| unsafe { copy(to, from, bytes) })
        });
        match code {
            0 => Ok(()),
            code => Err(PlugInError::Failed {
                function: "copy",
                code,
                message: format!("{} returned {code}", hook.name),
            }),
        }
    }
}

impl Drop for HookedMemory {
    fn drop(&mut self) {
        let hook = &self.hook.0;
        if let Some(free) = hook.table.free {
            // SAFETY: it was allocated by the same table, and is not used after this.
            hook.free.inside(|| unsafe { free(self.memory) });
        }
    }
}
