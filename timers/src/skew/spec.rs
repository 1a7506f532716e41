//! Artificial errors of many clocks, as given on the command line.

use core::fmt;
use core::str::FromStr;

use crate::skew::{Skew, SkewStep, SkewWander};
use downbeat_clock_core::Duration;

/// Upper limits of the errors of clocks. Every clock except the first gets its own error within these limits; the first is
/// correct.
///
/// ```
/// use downbeat_timers::Duration;
/// use downbeat_timers::skew::{Skew, SkewSpec};
///
/// let spec: SkewSpec = "offset=1s,drift=20ppm".parse()?;
/// assert_eq!(spec.for_clock(0), Skew::default());
/// assert!(spec.for_clock(1).offset.abs() <= Duration::from_secs(1));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SkewSpec {
    offset: Duration,
    drift_ppm: f64,
    wander_ppm: f64,
    step: Option<SkewStep>,
    seed: u64,
    per_node: bool,
}

impl FromStr for SkewSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut spec = Self::default();
        for part in text.split(',').filter(|part| *part != "none") {
            let (key, value) = part
                .split_once('=')
                .ok_or(format!("\"{part}\" is not of the form KEY=VALUE"))?;
            match key {
                "offset" => spec.offset = value.parse().map_err(|why| format!("offset: {why}"))?,
                "drift" => {
                    spec.drift_ppm = ppm(value).ok_or(format!(
                        "drift: \"{value}\" is not a number of ppm, at most 100000ppm"
                    ))?;
                }
                "wander" => {
                    let is_valid = |ppm: &f64| *ppm >= 0.0;
                    spec.wander_ppm = ppm(value).filter(is_valid).ok_or(format!(
                        "wander: \"{value}\" is not a number of ppm from 0 to 100000ppm"
                    ))?;
                }
                "step" => spec.step = Some(step(value).map_err(|why| format!("step: {why}"))?),
                "seed" => {
                    let why = format!("seed: \"{value}\" is not a whole number");
                    spec.seed = value.parse().map_err(|_| why)?;
                }
                "per" if value == "rank" => spec.per_node = false,
                "per" if value == "node" => spec.per_node = true,
                "per" => return Err(format!("per: \"{value}\" is neither rank nor node")),
                _ => {
                    return Err(format!(
                        "unknown key \"{key}\": expected offset, drift, wander, step, seed or per"
                    ));
                }
            }
        }
        Ok(spec)
    }
}

/// Parses a drift in ppm. A clock may run at most 10 % fast or slow.
fn ppm(text: &str) -> Option<f64> {
    text.strip_suffix("ppm")?
        .trim()
        .parse()
        .ok()
        .filter(|ppm: &f64| (-1e5..=1e5).contains(ppm))
}

fn step(text: &str) -> Result<SkewStep, String> {
    let (by, after) = text
        .split_once('@')
        .ok_or(format!("\"{text}\" is not of the form TIME@TIME"))?;
    let time = |text: &str| {
        text.parse()
            .map_err(|why: downbeat_clock_core::ParseDurationError| why.to_string())
    };
    let after = time(after)?;
    if after < Duration::ZERO {
        return Err(format!(
            "the clock cannot step at {after}, before its begin"
        ));
    }
    Ok(SkewStep {
        by: time(by)?,
        after,
    })
}

impl SkewSpec {
    /// Help text of the option.
    pub const HELP: &str = "Artificial errors of the clocks, at most: offset=TIME, drift=NUMBERppm, wander=NUMBERppm (after \
                            one second), step=TIME@TIME (size and time of a step), seed=NUMBER, per=rank or per=node";

    /// Returns true if the ranks of a node share a clock.
    pub fn is_per_node(&self) -> bool {
        self.per_node
    }

    /// Returns the number of the clock that a rank reads: its node's if the ranks of a node
    /// share a clock, otherwise its own.
    pub fn clock_of_rank(&self, rank: u32, node: u32) -> u32 {
        if self.per_node { node } else { rank }
    }

    /// Returns the error of one clock.
    pub fn for_clock(&self, clock: u32) -> Skew {
        if clock == 0 {
            return Skew::default();
        }
        // The golden ratio spreads the clocks evenly between the extremes, whatever their number.
        let spread = |salt: f64| {
            2.0 * ((f64::from(clock) + self.seed as f64) * 0.618_033_988_75 * salt).fract() - 1.0
        };
        let offset = self.offset.as_nanos() as f64 * spread(1.0);
        Skew {
            offset: Duration::from_nanos_f64(offset).unwrap_or_default(),
            drift: self.drift_ppm * 1e-6 * spread(1.7),
            wander: (self.wander_ppm != 0.0).then_some(SkewWander {
                drift_per_sqrt_second: self.wander_ppm * 1e-6,
                interval: Duration::from_millis(10),
                lasting: Duration::from_secs(600),
                seed: self.seed.wrapping_add(clock.into()),
            }),
            step: self.step,
            ..Skew::default()
        }
    }
}

/// Written as on the command line.
impl fmt::Display for SkewSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            offset,
            drift_ppm,
            wander_ppm,
            step,
            seed,
            per_node,
        } = self;
        write!(
            f,
            "offset={}ns,drift={drift_ppm}ppm,wander={wander_ppm}ppm",
            offset.as_nanos()
        )?;
        if let Some(SkewStep { by, after }) = step {
            write!(f, ",step={}ns@{}ns", by.as_nanos(), after.as_nanos())?;
        }
        write!(
            f,
            ",seed={seed},per={}",
            if *per_node { "node" } else { "rank" }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_skews_are_parsed_and_invalid_ones_refused() {
        let spec: SkewSpec = "offset=2ms,drift=30ppm,wander=0.1ppm,seed=7,step=-1ms@5s,per=node"
            .parse()
            .unwrap();
        assert_eq!(
            (spec.offset, spec.seed, spec.per_node),
            (Duration::from_millis(2), 7, true)
        );
        assert!((spec.drift_ppm - 30.0).abs() < 1e-12 && (spec.wander_ppm - 0.1).abs() < 1e-12);
        assert_eq!(
            spec.step,
            Some(SkewStep {
                by: Duration::from_millis(-1),
                after: Duration::from_secs(5)
            })
        );
        assert_eq!(spec.to_string().parse(), Ok(spec));
        assert_eq!("none".parse(), Ok(SkewSpec::default()));
        let error = |text: &str| text.parse::<SkewSpec>().unwrap_err();
        for text in [
            "",
            "offset",
            "speed=1ppm",
            "drift=1",
            "drift=NaNppm",
            "drift=infppm",
            "drift=8abcppm",
            "seed=-1",
        ] {
            assert!(!error(text).is_empty(), "{text}");
        }
        for text in [
            "step=1ms",
            "step=@",
            "step=1ms@",
            "step=1@2s",
            "step=1ms@-3s",
            "wander=-1ppm",
            "per=core",
            "per=",
        ] {
            assert!(!error(text).is_empty(), "{text}");
        }
        assert_eq!(
            error("offset=8abc"),
            "offset: a duration needs a unit: ns, us, ms, s, min or h"
        );
    }

    #[test]
    fn no_clock_exceeds_the_limits_and_the_first_is_correct() {
        let spec: SkewSpec = "offset=1s,drift=20ppm".parse().unwrap();
        assert_eq!(spec.for_clock(0), Skew::default());
        let skews: Vec<Skew> = (1..100).map(|clock| spec.for_clock(clock)).collect();
        assert!(
            skews.iter().all(
                |skew| skew.offset.abs() <= Duration::from_secs(1) && skew.drift.abs() <= 20e-6
            )
        );
        assert!(
            skews.iter().any(|skew| skew.drift > 10e-6)
                && skews.iter().any(|skew| skew.drift < -10e-6)
        );
    }
}
