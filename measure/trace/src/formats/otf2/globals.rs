//! Callbacks for global definitions, which OTF2 calls record by record.
#![expect(unsafe_code, reason = "OTF2 is a C library")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::NonNull;

use super::definitions::{
    DOMAIN_SHARED_MEMORY, GROUP_COMM_LOCATIONS, GROUP_GLOBAL_MEMBERS, Otf2Communicator,
    Otf2Definitions, Otf2Group, Otf2Location, Otf2Node, Otf2Process,
};
use super::ffi::{self, GlobalDefReaderCallbacks};

/// Defines callbacks that add a record to the [`Otf2Definitions`], which are OTF2's user data.
macro_rules! callbacks {
    ($($name:ident($to:ident, $($argument:ident: $type:ty),*) $add:block)*) => {$(
        extern "C" fn $name($to: *mut c_void, $($argument: $type),*) -> c_int {
            // SAFETY: `ArchiveReader::definitions` registers these functions with a pointer to
            // definitions that live and are not used otherwise until OTF2 has read all; OTF2 calls
            // them on the same thread, one at a time.
            let $to = unsafe { &mut *$to.cast::<Otf2Definitions>() };
            $add
            ffi::CALLBACK_SUCCESS
        }
    )*};
}

callbacks! {
    clock(to, resolution: u64, _global_offset: u64, _length: u64, _realtime: u64) {
        to.resolution = resolution;
    }
    string(to, string: u32, text: *const c_char) {
        if !text.is_null() {
            // SAFETY: OTF2 passes strings that end with a zero byte and live until the call
            // returns.
            let text = unsafe { CStr::from_ptr(text) };
            to.strings.insert(string, text.to_string_lossy().into_owned());
        }
    }
    node(to, node: u32, _name: u32, class: u32, parent: u32) {
        to.nodes.insert(node, Otf2Node { class, parent, shares_memory: false });
    }
    domain(to, node: u32, domain: u8) {
        if let Some(node) = to.nodes.get_mut(&node) {
            node.shares_memory |= domain == DOMAIN_SHARED_MEMORY;
        }
    }
    process(to, process: u32, _name: u32, _kind: u8, node: u32, _creator: u32) {
        to.processes.insert(process, Otf2Process { node });
    }
    location(to, location: u64, name: u32, _kind: u8, events: u64, process: u32) {
        to.locations.push(Otf2Location { id: location, name, events, process });
    }
    region(
        to, region: u32, name: u32, _canonical: u32, _description: u32, role: u8, paradigm: u8, _flags: u32, _file: u32,
        _begin: u32, _end: u32
    ) {
        to.add_region(region, name, role, paradigm);
    }
    group(to, group: u32, _name: u32, kind: u8, paradigm: u8, flags: u32, count: u32, members: *const u64) {
        let members = match NonNull::new(members.cast_mut()) {
            // SAFETY: OTF2 passes this number of members, which live until the call returns.
            Some(members) => unsafe { core::slice::from_raw_parts(members.as_ptr(), count as usize) },
            None => &[],
        };
        let of_locations = kind == GROUP_COMM_LOCATIONS || flags & GROUP_GLOBAL_MEMBERS != 0;
        to.groups.insert(group, Otf2Group { kind, paradigm, of_locations, members: members.to_vec() });
    }
    communicator(to, communicator: u32, _name: u32, group: u32, _parent: u32, _flags: u32) {
        to.communicators.insert(communicator, Otf2Communicator::Within(group));
    }
    intercommunicator(to, communicator: u32, _name: u32, group: u32, other: u32, _common: u32, _flags: u32) {
        to.communicators.insert(communicator, Otf2Communicator::Between([group, other]));
    }
}

/// Callbacks by kind of record.
#[derive(Debug)]
pub(super) struct Callbacks(NonNull<GlobalDefReaderCallbacks>);

impl Callbacks {
    /// Creates the callbacks that add to definitions; `None` if memory is exhausted.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: has no preconditions.
        let callbacks = Self(NonNull::new(unsafe {
            ffi::OTF2_GlobalDefReaderCallbacks_New()
        })?);
        macro_rules! set {
            ($($set:ident $function:ident)*) => {$(
                // SAFETY: the callbacks are valid, and the function has the arguments that OTF2
                // passes for these records.
                unsafe { ffi::$set(callbacks.0.as_ptr(), $function) };
            )*};
        }
        set! {
            OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback clock
            OTF2_GlobalDefReaderCallbacks_SetStringCallback string
            OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback node
            OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeDomainCallback domain
            OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback process
            OTF2_GlobalDefReaderCallbacks_SetLocationCallback location
            OTF2_GlobalDefReaderCallbacks_SetRegionCallback region
            OTF2_GlobalDefReaderCallbacks_SetGroupCallback group
            OTF2_GlobalDefReaderCallbacks_SetCommCallback communicator
            OTF2_GlobalDefReaderCallbacks_SetInterCommCallback intercommunicator
        }
        Some(callbacks)
    }

    pub(super) fn as_ptr(&self) -> *const GlobalDefReaderCallbacks {
        self.0.as_ptr()
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        // SAFETY: created by OTF2 and owned here; registering them makes a copy.
        unsafe { ffi::OTF2_GlobalDefReaderCallbacks_Delete(self.0.as_ptr()) };
    }
}
