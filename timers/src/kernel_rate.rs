//! Rate of the processor's counter by which the kernel converts it to nanoseconds.

#[cfg(target_os = "linux")]
mod linux;

/// Returns the frequency of the processor's counter in Hz as the kernel knows it; `None` if it does not tell.
///
/// Linux tells it to programs that may use performance counters, unless a hypervisor keeps the time, and in its log, which
/// often only the administrator may read.
pub fn kernel_counter_hz() -> Option<f64> {
    #[cfg(target_os = "linux")]
    {
        linux::of_performance_page().or_else(linux::of_log)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_a_frequency_of_a_processor() {
        if let Some(hz) = kernel_counter_hz() {
            assert!((1e6..1e11).contains(&hz), "{hz}");
        }
    }
}
