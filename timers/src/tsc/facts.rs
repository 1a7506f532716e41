//! Facts from the processor and the kernel about the time stamp counter, and their assessment.

use core::fmt;

use crate::ClockUnavailable;

/// Facts about the time stamp counter of this machine.
///
/// [`TscFacts::gather`] queries the machine; [`verdict`](Self::verdict) and [`doubts`](Self::doubts) assess the facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscFacts {
    /// CPUID: the processor has a counter.
    pub counter: bool,
    /// CPUID: the processor has `rdtscp`.
    pub rdtscp: bool,
    /// CPUID: the counter has the same rate in all power states.
    pub invariant: bool,
    /// CPUID: the kernel can read and correct the counter's offset on each core (TSC_ADJUST).
    pub adjustable: bool,
    /// CPUID: the frequency, if the processor or the hypervisor states one. Only for reports; calibrate for the true one.
    pub stated_hz: Option<u64>,
    /// CPUID: the hypervisor, if any.
    pub hypervisor: Option<&'static str>,
    /// True if reading the counter is disabled for this process (`prctl(PR_SET_TSC)`).
    pub trapped: bool,
    /// Facts from the kernel; `None` without `std` and on systems other than Linux.
    pub kernel: Option<KernelFacts>,
}

/// Facts from Linux about the time stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFacts {
    /// `/proc/cpuinfo`: the counter has the same rate at all processor frequencies.
    pub constant: bool,
    /// `/proc/cpuinfo`: the counter does not stop in sleep states.
    pub nonstop: bool,
    /// `/proc/cpuinfo`: the kernel knows the frequency without measuring it.
    pub known_frequency: bool,
    /// The clocksource that the kernel uses.
    pub clocksource: &'static str,
    /// True if the kernel lists the counter among the available clocksources; it removes unstable ones.
    pub listed: bool,
}

/// Reason to distrust a time stamp counter that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TscDoubt {
    /// The kernel uses another clocksource.
    ClocksourceIsNotTsc(&'static str),
    /// The kernel does not list the counter among its clocksources: it marked it unstable or never accepted it.
    KernelMarkedUnstable,
    /// The kernel does not call the counter constant and nonstop, although the processor calls it invariant.
    KernelDoesNotVouch,
    /// A hypervisor may scale or shift the counter, and moves the machine to another host with another counter.
    VirtualMachine(&'static str),
}

impl fmt::Display for TscDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClocksourceIsNotTsc(other) => {
                write!(
                    f,
                    "the kernel uses another clocksource ({other}) instead of the counter"
                )
            }
            Self::KernelMarkedUnstable => {
                f.write_str("the kernel does not accept the counter as a clocksource")
            }
            Self::KernelDoesNotVouch => {
                f.write_str("the kernel does not call the counter constant and nonstop")
            }
            Self::VirtualMachine(host) => {
                write!(
                    f,
                    "this is a virtual machine ({host}): the rate changes if it is moved to another host"
                )
            }
        }
    }
}

impl TscFacts {
    /// Checks that the counter can be used as a clock.
    ///
    /// # Errors
    /// If it cannot be used; returns the first missing requirement.
    pub fn verdict(&self) -> Result<(), ClockUnavailable> {
        let required = [
            (self.counter, ClockUnavailable::NoCounter),
            (self.rdtscp, ClockUnavailable::NoRdtscp),
            (self.invariant, ClockUnavailable::NotInvariant),
            (!self.trapped, ClockUnavailable::Trapped),
        ];
        required
            .into_iter()
            .try_for_each(|(met, missing)| if met { Ok(()) } else { Err(missing) })
    }

    /// Lists the reasons to distrust a counter that can be used.
    pub fn doubts(&self) -> impl Iterator<Item = TscDoubt> + use<> {
        let kernel = self.kernel;
        let when =
            |doubtful: fn(&KernelFacts) -> bool, doubt| kernel.filter(doubtful).map(|_| doubt);
        [
            when(|k| !k.listed, TscDoubt::KernelMarkedUnstable),
            kernel
                .filter(|k| k.clocksource != "tsc")
                .map(|k| TscDoubt::ClocksourceIsNotTsc(k.clocksource)),
            when(|k| !(k.constant && k.nonstop), TscDoubt::KernelDoesNotVouch),
            self.hypervisor.map(TscDoubt::VirtualMachine),
        ]
        .into_iter()
        .flatten()
    }

    /// Returns the first doubt because of which the counter should not be used where another clock will do.
    ///
    /// A virtual machine is none: its kernel, which knows the hypervisor, has decided whether to trust the counter.
    pub fn grave_doubt(&self) -> Option<TscDoubt> {
        self.doubts()
            .find(|doubt| !matches!(doubt, TscDoubt::VirtualMachine(_)))
    }

    /// Queries the processor and, with `std` on Linux, the kernel. Takes about 100 us in a virtual machine.
    ///
    /// # Errors
    /// If the processor is not an x86 processor.
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    pub fn gather() -> Result<Self, ClockUnavailable> {
        Err(ClockUnavailable::NotX86)
    }

    /// Queries the processor and, with `std` on Linux, the kernel. Takes about 100 us in a virtual machine.
    ///
    /// # Errors
    /// If the processor is not an x86 processor.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    pub fn gather() -> Result<Self, ClockUnavailable> {
        let cpu = raw_cpuid::CpuId::new();
        let basic = cpu.get_feature_info();
        Ok(Self {
            counter: basic.as_ref().is_some_and(raw_cpuid::FeatureInfo::has_tsc),
            rdtscp: cpu
                .get_extended_processor_and_feature_identifiers()
                .is_some_and(|e| e.has_rdtscp()),
            invariant: cpu
                .get_advanced_power_mgmt_info()
                .is_some_and(|power| power.has_invariant_tsc()),
            adjustable: cpu
                .get_extended_feature_info()
                .is_some_and(|e| e.has_tsc_adjust_msr()),
            stated_hz: stated_hz(&cpu),
            hypervisor: cpu
                .get_hypervisor_info()
                .map(|host| name_of_hypervisor(&host.identify())),
            #[cfg(all(feature = "std", target_os = "linux"))]
            trapped: linux::is_trapped(),
            #[cfg(not(all(feature = "std", target_os = "linux")))]
            trapped: false,
            #[cfg(all(feature = "std", target_os = "linux"))]
            kernel: linux::facts(),
            #[cfg(not(all(feature = "std", target_os = "linux")))]
            kernel: None,
        })
    }
}

/// The frequency stated by CPUID: leaf 15h of the processor, otherwise leaf 40000010h of the hypervisor.
///
/// raw-cpuid checks that the leaf exists; a frequency of zero counts as none.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn stated_hz(cpu: &raw_cpuid::CpuId<raw_cpuid::CpuIdReaderNative>) -> Option<u64> {
    let processor = cpu.get_tsc_info().and_then(|info| info.tsc_frequency());
    let host = || {
        cpu.get_hypervisor_info()
            .and_then(|host| host.tsc_frequency())
            .map(|khz| u64::from(khz) * 1_000)
    };
    processor.or_else(host).filter(|&hz| hz > 0)
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn name_of_hypervisor(host: &raw_cpuid::Hypervisor) -> &'static str {
    match host {
        raw_cpuid::Hypervisor::KVM => "KVM",
        raw_cpuid::Hypervisor::HyperV => "Hyper-V",
        raw_cpuid::Hypervisor::VMware => "VMware",
        raw_cpuid::Hypervisor::Xen => "Xen",
        raw_cpuid::Hypervisor::QEMU => "QEMU",
        raw_cpuid::Hypervisor::Bhyve => "bhyve",
        _ => "an unknown hypervisor",
    }
}

#[cfg(all(
    feature = "std",
    target_os = "linux",
    any(target_arch = "x86", target_arch = "x86_64")
))]
mod linux {
    use super::KernelFacts;
    use crate::clocksource::Clocksources;
    use std::fs;

    pub(super) fn facts() -> Option<KernelFacts> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok()?;
        Some(parse(&cpuinfo, &Clocksources::read()?))
    }

    /// Clocksources that have their names in reports.
    const KNOWN: [&str; 5] = ["tsc", "kvm-clock", "xen", "hpet", "acpi_pm"];

    pub(super) fn parse(cpuinfo: &str, sources: &Clocksources) -> KernelFacts {
        let flags = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("flags"))
            .unwrap_or_default();
        let has = |name| flags.split_whitespace().any(|flag| flag == name);
        KernelFacts {
            constant: has("constant_tsc"),
            nonstop: has("nonstop_tsc"),
            known_frequency: has("tsc_known_freq"),
            clocksource: match sources.current.as_str() {
                "hyperv_clocksource_tsc_page" | "hyperv_clocksource_msr" => "hyperv",
                known => KNOWN
                    .into_iter()
                    .find(|name| *name == known)
                    .unwrap_or("other"),
            },
            listed: sources.available.iter().any(|source| source == "tsc"),
        }
    }

    pub(super) fn is_trapped() -> bool {
        let mut mode: libc::c_int = libc::PR_TSC_ENABLE;
        // SAFETY: PR_GET_TSC writes one int to the address given, which is that of `mode`.
        let asked = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
        asked == 0 && mode == libc::PR_TSC_SIGSEGV
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: TscFacts = TscFacts {
        counter: true,
        rdtscp: true,
        invariant: true,
        adjustable: true,
        stated_hz: None,
        hypervisor: None,
        trapped: false,
        kernel: Some(KernelFacts {
            constant: true,
            nonstop: true,
            known_frequency: true,
            clocksource: "tsc",
            listed: true,
        }),
    };

    fn doubts_with(kernel: KernelFacts) -> Vec<TscDoubt> {
        TscFacts {
            kernel: Some(kernel),
            ..SOUND
        }
        .doubts()
        .collect()
    }

    #[test]
    fn a_usable_counter_raises_no_doubt() {
        assert_eq!(SOUND.verdict(), Ok(()));
        assert_eq!(SOUND.doubts().count(), 0);
        assert_eq!(
            TscFacts {
                kernel: None,
                ..SOUND
            }
            .doubts()
            .count(),
            0
        );
    }

    #[test]
    fn every_missing_requirement_is_reported() {
        let verdict = |facts: TscFacts| facts.verdict().unwrap_err();
        assert_eq!(
            verdict(TscFacts {
                counter: false,
                rdtscp: false,
                ..SOUND
            }),
            ClockUnavailable::NoCounter
        );
        assert_eq!(
            verdict(TscFacts {
                rdtscp: false,
                ..SOUND
            }),
            ClockUnavailable::NoRdtscp
        );
        assert_eq!(
            verdict(TscFacts {
                invariant: false,
                ..SOUND
            }),
            ClockUnavailable::NotInvariant
        );
        assert_eq!(
            verdict(TscFacts {
                trapped: true,
                ..SOUND
            }),
            ClockUnavailable::Trapped
        );
    }

    #[test]
    fn every_doubt_is_reported() {
        let kernel = SOUND.kernel.unwrap();
        let replaced = KernelFacts {
            clocksource: "hpet",
            listed: false,
            ..kernel
        };
        assert_eq!(
            doubts_with(replaced),
            [
                TscDoubt::KernelMarkedUnstable,
                TscDoubt::ClocksourceIsNotTsc("hpet")
            ]
        );
        assert_eq!(
            doubts_with(KernelFacts {
                nonstop: false,
                ..kernel
            }),
            [TscDoubt::KernelDoesNotVouch]
        );
        assert_eq!(
            doubts_with(KernelFacts {
                constant: false,
                ..kernel
            }),
            [TscDoubt::KernelDoesNotVouch]
        );
        let guest = TscFacts {
            hypervisor: Some("KVM"),
            ..SOUND
        };
        assert_eq!(
            guest.doubts().collect::<Vec<_>>(),
            [TscDoubt::VirtualMachine("KVM")]
        );
    }

    #[cfg(all(
        feature = "std",
        target_os = "linux",
        any(target_arch = "x86", target_arch = "x86_64")
    ))]
    #[test]
    fn the_files_of_the_kernel_are_parsed() {
        let cpuinfo = "processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\nbugs\t\t: \n";
        let facts = linux::parse(
            cpuinfo,
            &crate::clocksource::Clocksources::of("kvm-clock\n", "kvm-clock tsc acpi_pm \n"),
        );
        assert_eq!(
            facts,
            KernelFacts {
                constant: true,
                nonstop: true,
                known_frequency: false,
                clocksource: "kvm-clock",
                listed: true,
            }
        );
        let nothing = linux::parse("", &crate::clocksource::Clocksources::of("", ""));
        assert!(!nothing.constant && !nothing.listed && nothing.clocksource == "other");
    }
}
