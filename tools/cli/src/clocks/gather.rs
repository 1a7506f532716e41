//! Measurements of all time sources.

use downbeat_clock_core::{Clock, ReadOrdering};
use downbeat_common::health::{ClockHealth, RequirementOptions};
use downbeat_common::{CalibrationOptions, Failure, UsedCalibration, output};
use downbeat_timers::calibration::Machine;
use downbeat_timers::cores::{CoreId, allowed_cores, compare_cores, socket_of};
use downbeat_timers::tsc::TscFacts;
use downbeat_timers::{
    ClockUnavailable, CntvctClock, Duration, MachineClock, ReadCost, Resolution, SystemClock,
    SystemClockId, TickRate, Ticks, TscClock,
};

use super::recommend::recommend;
use super::report::{
    CalibrationReport, ClocksReport, CoreAgreement, KernelFactsReport, MachineReport,
    OrderingReport, SourceProperties, SourceReport, TscFactsReport, TscReport,
};

/// Duration of the calibration of the counter.
const CALIBRATION: Duration = Duration::from_millis(100);
/// Number of batches of reads that are timed to find the read cost.
const BATCHES: usize = 1_000;
/// Number of consecutive readings to find the resolution.
const READINGS: u32 = 20_000;
/// Number of exchanges between two cores to compare them.
const EXCHANGES: u32 = 2_000;

/// Name of the source to which doubts about the time stamp counter apply.
const TSC_ORDERED: &str = "TSC, rdtscp";
const CNTVCT: &str = "CNTVCT";

/// A clock and its tick rate.
#[derive(Clone, Copy)]
struct Rated<C> {
    clock: C,
    rate: TickRate,
}

/// Reads a clock as at the start of an interval.
struct Opening<C>(C);

impl<C: Clock> Clock for Opening<C> {
    fn ticks(&self) -> Ticks {
        self.0.open()
    }

    fn grain(&self) -> u64 {
        self.0.grain()
    }
}

/// Reads a clock as at the end of an interval.
struct Closing<C>(C);

impl<C: Clock> Clock for Closing<C> {
    fn ticks(&self) -> Ticks {
        self.0.close()
    }

    fn grain(&self) -> u64 {
        self.0.grain()
    }
}

/// The counter of the processor, if it is usable, its calibration, and the clock to which that refers.
pub(crate) struct Yardsticks {
    pub(crate) counter: Result<MachineClock, ClockUnavailable>,
    pub(crate) known: Option<UsedCalibration>,
    pub(crate) raw: SystemClock,
}

impl Yardsticks {
    pub(crate) fn calibrate(
        options: &CalibrationOptions,
        requirements: &RequirementOptions,
    ) -> Result<Self, Failure> {
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw)
            .or_else(|_| SystemClock::detect(SystemClockId::Monotonic))
            .map_err(Failure::run)?;
        let counter = MachineClock::counter();
        let during = requirements.calibration(CALIBRATION);
        let known = options.calibrate_with_frequency(&counter, &raw, during)?;
        Ok(Self {
            counter,
            known,
            raw,
        })
    }
}

pub(crate) fn gather(
    cores: Option<&[u32]>,
    yardsticks: Yardsticks,
) -> Result<ClocksReport, Failure> {
    let cores = chosen_cores(cores)?;
    let Yardsticks {
        counter,
        known,
        raw,
    } = yardsticks;
    let mut health = ClockHealth::gather(&counter, known.as_ref());
    let facts = TscFacts::gather();
    let yardstick = match (counter, &known) {
        (Ok(clock), Some(known)) => Rated {
            clock,
            rate: known.calibration.rate(),
        },
        _ => Rated {
            clock: MachineClock::System(raw),
            rate: SystemClock::RATE,
        },
    };
    let examine = Examiner {
        yardstick,
        cores: &cores,
    };
    let sources = examine.all_sources();
    let of_counter = |source: &&SourceReport| [TSC_ORDERED, CNTVCT].contains(&&*source.name);
    let mut found = sources.iter().filter(of_counter).flat_map(|s| &s.found);
    let disagreement = found.find_map(|found| found.cores.objection());
    if let (Ok(counter), Some(why)) = (&mut health.counter, disagreement) {
        counter.doubt.get_or_insert(why);
    }
    let recommended = recommend(&sources, |name| {
        if name == TSC_ORDERED {
            let doubt = facts.as_ref().ok().and_then(TscFacts::grave_doubt);
            doubt.map_or(Ok(()), |doubt| Err(doubt.to_string()))
        } else {
            Ok(())
        }
    });
    Ok(ClocksReport {
        schema: "downbeat.clocks",
        version: 1,
        machine: machine(&cores, facts.as_ref().ok()),
        tsc: TscReport {
            doubts: facts
                .iter()
                .flat_map(|facts| facts.doubts().map(|doubt| doubt.to_string()))
                .collect(),
            facts: facts.ok().map(|facts| describe(&facts)),
            calibration: known.map(|known| describe_calibration(&yardstick.clock, known)),
        },
        health,
        sources,
        recommended,
    })
}

fn chosen_cores(chosen: Option<&[u32]>) -> Result<Vec<CoreId>, Failure> {
    let allowed = allowed_cores();
    let Some(chosen) = chosen else {
        return Ok(allowed);
    };
    let mut cores: Vec<CoreId> = Vec::new();
    for core in chosen.iter().copied().map(CoreId) {
        if !allowed.contains(&core) {
            return Err(Failure::option(
                "--cores",
                format!("core {core} does not exist, or this process may not run on it"),
            ));
        }
        if !cores.contains(&core) {
            cores.push(core);
        }
    }
    Ok(cores)
}

/// Examines clocks, and times their reads by the best clock available.
struct Examiner<'a> {
    yardstick: Rated<MachineClock>,
    cores: &'a [CoreId],
}

impl Examiner<'_> {
    fn all_sources(&self) -> Vec<SourceReport> {
        let mut sources = self.tsc_sources();
        sources.push(match CntvctClock::detect() {
            Ok(clock) => {
                let rate = self.yardstick.rate;
                self.source(
                    CNTVCT,
                    &clock,
                    rate,
                    clock.ordering(),
                    [false; 2],
                    self.agreement(&clock, rate),
                )
            }
            Err(why) => unavailable(CNTVCT, why.to_string()),
        });
        for id in SystemClockId::ALL {
            sources.push(match SystemClock::detect(id) {
                Ok(clock) => {
                    let steadiness = [id.can_step(), id.is_slewed()];
                    let cores = self.agreement(&clock, SystemClock::RATE);
                    self.source(
                        id.name(),
                        &clock,
                        SystemClock::RATE,
                        clock.ordering(),
                        steadiness,
                        cores,
                    )
                }
                Err(why) => unavailable(id.name(), why.to_string()),
            });
        }
        sources.push(unavailable(
            "MPI_Wtime",
            "this program is built without MPI".to_owned(),
        ));
        sources
    }

    /// Examines the ways to read the time stamp counter. All read the same counter, so cores are compared once, with ordered
    /// readings: unordered ones contradict each other whether or not the cores agree.
    fn tsc_sources(&self) -> Vec<SourceReport> {
        let names = [
            "TSC, rdtsc",
            TSC_ORDERED,
            "TSC, fenced open",
            "TSC, fenced close",
        ];
        let clock = match TscClock::detect() {
            Ok(clock) => clock,
            Err(why) => {
                return names.map(|name| unavailable(name, why.to_string())).into();
            }
        };
        let (rate, steady, [unordered, ordered, open, close]) =
            (self.yardstick.rate, [false; 2], names);
        let cores = self.agreement(&clock, rate);
        vec![
            self.source(
                unordered,
                &clock.unordered(),
                rate,
                clock.unordered().ordering(),
                steady,
                cores.clone(),
            ),
            self.source(
                ordered,
                &clock,
                rate,
                clock.ordering(),
                steady,
                cores.clone(),
            ),
            self.source(
                open,
                &Opening(clock),
                rate,
                ReadOrdering::Fenced,
                steady,
                cores.clone(),
            ),
            self.source(
                close,
                &Closing(clock),
                rate,
                ReadOrdering::Fenced,
                steady,
                cores,
            ),
        ]
    }

    fn source(
        &self,
        name: &str,
        clock: &impl Clock,
        rate: TickRate,
        ordering: ReadOrdering,
        [can_step, slewed]: [bool; 2],
        cores: CoreAgreement,
    ) -> SourceReport {
        let Some(cost) =
            ReadCost::measure(clock, &self.yardstick.clock, self.yardstick.rate, BATCHES)
        else {
            return unavailable(name, "reads could not be timed".to_owned());
        };
        let resolution = Resolution::measure(clock, READINGS);
        let nanos = |ticks: u64| ticks as f64 * rate.nanos_per_tick();
        let found = SourceProperties {
            ordering: match ordering {
                ReadOrdering::Unordered => OrderingReport::Unordered,
                ReadOrdering::Ordered => OrderingReport::Ordered,
                ReadOrdering::Fenced => OrderingReport::Fenced,
            },
            read_cost_median_ns: cost.median,
            read_cost_p99_ns: cost.p99,
            resolution_ns: resolution.map(|found| nanos(found.step)),
            grain_ns: resolution.map(|found| nanos(found.grain)),
            backwards: resolution.map_or(0, |found| found.backwards),
            can_step,
            slewed,
            cores,
        };
        SourceReport {
            name: name.to_owned(),
            unavailable: None,
            found: Some(found),
        }
    }

    fn agreement<C: Clock + Sync>(&self, clock: &C, rate: TickRate) -> CoreAgreement {
        if self.cores.len() < 2 {
            return CoreAgreement::OneCore;
        }
        let offsets = match compare_cores(clock, rate, self.cores, EXCHANGES) {
            Ok(offsets) => offsets,
            Err(why) => {
                return CoreAgreement::Unknown {
                    why: why.to_string(),
                };
            }
        };
        let apart = offsets
            .iter()
            .filter(|pair| !pair.may_be_zero())
            .max_by_key(|pair| pair.offset.abs());
        match apart {
            Some(pair) => CoreAgreement::Differ {
                core: pair.core.0,
                reference: pair.reference.0,
                offset_ns: pair.offset.as_nanos(),
                half_width_ns: pair.half_width.as_nanos(),
            },
            None => CoreAgreement::Same {
                within_ns: offsets
                    .iter()
                    .map(|pair| pair.bound().as_nanos())
                    .max()
                    .unwrap_or(0),
                pairs: offsets.len(),
            },
        }
    }
}

fn unavailable(name: &str, why: String) -> SourceReport {
    SourceReport {
        name: name.to_owned(),
        unavailable: Some(why),
        found: None,
    }
}

fn machine(cores: &[CoreId], facts: Option<&TscFacts>) -> MachineReport {
    let mut sockets: Vec<_> = cores.iter().filter_map(|core| socket_of(*core)).collect();
    sockets.sort_unstable();
    sockets.dedup();
    MachineReport {
        cpu_model: Machine::this()
            .map_or_else(|_| "unknown".to_owned(), |machine| machine.cpu_model),
        architecture: std::env::consts::ARCH,
        hypervisor: facts.and_then(|facts| facts.hypervisor).map(str::to_owned),
        cores: cores.iter().map(|core| core.0).collect(),
        sockets: (!sockets.is_empty()).then_some(sockets.len()),
    }
}

fn describe(facts: &TscFacts) -> TscFactsReport {
    TscFactsReport {
        invariant: facts.invariant,
        rdtscp: facts.rdtscp,
        tsc_adjust: facts.adjustable,
        stated_hz: facts.stated_hz,
        kernel: facts.kernel.map(|kernel| KernelFactsReport {
            clocksource: kernel.clocksource.to_owned(),
            accepts_tsc: kernel.listed,
            constant_tsc: kernel.constant,
            nonstop_tsc: kernel.nonstop,
            tsc_known_freq: kernel.known_frequency,
        }),
    }
}

fn describe_calibration(counter: &MachineClock, known: UsedCalibration) -> CalibrationReport {
    CalibrationReport {
        counter: counter.name().as_str(),
        title: output::capitalized(counter),
        ticks_per_second: known.calibration.rate().hz(),
        steady_ppm: known.calibration.uncertainty() * 1e6,
        certain_ppm: known.calibration.certain_uncertainty() * 1e6,
        against: known.reference.name(),
        loaded_from: known.file,
    }
}
