//! The page that Linux shares with users of performance counters, and its log.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::ptr;

/// Start of `struct perf_event_attr`: its first published version.
#[repr(C)]
struct PerformanceEvent {
    kind: u32,
    size: u32,
    config: u64,
    sampling: [u64; 3],
    flags: u64,
    rest: [u64; 2],
}

/// Beginning of `struct perf_event_mmap_page`.
#[repr(C)]
struct PerformancePage {
    versions: [u32; 4],
    times: [u64; 3],
    capabilities: u64,
    width: u16,
    time_shift: u16,
    time_mult: u32,
}

impl PerformancePage {
    /// Returns the frequency, if the page states how to convert the counter.
    fn hz(&self) -> Option<f64> {
        const USER_TIME: u64 = 1 << 3;
        let stated = self.capabilities & USER_TIME != 0 && self.time_mult != 0;
        // Nanoseconds are `(ticks * mult) >> shift`.
        stated.then(|| 1e9 * 2f64.powi(self.time_shift.into()) / f64::from(self.time_mult))
    }
}

/// Reads how the kernel converts the counter from the page of an event that counts nothing.
pub(super) fn of_performance_page() -> Option<f64> {
    const SOFTWARE: u32 = 1;
    const DUMMY: u64 = 9;
    const DISABLED: u64 = 1;
    const NOT_KERNEL: u64 = 1 << 5;
    const NOT_HYPERVISOR: u64 = 1 << 6;
    let event = PerformanceEvent {
        kind: SOFTWARE,
        size: size_of::<PerformanceEvent>() as u32,
        config: DUMMY,
        sampling: [0; 3],
        flags: DISABLED | NOT_KERNEL | NOT_HYPERVISOR,
        rest: [0; 2],
    };
    let (this_process, any_core, no_group) = (0, -1, -1);
    // SAFETY: the structure states its size and outlives the call, which only reads it.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const event,
            this_process,
            any_core,
            no_group,
            0,
        )
    };
    let descriptor = i32::try_from(opened).ok().filter(|opened| *opened >= 0)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let length = size_of::<PerformancePage>();
    // SAFETY: a new mapping, of which nothing else knows.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            owned.as_raw_fd(),
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is at least one page long and aligned to it; the kernel wrote these fields when it was made. All values
    // of integers are valid.
    let found = unsafe { ptr::read_volatile(page.cast::<PerformancePage>()) };
    // SAFETY: the mapping of above, to which no reference exists.
    unsafe { libc::munmap(page, length) };
    found.hz()
}

/// Reads the messages of the kernel's start.
pub(super) fn of_log() -> Option<f64> {
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg");
    let mut log = opened.ok()?;
    let (mut found, mut record) = (None, [0; 8192]);
    // Each call reads one record; at the end there is none to read.
    loop {
        match log.read(&mut record) {
            Ok(0) => return found,
            Ok(length) => found = logged_hz(&String::from_utf8_lossy(&record[..length])).or(found),
            // Records that were overwritten meanwhile.
            Err(why) if why.kind() == ErrorKind::BrokenPipe => (),
            Err(_) => return found,
        }
    }
}

/// Returns the frequency that a message states. The kernel refines what it detected at first some seconds later.
fn logged_hz(record: &str) -> Option<f64> {
    let (_, message) = record.split_once(';')?;
    let stated = message
        .strip_prefix("tsc: Detected ")
        .or_else(|| message.strip_prefix("tsc: Refined TSC clocksource calibration: "))?;
    let (number, _) = stated.split_once(" MHz")?;
    let mhz: f64 = number.parse().ok()?;
    (mhz.is_finite() && mhz > 0.0).then_some(mhz * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_states_the_rate_if_its_capabilities_say_so() {
        let mut page = PerformancePage {
            versions: [0; 4],
            times: [0; 3],
            capabilities: 1 << 3,
            width: 48,
            time_shift: 31,
            time_mult: 1 << 30,
        };
        assert_eq!(page.hz(), Some(2e9));
        page.time_mult = 0;
        assert_eq!(page.hz(), None);
        (page.time_mult, page.capabilities) = (1 << 30, 1 << 1);
        assert_eq!(page.hz(), None);
    }

    /// The kernel's documentation states the offsets.
    #[test]
    fn fields_are_where_the_kernel_has_them() {
        assert_eq!(size_of::<PerformanceEvent>(), 64);
        assert_eq!(std::mem::offset_of!(PerformanceEvent, flags), 40);
        assert_eq!(std::mem::offset_of!(PerformancePage, capabilities), 40);
        assert_eq!(std::mem::offset_of!(PerformancePage, time_shift), 50);
        assert_eq!(std::mem::offset_of!(PerformancePage, time_mult), 52);
    }

    #[test]
    fn the_log_states_the_rate() {
        let of = |message: &str| logged_hz(&format!("6,2,0,-;{message}\n"));
        assert_eq!(
            of("tsc: Detected 2596.134 MHz processor"),
            Some(2_596.134e6)
        );
        assert_eq!(
            of("tsc: Refined TSC clocksource calibration: 2599.998 MHz"),
            Some(2_599.998e6)
        );
        assert_eq!(of("tsc: Detected NaN MHz processor"), None);
        assert_eq!(of("tsc: Fast TSC calibration failed"), None);
        assert_eq!(logged_hz("no record"), None);
    }
}
