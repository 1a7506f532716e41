//! Objects that programs hold.

use downbeat::regions::Region;
use downbeat::{AnyClock, Global, GlobalClock};
use downbeat_clock_core::PublishedModel;

use crate::handle::Handle;
use crate::tracer::TracedRegion;

/// A clock: local, or global after a synchronization.
#[derive(Debug)]
#[repr(transparent)]
pub struct ClockHandle(pub(crate) Handle<GlobalClock<AnyClock>>);

/// The model of a clock, which is read in place.
#[derive(Debug)]
#[repr(transparent)]
pub struct Model(PublishedModel<Global>);

/// The ranks of a communicator that share a clock: address of a handle.
#[cfg(feature = "mpi")]
#[derive(Debug)]
#[repr(C)]
pub struct TeamHandle {
    handle: [u8; 0],
}

/// A timer of the regions with one name.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TimerHandle {
    pub(crate) mark: u64,
    pub(crate) region: Region,
    pub(crate) traced: Option<TracedRegion>,
}
