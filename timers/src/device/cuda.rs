//! The global timer of a CUDA device.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::fmt;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};

use downbeat_clock_core::{TickRate, Ticks};

use super::DeviceClock;

/// The global timer of a CUDA device (`%globaltimer`), by which CUPTI and kernels stamp.
///
/// The driver is loaded when a timer is opened: programs with this feature run without one. A reading launches a kernel of one
/// thread in a stream of its own, and takes some microseconds; what other streams do delays it, and makes the bound wider, not wrong.
///
/// ```no_run
/// use downbeat_clock_core::ClockModel;
/// use downbeat_timers::device::{CudaTimer, FollowedDevice, RateLimits};
/// use downbeat_timers::{Clock, Local, SystemClock, SystemClockId, Timestamp};
///
/// let host = SystemClock::detect(SystemClockId::MonotonicRaw)?;
/// let time = ClockModel::through(host.ticks(), Timestamp::<Local>::ORIGIN, SystemClock::RATE)?;
/// let mut device = FollowedDevice::new(CudaTimer::open(0)?, RateLimits::default());
/// let line = device.compare(&host, &time, 20)?;
/// println!("the device is certain to {}", line.bound.half_width());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CudaTimer {
    driver: Driver,
    device: c_int,
    /// Primary context of the device, which the program shares.
    context: Handle,
    stream: Handle,
    module: Handle,
    kernel: Handle,
    /// Memory of the host that the kernel writes, and its address on the device.
    place: Option<NonNull<AtomicU64>>,
    device_place: u64,
    step: u64,
}

/// Reason why the timer of a CUDA device cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CudaError {
    /// The library of the driver cannot be loaded.
    NoDriver(String),
    /// The driver lacks a function.
    Missing(&'static str),
    /// A function of the driver failed.
    Call {
        /// Its name.
        name: &'static str,
        /// Reason, as the driver tells it.
        why: String,
    },
    /// The kernel ended without a reading.
    Silent,
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver(why) => write!(f, "the CUDA driver cannot be loaded: {why}"),
            Self::Missing(name) => write!(f, "the CUDA driver has no {name}"),
            Self::Call { name, why } => write!(f, "{name}: {why}"),
            Self::Silent => f.write_str("the kernel ended without a reading"),
        }
    }
}

impl core::error::Error for CudaError {}

type Handle = *mut c_void;

const SUCCESS: c_int = 0;
const NOT_READY: c_int = 600;
/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the default one.
const NON_BLOCKING: c_uint = 1;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
const MAPPED: c_uint = 1 | 2;

/// Kernels, translated by the driver for its devices.
const KERNELS: &str = concat!(include_str!("global_timer.ptx"), "\0");

/// Number of looks at the memory between two questions whether the kernel has failed.
const LOOKS: u32 = 10_000;

macro_rules! driver {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// Functions of the driver.
        #[derive(Clone, Copy, Debug)]
        struct Driver {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Driver {
            fn load() -> Result<Self, CudaError> {
                // SAFETY: the name is a text. The library of the driver may be loaded at any time.
                let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
                if library.is_null() {
                    return Err(CudaError::NoDriver(loading_error()));
                }
                Ok(Self {
                    $($name: {
                        const SYMBOL: &CStr = $symbol;
                        // SAFETY: the library is loaded, and stays so.
                        let function = unsafe { libc::dlsym(library, SYMBOL.as_ptr()) };
                        if function.is_null() {
                            return Err(CudaError::Missing(name_of(SYMBOL)));
                        }
                        // SAFETY: the function of this name has this type.
                        unsafe {
                            core::mem::transmute::<Handle, unsafe extern "C" fn($($argument),*) -> c_int>(function)
                        }
                    },)*
                })
            }
        }
    };
}

driver! {
    init = c"cuInit" (c_uint);
    error_text = c"cuGetErrorString" (c_int, *mut *const c_char);
    device = c"cuDeviceGet" (*mut c_int, c_int);
    retain = c"cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    release = c"cuDevicePrimaryCtxRelease" (c_int);
    push = c"cuCtxPushCurrent_v2" (Handle);
    pop = c"cuCtxPopCurrent_v2" (*mut Handle);
    create_stream = c"cuStreamCreate" (*mut Handle, c_uint);
    destroy_stream = c"cuStreamDestroy_v2" (Handle);
    query_stream = c"cuStreamQuery" (Handle);
    wait_for_stream = c"cuStreamSynchronize" (Handle);
    load_module = c"cuModuleLoadData" (*mut Handle, *const c_void);
    unload_module = c"cuModuleUnload" (Handle);
    function = c"cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    allocate = c"cuMemHostAlloc" (*mut Handle, usize, c_uint);
    free = c"cuMemFreeHost" (Handle);
    on_device = c"cuMemHostGetDevicePointer_v2" (*mut u64, Handle, c_uint);
    launch = c"cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
}

/// Returns the name of a function; they are ASCII.
fn name_of(symbol: &'static CStr) -> &'static str {
    symbol.to_str().unwrap_or_default()
}

fn loading_error() -> String {
    // SAFETY: the call has no requirements.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown reason".to_owned();
    }
    // SAFETY: it is a text, valid until the next call.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

impl Driver {
    /// Turns a status other than success into an error.
    fn check(&self, name: &'static str, status: c_int) -> Result<(), CudaError> {
        if status == SUCCESS {
            return Ok(());
        }
        let mut text = core::ptr::null();
        // SAFETY: there is a place for the text.
        let told = unsafe { (self.error_text)(status, &raw mut text) };
        let why = if told == SUCCESS && !text.is_null() {
            // SAFETY: it is a text, valid for ever.
            let text = unsafe { CStr::from_ptr(text) };
            text.to_string_lossy().into_owned()
        } else {
            format!("error {status}")
        };
        Err(CudaError::Call { name, why })
    }
}

impl CudaTimer {
    /// Opens the timer of a device, counted from 0 among those that are visible. Translates the kernels for it, and finds the step of the
    /// timer.
    ///
    /// # Errors
    /// If there is no driver or no such device, or if it cannot run the kernels.
    pub fn open(ordinal: u32) -> Result<Self, CudaError> {
        let driver = Driver::load()?;
        // SAFETY: the flags must be 0.
        driver.check("cuInit", unsafe { (driver.init)(0) })?;
        let mut device = 0;
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: there is a place for the device.
        let found = unsafe { (driver.device)(&raw mut device, ordinal) };
        driver.check("cuDeviceGet", found)?;
        let mut context = null_mut();
        // SAFETY: there is a place for the context.
        let retained = unsafe { (driver.retain)(&raw mut context, device) };
        driver.check("cuDevicePrimaryCtxRetain", retained)?;
        // What is made from here on is given back where this fails.
        let mut timer = Self {
            driver,
            device,
            context,
            stream: null_mut(),
            module: null_mut(),
            kernel: null_mut(),
            place: None,
            device_place: 0,
            step: 1,
        };
        timer.in_context(Self::prepare)?;
        Ok(timer)
    }

    /// Does something while the context of the device is that of the thread.
    fn in_context<R>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<R, CudaError>,
    ) -> Result<R, CudaError> {
        let driver = self.driver;
        // SAFETY: the context was retained.
        driver.check("cuCtxPushCurrent", unsafe { (driver.push)(self.context) })?;
        let result = act(self);
        let mut popped = null_mut();
        // SAFETY: the context was pushed.
        let status = unsafe { (driver.pop)(&raw mut popped) };
        result.and_then(|result| driver.check("cuCtxPopCurrent", status).map(|()| result))
    }

    fn prepare(&mut self) -> Result<(), CudaError> {
        let driver = self.driver;
        // SAFETY: there is a place for the stream.
        let status = unsafe { (driver.create_stream)(&raw mut self.stream, NON_BLOCKING) };
        driver.check("cuStreamCreate", status)?;
        // SAFETY: the kernels are a text that ends with NUL.
        let status = unsafe { (driver.load_module)(&raw mut self.module, KERNELS.as_ptr().cast()) };
        driver.check("cuModuleLoadData", status)?;
        let mut place = null_mut();
        // SAFETY: there is a place for the address.
        let status = unsafe { (driver.allocate)(&raw mut place, size_of::<u64>(), MAPPED) };
        driver.check("cuMemHostAlloc", status)?;
        self.place = NonNull::new(place.cast());
        // SAFETY: the memory was allocated so that devices see it.
        let status = unsafe { (driver.on_device)(&raw mut self.device_place, place, 0) };
        driver.check("cuMemHostGetDevicePointer", status)?;
        self.kernel = self.function(c"find_step")?;
        self.step = self.stored()?.max(1);
        self.kernel = self.function(c"read_timer")?;
        Ok(())
    }

    fn function(&self, name: &CStr) -> Result<Handle, CudaError> {
        let mut function = null_mut();
        // SAFETY: the module is loaded, and the name a text.
        let status =
            unsafe { (self.driver.function)(&raw mut function, self.module, name.as_ptr()) };
        self.driver.check("cuModuleGetFunction", status)?;
        Ok(function)
    }

    /// Runs the kernel, and returns what it stores, which is never 0.
    fn stored(&mut self) -> Result<u64, CudaError> {
        let driver = self.driver;
        let place = self.place.ok_or(CudaError::Silent)?;
        // SAFETY: the memory is allocated until the timer is dropped, aligned, and written atomically by a kernel.
        let place = unsafe { place.as_ref() };
        place.store(0, Ordering::SeqCst);
        let mut arguments = [(&raw mut self.device_place).cast::<c_void>()];
        // SAFETY: the kernel takes one address of memory that it may write.
        let launched = unsafe {
            (driver.launch)(
                self.kernel,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                self.stream,
                arguments.as_mut_ptr(),
                null_mut(),
            )
        };
        driver.check("cuLaunchKernel", launched)?;
        loop {
            for _ in 0..LOOKS {
                let stored = place.load(Ordering::Acquire);
                if stored != 0 {
                    return Ok(stored);
                }
                core::hint::spin_loop();
            }
            // SAFETY: the stream exists.
            match unsafe { (driver.query_stream)(self.stream) } {
                NOT_READY => {}
                SUCCESS if place.load(Ordering::Acquire) == 0 => return Err(CudaError::Silent),
                SUCCESS => {}
                failed => driver.check("cuLaunchKernel", failed)?,
            }
        }
    }
}

impl DeviceClock for CudaTimer {
    type Error = CudaError;

    fn rate(&self) -> TickRate {
        TickRate::NANOSECOND
    }

    /// The smallest step that was seen: 32 ns or a microsecond, depending on the device.
    fn step(&self) -> u64 {
        self.step
    }

    fn read(&mut self) -> Result<Ticks, CudaError> {
        self.in_context(Self::stored).map(Ticks)
    }
}

impl Drop for CudaTimer {
    fn drop(&mut self) {
        // Nothing can be done about failures: mostly the driver has ended before the program.
        let _ = self.in_context(|timer| {
            let driver = timer.driver;
            if !timer.stream.is_null() {
                // SAFETY: the stream exists; then no kernel writes the memory any more.
                unsafe { (driver.wait_for_stream)(timer.stream) };
                // SAFETY: as above.
                unsafe { (driver.destroy_stream)(timer.stream) };
            }
            if let Some(place) = timer.place {
                // SAFETY: the memory was allocated.
                unsafe { (driver.free)(place.as_ptr().cast()) };
            }
            if !timer.module.is_null() {
                // SAFETY: the module was loaded.
                unsafe { (driver.unload_module)(timer.module) };
            }
            Ok(())
        });
        // SAFETY: the context was retained.
        unsafe { (self.driver.release)(self.device) };
    }
}

// SAFETY: handles of the driver may be used by any thread, one after the other, which makes the context its own first.
unsafe impl Send for CudaTimer {}
