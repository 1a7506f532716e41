//! Time that a global clock adds to a reading of its counter, and time of an exchange of
//! two threads: `cargo bench -p downbeat-sync --bench overhead`.

use std::error::Error;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use criterion::Criterion;
use downbeat_clock_core::{Clock, ClockModel, Counter, Local, ModelClock, Timestamp};
use downbeat_sync::pair::{OffsetClient, answer_blocking};
use downbeat_sync::{
    Algorithm, Comm, LocalClock, OffsetAlgorithm, ThreadCluster, ThreadComm, block_on_ready,
};
use downbeat_timers::calibration::calibrate_during;
use downbeat_timers::cores::pin_rank;
use downbeat_timers::{ClockName, MachineClock, SystemClock, SystemClockId};

type Failure = Box<dyn Error + Send + Sync>;

/// Messages before a session, and at the end.
const MEASURE: u64 = 1;
const STOP: u64 = 0;

/// Number of exchanges of a session.
const EXCHANGES: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);

fn main() -> Result<(), Failure> {
    let clock = MachineClock::detect(ClockName::Recommended)?;
    let reference = SystemClock::detect(SystemClockId::Monotonic)?;
    let calibration = calibrate_during(
        &clock,
        &reference,
        downbeat_clock_core::Duration::from_millis(20),
    )?;
    let base = ClockModel::through(clock.ticks(), Timestamp::ORIGIN, calibration.rate())?;
    let ended = ThreadCluster::new(2)
        .pin(pin_rank)
        .run(|comm| measure(&clock, base, comm))?;
    ended.into_iter().collect::<Result<(), Failure>>()?;
    Criterion::default().configure_from_args().final_summary();
    Ok(())
}

fn measure(
    clock: &MachineClock,
    base: ClockModel<Counter, Local>,
    comm: &ThreadComm,
) -> Result<(), Failure> {
    let algorithm: Algorithm = "hca3/100/skampi/10".parse()?;
    let synchronized = algorithm.synchronize_blocking(&LocalClock::new(clock, base), comm)?;
    if comm.rank() == 1 {
        // Until the other rank ends.
        while block_on_ready(comm.recv::<u64>(0))? == MEASURE {
            answer_blocking(clock, &base, comm, 0)?;
        }
        return Ok(());
    }
    let mut criterion = Criterion::default().configure_from_args();
    criterion.bench_function("reading/counter", |bencher| {
        bencher.iter(|| clock.ticks());
    });
    let global = ModelClock::new(*clock, synchronized.model);
    criterion.bench_function("reading/global clock", |bencher| {
        bencher.iter(|| global.now());
    });
    let by = OffsetAlgorithm::skampi(EXCHANGES);
    // Between clocks with one rate: a line that was fitted on a busy machine can have another
    // one, which the exchanges of a session would contradict.
    let mut client = OffsetClient::<Local, Local>::new(by, 1)?;
    let mut run_session = || -> Result<(), Failure> {
        block_on_ready(comm.send(1, MEASURE))?;
        client.measure_blocking(clock, &base, comm)?;
        Ok(())
    };
    let mut outcome = Ok(());
    criterion.bench_function("exchange", |bencher| {
        bencher.iter_custom(|exchanges| {
            let sessions = exchanges.div_ceil(EXCHANGES.get().into());
            let began = Instant::now();
            for _ in 0..sessions {
                if outcome.is_ok() {
                    outcome = run_session();
                }
            }
            if outcome.is_err() {
                // Criterion makes its other calls, and expects them to take time.
                return Duration::from_micros(exchanges);
            }
            let made = (sessions * u64::from(EXCHANGES.get())) as f64;
            began.elapsed().mul_f64(exchanges as f64 / made)
        });
    });
    outcome?;
    Ok(block_on_ready(comm.send(1, STOP))?)
}
