//! Bias of figures of real threads, whose operation waits for a known time. They differ from run to run, so that nothing is
//! checked.

use core::cell::RefCell;
use std::error::Error;

use downbeat_clock_core::{Clock, ClockModel, Duration, Ticks, Timestamp};
use downbeat_measure::scheme::{EachCall, RoundTime, Scheme, Windows};
use downbeat_measure::{
    ClockBasis, MeasureContext, MeasureError, MessageCoordinator, Operation, RenewableClock,
};
use downbeat_records::stats::Sample;
use downbeat_sync::{Comm, CommError, LocalClock, ThreadCluster, ThreadComm};
use downbeat_timers::cores::{CoreError, allowed_cores, pin_to};
use downbeat_timers::skew::{Skew, SkewedClock};
use downbeat_timers::{SystemClock, SystemClockId};
use fastrand::Rng;

use crate::noise::{MODELS, Noise};
use crate::simulated::method;

/// Nanoseconds of a run-time of 1 by a noise, which is 100 on average.
const SCALE: f64 = 50.0;

/// Work that takes a known time on every rank.
struct Work<'a> {
    clock: &'a SystemClock,
    takes: Box<dyn Iterator<Item = f64> + 'a>,
    log: &'a RefCell<Vec<f64>>,
}

impl Operation for Work<'_> {
    async fn call(&mut self, _: u32) -> Result<(), CommError> {
        let Ticks(begin) = self.clock.ticks();
        let takes = self.takes.next().unwrap_or_default().round();
        self.log.borrow_mut().push(takes);
        while self.clock.ticks().0 - begin < takes as u64 {}
        Ok(())
    }
}

pub(crate) fn table(is_full: bool) -> Result<(), Box<dyn Error>> {
    let cores = allowed_cores();
    let [first, second, ..] = cores[..] else {
        println!("\n(Threads are not measured: they need two cores.)");
        return Ok(());
    };
    println!(
        "\n## Bias of two threads that wait for {} us and more; the clock of one is skewed by 1 s and 20 ppm\n\n\
         | scheme | noise | bias of the median, ns | of the mean, ns | valid |\n|---|---|---|---|---|",
        SCALE / 10.0
    );
    let window = Some(Duration::from_micros(60));
    let schemes = [
        ("round-time", Scheme::RoundTime(RoundTime::default())),
        ("ms1", Scheme::EachCall(EachCall::default())),
        ("ms4", Scheme::Windows(Windows { window })),
    ];
    let noises = [&MODELS[0], &MODELS[3], &MODELS[5], &MODELS[6]];
    for (name, scheme) in schemes {
        for noise in &noises[..if is_full { 4 } else { 1 }] {
            let cores = [first, second];
            let row = measured(scheme, noise, if is_full { 5_000 } else { 50 }, |rank| {
                pin_to(cores[rank as usize])
            })?;
            println!("| {name} | {} | {row} |", noise.name);
        }
    }
    Ok(())
}

/// Measures, and returns the last cells of a row.
fn measured(
    scheme: Scheme,
    noise: &Noise,
    calls: u32,
    pin: impl Fn(u32) -> Result<(), CoreError> + Send + Sync,
) -> Result<String, Box<dyn Error>> {
    let clock = SystemClock::detect(SystemClockId::MonotonicRaw)?;
    let truth = ClockModel::through(clock.ticks(), Timestamp::ORIGIN, SystemClock::RATE)?;
    let skew = Skew {
        offset: Duration::from_secs(1),
        drift: 20e-6,
        ..Skew::default()
    };
    let clocks = [
        SkewedClock::new(clock, truth, Skew::default())?,
        SkewedClock::new(clock, truth, skew)?,
    ];
    let base = SkewedClock::<SystemClock>::nominal_model()?;
    let algorithm = "hca3/1000/skampi/100".parse()?;
    let method = method(scheme, calls);
    let rank = |comm: &ThreadComm| {
        let rank = comm.rank();
        let skewed = &clocks[rank as usize];
        let me = LocalClock::new(skewed, base).source(rank.into());
        let global = RenewableClock::new(comm, me, algorithm, Duration::from_secs(10));
        let clock_basis = match method.needs_global_time() {
            true => ClockBasis::Synchronized(&global),
            false => ClockBasis::Local(base),
        };
        let context = MeasureContext {
            comm,
            coordinator: &MessageCoordinator(comm),
            clock: skewed,
            clock_basis,
        };
        let log = RefCell::default();
        let series = noise.series(Rng::with_seed(1));
        let mut work = Work {
            clock: &clock,
            takes: Box::new(series.map(|takes| SCALE * takes)),
            log: &log,
        };
        let found = method.measure_blocking(&context, &mut work);
        drop(work);
        (found, log.into_inner())
    };
    let mut ranks = ThreadCluster::new(2).pin(pin).run(rank)?;
    let (found, takes) = ranks.remove(0);
    // On a busy machine, every window can be missed.
    if let Err(MeasureError::NothingValid { .. }) = found {
        return Ok(format!("- | - | 0 of {calls}"));
    }
    let found = found?.ok_or("rank 0 has no result")?;
    let observations = &found.observations;
    let known = &takes[takes.len() - observations.len()..];
    let valid = known
        .iter()
        .zip(observations.iter())
        .filter(|(_, call)| call.is_valid());
    let mut known: Vec<f64> = valid.map(|(known, _)| *known).collect();
    let mut times = observations.run_times();
    let (known, times) = (Sample::new(&mut known)?, Sample::new(&mut times)?);
    Ok(format!(
        "{:.1} | {:.1} | {} of {}",
        times.median() - known.median(),
        times.mean() - known.mean(),
        times.len(),
        observations.len()
    ))
}
