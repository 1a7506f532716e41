//! Health of the clocks of a node: how the kernel keeps time, and how sure the rate of the counter is.

mod log;
mod odd;
mod requirements;
mod told;
mod watch;

use std::fmt::Write as _;

use downbeat_timers::kernel::{Clocksources, Discipline, PtpDevice, kernel_counter_hz};
use downbeat_timers::tsc::TscFacts;
use downbeat_timers::{ClockUnavailable, MachineClock};
use serde::{Deserialize, Serialize};

use crate::output::time;
use crate::{IndependentRate, Text, UsedCalibration, machine, units};
pub use log::{Gauge, GaugeValues, LogOptions, SampleLog};
pub use odd::odd_nodes;
pub use requirements::{Requirement, RequirementOptions};
pub use watch::{NODE_GAUGES, NodeWatch, WatchOptions};

/// Health of the clocks of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockHealth {
    /// Host name.
    pub host: String,
    /// Processor, kernel, governor, microcode and clock source.
    pub kind: String,
    /// Hypervisor, if the node is a virtual machine.
    pub hypervisor: Option<String>,
    /// The counter of the processor, or the reason why it cannot be used.
    #[serde(with = "told")]
    pub counter: Result<CounterHealth, String>,
    /// Clock source that the kernel uses; `None` if it does not tell.
    pub clocksource: Option<String>,
    /// All clock sources that the kernel can use.
    pub clocksources: Vec<String>,
    /// Keeping of the time of the system, or the reason why that is unknown.
    #[serde(with = "told")]
    pub system_time: Result<SystemTimeHealth, String>,
    /// Hardware clocks of PTP.
    pub ptp: Vec<PtpHealth>,
}

/// Health of the counter of the processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterHealth {
    /// Name: `tsc` or `cntvct`.
    pub name: String,
    /// Ticks in a second of the system's clock, mostly `CLOCK_MONOTONIC_RAW`.
    pub ticks_per_second: f64,
    /// Largest error of that, if the delays of readings changed alike: see [`Calibration::uncertainty`].
    ///
    /// [`Calibration::uncertainty`]: downbeat_timers::calibration::Calibration::uncertainty
    pub steady_ppm: f64,
    /// Frequency by a clock that does not depend on the counter, if there is one.
    pub independent: Option<IndependentRate>,
    /// Frequency by which the kernel converts the counter, if it tells.
    pub kernel_hz: Option<f64>,
    /// True if the counter has one rate in all power states.
    pub invariant: bool,
    /// First reason not to use the counter although it can be read.
    pub doubt: Option<String>,
}

impl CounterHealth {
    /// Describes the frequency of the counter in Hz: by an independent clock, and as the kernel assumes it.
    pub fn describe_frequency(&self) -> String {
        let assumed = self.kernel_hz.map_or_else(
            || "the kernel does not tell which one it assumes".to_owned(),
            |hz| format!("the kernel assumes {} kHz", grouped(hz / 1e3)),
        );
        match &self.independent {
            None => format!(
                "unknown, as no clock here is independent of the counter: start chronyd, or in a KVM guest load ptp_kvm; {assumed}"
            ),
            Some(found) => format!(
                "{:.1} Hz by {}, certain to {:.3} ppm; {assumed}",
                found.frequency_hz, found.reference, found.certain_ppm
            ),
        }
    }
}

/// Keeping of the time of the system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemTimeHealth {
    /// True if a daemon keeps it synchronized.
    pub synchronized: bool,
    /// Rate of the time relative to that without adjustment.
    pub adjustment_ppm: f64,
    /// Offset that is still removed by slewing.
    pub offset_ns: i64,
    /// Maximum error, as the daemon sees it.
    pub maximum_error_ns: i64,
    /// Estimated error, as the daemon sees it.
    pub estimated_error_ns: i64,
    /// Atomic time minus UTC, if the kernel was told.
    pub tai_offset_s: Option<i32>,
}

/// Hardware clock of PTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PtpHealth {
    /// Name of the device.
    pub device: String,
    /// Name of the clock.
    pub clock: String,
    /// True if this process may read it.
    pub readable: bool,
}

impl SystemTimeHealth {
    /// Asks the kernel.
    pub(crate) fn read() -> Result<Self, String> {
        let found = Discipline::read().map_err(|why| why.to_string())?;
        Ok(Self {
            synchronized: found.synchronized,
            adjustment_ppm: found.adjustment * 1e6,
            offset_ns: found.offset.as_nanos(),
            maximum_error_ns: found.maximum_error.as_nanos(),
            estimated_error_ns: found.estimated_error.as_nanos(),
            tai_offset_s: found.tai_offset,
        })
    }

    fn describe(&self) -> String {
        let adjustment = units::without_negative_zero(self.adjustment_ppm, 3);
        let adjusted = format!("adjusted by {adjustment:+.3} ppm");
        if !self.synchronized {
            return format!(
                "NOT synchronized: no daemon such as chronyd, ntpd or ptp4l steers it; {adjusted}"
            );
        }
        let tai = self.tai_offset_s.map_or_else(String::new, |seconds| {
            format!("; atomic time is {seconds} s ahead of UTC")
        });
        format!(
            "synchronized, error at most {} (estimated {}), {adjusted}{tai}",
            time(self.maximum_error_ns as f64),
            time(self.estimated_error_ns as f64)
        )
    }
}

/// Writes a whole number with commas.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

impl ClockHealth {
    /// Gathers the health of this node's clocks, given its calibrated counter.
    pub fn gather(
        counter: &Result<MachineClock, ClockUnavailable>,
        known: Option<&UsedCalibration>,
    ) -> Self {
        let facts = TscFacts::gather().ok();
        let counter = match (counter, known) {
            (Err(why), _) => Err(why.to_string()),
            (Ok(_), None) => Err("the counter is not calibrated".to_owned()),
            (Ok(clock), Some(known)) => Ok(CounterHealth {
                name: clock.name().as_str().to_owned(),
                ticks_per_second: known.calibration.rate().hz(),
                steady_ppm: known.calibration.uncertainty() * 1e6,
                independent: known.independent.clone(),
                kernel_hz: kernel_counter_hz(),
                // The architecture demands it of the generic timer.
                invariant: facts.is_none_or(|facts| facts.invariant),
                doubt: facts
                    .and_then(|facts| facts.grave_doubt())
                    .map(|doubt| doubt.to_string()),
            }),
        };
        let (clocksource, clocksources) = Clocksources::read()
            .map_or((None, Vec::new()), |found| {
                (Some(found.current), found.available)
            });
        let ptp = PtpDevice::all().into_iter().map(|found| PtpHealth {
            device: found.device,
            clock: found.clock,
            readable: found.readable,
        });
        Self {
            host: machine::host_name(),
            kind: machine::kind_of_node(&machine::governors()),
            hypervisor: facts.and_then(|facts| facts.hypervisor).map(str::to_owned),
            counter,
            clocksource,
            clocksources,
            system_time: SystemTimeHealth::read(),
            ptp: ptp.collect(),
        }
    }

    /// Describes what the kernel says of its clocks, in one paragraph each.
    pub fn kernel_text(&self) -> Text {
        let mut text = Text::default();
        // Writing to a text cannot fail.
        let _ = match &self.system_time {
            Ok(found) => writeln!(text, "System time: {}", found.describe()),
            Err(why) => writeln!(text, "System time: state unknown: {why}"),
        };
        if let Some(current) = &self.clocksource {
            let others: Vec<&str> = self
                .clocksources
                .iter()
                .map(String::as_str)
                .filter(|name| name != current)
                .collect();
            let others = match others.as_slice() {
                [] => "no other".to_owned(),
                others => format!("also available: {}", others.join(", ")),
            };
            let _ = writeln!(text, "Clock source of the kernel: {current}; {others}");
        }
        if let Ok(counter) = &self.counter {
            let told = counter.describe_frequency();
            let _ = writeln!(text, "Frequency of the counter: {told}");
        }
        let _ = writeln!(text, "PTP clocks: {}", self.describe_ptp());
        text
    }

    fn describe_ptp(&self) -> String {
        let describe = |one: &PtpHealth| {
            let access = if one.readable {
                "readable"
            } else {
                "not readable by this user"
            };
            format!("{} ({}, {access})", one.device, one.clock)
        };
        match self.ptp.as_slice() {
            [] => "none".to_owned(),
            all => all.iter().map(describe).collect::<Vec<_>>().join(", "),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sound(host: &str) -> ClockHealth {
        ClockHealth {
            host: host.to_owned(),
            kind: "x".to_owned(),
            hypervisor: None,
            counter: Ok(CounterHealth {
                name: "tsc".to_owned(),
                ticks_per_second: 2e9,
                steady_ppm: 0.01,
                independent: Some(IndependentRate {
                    reference: "ptp0 (ice)".to_owned(),
                    frequency_hz: 2e9,
                    certain_ppm: 0.5,
                }),
                kernel_hz: Some(2e9),
                invariant: true,
                doubt: None,
            }),
            clocksource: Some("tsc".to_owned()),
            clocksources: vec!["tsc".to_owned()],
            system_time: Ok(SystemTimeHealth {
                synchronized: true,
                adjustment_ppm: -12.5,
                offset_ns: 0,
                maximum_error_ns: 1_200_000,
                estimated_error_ns: 34_000,
                tai_offset_s: Some(37),
            }),
            ptp: Vec::new(),
        }
    }

    pub(crate) fn unsynchronized(host: &str) -> ClockHealth {
        let mut node = sound(host);
        if let Ok(time) = &mut node.system_time {
            time.synchronized = false;
        }
        node
    }

    #[test]
    fn what_the_kernel_says_is_told() {
        let mut node = sound("a");
        assert_eq!(
            node.kernel_text().to_string(),
            "System time: synchronized, error at most 1.200 ms (estimated 34.000 us), adjusted by -12.500 ppm; atomic time is \
             37 s ahead of UTC\nClock source of the kernel: tsc; no other\nFrequency of the counter: 2000000000.0 Hz by ptp0 \
             (ice), certain to 0.500 ppm; the kernel assumes 2,000,000 kHz\n\
             PTP clocks: none\n"
        );
        node.ptp = vec![PtpHealth {
            device: "ptp0".to_owned(),
            clock: "ice".to_owned(),
            readable: false,
        }];
        let text = node.kernel_text().to_string();
        assert!(
            text.ends_with("PTP clocks: ptp0 (ice, not readable by this user)\n"),
            "{text}"
        );
        let text = unsynchronized("a").kernel_text().to_string();
        assert!(
            text.starts_with("System time: NOT synchronized: "),
            "{text}"
        );
    }

    #[test]
    fn a_node_is_the_same_after_its_way_to_another() {
        let mut node = unsynchronized("a");
        node.counter = Err("no counter".to_owned());
        let text = serde_json::to_string(&node).unwrap();
        assert!(
            text.contains("\"counter\":{\"unknown\":\"no counter\"}"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<ClockHealth>(&text).unwrap(), node);
        let text = serde_json::to_string(&sound("a")).unwrap();
        assert_eq!(
            serde_json::from_str::<ClockHealth>(&text).unwrap(),
            sound("a")
        );
    }
}
