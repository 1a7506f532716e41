//! The timer of a CUDA device, by a driver without hardware.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use downbeat_clock_core::ClockModel;
use downbeat_timers::device::{CudaError, CudaTimer, DeviceClock, FollowedDevice, RateLimits};
use downbeat_timers::{Clock, Duration, Local, SystemClock, SystemClockId, Ticks, Timestamp};

/// The driver, loaded under the name of the real one, which the timer then finds.
struct Driver(*mut c_void);

impl Driver {
    fn load() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda");
        std::fs::create_dir_all(&folder).unwrap();
        let library = folder.join(format!("libcuda.{}.so", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", "-o"]);
        assert!(
            compiler
                .args([&library, &source])
                .status()
                .unwrap()
                .success()
        );
        let path = CString::new(library.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path is a text, and the library does nothing when it is loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!handle.is_null());
        std::fs::remove_file(library).unwrap();
        Self(handle)
    }

    fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library is loaded, and the name a text.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!symbol.is_null());
        symbol
    }

    fn number(&self, name: &CStr) -> *mut c_int {
        self.symbol(name).cast()
    }

    fn get(&self, name: &CStr) -> c_int {
        // SAFETY: the symbol is a number.
        unsafe { self.number(name).read_volatile() }
    }

    fn behave(&self, behaviour: c_int) {
        // SAFETY: the symbol is a number.
        unsafe { self.number(c"behaviour").write_volatile(behaviour) };
    }

    fn device_time(&self, raw: Ticks) -> Ticks {
        // SAFETY: the symbol is a function of this type.
        let function = unsafe {
            core::mem::transmute::<*mut c_void, extern "C" fn(u64) -> u64>(
                self.symbol(c"device_time"),
            )
        };
        Ticks(function(raw.0))
    }
}

const SILENT: c_int = 1;
const FAILING: c_int = 2;
const NO_KERNEL: c_int = 3;

/// One test, because there is one driver in a process.
#[test]
fn a_device_is_followed_and_its_failures_are_told() {
    let driver = Driver::load();
    let host = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    let time = ClockModel::through(host.ticks(), Timestamp::<Local>::ORIGIN, SystemClock::RATE);
    let time = time.unwrap();
    let mut timer = CudaTimer::open(0).unwrap();
    assert_eq!(timer.step(), 32);
    let [first, second] = [timer.read().unwrap(), timer.read().unwrap()];
    assert!(first < second && first.0.is_multiple_of(32));
    let mut device = FollowedDevice::new(timer, RateLimits::default());
    for _ in 0..20 {
        // By another thread: handles of the driver belong to none.
        device = std::thread::scope(|scope| {
            let session = scope.spawn(|| {
                device.compare(&host, &time, 10).unwrap();
                device
            });
            session.join().unwrap()
        });
    }
    let line = device.line().unwrap();
    let model = line.model().unwrap();
    for later in [Duration::ZERO, Duration::from_secs(1)] {
        let raw = Ticks(host.ticks().0 + later.as_nanos() as u64);
        let shown = model.apply(driver.device_time(raw));
        assert!(
            line.bound.allows(shown, time.apply(raw)),
            "{line:?} {shown}"
        );
    }
    // The timer is fast: time passes by less than it counts.
    let [least, most] = line.drift_limits;
    assert!((least..=most).contains(&-20e-6), "{line:?}");
    assert_eq!((driver.get(c"alive"), driver.get(c"current")), (4, 0));

    driver.behave(SILENT);
    assert_eq!(device.device().read(), Err(CudaError::Silent));
    driver.behave(FAILING);
    let why = device.device().read().unwrap_err().to_string();
    assert_eq!(why, "cuLaunchKernel: unspecified launch failure");
    drop(device);
    assert_eq!((driver.get(c"alive"), driver.get(c"current")), (0, 0));

    for (behaviour, ordinal, reason) in [
        (0, 1, "cuDeviceGet: invalid device ordinal"),
        (0, u32::MAX, "cuDeviceGet: invalid device ordinal"),
        (NO_KERNEL, 0, "cuModuleGetFunction: error 500"),
        (FAILING, 0, "cuLaunchKernel: unspecified launch failure"),
    ] {
        driver.behave(behaviour);
        assert_eq!(CudaTimer::open(ordinal).unwrap_err().to_string(), reason);
        assert_eq!((driver.get(c"alive"), driver.get(c"current")), (0, 0));
    }
}
