//! Presets: the methods of whole benchmark suites.

#[cfg(test)]
mod call_by_call;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod recorded;
mod values;

use crate::names::name_values;

/// Method of a benchmark suite: the argument of `--as`.
///
/// A preset reproduces the measurement method of a suite, and for MPI its datatypes, but not its output. All ranks call the
/// operation, as for collectives; a suite's programs for messages between two ranks are not covered.
///
/// # Methods
/// | preset | suite | warm-up | repetitions | barriers | reported | root |
/// |---|---|---|---|---|---|---|
/// | `osu` | OSU Micro-Benchmarks 7.5 | 100 calls; 10 above 8,192 bytes | 1,000; 100 above 8,192 bytes | one after each call (`reduce`: before it; `barrier`: none), not timed | mean of each rank; of these mean, least, greatest | 0 |
/// | `imb` | Intel MPI Benchmarks 2021.7 | a tenth of the repetitions | 1,000, or 40 MiB / size, at least 1; fewer if they would exceed 10 s | two before a loop, one after each call, not timed (`barrier`: a series without) | as OSU | 0 |
/// | `imb-4.0` | Intel MPI Benchmarks 4.0.2 | a series of 2 | a series of that many | two before the series | as OSU | changes with every call |
/// | `phloem` | Phloem 1.0.0, mpiBench 1.5 | 1 call | a series of 1,000; fewer if it would exceed 50 ms | one before the series, one after each call, timed with it (`barrier`: none) | as OSU | 0 |
/// | `phloem-1.6` | mpiBench 1.6, of Phloem 1.4.5 | 1 call | 1,000; fewer if they would exceed 50 ms | one before the loop; one of messages after each call, not timed (`barrier`: a series without) | as OSU | 0 |
/// | `skampi` | SKaMPI 5 | those that determine the window | batches of 8 until the standard error is within 3 % of the mean; at most 32 | none: time windows | mean and errors of the middle half of the calls, by their slowest rank | 0 |
/// | `nbcbench` | NBCBench 1.1 | those that determine the window | 50 | none: time windows | median of each rank (*); of these the greatest | 0 (*) |
/// | `mpibench` | MPIBench 1.0beta | none (*) | 1,000 (*) | one before each call | mean, least and greatest of all ranks' calls within twice the 99th percentile | 0 (*) |
/// | `mpiblib` | MPIBlib 1.2.0 | none | until the mean's 95 % interval is within 2.5 % of it; 5 at least, 100 (*) at most | one before each call | mean, least and greatest of the calls, by their slowest rank; interval of the mean | 0 |
/// | `mpicroscope` | mpicroscope 1.0 | none (*) | at most 1,000 (*); after every 100 (*) without a new least time 100 fewer | one before each call | as MPIBlib | 0 (*) |
/// | `mpptest` | mpptest 1.5, goptest | one call before each series (`barrier`: none) | series of 50, until 3 after the fourth are within 5 % of the minimum; 30 at most | one before the series, after the warm-up call, and one after the series | minimum of rank 0's means | changes with every call |
/// | `reprompi` | ReproMPI, its newest Round-Time | none | 500 within 2 s (*) | one before each announcement of a common start | median, quartiles, mean, minimum, maximum | 0 |
/// | `reprompi-2018` | ReproMPI, as in the article of 2018 | none | as many as fit into 5 s, a million (*) at most | none: a common start for every call | as `reprompi` | 0 |
///
/// (*) Not found in public sources of the suite, or not set there: our choice.
///
/// A changing root is the number of the call in its series, modulo the number of ranks: see [`rotates_root`].
///
/// # Sources and differences
/// Barriers and reported figures of the versions that section 2 of Hunold 2016 names are from there. The rest:
/// * **OSU**: the sources of 7.4 and 7.5. Old versions warm up with 200 calls, and `reduce` has the barrier after the call. A
///   barrier before the first call of most programs is left out. 7.5 reduces `MPI_SIGNED_CHAR`, 7.1 to 7.4 `MPI_CHAR`, older ones
///   `MPI_FLOAT`.
/// * **IMB**: the sources of 2021.7, whose calls also are those of 2019 and 2018 except for the warm-up. It determines how many
///   calls fit into 10 s by one call and then as many as fit into a second, which this preset does, too. Its limit for all sizes
///   together and the rule that the number never grows with the size are left out.
/// * **IMB 4.0**: Intel's user guides for 3.2.4 and 4.0, and `IMB_settings.h`. The 2 warm-up calls are known from programs
///   that imitate IMB. It warms up with 4 bytes instead of the measured size, and determines in another way how many calls
///   fit into 10 s; this preset tries five calls.
/// * **Phloem**: the sources of `mpiBench` 1.5 and 1.6; those of Phloem 1.0.0, whose barriers were timed, too, are not public.
///   They try five calls, but if only these fit into 50 ms, they report them and make no further calls.
/// * **SKaMPI**: the sources of 5 and their `skampi_coll.ski`; without a script, the bounds are 10 %, 8 and 33. The standard
///   error is that of the slowest rank's local time of each call. By default it measures in windows, begins with windows of no
///   length, and doubles them; this preset uses twice the 90th percentile of 32 calls after barriers, which also are the warm-up.
/// * **NBCBench**: a synchronization by its author (2009) whose functions are named after it, and the number of repetitions from
///   the module of the MPI Testing Tool that runs it. It has windows of 1.25
///   times the expected duration of a call, and in each a barrier before the wait for its start; this preset has the
///   windows of SKaMPI.
/// * **MPIBench**: only the article, which has the rule for outliers.
/// * **MPIBlib**: its documentation for the least number; the sources of `MPIB_measure_max` for the bounds. The comments
///   announce a double barrier, but the code has a single one for each call. Other versions make at least 30 and at most
///   1,000 calls. It reduces the time of each call at once; this preset collects all times at the end.
/// * **mpicroscope**: only the article.
/// * **mpptest**: the sources of `goptest`, its program for collectives. It looks for the minimum by rank 0's mean; this preset
///   uses that of the slowest rank.
/// * **ReproMPI**: the sources of `hunsa/reprompi-dev`. The program measures behind barriers unless it is told `roundtime`, which
///   this preset is, with the number and time that its guide to guidelines uses. A start is announced three
///   latencies of a broadcast ahead, by messages, and a late call is repeated. It estimates the latency by 10 broadcasts, this
///   preset by 51.
/// * **ReproMPI 2018**: algorithm 5 and section V of the article on hierarchical clock synchronization (2018), and the
///   sources of that time for the 1.2 broadcasts between the announcement of a start and the start. The sources have a barrier
///   before the announcement, the algorithm has none.
///
/// ```
/// use downbeat_measure::Preset;
/// use downbeat_measure::stopping::Stopping;
///
/// let osu: Preset = "osu".parse()?;
/// assert_eq!(osu.method("bcast", 8).stopping, Stopping::Count { most: 1_000 });
/// assert_eq!(osu.method("bcast", 1 << 20).stopping, Stopping::Count { most: 100 });
/// # Ok::<(), downbeat_measure::MethodError>(())
/// ```
///
/// [`rotates_root`]: Self::rotates_root
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// OSU Micro-Benchmarks.
    Osu,
    /// Intel MPI Benchmarks.
    Imb,
    /// Intel MPI Benchmarks 4.0.
    Imb4,
    /// Phloem MPI Benchmarks.
    Phloem,
    /// Phloem MPI Benchmarks with mpiBench 1.6.
    Phloem16,
    /// Special Karlsruher MPI-Benchmark.
    Skampi,
    /// Hoefler's NBCBench.
    NbcBench,
    /// Grove's and Coddington's MPIBench.
    MpiBench,
    /// Lastovetsky's MPIBlib.
    MpiBlib,
    /// Träff's mpicroscope.
    Mpicroscope,
    /// Gropp's and Lusk's mpptest.
    Mpptest,
    /// Hunold's and Carpen-Amarie's ReproMPI.
    ReproMpi,
    /// ReproMPI as in the article of 2018.
    ReproMpi2018,
}

name_values! {
    Preset, "preset":
    Osu = "osu",
    Imb = "imb",
    Imb4 = "imb-4.0",
    Phloem = "phloem",
    Phloem16 = "phloem-1.6",
    Skampi = "skampi",
    NbcBench = "nbcbench",
    MpiBench = "mpibench",
    MpiBlib = "mpiblib",
    Mpicroscope = "mpicroscope",
    Mpptest = "mpptest",
    ReproMpi = "reprompi",
    ReproMpi2018 = "reprompi-2018",
}

impl Preset {
    /// Returns true if call `i` of a series has rank `i` modulo the number of ranks as its root, if the operation has a root.
    /// Otherwise the root is always rank 0.
    pub const fn rotates_root(self) -> bool {
        matches!(self, Self::Imb4 | Self::Mpptest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_parsed() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
        let refused = "OSU".parse::<Preset>().unwrap_err().to_string();
        assert!(
            refused.starts_with("there is no preset \"OSU\"; there are osu, imb, "),
            "{refused}"
        );
    }

    #[test]
    fn methods_are_valid_for_all_sizes() {
        for preset in Preset::ALL {
            for bytes in [0, 1, 8_192, 8_193, 40 << 20, u64::MAX] {
                for operation in ["allreduce", "barrier", "reduce"] {
                    let method = preset.method(operation, bytes);
                    assert_eq!(method.check(), Ok(()), "{preset} of {bytes}");
                    assert_eq!(
                        method.stopping.checked(),
                        Ok(method.stopping),
                        "{preset} of {bytes}"
                    );
                }
            }
        }
    }
}
