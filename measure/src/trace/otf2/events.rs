//! Events of one location, as OTF2 hands them over one by one.
#![expect(unsafe_code, reason = "OTF2 is a C library")]

use core::ffi::{c_int, c_void};
use core::ops::ControlFlow;
use core::ptr::NonNull;

use super::ffi::{self, AttributeList, EvtReaderCallbacks};

/// An event, as far as it may matter to other locations. References are the archive's global ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Enter { region: u32 },
    Leave { region: u32 },
    Send { to: u32, communicator: u32, tag: u32 },
    Receive { from: u32, communicator: u32, tag: u32 },
    CollectiveBegin,
    CollectiveEnd { operation: u8, communicator: u32, root: u32, sent: u64, received: u64 },
    Fork,
    Join,
    TeamBegin { team: u32 },
    TeamEnd { team: u32 },
    Other,
}

/// What takes events and their ticks; it may have enough of them.
pub(super) trait Take: FnMut(u64, Event) -> ControlFlow<()> {}

impl<F: FnMut(u64, Event) -> ControlFlow<()>> Take for F {}

/// Functions that make an [`Event`] of a record, and hand it to a [`Take`], which is OTF2's user data.
macro_rules! callbacks {
    ($($name:ident($($argument:ident: $type:ty),*) => $event:expr;)*) => {$(
        extern "C" fn $name<F: Take>(
            _location: u64, time: u64, _position: u64, take: *mut c_void, _: *mut AttributeList, $($argument: $type),*
        ) -> c_int {
            // SAFETY: `read_events` registers these functions together with an address of an F, which lives and is
            // nobody else's until OTF2 has read all events; OTF2 calls them on the same thread, one at a time.
            let take = unsafe { &mut *take.cast::<F>() };
            match take(time, $event) {
                ControlFlow::Continue(()) => ffi::CALLBACK_SUCCESS,
                ControlFlow::Break(()) => ffi::CALLBACK_INTERRUPT,
            }
        }
    )*};
}

callbacks! {
    enter(region: u32) => Event::Enter { region };
    leave(region: u32) => Event::Leave { region };
    send(to: u32, communicator: u32, tag: u32, _length: u64) => Event::Send { to, communicator, tag };
    isend(to: u32, communicator: u32, tag: u32, _length: u64, _request: u64) => Event::Send { to, communicator, tag };
    receive(from: u32, communicator: u32, tag: u32, _length: u64) => Event::Receive { from, communicator, tag };
    ireceive(from: u32, communicator: u32, tag: u32, _length: u64, _request: u64) => Event::Receive { from, communicator, tag };
    request(_request: u64) => Event::Other;
    collective_begin() => Event::CollectiveBegin;
    collective_end(operation: u8, communicator: u32, root: u32, sent: u64, received: u64) =>
        Event::CollectiveEnd { operation, communicator, root, sent, received };
    icollective_end(_operation: u8, _communicator: u32, _root: u32, _sent: u64, _received: u64, _request: u64) => Event::Other;
    fork(_model: u8, _threads: u32) => Event::Fork;
    join(_model: u8) => Event::Join;
    team_begin(team: u32) => Event::TeamBegin { team };
    team_end(team: u32) => Event::TeamEnd { team };
}

/// Which function takes which record.
#[derive(Debug)]
pub(super) struct Callbacks(NonNull<EvtReaderCallbacks>);

impl Callbacks {
    /// Those that hand events to an `F`; `None` without memory.
    pub(super) fn new<F: Take>() -> Option<Self> {
        // SAFETY: has no conditions.
        let callbacks = Self(NonNull::new(unsafe { ffi::OTF2_EvtReaderCallbacks_New() })?);
        macro_rules! set {
            ($($set:ident $function:ident)*) => {$(
                // SAFETY: these are callbacks, and the function has the arguments that OTF2 has for such records.
                unsafe { ffi::$set(callbacks.0.as_ptr(), $function::<F>) };
            )*};
        }
        set! {
            OTF2_EvtReaderCallbacks_SetEnterCallback enter
            OTF2_EvtReaderCallbacks_SetLeaveCallback leave
            OTF2_EvtReaderCallbacks_SetMpiSendCallback send
            OTF2_EvtReaderCallbacks_SetMpiIsendCallback isend
            OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback request
            OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback request
            OTF2_EvtReaderCallbacks_SetMpiRecvCallback receive
            OTF2_EvtReaderCallbacks_SetMpiIrecvCallback ireceive
            OTF2_EvtReaderCallbacks_SetMpiRequestTestCallback request
            OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback request
            OTF2_EvtReaderCallbacks_SetMpiCollectiveBeginCallback collective_begin
            OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback collective_end
            OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback request
            OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback icollective_end
            OTF2_EvtReaderCallbacks_SetThreadForkCallback fork
            OTF2_EvtReaderCallbacks_SetThreadJoinCallback join
            OTF2_EvtReaderCallbacks_SetThreadTeamBeginCallback team_begin
            OTF2_EvtReaderCallbacks_SetThreadTeamEndCallback team_end
        }
        Some(callbacks)
    }

    pub(super) fn as_ptr(&self) -> *const EvtReaderCallbacks {
        self.0.as_ptr()
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        // SAFETY: OTF2 made them, and nobody else has them: who registers them copies them.
        unsafe { ffi::OTF2_EvtReaderCallbacks_Delete(self.0.as_ptr()) };
    }
}
