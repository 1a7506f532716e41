//! Default algorithms: what is used where none is named, and what labels without parameters mean.
//!
//! `auto/100ms` where clocks are synchronized again or kept, `auto/300ms` where they are
//! synchronized once. It suits any number of ranks on any number of nodes, whether or not
//! they share a counter: see [`Auto`].

use core::num::NonZeroU32;

use super::{Algorithm, Auto, Cube, CubeLength, FlatAlgorithm, Hierarchy};
use crate::line::LineFit;
use crate::{LabelError, OffsetAlgorithm, PlaceLevel};

const HUNDRED: NonZeroU32 = NonZeroU32::new(100).unwrap();
const THOUSAND: NonZeroU32 = NonZeroU32::new(1000).unwrap();

impl Default for LineFit {
    /// Returns `1000/skampi/100`.
    fn default() -> Self {
        Self {
            fit_points: THOUSAND,
            offset: OffsetAlgorithm::default(),
            recompute: false,
            weighted: false,
        }
    }
}

impl Default for Cube {
    /// Returns `cube/1000/100`: as many messages of a pair as by `hca3/1000/skampi/100`.
    fn default() -> Self {
        Self {
            length: CubeLength::Turns(THOUSAND),
            exchanges: HUNDRED,
        }
    }
}

impl Default for Hierarchy {
    /// Returns `h2hca(cube/1000/100,prop)`: a cube between nodes, whose ranks share a clock.
    fn default() -> Self {
        let nodes = FlatAlgorithm::Cube(Cube::default());
        Self::new(PlaceLevel::Node, nodes, FlatAlgorithm::Prop)
    }
}

impl Hierarchy {
    /// Returns `h3hca(cube/1000/100,cube/1000/100,prop)`, for nodes whose sockets do not share a clock.
    pub(super) fn three_levels() -> Self {
        let sockets = FlatAlgorithm::Cube(Cube::default());
        Self::default().between(PlaceLevel::Socket, sockets)
    }
}

impl Default for Algorithm {
    /// Returns `auto/100ms`, for clocks that are synchronized again or kept.
    fn default() -> Self {
        Self::Auto(Auto::REPEATED)
    }
}

impl Algorithm {
    /// Algorithm for clocks that are synchronized once: `auto/300ms`.
    pub const SINGLE: Self = Self::Auto(Auto::SINGLE);

    /// Parses a label of clocks that are synchronized once, where `auto` is `auto/300ms`.
    ///
    /// # Errors
    /// If the label is wrong.
    pub fn parse_single(label: &str) -> Result<Self, LabelError> {
        match label {
            "auto" => Ok(Self::SINGLE),
            _ => label.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_automatic_synchronization_takes_longer_where_it_is_the_only_one() {
        let labels = ["auto".parse(), Algorithm::parse_single("auto")];
        let labels = labels.map(|algorithm| algorithm.unwrap().to_string());
        assert_eq!(labels, ["auto/100ms", "auto/300ms"]);
        let named = Algorithm::parse_single("hca3").unwrap();
        assert_eq!(Ok(named), "hca3".parse());
        assert_eq!(Algorithm::default().to_string(), "auto/100ms");
    }
}
