//! What is not finished goes away, also when the program is told to end.

use std::path::Path;

use crate::Failure;

/// As long as this is there, a signal that ends the program removes what it has written so far of a trace.
#[derive(Debug)]
pub struct Unfinished {
    #[cfg(unix)]
    _watch: unix::Watch,
}

impl Unfinished {
    /// Of the trace, file or folder, that will be at this place.
    ///
    /// # Errors
    /// When signals cannot be listened to.
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

    /// A thread that waits for signals.
    #[derive(Debug)]
    pub(super) struct Watch {
        signals: Handle,
        /// Held from the signal to the end: what fails meanwhile because files go away is not worth a word.
        ending: Arc<Mutex<()>>,
    }

    impl Watch {
        pub(super) fn begin(path: &Path) -> io::Result<Self> {
            let mut signals = Signals::new([SIGINT, SIGTERM])?;
            let handle = signals.handle();
            let ending = Arc::new(Mutex::new(()));
            let (path, held) = (path.to_owned(), Arc::clone(&ending));
            thread::spawn(move || {
                for signal in signals.forever() {
                    let _held = held.lock().unwrap_or_else(PoisonError::into_inner);
                    remove(&path);
                    // It ends this program, or there is nobody to tell why not.
                    let _ = emulate_default_handler(signal);
                }
            });
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

    /// Other threads still write: what is in a folder when it is gone through need not be all when it is removed.
    fn remove(path: &Path) {
        const ATTEMPTS: u32 = 100;
        for _ in 0..ATTEMPTS {
            let found = unfinished(path);
            if found.is_empty() {
                return;
            }
            for path in found {
                // It is looked for again.
                let _ = if path.is_dir() {
                    fs::remove_dir_all(&path)
                } else {
                    fs::remove_file(&path)
                };
            }
        }
    }
}
