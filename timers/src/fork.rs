//! Hooks around `fork`, for crates without unsafe code.

/// Calls `before` ahead of every `fork` of this process, on the thread that forks, and `after` behind it, in both processes.
/// Does nothing where there is no `fork`.
#[doc(hidden)]
pub fn at_fork(before: extern "C" fn(), after: extern "C" fn()) {
    #[cfg(unix)]
    {
        // SAFETY: safe functions, which stay valid until the process ends.
        #[expect(unsafe_code, reason = "the standard library has no hooks around fork")]
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
    }
    #[cfg(not(unix))]
    let _ = (before, after);
}
