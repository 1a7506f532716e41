//! The methods of whole benchmark suites, each in one word.

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

/// The method of a benchmark suite: what `--as` takes.
///
/// A preset repeats how a suite measures, not what it measures nor how it prints: operations, sizes and datatypes are
/// chosen apart from it. All ranks call the operation, as collectives do; programs that a suite has for messages
/// between two ranks are not meant here.
///
/// # What each does
/// | preset | suite | warm-up | repetitions | barriers | reported | root |
/// |---|---|---|---|---|---|---|
/// | `osu` | OSU Micro-Benchmarks 7.5 | 100 calls; 10 above 8,192 bytes | 1,000; 100 above 8,192 bytes | one between calls, not timed | mean of each rank; of these mean, least, greatest | 0 |
/// | `imb` | Intel MPI Benchmarks 4.0.2 | a series of 2 | a series of 1,000, or of 40 MiB / size, but of 1 at least; fewer if 10 s would not do | two before the series | as OSU | changes with every call |
/// | `phloem` | Phloem 1.0.0, mpiBench | 1 call | a series of 1,000; fewer if 50 ms would not do | one before the series, one after each call, timed with it | as OSU | 0 |
/// | `skampi` | SKaMPI 5 | those that find the window | batches of 8 until the standard error is within 3 % of the mean; at most 32 | none: windows of time | mean and errors of the middle half of the calls, by their slowest rank | 0 |
/// | `nbcbench` | NBCBench 1.1 | those that find the window | 100 (*) | none: windows of time | median of each rank (*); of these the greatest | 0 (*) |
/// | `mpibench` | MPIBench 1.0beta | none (*) | 1,000 (*) | one before each call | mean, least and greatest of all ranks' calls within twice the 99th percentile | 0 (*) |
/// | `mpiblib` | MPIBlib 1.2.0 | none | until the mean's 95 % interval is within 2.5 % of it; 5 at least, 100 (*) at most | one before each call | mean, least and greatest of the calls, by their slowest rank; interval of the mean | 0 |
/// | `mpicroscope` | mpicroscope 1.0 | none (*) | at most 1,000 (*); after every 100 (*) without a new least time 100 fewer | one before each call | as MPIBlib | 0 (*) |
/// | `mpptest` | mpptest 1.5, goptest | one call before each series | series of 50, until 3 beyond the fourth are within 5 % of the least one; 30 at most | one before the series, behind the call for warm-up | least of rank 0's means | changes with every call |
/// | `reprompi` | ReproMPI, as of 2018 | none | what 5 s allow, a million (*) at most | none: a common start for every call | median, quartiles, mean, least, greatest | 0 |
///
/// (*) Not found in what is public of the suite, or not set there: a choice of ours.
///
/// A root that changes is that of the call's number in its series, modulo the number of ranks: [`rotates_root`].
///
/// # Where this is from, and where it differs
/// What barriers there are and what is reported is for all but the last from section 2 of Hunold and Carpen-Amarie,
/// "Reproducible MPI Benchmarking Is Still Not As Easy As You Think" (2016), which also names the versions. The rest:
/// * **OSU**: the sources of 7.5. Old versions warm up with 200 calls. There the barrier is behind a call, and here it
///   is before it: the same sequence, but for a barrier or two at its ends. OSU has none where the barrier itself is
///   measured; here there is one.
/// * **IMB**: Intel's user guides for 3.2.4 and 4.0, and `IMB_settings.h`. That it is 2 calls that warm up is known
///   from programs that imitate it. It warms up with 4 bytes, not with the size that is measured, and finds out in
///   another way what fits into 10 s: here five calls are tried. Versions from 2016 on time each call by itself.
/// * **Phloem**: the sources of `mpiBench` from when it still timed its barriers. It tries five calls, too, but if no
///   more than these fit into 50 ms, it reports them and calls no others.
/// * **SKaMPI**: the sources of 5 and their `skampi_coll.ski`; without a script, the bounds are 10 %, 8 and 33. It
///   measures in windows unless it is told otherwise, and finds their size by doubling it; here it is twice what most
///   of 32 calls take behind barriers, so that these calls warm up.
/// * **NBCBench**: a synchronization by its author (2009) whose functions are named after it. It has windows of 1.25
///   times what a call is expected to take, and in each a barrier before the wait for its start; here they are as for
///   SKaMPI.
/// * **MPIBench**: nothing but the article. Its rule for outliers is there.
/// * **MPIBlib**: its documentation for the least number; the sources of `MPIB_measure_max` for the bounds. They
///   promise a double barrier and have a single one for each call. Other versions make 30 calls at least and 1,000 at
///   most.
/// * **mpicroscope**: nothing but the article.
/// * **mpptest**: the sources of `goptest`, its program for collectives. It has a barrier behind every series, too,
///   and judges by rank 0's mean whether the least one is found; here it is the slowest rank's.
/// * **ReproMPI**: algorithm 5 and section V of the article on hierarchical clock synchronization (2018), and its
///   sources for the 1.2 broadcasts between the announcement of a start and the start. They have a barrier before the
///   announcement, the algorithm has none.
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
    /// Hoefler's.
    NbcBench,
    /// Grove's and Coddington's.
    MpiBench,
    /// Lastovetsky's.
    MpiBlib,
    /// Träff's.
    Mpicroscope,
    /// Gropp's and Lusk's.
    Mpptest,
    /// Hunold's and Carpen-Amarie's.
    ReproMpi,
}

impl Preset {
    /// All there are.
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

    /// As it is written.
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

    /// Whether call `i` of a series has rank `i`, modulo their number, as its root, where the operation has one.
    /// Otherwise the root stays rank 0.
    pub const fn rotates_root(self) -> bool {
        matches!(self, Self::Imb | Self::Mpptest)
    }
}

/// As it is written in options and records.
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
    fn names_are_read_as_they_are_written() {
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
    fn methods_make_sense_for_all_sizes() {
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
