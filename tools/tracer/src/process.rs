//! State of a process that is traced.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::collections::HashMap;
use std::env;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::fd::{AsRawFd as _, IntoRawFd as _};
use std::sync::{Mutex, OnceLock, PoisonError};

use downbeat_recording::settings::{Group, OWNER, PARENT, Settings};
use downbeat_timers::{ClockName, MachineClock};

use crate::failure::fail;
use crate::objects;

/// A process that is traced.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) settings: Settings,
    pub(crate) clock: MachineClock,
    calls: Mutex<HashMap<&'static CStr, u16>>,
    threads: AtomicU32,
}

/// True once it is known that this process is not traced.
static IS_OFF: AtomicBool = AtomicBool::new(false);

static PROCESS: OnceLock<Option<Process>> = OnceLock::new();

/// False while `MPI_Pcontrol` has switched recording off.
static RECORDS: AtomicBool = AtomicBool::new(true);

/// Returns true if the program has not switched recording off.
#[inline(always)]
pub(crate) fn records() -> bool {
    RECORDS.load(Ordering::Relaxed)
}

/// Switches recording on or off.
pub(crate) fn record(on: bool) {
    RECORDS.store(on, Ordering::Relaxed);
}

/// Returns true if it is known that this process is not traced.
#[inline(always)]
pub(crate) fn is_off() -> bool {
    IS_OFF.load(Ordering::Relaxed)
}

/// Ends tracing in this process.
pub(crate) fn switch_off() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// Returns the process, if it is traced.
pub(crate) fn get() -> Option<&'static Process> {
    if is_off() {
        return None;
    }
    let process = PROCESS.get_or_init(start).as_ref();
    if process.is_none() {
        switch_off();
    }
    process
}

fn start() -> Option<Process> {
    let settings = match Settings::read(|name| env::var(name).ok()) {
        Ok(settings) => settings?,
        Err(why) => fail(&why.to_string()),
    };
    check_library();
    if !claim(&settings) {
        return None;
    }
    let clock = match env::var("DOWNBEAT_CLOCK") {
        Ok(name) => name
            .parse()
            .map_err(|why| format!("DOWNBEAT_CLOCK={name}: {why}")),
        Err(_) => Ok(ClockName::Recommended),
    };
    let clock = clock.and_then(|name| MachineClock::detect(name).map_err(|why| why.to_string()));
    let clock = clock.unwrap_or_else(|why| fail(&why));
    Some(Process {
        settings,
        clock,
        calls: Mutex::default(),
        threads: AtomicU32::new(0),
    })
}

/// Takes the folder for this process: a program that this one starts inherits the environment, but is no rank. The file stays locked
/// while this process lives, so that nobody takes the folder for one that was left behind.
fn claim(settings: &Settings) -> bool {
    let path = settings.spool.join(OWNER);
    let this = std::process::id().to_string();
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let file = match file {
        Ok(mut file) => {
            // If that fails for lack of memory, a program that replaces itself later is
            // not recorded.
            let _ = file.write_all(this.as_bytes());
            Some(file)
        }
        // A program that replaced itself is still the rank.
        Err(_) => std::fs::read_to_string(&path)
            .is_ok_and(|owner| owner == this)
            .then(|| File::open(&path).ok())
            .flatten(),
    };
    let Some(file) = file else {
        return false;
    };
    // SAFETY: the file is open, and stays so.
    unsafe { libc::flock(file.into_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    true
}

/// Ends a program whose MPI library has another binary interface than this library was built for.
fn check_library() {
    let is_open_mpi = !objects::any(c"ompi_mpi_comm_world").is_null();
    if is_open_mpi != cfg!(open_mpi) {
        let [this, that] = if is_open_mpi {
            ["MPICH", "Open MPI"]
        } else {
            ["Open MPI", "MPICH"]
        };
        fail(&format!(
            "it was built for {this}, and the program uses {that}: preload the library for {that}"
        ));
    }
}

/// Returns the group of a function.
fn group(name: &str) -> Group {
    let name = name.trim_start_matches("MPIX_").trim_start_matches("MPI_");
    let name = name.strip_suffix("_c").unwrap_or(name);
    let begins = |beginnings: &[&str]| {
        beginnings
            .iter()
            .any(|beginning| name.starts_with(beginning))
    };
    let has = |part: &str| name.to_ascii_lowercase().contains(part);
    if begins(&["File_", "Register_datarep"]) {
        Group::Files
    } else if begins(&[
        "Win_",
        "Put",
        "Get_accumulate",
        "Accumulate",
        "Fetch_and",
        "Compare_and",
        "Rput",
        "Rget",
        "Raccumulate",
    ]) || name == "Get"
    {
        Group::OneSided
    } else if begins(&[
        "Wait", "Test", "Start", "Request_", "Cancel", "Pready", "Parrived",
    ]) && name != "Test_cancelled"
        || has("send")
        || has("recv")
        || has("probe")
    {
        Group::Messages
    } else if [
        "barrier", "bcast", "gather", "scatter", "alltoall", "reduce", "scan",
    ]
    .iter()
    .any(|part| has(part))
        && !begins(&["Op_", "Reduce_local"])
    {
        Group::Collectives
    } else {
        Group::Others
    }
}

impl Process {
    /// Returns the number of a function in records, and true if it is new.
    pub(crate) fn number_of(&self, name: &'static CStr) -> (u16, bool) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let next = calls.len() as u16;
        let number = *calls.entry(name).or_insert(next);
        (number, number == next)
    }

    /// Returns the number of a function or region; `None` if it is new.
    pub(crate) fn known(&self, name: &CStr) -> Option<u16> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.get(name).copied()
    }

    /// Returns true if calls of a function are recorded.
    pub(crate) fn records(&self, name: &str) -> bool {
        !self.settings.skip.contains(&group(name))
    }

    /// Returns the number of the next thread.
    pub(crate) fn next_thread(&self) -> u32 {
        self.threads.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns true if the process lives that collects the records of this one, which holds its file locked.
    pub(crate) fn has_parent(&self) -> bool {
        let file = match File::open(self.settings.spool.join(PARENT)) {
            Ok(file) => file,
            // It removes the file last; other errors tell nothing.
            Err(why) => return why.kind() != ErrorKind::NotFound,
        };
        // SAFETY: the file is open; closing it ends the lock.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) != 0 }
    }

    /// Returns true if calls of tests that find nothing are not recorded.
    pub(crate) fn skips_tests(&self) -> bool {
        self.settings.skip.contains(&Group::Tests)
    }
}
