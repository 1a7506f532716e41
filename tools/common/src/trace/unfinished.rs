//! Removal of incomplete output when a signal ends the program.

use std::path::Path;

use crate::Failure;

/// Guard for an output: while it is alive, SIGINT and SIGTERM remove the incomplete output before
/// they end the program.
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
            .map_err(Failure::run);
        #[cfg(not(unix))]
        {
            let _ = path;
            Ok(Self {})
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io;
    use std::path::Path;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread;

    use downbeat_files::unfinished;
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::{Handle, Signals};
    use signal_hook::low_level::emulate_default_handler;

    /// Handle of a thread that waits for signals.
    #[derive(Debug)]
    pub(super) struct Watch {
        signals: Handle,
        /// Locked from the signal to the end of the program, so that errors caused by the removal are
        /// not reported.
        ending: Arc<Mutex<()>>,
    }

    impl Watch {
        pub(super) fn begin(path: &Path) -> io::Result<Self> {
            let mut signals = Signals::new([SIGINT, SIGTERM])?;
            let handle = signals.handle();
            let ending = Arc::new(Mutex::new(()));
            let (path, held) = (path.to_owned(), Arc::clone(&ending));
            thread::Builder::new().spawn(move || {
                for signal in signals.forever() {
                    let _held = held.lock().unwrap_or_else(PoisonError::into_inner);
                    remove(&path);
                    // This ends the program; an error could not be reported.
                    let _ = emulate_default_handler(signal);
                }
            })?;
            Ok(Self {
                signals: handle,
                ending,
            })
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            let _ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
            self.signals.close();
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
