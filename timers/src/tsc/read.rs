//! The counter instructions.

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod x86 {
    use core::arch::asm;

    /// Proof that the counter can be read; created only by detection.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::tsc) struct TscAccess(());

    impl TscAccess {
        /// Creates the proof without a check.
        ///
        /// # Safety
        /// The processor has `rdtsc` and `rdtscp`, and neither traps.
        pub(in crate::tsc) unsafe fn assume() -> Self {
            Self(())
        }

        /// `rdtsc`: unordered.
        #[inline(always)]
        pub(in crate::tsc) fn unordered(self) -> u64 {
            let (low, high): (u32, u32);
            // SAFETY: the instruction exists, does not trap, and writes only eax and edx.
            unsafe {
                asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
            };
            u64::from(high) << 32 | u64::from(low)
        }

        /// `rdtscp`: waits for all earlier instructions. Also returns TSC_AUX, which the kernel sets to the core.
        #[inline(always)]
        pub(in crate::tsc) fn ordered(self) -> (u64, u32) {
            let (low, high, aux): (u32, u32, u32);
            // Not `nomem` here and below: the compiler must not move memory accesses across an ordered read either.
            // SAFETY: the instruction exists, does not trap, and writes only eax, edx and ecx.
            unsafe {
                asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") aux, options(nostack, preserves_flags));
            }
            (u64::from(high) << 32 | u64::from(low), aux)
        }

        /// `lfence; rdtsc; lfence`: earlier instructions are complete, later ones have not started.
        #[inline(always)]
        pub(in crate::tsc) fn open(self) -> u64 {
            let (low, high): (u32, u32);
            // SAFETY: as for `unordered`; lfence writes nothing.
            unsafe {
                asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high, options(nostack, preserves_flags));
            }
            u64::from(high) << 32 | u64::from(low)
        }

        /// `rdtscp; lfence`: earlier instructions are complete, later ones have not started.
        #[inline(always)]
        pub(in crate::tsc) fn close(self) -> u64 {
            let (low, high): (u32, u32);
            // SAFETY: as for `ordered`; lfence writes nothing.
            unsafe {
                asm!("rdtscp", "lfence", out("eax") low, out("edx") high, out("ecx") _, options(nostack, preserves_flags));
            }
            u64::from(high) << 32 | u64::from(low)
        }
    }
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
mod elsewhere {
    /// Has no values, because the counter does not exist on this architecture.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::tsc) enum TscAccess {}

    impl TscAccess {
        pub(in crate::tsc) fn unordered(self) -> u64 {
            match self {}
        }
        pub(in crate::tsc) fn ordered(self) -> (u64, u32) {
            match self {}
        }
        pub(in crate::tsc) fn open(self) -> u64 {
            match self {}
        }
        pub(in crate::tsc) fn close(self) -> u64 {
            match self {}
        }
    }
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub(super) use elsewhere::TscAccess;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) use x86::TscAccess;
