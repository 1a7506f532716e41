//! Removal of incomplete output when a signal, or a lack of memory, ends the program.

use std::path::{Path, PathBuf};

use crate::Failure;

/// Guard for an output: while it is alive, signals that end the program remove the incomplete output
/// before.
#[derive(Debug)]
pub struct Unfinished {
    #[cfg_attr(not(unix), expect(dead_code, reason = "nothing is removed"))]
    path: PathBuf,
}

impl Unfinished {
    /// Creates the guard for a trace, a file or a folder, that will be written to `path`.
    ///
    /// # Errors
    /// If signal handlers cannot be installed.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let path = path.to_owned();
        #[cfg(unix)]
        unix::add(&path)
            .map_err(|why| Failure::run(format!("no thread can wait for signals: {why}")))?;
        Ok(Self { path })
    }
}

/// Ends the program with exit code 1, and without incomplete output, when there is no memory left:
/// then the standard library aborts, after one line that says so.
pub fn survive_lack_of_memory() {
    #[cfg(unix)]
    unix::end_without_memory();
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    use downbeat_files::unfinished;
    use signal_hook::consts::SIGABRT;
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::{self, emulate_default_handler};

    use super::Unfinished;
    use crate::ending_signals;

    /// Outputs that are not finished. It stays locked from a signal to the end of the
    /// program, so that errors caused by the removal are not reported.
    static OUTPUTS: Mutex<Outputs> = Mutex::new(Outputs {
        paths: vec![],
        reserve: vec![],
        are_watched: false,
    });

    struct Outputs {
        paths: Vec<PathBuf>,
        /// Memory that is left for their removal.
        reserve: Vec<u8>,
        /// True if a thread waits for signals.
        are_watched: bool,
    }

    /// Memory that the removal may take.
    const RESERVE: usize = 1 << 20;

    #[expect(unsafe_code, reason = "this is the only way to add a handler")]
    pub(super) fn end_without_memory() {
        let end = || {
            // Not locked if memory ran out while an output was added.
            if let Ok(mut outputs) = OUTPUTS.try_lock() {
                outputs.reserve = vec![];
                outputs.paths.iter().for_each(|path| remove(path));
            }
            low_level::exit(1);
        };
        // SAFETY: the handler interrupts nothing: `abort` raises the signal on this thread, which holds
        // no lock of the allocator or of `OUTPUTS`.
        let registered = unsafe { low_level::register(SIGABRT, end) };
        // Without the handler, the signal ends the program.
        drop(registered);
    }

    pub(super) fn add(path: &Path) -> io::Result<()> {
        let mut outputs = OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.paths.push(path.to_owned());
        outputs.reserve.resize(RESERVE, 1);
        if !outputs.are_watched {
            let mut signals = Signals::new(ending_signals())?;
            thread::Builder::new().spawn(move || {
                for signal in signals.forever() {
                    let outputs = OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner);
                    outputs.paths.iter().for_each(|path| remove(path));
                    // This ends the program; an error could not be reported.
                    let _ = emulate_default_handler(signal);
                }
            })?;
            outputs.are_watched = true;
        }
        Ok(())
    }

    impl Drop for Unfinished {
        fn drop(&mut self) {
            let mut outputs = OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner);
            outputs.paths.retain(|path| *path != self.path);
        }
    }

    /// Removes the incomplete output, with several attempts: other threads still write, and may add
    /// files to a folder while it is removed.
    fn remove(path: &Path) {
        const ATTEMPTS: u32 = 100;
        for _ in 0..ATTEMPTS {
            let found = unfinished(path);
            if found.is_empty() {
                return;
            }
            for path in found {
                // The next attempt finds what is left.
                let _ = if path.is_dir() {
                    fs::remove_dir_all(&path)
                } else {
                    fs::remove_file(&path)
                };
            }
        }
    }
}
