//! HlHCA (algorithm 4 of Hunold 2018): one algorithm between the largest units of a cluster, and others within them, to any depth.

use downbeat_clock_core::Clock;

use super::flat::FlatAlgorithm;
use super::local_clock::{LocalClock, RankResult};
use crate::{Comm, CommError, PlaceLevel};

/// Hierarchical synchronization. The first rank of every unit takes part in the level above, and
/// is then the reference of its own unit.
///
/// Its label is `h2hca(NODES,RANKS)` if it has a level of nodes only, `h3hca(NODES,SOCKETS,RANKS)` with one of sockets besides, and else
/// names its levels: `hlhca(rack=RACKS,node=NODES,rank=RANKS)`.
///
/// ```
/// use downbeat_sync::PlaceLevel;
/// use downbeat_sync::algorithm::{Algorithm, Cube, FlatAlgorithm, Hierarchy};
///
/// let cube = FlatAlgorithm::Cube(Cube::default());
/// let hierarchy = Hierarchy::new(PlaceLevel::Node, cube, FlatAlgorithm::Prop).between(PlaceLevel::Rack, cube);
/// let label = Algorithm::Hierarchy(hierarchy).to_string();
/// assert_eq!(label, "hlhca(rack=cube/1000/100,node=cube/1000/100,rank=prop)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hierarchy {
    /// Algorithms between the first ranks of the units of a level, in the order of [`PlaceLevel::ALL`].
    between: [Option<FlatAlgorithm>; PlaceLevel::ALL.len()],
    ranks: FlatAlgorithm,
}

impl Hierarchy {
    /// Creates a hierarchy of one level: an algorithm `between` its units, and one between the `ranks` of each.
    pub fn new(level: PlaceLevel, between: FlatAlgorithm, ranks: FlatAlgorithm) -> Self {
        let alone = Self {
            between: [None; PlaceLevel::ALL.len()],
            ranks,
        };
        alone.between(level, between)
    }

    /// Adds a level, whose units are the largest within those of the level above.
    #[must_use]
    pub fn between(mut self, level: PlaceLevel, algorithm: FlatAlgorithm) -> Self {
        self.between[level as usize] = Some(algorithm);
        self
    }

    /// Returns the levels, from the largest units to the smallest, with the algorithms between them.
    pub fn levels(&self) -> impl Iterator<Item = (PlaceLevel, FlatAlgorithm)> {
        let levels = PlaceLevel::ALL.into_iter().zip(self.between);
        levels.filter_map(|(level, algorithm)| Some((level, algorithm?)))
    }

    /// Returns the algorithm between the ranks of the smallest units.
    pub fn ranks(&self) -> FlatAlgorithm {
        self.ranks
    }

    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &mut LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        // In a box that is gone when the algorithms run.
        let Some(steps) = Box::pin(self.split(me, comm)).await? else {
            return Ok(Ok(me.own()));
        };
        descend(me, &steps).await
    }

    /// Returns for each algorithm the ranks that run it, if this is one of them.
    async fn split<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Option<Vec<(Option<M>, FlatAlgorithm)>>, CommError> {
        let rank = comm.rank();
        let (mut units, mut steps) = (Vec::<M>::new(), Vec::with_capacity(2));
        for (level, algorithm) in self.levels() {
            let around = units.last().unwrap_or(comm);
            // Every rank has a color here, and so a unit.
            let Some(unit) = around
                .split(Some(me.placement.unit_at(level)), rank)
                .await?
            else {
                return Ok(None);
            };
            let takes_part = (unit.rank() == 0).then_some(0);
            steps.push((around.split(takes_part, rank).await?, algorithm));
            units.push(unit);
        }
        steps.push((units.pop(), self.ranks));
        Ok(Some(steps))
    }
}

/// Runs the levels from the coarsest to the finest: each starts from the model of the level before, which becomes that of the clock.
async fn descend<K: Clock, M: Comm>(
    me: &mut LocalClock<'_, K>,
    levels: &[(Option<M>, FlatAlgorithm)],
) -> Result<RankResult, CommError> {
    let mut failure = None;
    for (comm, algorithm) in levels {
        // Skips a level in which this rank takes no part or is alone.
        let Some(comm) = comm.as_ref().filter(|comm| comm.size() > 1) else {
            continue;
        };
        let learned = algorithm.attempt(me, comm).await?;
        failure = failure.or(me.begin_from(learned).err());
    }
    Ok(failure.map_or(Ok(me.own()), Err))
}
