//! The error of clocks that cannot be used.

use core::fmt;

/// Reason why a clock cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockUnavailable {
    /// The time stamp counter needs an x86 processor.
    NotX86,
    /// The processor has no time stamp counter.
    NoCounter,
    /// The processor has no `rdtscp`, so a reading cannot be ordered cheaply.
    NoRdtscp,
    /// The processor does not guarantee that the counter has the same rate in all power states.
    NotInvariant,
    /// Reading the counter is disabled for this process and would kill it.
    Trapped,
    /// The generic timer needs an aarch64 processor.
    NotAarch64,
    /// The firmware states no frequency of the generic timer.
    NoFrequency,
    /// The system has no clock of this name.
    #[cfg(feature = "std")]
    NotOnThisSystem(&'static str),
    /// The system refuses to read a clock.
    #[cfg(feature = "std")]
    Refused {
        /// Name of the clock.
        clock: &'static str,
        /// Error number of the system.
        errno: i32,
    },
}

impl fmt::Display for ClockUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotX86 => "this is not an x86 processor",
            Self::NoCounter => "the processor has no time stamp counter",
            Self::NoRdtscp => "the processor has no rdtscp instruction",
            Self::NotInvariant => {
                "the processor does not guarantee an invariant counter (CPUID 80000007h EDX bit 8)"
            }
            Self::Trapped => "reading the counter is disabled for this process (PR_SET_TSC)",
            Self::NotAarch64 => "this is not an aarch64 processor",
            Self::NoFrequency => "the firmware states no frequency (CNTFRQ_EL0 is 0)",
            #[cfg(feature = "std")]
            Self::NotOnThisSystem(clock) => return write!(f, "this system has no {clock}"),
            #[cfg(feature = "std")]
            Self::Refused { clock, errno } => {
                let why = std::io::Error::from_raw_os_error(*errno);
                return write!(f, "the system refuses to read {clock}: {why}");
            }
        })
    }
}

impl core::error::Error for ClockUnavailable {}
