//! Links only if no crate that it names, nor any crate below those, needs std: then its panic handler is the only one.
//! It is never run.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use downbeat_clock_core::region::{RegionTimer, TickScale};
use downbeat_clock_core::{ClockModel, Global, ModelClock, TickRate, Ticks, Timestamp};
use downbeat_timers::TscClock;
#[cfg(feature = "with_std")]
use needs_std as _;

/// Entry point of the program; calls into the crates, so that the linker includes their code.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let model = ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND);
    if let (Ok(clock), Ok(model)) = (TscClock::detect(), model) {
        let clock = ModelClock::<_, Global>::new(clock, model);
        clock.wait_until(clock.now());
        let timer = RegionTimer::new(clock.clock(), TickScale::NANOSECONDS);
        drop(timer.enter());
        if timer.statistics().events == 0 {
            let _ = timer.start();
        }
    }
    stop()
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    stop()
}

fn stop() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Functions that the precompiled `core` requires of the program: these and nothing else, so that any other function of a
/// C library stays undefined and fails the link.
mod expected_by_core {
    #[unsafe(no_mangle)]
    extern "C" fn rust_eh_personality() {}

    #[unsafe(no_mangle)]
    extern "C" fn memcpy(to: *mut u8, _from: *const u8, _bytes: usize) -> *mut u8 {
        to
    }

    #[unsafe(no_mangle)]
    extern "C" fn memmove(to: *mut u8, _from: *const u8, _bytes: usize) -> *mut u8 {
        to
    }

    #[unsafe(no_mangle)]
    extern "C" fn memset(to: *mut u8, _byte: i32, _bytes: usize) -> *mut u8 {
        to
    }

    #[unsafe(no_mangle)]
    extern "C" fn memcmp(_one: *const u8, _other: *const u8, _bytes: usize) -> i32 {
        0
    }

    #[unsafe(no_mangle)]
    extern "C" fn bcmp(_one: *const u8, _other: *const u8, _bytes: usize) -> i32 {
        0
    }
}
