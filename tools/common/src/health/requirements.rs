//! Demands that the clocks of nodes must meet.

use clap::{Args, ValueEnum};
use downbeat_timers::Duration;

use super::ClockHealth;
use crate::Failure;
use crate::independent::IndependentReference;

/// Property that the clocks of a node can be required to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Requirement {
    /// The processor has a counter that the kernel trusts, of one rate on all cores
    Counter,
    /// That counter is the time stamp counter of x86
    Tsc,
    /// The counter has one rate in all power states
    Invariant,
    /// The node is no virtual machine
    BareMetal,
    /// A daemon keeps the time of the system synchronized
    Synchronized,
    /// There is a hardware clock of PTP that this user may read
    Ptp,
}

impl Requirement {
    /// Returns the reason why the node does not meet the requirement.
    fn unmet_by(self, node: &ClockHealth) -> Option<String> {
        let counter = node.counter.as_ref();
        match self {
            Self::Counter => match counter {
                Ok(counter) => counter.doubt.clone(),
                Err(why) => Some(why.clone()),
            },
            Self::Tsc => match counter {
                Ok(counter) if counter.name != "tsc" => {
                    Some(format!("the counter is {}", counter.name))
                }
                _ => Self::Counter.unmet_by(node),
            },
            Self::Invariant => match counter {
                Ok(counter) => (!counter.invariant)
                    .then(|| "the counter changes its rate with power states".to_owned()),
                Err(why) => Some(why.clone()),
            },
            Self::BareMetal => node
                .hypervisor
                .as_ref()
                .map(|host| format!("this is a virtual machine ({host})")),
            Self::Synchronized => match &node.system_time {
                Ok(found) => (!found.synchronized)
                    .then(|| "no daemon keeps the time of the system synchronized".to_owned()),
                Err(why) => Some(why.clone()),
            },
            Self::Ptp => match node.ptp.iter().any(|one| one.readable) {
                true => None,
                false if node.ptp.is_empty() => Some("there is no PTP clock".to_owned()),
                false => Some("no PTP clock is readable by this user".to_owned()),
            },
        }
    }

    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Options that make a command a gate: it fails where clocks are not good enough.
#[derive(Args, Clone, Debug, Default)]
pub struct RequirementOptions {
    /// Fail with exit code 1 unless all of these are met, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_enum,
        ignore_case = true
    )]
    require: Vec<Requirement>,
    /// Fail with exit code 1 unless the frequency of the counter is known to this many parts per million, and differs from the one that
    /// the kernel assumes, where it tells, by no more. It is measured for up to 30 s, by a PTP clock, or by CLOCK_MONOTONIC where a
    /// daemon keeps the time of the system; without either, the exit code is 2
    #[arg(long, value_name = "PPM", value_parser = positive_number, allow_hyphen_values = true)]
    max_ppm: Option<f64>,
}

fn positive_number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        Ok(_) => Err("must be a number above 0".to_owned()),
        Err(_) => Err("is not a number".to_owned()),
    }
}

impl RequirementOptions {
    /// Returns how long to calibrate so that the limit can be met: in proportion to its strictness, from `least` to 30 s.
    pub fn calibration(&self, least: Duration) -> Duration {
        const LONGEST: Duration = Duration::from_secs(30);
        let Some(ppm) = self.max_ppm else {
            return least;
        };
        // 300 ms are enough for 1 ppm, even where reading a clock takes long; the cast saturates.
        Duration::from_nanos((300e6 / ppm) as i64)
            .min(LONGEST)
            .max(least)
    }

    /// Checks, before anything is measured, that this node has a clock for the limit of the frequency.
    ///
    /// # Errors
    /// If there is a limit and no such clock.
    pub fn check(&self) -> Result<(), Failure> {
        // These say more about a node without such a clock.
        let implied = [Requirement::Synchronized, Requirement::Ptp];
        let is_implied = implied.iter().any(|one| self.require.contains(one));
        let limit = self.max_ppm.filter(|_| !is_implied);
        match limit.map(|_| IndependentReference::find()) {
            Some(None) => Err(Failure::option(
                "--max-ppm",
                "no clock here is independent of the counter: there is neither a PTP clock that this user may read nor a system time that \
                 a daemon keeps synchronized",
            )),
            _ => Ok(()),
        }
    }

    /// Returns one line for each requirement that the node does not meet.
    pub fn unmet(&self, node: &ClockHealth) -> Vec<String> {
        let required = self.require.iter().filter_map(|one| {
            one.unmet_by(node)
                .map(|why| format!("{} is required: {why}", one.name()))
        });
        let mut unmet: Vec<String> = required.collect();
        if let Some(limit) = self.max_ppm {
            unmet.extend(
                beyond(limit, node).map(|why| format!("--max-ppm {limit} is exceeded: {why}")),
            );
        }
        unmet
    }

    /// Fails if a node does not meet a requirement. With several nodes, each is named.
    ///
    /// # Errors
    /// If a requirement is not met.
    pub fn verify(&self, nodes: &[ClockHealth]) -> Result<(), Failure> {
        let lines = nodes.iter().flat_map(|node| {
            let named = move |why| match nodes.len() {
                1 => why,
                _ => format!("{}: {why}", node.host),
            };
            self.unmet(node).into_iter().map(named)
        });
        let lines: Vec<String> = lines.collect();
        match lines.is_empty() {
            true => Ok(()),
            false => Err(Failure::Run(lines.join("; "))),
        }
    }
}

/// Returns the reason why the frequency of the counter is not certain to this limit.
fn beyond(limit: f64, node: &ClockHealth) -> Option<String> {
    let counter = match &node.counter {
        Ok(counter) => counter,
        Err(why) => return Some(why.clone()),
    };
    let Some(found) = &counter.independent else {
        return Some("the frequency of the counter is not known: it was not measured, or by a clock that is too inexact".to_owned());
    };
    if found.certain_ppm > limit {
        return Some(format!(
            "the frequency of the counter is certain to {:.3} ppm by {}",
            found.certain_ppm, found.reference
        ));
    }
    let apart = (found.frequency_hz / counter.kernel_hz? - 1.0) * 1e6;
    // Only a difference that the measurement does not explain.
    (apart.abs() - found.certain_ppm > limit)
        .then(|| format!("the counter is {apart:+.3} ppm from the rate that the kernel uses"))
}

#[cfg(test)]
mod tests {
    use super::super::PtpHealth;
    use super::super::tests::{sound, unsynchronized};
    use super::*;

    fn options(require: &[Requirement], max_ppm: Option<f64>) -> RequirementOptions {
        RequirementOptions {
            require: require.to_vec(),
            max_ppm,
        }
    }

    #[test]
    fn a_sound_node_meets_all_but_what_it_lacks() {
        let all = options(Requirement::value_variants(), Some(1.0));
        assert_eq!(
            all.unmet(&sound("a")),
            ["ptp is required: there is no PTP clock"]
        );
        let mut node = sound("a");
        node.ptp.push(PtpHealth {
            device: "ptp0".to_owned(),
            clock: "ice".to_owned(),
            readable: true,
        });
        assert!(all.verify(&[node]).is_ok());
    }

    #[test]
    fn each_requirement_names_its_reason() {
        let mut node = unsynchronized("a");
        node.hypervisor = Some("KVM".to_owned());
        if let Ok(counter) = &mut node.counter {
            counter.name = "cntvct".to_owned();
            counter.doubt = Some("doubt".to_owned());
            counter.invariant = false;
        }
        let unmet = options(Requirement::value_variants(), None).unmet(&node);
        assert_eq!(
            unmet,
            [
                "counter is required: doubt",
                "tsc is required: the counter is cntvct",
                "invariant is required: the counter changes its rate with power states",
                "bare-metal is required: this is a virtual machine (KVM)",
                "synchronized is required: no daemon keeps the time of the system synchronized",
                "ptp is required: there is no PTP clock",
            ]
        );
        let Err(Failure::Run(line)) =
            options(&[Requirement::Synchronized], None).verify(&[sound("a"), unsynchronized("b")])
        else {
            panic!("b is not synchronized")
        };
        assert_eq!(
            line,
            "b: synchronized is required: no daemon keeps the time of the system synchronized"
        );
    }

    #[test]
    fn a_rate_is_certain_and_the_kernels() {
        let limit = |ppm| options(&[], Some(ppm));
        assert_eq!(limit(0.5).unmet(&sound("a")), Vec::<String>::new());
        assert_eq!(
            limit(0.25).unmet(&sound("a")),
            [
                "--max-ppm 0.25 is exceeded: the frequency of the counter is certain to 0.500 ppm by ptp0 (ice)"
            ]
        );
        let mut node = sound("a");
        if let Ok(counter) = &mut node.counter {
            counter.kernel_hz = Some(2e9 * (1.0 - 2e-6));
        }
        // 2 ppm of which at least 1.5 are certain.
        assert_eq!(limit(1.6).unmet(&node), Vec::<String>::new());
        assert_eq!(
            limit(1.0).unmet(&node),
            [
                "--max-ppm 1 is exceeded: the counter is +2.000 ppm from the rate that the kernel uses"
            ]
        );
    }

    #[test]
    fn a_frequency_that_is_not_known_meets_no_limit() {
        let mut node = sound("a");
        if let Ok(counter) = &mut node.counter {
            counter.independent = None;
        }
        let unmet = options(&[], Some(1e6)).unmet(&node);
        assert!(unmet[0].contains("is not known"), "{unmet:?}");
        assert!(options(&[], None).verify(&[node]).is_ok());
        assert!(options(&[], None).check().is_ok());
    }

    #[test]
    fn stricter_limits_take_longer() {
        let least = Duration::from_millis(100);
        let lengths = [None, Some(5.0), Some(0.1), Some(1e-9)]
            .map(|ppm| options(&[], ppm).calibration(least).as_nanos() / 1_000_000);
        assert_eq!(lengths, [100, 100, 3_000, 30_000]);
    }
}
