//! Removal of incomplete output when a signal, or a lack of memory, ends the program.

use std::path::Path;

use crate::Failure;

/// Guard for an output: while it is alive, signals that end the program remove the incomplete output
/// before.
#[derive(Debug)]
pub struct Unfinished {
    #[cfg(unix)]
    _watch: unix::Watch,
}

impl Unfinished {
    /// Creates the guard for a trace, a file or a folder, that will be written to `path`.
    ///
    /// # Errors
    /// If signal handlers cannot be installed.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        #[cfg(unix)]
        return unix::Watch::begin(path)
            .map(|_watch| Self { _watch })
            .map_err(|why| Failure::run(format!("no thread can wait for signals: {why}")));
        #[cfg(not(unix))]
        {
            let _ = path;
            Ok(Self {})
        }
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
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread;

    use downbeat_files::unfinished;
    use signal_hook::consts::SIGABRT;
    use signal_hook::iterator::{Handle, Signals};
    use signal_hook::low_level::{self, emulate_default_handler};

    use crate::ending_signals;

    /// Outputs that are not finished, and memory that is left for their removal.
    static OUTPUTS: Mutex<(Vec<PathBuf>, Vec<u8>)> = Mutex::new((Vec::new(), Vec::new()));

    /// Memory that the removal may take.
    const RESERVE: usize = 1 << 20;

    #[expect(unsafe_code, reason = "this is the only way to add a handler")]
    pub(super) fn end_without_memory() {
        let end = || {
            // Not locked if memory ran out while an output was added.
            if let Ok(mut outputs) = OUTPUTS.try_lock() {
                let (paths, reserve) = std::mem::take(&mut *outputs);
                drop(reserve);
                paths.iter().for_each(|path| remove(path));
            }
            low_level::exit(1);
        };
        // SAFETY: the handler interrupts nothing: `abort` raises the signal on this thread, which holds
        // no lock of the allocator or of `OUTPUTS`.
        let registered = unsafe { low_level::register(SIGABRT, end) };
        // Without the handler, the signal ends the program.
        drop(registered);
    }

    /// Handle of a thread that waits for signals.
    #[derive(Debug)]
    pub(super) struct Watch {
        path: PathBuf,
        signals: Handle,
        /// Locked from the signal to the end of the program, so that errors caused by the removal are
        /// not reported.
        ending: Arc<Mutex<()>>,
    }

    impl Watch {
        pub(super) fn begin(path: &Path) -> io::Result<Self> {
            let mut signals = Signals::new(ending_signals())?;
            let handle = signals.handle();
            let ending = Arc::new(Mutex::new(()));
            let mut outputs = OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner);
            outputs.0.push(path.to_owned());
            outputs.1.resize(RESERVE, 1);
            drop(outputs);
            let (removed, held) = (path.to_owned(), Arc::clone(&ending));
            thread::Builder::new().spawn(move || {
                for signal in signals.forever() {
                    let _held = held.lock().unwrap_or_else(PoisonError::into_inner);
                    remove(&removed);
                    // This ends the program; an error could not be reported.
                    let _ = emulate_default_handler(signal);
                }
            })?;
            Ok(Self {
                path: path.to_owned(),
                signals: handle,
                ending,
            })
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            let _ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
            self.signals.close();
            let mut outputs = OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner);
            outputs.0.retain(|path| *path != self.path);
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
