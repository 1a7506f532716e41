//! Bias of reported figures, and stated errors of clocks, of simulated ranks.

use core::cell::RefCell;
use std::error::Error;

use downbeat_clock_core::{Duration, Timestamp};
use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{EachCall, RoundTime, Scheme, Series, Windows};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{
    ClockBasis, ClockChecks, MeasureContext, Measurement, MessageCoordinator, Method, Operation,
    Preset, RenewableClock,
};
use downbeat_records::ObservationState;
use downbeat_records::stats::Sample;
use downbeat_sync::sim::{Clocks, Drift, DriftWalk, Network, SimClock, SimCluster, SimComm};
use downbeat_sync::{Comm, CommError, LocalClock, collective};
use fastrand::Rng;

use crate::Checks;
use crate::noise::{MODELS, Noise};

/// Nanoseconds of a run-time of 1 by a noise, which is 100 on average.
const SCALE: f64 = 200.0;

/// Time between two calls, so that clocks drift.
const PAUSE: Duration = Duration::from_millis(1);

/// Operation that all ranks leave a known time after the last has entered.
struct Meeting<'a> {
    comm: &'a SimComm,
    global: &'a RenewableClock<'a, SimComm, SimClock>,
    pause: Duration,
    /// Known run-times: the same on all ranks.
    takes: Box<dyn Iterator<Item = f64> + 'a>,
    log: &'a RefCell<Log>,
}

/// Record of the calls of a rank.
#[derive(Default)]
struct Log {
    /// Numbers of the calls, and run-times in nanoseconds.
    takes: Vec<(u32, f64)>,
    /// Differences of the rank's global clock from true time, in nanoseconds.
    errors: Vec<i64>,
}

impl Operation for Meeting<'_> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        let now = self.comm.true_now();
        let takes = self.takes.next().unwrap_or_default().round();
        {
            let mut log = self.log.borrow_mut();
            log.takes.push((number, takes));
            if let Some(model) = self.global.model() {
                let shown = model.apply(self.comm.clock().ticks_at(now));
                log.errors.push(shown.as_nanos() - now.as_nanos());
            }
        }
        let last = collective::all_reduce(self.comm, now.as_nanos() as u64, u64::max).await?;
        let end = Timestamp::from_nanos(last as i64) + Duration::from_nanos(takes as i64);
        self.comm.pause(end - self.comm.true_now());
        Ok(())
    }

    fn prepare(&mut self) {
        self.comm.pause(self.pause);
    }
}

/// Result of one simulated launch.
pub(crate) struct Launch {
    pub(crate) measured: Measurement,
    /// Known run-times of the valid observations.
    truth: Vec<f64>,
    /// Largest true error of a clock.
    clock_error: Duration,
}

/// Conditions of a launch.
#[derive(Clone)]
pub(crate) struct Conditions<'a> {
    pub(crate) clocks: Clocks,
    pub(crate) noise: &'a Noise,
    /// Factor of all run-times.
    pub(crate) factor: f64,
    pub(crate) algorithm: &'static str,
    pub(crate) seed: u64,
}

impl Launch {
    /// Simulates a launch of four ranks on four nodes.
    pub(crate) fn new(
        method: &Method,
        conditions: &Conditions<'_>,
    ) -> Result<Self, Box<dyn Error>> {
        let Conditions {
            clocks,
            noise,
            factor,
            algorithm,
            seed,
        } = conditions.clone();
        let algorithm = algorithm.parse()?;
        let cluster = SimCluster {
            ranks: 4,
            ranks_per_node: 1,
            sockets_per_node: 1,
            nodes_per_rack: None,
            network: Network::typical(),
            clocks,
            seed,
        };
        // Windows that are found by trials do not know of the pause.
        let pause = match method.scheme {
            Scheme::Windows(Windows { window: None }) => Duration::ZERO,
            _ => PAUSE,
        };
        let local = SimClock::nominal_model()?;
        let program = async |comm: &SimComm| {
            let clock = comm.clock();
            let me = LocalClock::new(&clock, local).source(comm.rank().into());
            let global = RenewableClock::new(comm, me, algorithm, Duration::from_secs(10));
            let clock_basis = match method.needs_global_time() {
                true => ClockBasis::Synchronized(&global),
                false => ClockBasis::Local(local),
            };
            let context = MeasureContext {
                comm,
                coordinator: &MessageCoordinator(comm),
                clock: &clock,
                clock_basis,
            };
            let log = RefCell::default();
            let series = noise.series(Rng::with_seed(seed));
            let mut meeting = Meeting {
                comm,
                global: &global,
                pause,
                takes: Box::new(series.map(|takes| SCALE * factor * takes)),
                log: &log,
            };
            let measured = method.measure(&context, &mut meeting).await;
            drop(meeting);
            (measured, log.into_inner())
        };
        let mut ranks = cluster.run(program)?;
        let (measured, first) = ranks.remove(0);
        let measured = measured?.ok_or("rank 0 has no result")?;
        let differences = ranks.iter().flat_map(|(_, log)| {
            let pairs = log.errors.iter().zip(&first.errors);
            pairs.map(|(own, first)| (own - first).abs())
        });
        let most = differences.max().unwrap_or(0);
        Ok(Self {
            truth: truth(&measured, method, &first.takes),
            measured,
            clock_error: Duration::from_nanos(most),
        })
    }

    /// Returns the reported figure and the true one.
    fn figure(&self, name: &str, which: Truth) -> Result<[f64; 2], Box<dyn Error>> {
        let figure = self
            .measured
            .figures
            .iter()
            .find(|found| found.name == name);
        let mut truth = self.truth.clone();
        let truth = Sample::new(&mut truth)?;
        let known = match which {
            Truth::Median => truth.median(),
            Truth::Mean => truth.mean(),
            Truth::MiddleMean => middle_mean(&truth),
            Truth::Least => truth.quantile(0.0),
        };
        Ok([figure.ok_or("no such figure")?.nanos, known])
    }
}

/// Returns the known run-times of the valid observations, which are the last calls; of series, their means.
fn truth(measured: &Measurement, method: &Method, takes: &[(u32, f64)]) -> Vec<f64> {
    let mean = |calls: &[(u32, f64)]| {
        calls.iter().map(|(_, takes)| takes).sum::<f64>() / calls.len() as f64
    };
    let means: Vec<f64> = match method.scheme {
        Scheme::Series(series) => {
            // Each series counts its calls from 0; so do calls that are not timed before it.
            let runs = takes.chunk_by(|_, (number, _)| *number > 0);
            let all: Vec<f64> = runs.map(mean).collect();
            let of_series = 1 + usize::from(series.untimed > 0);
            all.rchunks(of_series)
                .rev()
                .filter_map(|runs| runs.last().copied())
                .collect()
        }
        _ => takes.iter().map(|(_, takes)| *takes).collect(),
    };
    let observations = &measured.observations;
    let means = &means[means.len() - observations.len()..];
    let valid = means
        .iter()
        .zip(observations.iter())
        .filter(|(_, call)| call.is_valid());
    valid.map(|(mean, _)| *mean).collect()
}

/// Mean of the middle half, as SKaMPI takes it.
fn middle_mean(sample: &Sample<'_>) -> f64 {
    let quarter = sample.len() / 4;
    let middle = &sample.values()[quarter..sample.len() - quarter];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Figure of the known run-times that a reported figure is compared with.
#[derive(Clone, Copy)]
enum Truth {
    Median,
    Mean,
    MiddleMean,
    Least,
}

/// Clocks with their name.
fn all_clocks() -> [(&'static str, Clocks); 5] {
    let perfect = Clocks {
        read_cost: Duration::from_nanos(20),
        ..Clocks::perfect()
    };
    let drifting = Clocks {
        offset: Duration::from_millis(1),
        drift: Drift::Within(20e-6),
        ..perfect.clone()
    };
    let wandering = Clocks {
        wander: Some(DriftWalk {
            drift_per_sqrt_second: 2e-8,
            interval: Duration::from_millis(10),
            lasting: Duration::from_secs(120),
        }),
        ..drifting.clone()
    };
    let steps = |granularity| Clocks {
        granularity,
        ..wandering.clone()
    };
    [
        ("perfect", perfect),
        ("drift of 20 ppm", drifting),
        ("drift and wander", wandering.clone()),
        ("the same, steps of 10 ns", steps(10)),
        ("the same, steps of 1 us", steps(1_000)),
    ]
}

/// Clocks that drift and wander.
pub(crate) fn wandering() -> Clocks {
    let [_, _, (_, clocks), ..] = all_clocks();
    clocks
}

/// Method with a number of observations.
pub(crate) fn method(scheme: Scheme, most: u32) -> Method {
    Method {
        warm_up: 2,
        scheme,
        stopping: Stopping::Count { most },
        processing: Processing::Median,
        root: 0,
    }
}

/// Synchronization of the ordinary cases, and that of the command `bench` for one rank per node.
pub(crate) const QUICK: &str = "hca3/50/skampi/20";
const USUAL: &str = "hca3/1000/skampi/100";

/// Schemes and presets with the reported figures that are compared.
type Compared = (String, Method, Vec<(&'static str, Truth)>);

fn methods(is_full: bool) -> Vec<Compared> {
    let own = |name: &str, scheme, most| {
        let figures = vec![("median", Truth::Median), ("mean", Truth::Mean)];
        (name.to_owned(), method(scheme, most), figures)
    };
    let calls = if is_full { 1_000 } else { 100 };
    let windows = Windows {
        window: Some(PAUSE + Duration::from_micros(150)),
    };
    let mut all = vec![
        own("round-time", Scheme::RoundTime(RoundTime::default()), calls),
        own("ms1", Scheme::EachCall(EachCall::default()), calls),
    ];
    if !is_full {
        return all;
    }
    all.push(own(
        "ms2, series of 100",
        Scheme::Series(Series::new(100)),
        10,
    ));
    all.push(own("ms4", Scheme::Windows(windows), calls));
    let presets = [
        (Preset::Osu, "mean", Truth::Mean),
        (Preset::Imb, "mean", Truth::Mean),
        (Preset::Imb4, "mean", Truth::Mean),
        (Preset::Phloem, "mean", Truth::Mean),
        (Preset::Phloem16, "mean", Truth::Mean),
        (Preset::Skampi, "mean", Truth::MiddleMean),
        (Preset::NbcBench, "max", Truth::Median),
        (Preset::MpiBench, "mean", Truth::Mean),
        (Preset::MpiBlib, "mean", Truth::Mean),
        (Preset::Mpicroscope, "mean", Truth::Mean),
        (Preset::Mpptest, "min", Truth::Least),
        (Preset::ReproMpi, "median", Truth::Median),
        (Preset::ReproMpi2018, "median", Truth::Median),
    ];
    all.extend(presets.map(|(preset, figure, truth)| {
        let label = format!("--as {preset}");
        (label, preset.method("bcast", 8), vec![(figure, truth)])
    }));
    all
}

/// Median bias by Round-Time may exceed that of perfect clocks by this share, or by this time.
const BIAS: f64 = 0.02;
const LEAST_BIAS: f64 = 2.0;

/// Prints the worst bias over all noises, for each method and each kind of clocks.
pub(crate) fn table(is_full: bool, checks: &mut Checks) -> Result<(), Box<dyn Error>> {
    let noises: Vec<&Noise> = match is_full {
        true => MODELS.iter().filter(|noise| noise.memory < 1_000).collect(),
        false => vec![&MODELS[0], &MODELS[6]],
    };
    println!(
        "## Bias of reported figures, of four simulated ranks; run-times of {} us and more\n\n\
         Worst of {} kinds of noise; relative to the known run-times of the same calls. Marked: the launch \
         notes that its clocks may have drifted by more than {} % of the figure.\n\n\
         | method | figure | clocks | bias, ns | bias | valid | true clock error, ns | stated |\n|---|---|---|---|---|---|---|---|",
        SCALE / 10.0,
        noises.len(),
        100.0 * ClockChecks::PERMITTED_SHARE
    );
    for (name, method, figures) in methods(is_full) {
        let mut of_perfect = Vec::new();
        for (clocks_name, clocks) in all_clocks() {
            let mut launches = Vec::new();
            for (seed, noise) in noises.iter().enumerate() {
                let conditions = Conditions {
                    clocks: clocks.clone(),
                    noise,
                    factor: 1.0,
                    algorithm: QUICK,
                    seed: seed as u64,
                };
                let launch = Launch::new(&method, &conditions)?;
                stated_is_above_true(
                    &launch,
                    &format!("{name}, {clocks_name}, {}", noise.name),
                    checks,
                );
                launches.push(launch);
            }
            for (i, (figure, truth)) in figures.iter().enumerate() {
                let worst = worst_bias(&launches, figure, *truth)?;
                println!(
                    "| {name} | {figure} | {clocks_name} | {} |",
                    worst.cells(&launches)
                );
                if clocks_name == "perfect" {
                    of_perfect.push(worst);
                }
                let allowed = (BIAS * worst.truth).max(LEAST_BIAS);
                let beyond = worst.nanos.abs() - of_perfect[i].nanos.abs();
                let is_fine = beyond <= allowed || worst.is_marked;
                checks.require(name != "round-time" || is_fine, || {
                    format!(
                        "{clocks_name}: the {figure} by {name} is wrong by {} ns",
                        worst.nanos
                    )
                });
            }
        }
    }
    if is_full {
        long_group(checks)?;
    }
    Ok(())
}

/// Checks a minute of Round-Time with the synchronization of the command `bench`.
fn long_group(checks: &mut Checks) -> Result<(), Box<dyn Error>> {
    let rounds = Scheme::RoundTime(RoundTime::default());
    let slice = |seconds| Stopping::TimeSlice {
        slice: Duration::from_secs(seconds),
        most: u32::MAX,
    };
    let bias = |clocks, seconds, checks: &mut Checks| -> Result<[f64; 2], Box<dyn Error>> {
        let conditions = Conditions {
            clocks,
            noise: &MODELS[0],
            factor: 1.0,
            algorithm: USUAL,
            seed: 1,
        };
        let method = Method {
            stopping: slice(seconds),
            ..method(rounds, 1)
        };
        let launch = Launch::new(&method, &conditions)?;
        stated_is_above_true(&launch, "a minute", checks);
        let [reported, known] = launch.figure("median", Truth::Median)?;
        Ok([reported - known, known])
    };
    let [(_, perfect), ..] = all_clocks();
    let [of_perfect, _] = bias(perfect, 5, checks)?;
    let [found, known] = bias(wandering(), 60, checks)?;
    println!(
        "\nA minute of Round-Time with {USUAL}, drift and wander: the median is wrong by {found:.1} ns of {known:.0} ns; with perfect \
         clocks by {of_perfect:.1} ns."
    );
    let allowed = (BIAS * known).max(LEAST_BIAS);
    checks.require((found - of_perfect).abs() <= allowed, || {
        format!("a minute: the median is wrong by {found} ns")
    });
    Ok(())
}

pub(crate) fn stated_is_above_true(launch: &Launch, case: &str, checks: &mut Checks) {
    if let Some(stated) = launch.measured.clock_checks {
        let (error, stated) = (launch.clock_error, stated.offset);
        checks.require(error <= stated, || {
            format!("{case}: a clock was wrong by {error}, and {stated} was stated")
        });
    }
}

/// Largest bias of some launches.
#[derive(Clone, Copy)]
struct Bias {
    nanos: f64,
    truth: f64,
    /// True if the launch states that its clocks may have drifted by too large a share.
    is_marked: bool,
}

fn worst_bias(launches: &[Launch], figure: &str, which: Truth) -> Result<Bias, Box<dyn Error>> {
    let biases: Result<Vec<Bias>, Box<dyn Error>> = launches
        .iter()
        .map(|launch| {
            let [reported, truth] = launch.figure(figure, which)?;
            let permitted = ClockChecks::PERMITTED_SHARE * reported;
            let marked = |checks: ClockChecks| checks.drift.as_nanos() as f64 > permitted;
            Ok(Bias {
                nanos: reported - truth,
                truth,
                is_marked: launch.measured.clock_checks.is_some_and(marked),
            })
        })
        .collect();
    let worst = biases?
        .into_iter()
        .max_by(|a, b| a.nanos.abs().total_cmp(&b.nanos.abs()));
    Ok(worst.ok_or("no launches")?)
}

impl Bias {
    /// Returns the cells of the table.
    fn cells(&self, launches: &[Launch]) -> String {
        let count = |state| -> usize {
            let of_launch = |launch: &Launch| launch.measured.observations.count(state);
            launches.iter().map(of_launch).sum()
        };
        let all: usize = launches
            .iter()
            .map(|launch| launch.measured.observations.len())
            .sum();
        let valid = crate::share(count(ObservationState::Valid) as u32, all as u32);
        let checked = launches.iter().filter_map(|launch| {
            Some((
                launch.clock_error.as_nanos(),
                launch.measured.clock_checks?.offset.as_nanos(),
            ))
        });
        let (error, stated) = checked.max().map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |(error, stated)| (error.to_string(), stated.to_string()),
        );
        format!(
            "{:.1} | {:.2} %{} | {valid} | {error} | {stated}",
            self.nanos,
            100.0 * self.nanos / self.truth,
            if self.is_marked { ", marked" } else { "" },
        )
    }
}
