//! Measures an operation of one's own, a sum over all ranks by recursive doubling, by several schemes beside a built-in one. Ranks are
//! threads here; with MPI, they are processes and their communicator is an `MpiComm`, and nothing else changes.

#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;

use downbeat_measure::processing::Processing;
use downbeat_measure::scheme::{EachCall, RoundTime, Scheme, Series};
use downbeat_measure::stopping::Stopping;
use downbeat_measure::{
    BuiltinKind, BuiltinOperation, Clock, ClockBasis, ClockModel, Comm, MeasureContext,
    MeasureError, MessageCoordinator, Method, Operation, ThreadCluster, Timestamp, block_on_ready,
};
use downbeat_sync::CommError;
use downbeat_timers::{SystemClock, SystemClockId};

/// Number of ranks: a power of two.
const RANKS: u32 = 2;

/// The library's own call, with what it needs from one call to the next.
struct Doubling<'a, M> {
    comm: &'a M,
    sum: u64,
}

impl<M: Comm> Operation for Doubling<'_, M> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        let rank = self.comm.rank();
        self.sum = contribution(rank, number);
        for partner in (0..RANKS.ilog2()).map(|step| rank ^ (1 << step)) {
            self.comm.send(partner, self.sum).await?;
            self.sum += self.comm.recv::<u64>(partner).await?;
        }
        Ok(())
    }
}

fn contribution(rank: u32, number: u32) -> u64 {
    u64::from(rank) + u64::from(number)
}

impl<M: Comm> Doubling<'_, M> {
    /// Checks the result before it is measured.
    fn is_right(&mut self) -> Result<bool, CommError> {
        block_on_ready(self.call(5))?;
        let right: u64 = (0..RANKS).map(|rank| contribution(rank, 5)).sum();
        Ok(self.sum == right)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Its ticks are nanoseconds, the same for all threads; processes synchronize their clocks first.
    let clock = SystemClock::detect(SystemClockId::Monotonic)?;
    let model = ClockModel::through(clock.ticks(), Timestamp::ORIGIN, SystemClock::RATE)?;
    let right = ThreadCluster::new(RANKS).run(|comm| Doubling { comm, sum: 0 }.is_right())?;
    for is_right in right {
        if !is_right? {
            return Err("the sum is wrong".into());
        }
    }
    let schemes = [
        Scheme::EachCall(EachCall::default()),
        Scheme::Series(Series::new(5)),
        Scheme::RoundTime(RoundTime::default()),
    ];
    for scheme in schemes {
        let method = Method {
            warm_up: 10,
            scheme,
            stopping: Stopping::Count { most: 200 },
            processing: Processing::Median,
            root: 0,
        };
        let found = ThreadCluster::new(RANKS).run(|comm| {
            let context = MeasureContext {
                comm,
                coordinator: &MessageCoordinator(comm),
                clock: &clock,
                clock_basis: ClockBasis::Global(model),
            };
            let mut own = Doubling { comm, sum: 0 };
            let kind = BuiltinKind::Allreduce;
            let mut builtin = BuiltinOperation { kind, comm };
            let own = method.measure_blocking(&context, &mut own)?;
            let builtin = method.measure_blocking(&context, &mut builtin)?;
            Ok::<_, MeasureError>(own.zip(builtin))
        })?;
        // Rank 0 has the results; `downbeat_records::Journal` writes them where `downbeat compare` finds them.
        for measured in found {
            if let Some((own, builtin)) = measured? {
                let [own, builtin] = [own, builtin].map(|measured| measured.figures[0].nanos);
                println!("{scheme}: own {own:.0} ns, built-in {builtin:.0} ns");
            }
        }
    }
    Ok(())
}
