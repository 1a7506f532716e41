//! Factors on which the results of a job depend, as rank 0 knows them.

use downbeat_common::machine;
use downbeat_common::records::Factors;
use downbeat_records::{HOSTS, NODES};
use downbeat_sync::Comm;
use downbeat_timers::skew::SkewSpec;

use crate::Job;
use crate::clock::{CalibratedCounter, JobClockName};
use crate::ranks::JobRanks;

/// Returns the factors of every job: the program, the ranks and their binding, the MPI
/// library and the clock.
pub fn for_job<J: Job>(ranks: &JobRanks<'_, J>, clock: JobClockName) -> Factors {
    let factors = Factors::default()
        .with("program", &J::PROGRAM)
        .with("ranks", &ranks.all.size())
        .with("nodes", &ranks.nodes())
        .with("binding", &ranks.binding());
    ranks.job.add_library(factors).with("clock", &clock)
}

/// Adds where the job runs to the facts: a batch system may continue it elsewhere.
pub fn add_place<J: Job>(ranks: &JobRanks<'_, J>, facts: Factors) -> Factors {
    let mut hosts = ranks.hosts.clone();
    hosts.dedup();
    facts
        .with(HOSTS, &hosts.join(" "))
        .with("cores of ranks", &ranks.cores.join(" "))
        .with("frequencies", &ranks.frequencies.join(" "))
        .with(NODES, &ranks.kinds_of_nodes())
}

/// Returns the factors of every job, with the machine of rank 0 and the configuration of
/// MPI, for experiments that others can repeat.
pub fn for_experiment<J: Job>(ranks: &JobRanks<'_, J>, clock: JobClockName) -> Factors {
    let factors = machine::factors(for_job(ranks, clock), &ranks.governors());
    ranks.job.add_configuration(factors)
}

/// Adds the artificial errors of the clocks, if there are any, with those of each rank.
pub(crate) fn add_skew<J: Job>(
    ranks: &JobRanks<'_, J>,
    spec: Option<&SkewSpec>,
    factors: Factors,
) -> Factors {
    let Some(spec) = spec else { return factors };
    let mut factors = factors.with("skew", spec);
    for (rank, place) in (0..).zip(&ranks.places) {
        let skew = spec.for_clock(spec.clock_of_rank(rank, place.node));
        let text = format!(
            "offset {} ns, drift {} ppm",
            skew.offset.as_nanos(),
            skew.drift * 1e6
        );
        factors = factors.with(&format!("skew of rank {rank}"), &text);
    }
    factors
}

/// Adds the rate of the counter, if it was calibrated; it differs with each calibration.
pub fn add_counter(counter: Option<&CalibratedCounter>, factors: Factors) -> Factors {
    let Some(counter) = counter else {
        return factors;
    };
    let name = counter.time.clock.name();
    let uncertainty_ppm = counter.time.rate_error * 1e6;
    let factors = factors
        .with(&format!("{name}_hz"), &counter.rate().hz())
        .with(&format!("{name}_uncertainty_ppm"), &uncertainty_ppm);
    let counters = counter.agreement.unwrap_or_default();
    let within = counters
        .within
        .map(|within| ("counters_within_ns", within.as_nanos() as f64));
    let swapped = counters.swapped.map(|swapped| {
        [
            ("swapped_counters_ns", swapped.counters),
            ("swapped_method_ns", swapped.method),
            ("swapped_standard_error_ns", swapped.error),
        ]
    });
    let figures = within.into_iter().chain(swapped.into_iter().flatten());
    figures.fold(factors, |factors, (name, value)| factors.with(name, &value))
}
