//! Synchronization of all ranks by one algorithm, and agreement on its success.

use core::hash::{Hash, Hasher};

use downbeat_clock_core::Clock;

use super::closing::{bound_of_learned, close, messages};
use super::local_clock::Attempt;
use super::watch::Watch;
use super::{Auto, ClosingCost, FlatAlgorithm, Hierarchy, LocalClock, Synchronized, cross_check};
use crate::collective::{agree, all_equal, broadcast};
use crate::quality::Quality;
use crate::session::resolution;
use crate::{Comm, CommError, StatedError, SyncError, block_on_ready};

/// Algorithm that synchronizes the clocks of all ranks.
///
/// Its label has the name of the algorithm and all its parameters; see the variants.
///
/// ```
/// use downbeat_sync::Algorithm;
///
/// for label in ["hca3/1000/skampi/100", "jk/100/mean-rtt/20", "h2hca(hca3/500/skampi/100/recompute,prop)"] {
///     assert_eq!(label.parse::<Algorithm>()?.to_string(), label);
/// }
/// # Ok::<(), downbeat_sync::LabelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// One algorithm for all ranks.
    FlatAlgorithm(FlatAlgorithm),
    /// One algorithm between nodes, and others within them.
    Hierarchy(Hierarchy),
    /// `auto/TIME`: within a stated time, a cube between the first ranks of all nodes,
    /// whom the others follow.
    Auto(Auto),
}

impl Algorithm {
    /// Synchronizes the clocks of all ranks, which all call this with the same algorithm.
    ///
    /// Either all ranks succeed or all fail; none is left waiting. In the end all clocks are compared once more, by a closing
    /// exchange, from which their error bounds follow.
    ///
    /// # Errors
    /// If the ranks call it with different algorithms, if a clock cannot be fitted or stepped, or if a
    /// rank is gone.
    pub async fn synchronize<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Synchronized, SyncError> {
        // In boxes, to limit the memory of suspended ranks, of which there may be a million.
        if !Box::pin(all_equal(comm, self.fingerprint())).await? {
            return Err(SyncError::DifferentAlgorithms);
        }
        let watch = Watch::begin(me);
        let began = me.now();
        let mut named = LocalClock {
            quality: Quality {
                rank: comm.rank(),
                ..me.quality
            },
            ..*me
        };
        let mut report = None;
        let attempt = match self {
            Self::FlatAlgorithm(algorithm) => algorithm.attempt(&named, comm).await?,
            Self::Hierarchy(algorithm) => Box::pin(algorithm.attempt(&mut named, comm)).await?,
            Self::Auto(algorithm) => {
                let (attempt, found) = Box::pin(algorithm.attempt(&mut named, comm)).await?;
                report = Some(found);
                attempt
            }
        };
        let mut attempt = Box::pin(agree(comm, attempt)).await?;
        let compared = me.now();
        let saturation = Box::pin(self.check_stated_error(&named, &mut attempt, comm)).await?;
        let learned = me.now();
        let closed = Box::pin(close(me, &attempt, began, comm)).await?;
        let closed = closed.and_then(|bound| watch.end(me).map(|()| bound));
        let local = Box::pin(agree(comm, closed)).await?;
        let Attempt { model, mut quality } = attempt;
        let bound = bound_of_learned(me, &model, &local, comm.rank());
        // The certain bound holds whatever the scatter is.
        let certain = bound.half_width().as_nanos() as f64;
        let cap = |stated: StatedError| stated.map(|nanos| nanos.min(certain));
        quality.stated_error = quality.stated_error.map(cap);
        let ended = me.now();
        Ok(Synchronized {
            model,
            quality,
            bound,
            closing: ClosingCost {
                messages: messages(comm.size()),
                took: ended - learned,
                compared: learned - compared,
            },
            took: ended - began,
            auto: report,
            saturation,
        })
    }

    /// Makes what is stated about the error of this clock true. Returns the multiple of
    /// its duration that an exchange took while network cards were full.
    async fn check_stated_error<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        attempt: &mut Attempt,
        comm: &M,
    ) -> Result<Option<f64>, CommError> {
        let saturation = match self {
            Self::Auto(_) | Self::FlatAlgorithm(FlatAlgorithm::None) => None,
            _ => {
                let is_cube = matches!(self, Self::FlatAlgorithm(FlatAlgorithm::Cube(_)));
                cross_check::check_around_cycles(is_cube, me, attempt, comm).await?
            }
        };
        let own = resolution(me.clock, &me.base);
        let of_first = broadcast(comm, own).await?;
        if comm.rank() > 0 {
            let step = own.max(of_first).as_nanos() as f64;
            let stated = attempt.quality.stated_error;
            attempt.quality.stated_error = stated.map(|stated| stated.map(|nanos| nanos.max(step)));
        }
        Ok(saturation)
    }

    /// Same as [`synchronize`](Self::synchronize), for a communicator that does not suspend.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn synchronize_blocking<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Synchronized, SyncError> {
        block_on_ready(self.synchronize(me, comm))
    }

    /// Hash that is equal for equal algorithms, in all processes of a program.
    fn fingerprint(&self) -> u64 {
        #[expect(
            deprecated,
            reason = "the one hasher of the standard library that is the same in all processes"
        )]
        let mut hasher = core::hash::SipHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
