//! Presets: the methods of whole benchmark suites.

#[cfg(test)]
mod call_by_call;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod recorded;
mod values;

use core::fmt;
use core::str::FromStr;

use crate::error::MethodError;
use crate::names::look_up;

/// Method of a benchmark suite: the argument of `--as`.
///
/// A preset reproduces the measurement method of a suite, but neither its operations nor its output: operations, sizes and
/// datatypes are chosen separately. All ranks call the operation, as for collectives; a suite's programs for messages
/// between two ranks are not covered.
///
/// # Methods
/// | preset | suite | warm-up | repetitions | barriers | reported | root |
/// |---|---|---|---|---|---|---|
/// | `osu` | OSU Micro-Benchmarks 7.5 | 100 calls; 10 above 8,192 bytes | 1,000; 100 above 8,192 bytes | one between calls, not timed | mean of each rank; of these mean, least, greatest | 0 |
/// | `imb` | Intel MPI Benchmarks 4.0.2 | a series of 2 | a series of 1,000, or of 40 MiB / size, at least 1; fewer if it would exceed 10 s | two before the series | as OSU | changes with every call |
/// | `phloem` | Phloem 1.0.0, mpiBench | 1 call | a series of 1,000; fewer if it would exceed 50 ms | one before the series, one after each call, timed with it | as OSU | 0 |
/// | `skampi` | SKaMPI 5 | those that determine the window | batches of 8 until the standard error is within 3 % of the mean; at most 32 | none: time windows | mean and errors of the middle half of the calls, by their slowest rank | 0 |
/// | `nbcbench` | NBCBench 1.1 | those that determine the window | 100 (*) | none: time windows | median of each rank (*); of these the greatest | 0 (*) |
/// | `mpibench` | MPIBench 1.0beta | none (*) | 1,000 (*) | one before each call | mean, least and greatest of all ranks' calls within twice the 99th percentile | 0 (*) |
/// | `mpiblib` | MPIBlib 1.2.0 | none | until the mean's 95 % interval is within 2.5 % of it; 5 at least, 100 (*) at most | one before each call | mean, least and greatest of the calls, by their slowest rank; interval of the mean | 0 |
/// | `mpicroscope` | mpicroscope 1.0 | none (*) | at most 1,000 (*); after every 100 (*) without a new least time 100 fewer | one before each call | as MPIBlib | 0 (*) |
/// | `mpptest` | mpptest 1.5, goptest | one call before each series | series of 50, until 3 after the fourth are within 5 % of the minimum; 30 at most | one before the series, after the warm-up call | minimum of rank 0's means | changes with every call |
/// | `reprompi` | ReproMPI, as of 2018 | none | as many as fit into 5 s, a million (*) at most | none: a common start for every call | median, quartiles, mean, minimum, maximum | 0 |
///
/// (*) Not found in public sources of the suite, or not set there: our choice.
///
/// A changing root is the number of the call in its series, modulo the number of ranks: see [`rotates_root`].
///
/// # Sources and differences
/// Except for the last preset, barriers and reported figures are from section 2 of Hunold 2016,
/// which also names the versions. The rest:
/// * **OSU**: the sources of 7.5. Old versions warm up with 200 calls. OSU has the barrier after a call, this preset
///   before it: the same sequence, except for one or two barriers at its ends. OSU has no barriers when the barrier itself
///   is measured; this preset has them.
/// * **IMB**: Intel's user guides for 3.2.4 and 4.0, and `IMB_settings.h`. The 2 warm-up calls are known from programs
///   that imitate IMB. It warms up with 4 bytes instead of the measured size, and determines in another way how many calls
///   fit into 10 s; this preset tries five calls. Versions since 2016 time each call by itself.
/// * **Phloem**: the sources of `mpiBench` from when it still timed its barriers. It tries five calls, too, but if only
///   these fit into 50 ms, it reports them and makes no further calls.
/// * **SKaMPI**: the sources of 5 and their `skampi_coll.ski`; without a script, the bounds are 10 %, 8 and 33. By
///   default it measures in windows, and determines their size by doubling it; this preset uses twice the 90th percentile
///   of 32 calls after barriers, which also are the warm-up.
/// * **NBCBench**: a synchronization by its author (2009) whose functions are named after it. It has windows of 1.25
///   times the expected duration of a call, and in each a barrier before the wait for its start; this preset has the
///   windows of SKaMPI.
/// * **MPIBench**: only the article, which has the rule for outliers.
/// * **MPIBlib**: its documentation for the least number; the sources of `MPIB_measure_max` for the bounds. The comments
///   announce a double barrier, but the code has a single one for each call. Other versions make at least 30 and at most
///   1,000 calls.
/// * **mpicroscope**: only the article.
/// * **mpptest**: the sources of `goptest`, its program for collectives. It also has a barrier after every series, and
///   looks for the minimum by rank 0's mean; this preset uses that of the slowest rank.
/// * **ReproMPI**: algorithm 5 and section V of the article on hierarchical clock synchronization (2018), and its
///   sources for the 1.2 broadcasts between the announcement of a start and the start. The sources have a barrier before
///   the announcement, the algorithm has none.
///
/// ```
/// use downbeat_measure::{Preset, Stopping};
///
/// let osu: Preset = "osu".parse()?;
/// assert_eq!(osu.method(8).stopping, Stopping::Count { most: 1_000 });
/// assert_eq!(osu.method(1 << 20).stopping, Stopping::Count { most: 100 });
/// # Ok::<(), downbeat_measure::MethodError>(())
/// ```
///
/// [`rotates_root`]: Self::rotates_root
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// OSU Micro-Benchmarks.
    Osu,
    /// Intel MPI Benchmarks.
    Imb,
    /// Phloem MPI Benchmarks.
    Phloem,
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
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 10] = [
        Self::Osu,
        Self::Imb,
        Self::Phloem,
        Self::Skampi,
        Self::NbcBench,
        Self::MpiBench,
        Self::MpiBlib,
        Self::Mpicroscope,
        Self::Mpptest,
        Self::ReproMpi,
    ];

    /// Name in options and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Osu => "osu",
            Self::Imb => "imb",
            Self::Phloem => "phloem",
            Self::Skampi => "skampi",
            Self::NbcBench => "nbcbench",
            Self::MpiBench => "mpibench",
            Self::MpiBlib => "mpiblib",
            Self::Mpicroscope => "mpicroscope",
            Self::Mpptest => "mpptest",
            Self::ReproMpi => "reprompi",
        }
    }

    /// Returns true if call `i` of a series has rank `i` modulo the number of ranks as its root, if the operation has a root.
    /// Otherwise the root is always rank 0.
    pub const fn rotates_root(self) -> bool {
        matches!(self, Self::Imb | Self::Mpptest)
    }
}

/// Writes the [name](Self::name).
impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        look_up("preset", text, Self::ALL, Self::name)
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
                let method = preset.method(bytes);
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
