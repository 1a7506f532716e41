//! Latencies of messages: the parameters of the simulated network.

use downbeat_clock_core::Duration;
use fastrand::Rng;

use super::parameter::Parameters;
use super::random::{Purpose, exponential, hash, normal, positive_unit, unit};
use crate::{ClusterError, RankPlacement};

/// Latencies between any two ranks of a simulated cluster.
///
/// A message takes processor time of the sender, then the latency of the [`NetworkLink`] of the
/// closest level that the two ranks share, then processor time of the receiver. A message of a rank
/// to itself has no latency.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Network {
    /// Link between ranks that share a socket.
    pub socket: NetworkLink,
    /// Link between ranks that share a node, but no socket.
    pub node: NetworkLink,
    /// Link between nodes of a rack.
    pub switch: NetworkLink,
    /// Link between racks; that within a rack if there is none.
    pub racks: Option<NetworkLink>,
    /// Processor time of the sender before the message leaves.
    #[cfg_attr(feature = "serde", serde(default, deserialize_with = "parse_duration"))]
    pub send_overhead: Duration,
    /// Processor time of the receiver after the message has arrived.
    #[cfg_attr(feature = "serde", serde(default, deserialize_with = "parse_duration"))]
    pub receive_overhead: Duration,
    /// Number of bytes of a message besides its words.
    #[cfg_attr(feature = "serde", serde(default))]
    pub header: u32,
    /// Network card that the ranks of a node share; without one, messages never wait for each
    /// other.
    pub card: Option<NetworkCard>,
}

/// Latency of messages at one level.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct NetworkLink {
    /// Minimum latency.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "parse_duration"))]
    pub latency: Duration,
    /// Nanoseconds per byte.
    #[cfg_attr(feature = "serde", serde(default))]
    pub per_byte: f64,
    /// Maximum of a constant extra latency for each ordered pair of ends (nodes, or ranks of one
    /// node): the two directions differ by up to this much, which no exchange of messages can
    /// reveal.
    #[cfg_attr(feature = "serde", serde(default, deserialize_with = "parse_duration"))]
    pub asymmetry: Duration,
    /// Random delay of every message.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tail: DelayTail,
    /// Random delay of some messages.
    #[cfg_attr(feature = "serde", serde(default))]
    pub bursts: DelayBursts,
}

/// Distribution of a delay that differs from message to message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "lowercase", tag = "kind")
)]
#[non_exhaustive]
pub enum DelayTail {
    /// No delay.
    #[default]
    None,
    /// Log-normally distributed delay.
    LogNormal {
        /// Median of the delay.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "parse_duration"))]
        median: Duration,
        /// Standard deviation of the natural logarithm of the delay.
        sigma: f64,
    },
    /// Delay whose probability to exceed `d` is `(1 + d / scale)^-shape`: a power law that begins
    /// at zero.
    Pareto {
        /// Scale of the power law.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "parse_duration"))]
        scale: Duration,
        /// Exponent: the smaller, the heavier the tail; the mean is infinite up to 1.
        shape: f64,
    },
}

/// Further delays of some messages; exponentially distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "lowercase", tag = "kind")
)]
#[non_exhaustive]
pub enum DelayBursts {
    /// No delay.
    #[default]
    None,
    /// Each message is delayed with the same probability.
    Chance {
        /// Probability of a delay.
        probability: f64,
        /// Mean delay.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "parse_duration"))]
        mean: Duration,
    },
    /// All messages that leave a node during a spell are delayed.
    Spells {
        /// Length of the intervals, each of which has one spell at a random time.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "parse_duration"))]
        every: Duration,
        /// Duration of a spell.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "parse_duration"))]
        lasting: Duration,
        /// Mean delay during a spell.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "parse_duration"))]
        mean: Duration,
    },
}

/// Network card, which transfers one message at a time in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct NetworkCard {
    /// Time for which a message occupies the card.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "parse_duration"))]
    pub gap: Duration,
    /// Additional nanoseconds per byte.
    #[cfg_attr(feature = "serde", serde(default))]
    pub per_byte: f64,
}

/// Parses a duration with its unit, as people write it in files: for `deserialize_with`
/// of serde.
///
/// # Errors
/// If the text is no duration.
#[cfg(feature = "serde")]
pub fn parse_duration<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text: String = serde::Deserialize::deserialize(from)?;
    let parsed = text.parse();
    parsed.map_err(|why| serde::de::Error::custom(format!("\"{text}\": {why}")))
}

impl NetworkLink {
    /// Creates a link on which every message takes the same time.
    pub const fn steady(latency: Duration) -> Self {
        Self {
            latency,
            per_byte: 0.0,
            asymmetry: Duration::ZERO,
            tail: DelayTail::None,
            bursts: DelayBursts::None,
        }
    }

    fn validate(&self, own: Parameters<'_>) -> Result<(), ClusterError> {
        own.no_negative_span("latency", self.latency)?;
        own.not_negative("per_byte", self.per_byte)?;
        own.no_negative_span("asymmetry", self.asymmetry)?;
        match self.tail {
            DelayTail::None => {}
            DelayTail::LogNormal { median, sigma } => {
                own.no_negative_span("tail.median", median)?;
                own.not_negative("tail.sigma", sigma)?;
            }
            DelayTail::Pareto { scale, shape } => {
                own.no_negative_span("tail.scale", scale)?;
                own.positive("tail.shape", shape)?;
            }
        }
        match self.bursts {
            DelayBursts::None => Ok(()),
            DelayBursts::Chance { probability, mean } => {
                own.not_negative("bursts.probability", probability)?;
                let complement = format!("1 - {}", own.0);
                Parameters(&complement).not_negative("bursts.probability", 1.0 - probability)?;
                own.no_negative_span("bursts.mean", mean)
            }
            DelayBursts::Spells {
                every,
                lasting,
                mean,
            } => {
                own.positive("bursts.every", every.as_nanos() as f64)?;
                own.no_negative_span("bursts.lasting", lasting)?;
                own.no_negative_span("bursts.every - lasting", every - lasting)?;
                own.no_negative_span("bursts.mean", mean)
            }
        }
    }

    /// Returns the latency of a message that leaves one end of the link, on `node`, at the time
    /// `at`.
    pub(super) fn delay(&self, ends: LinkEnds, bytes: u32, at: u64, random: &mut Rng) -> u64 {
        let mut nanos = self.latency.as_nanos() as f64 + self.per_byte * f64::from(bytes);
        if self.asymmetry > Duration::ZERO {
            let bits = hash(
                ends.seed,
                Purpose::Asymmetry,
                ends.from.into(),
                ends.to.into(),
            );
            nanos += self.asymmetry.as_nanos() as f64 * unit(bits);
        }
        nanos += match self.tail {
            DelayTail::None => 0.0,
            DelayTail::LogNormal { median, sigma } => {
                median.as_nanos() as f64 * (sigma * normal(random)).exp()
            }
            DelayTail::Pareto { scale, shape } => {
                scale.as_nanos() as f64 * (positive_unit(random).powf(-1.0 / shape) - 1.0)
            }
        };
        nanos += match self.bursts {
            DelayBursts::Chance { probability, mean } if random.f64() < probability => {
                mean.as_nanos() as f64 * exponential(random)
            }
            DelayBursts::Spells {
                every,
                lasting,
                mean,
            } if ends.in_spell(every, lasting, at) => mean.as_nanos() as f64 * exponential(random),
            _ => 0.0,
        };
        // Rounds to the nearest. The cast saturates, and converts NaN (a zero delay times an
        // infinite factor) to zero.
        (nanos + 0.5) as u64
    }
}

/// Ends of a link: nodes, or ranks of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkEnds {
    pub(super) seed: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Node of the sender.
    pub(super) node: u32,
}

impl LinkEnds {
    /// Returns true during a spell of the node. Computed by a hash, so that any time can be
    /// queried.
    fn in_spell(self, every: Duration, lasting: Duration, at: u64) -> bool {
        let (every, lasting) = (every.as_nanos() as u64, lasting.as_nanos() as u64);
        let bits = hash(self.seed, Purpose::Spell, self.node.into(), at / every);
        let begins = (unit(bits) * (every - lasting) as f64) as u64;
        (begins..begins + lasting).contains(&(at % every))
    }
}

impl NetworkCard {
    /// Returns the time for which a message of this many bytes occupies the card.
    pub(super) fn occupied(&self, bytes: u32) -> u64 {
        self.gap.as_nanos() as u64 + (self.per_byte * f64::from(bytes) + 0.5) as u64
    }
}

impl Network {
    /// Returns a network where every message takes the same time in both directions, and none waits
    /// for another: synchronizations are exact except for rounding.
    pub const fn noiseless() -> Self {
        Self {
            socket: NetworkLink::steady(Duration::from_nanos(300)),
            node: NetworkLink::steady(Duration::from_nanos(500)),
            switch: NetworkLink::steady(Duration::from_nanos(1_500)),
            racks: None,
            send_overhead: Duration::from_nanos(50),
            receive_overhead: Duration::from_nanos(50),
            header: 32,
            card: None,
        }
    }

    /// Returns a quiet cluster with a fast network: heavy tails, occasional bursts, directions that
    /// differ by some nanoseconds, and one card per node.
    pub const fn typical() -> Self {
        let Self {
            socket,
            node,
            switch,
            ..
        } = Self::noiseless();
        let within = DelayTail::LogNormal {
            median: Duration::from_nanos(20),
            sigma: 0.8,
        };
        let between = DelayTail::LogNormal {
            median: Duration::from_nanos(180),
            sigma: 1.0,
        };
        let bursts = DelayBursts::Chance {
            probability: 1e-3,
            mean: Duration::from_micros(10),
        };
        let asymmetry = Duration::from_nanos(15);
        Self {
            socket: NetworkLink {
                per_byte: 0.05,
                tail: within,
                ..socket
            },
            node: NetworkLink {
                per_byte: 0.08,
                tail: within,
                ..node
            },
            switch: NetworkLink {
                per_byte: 0.08,
                asymmetry,
                tail: between,
                bursts,
                ..switch
            },
            card: Some(NetworkCard {
                gap: Duration::from_nanos(100),
                per_byte: 0.08,
            }),
            ..Self::noiseless()
        }
    }

    /// Checks that all parameters are in range.
    ///
    /// # Errors
    /// [`ClusterError::Parameter`] with the name of the parameter.
    pub fn validate(&self) -> Result<(), ClusterError> {
        self.socket.validate(Parameters("network.socket."))?;
        self.node.validate(Parameters("network.node."))?;
        self.switch.validate(Parameters("network.switch."))?;
        if let Some(racks) = &self.racks {
            racks.validate(Parameters("network.racks."))?;
        }
        let own = Parameters("network.");
        own.no_negative_span("send_overhead", self.send_overhead)?;
        own.no_negative_span("receive_overhead", self.receive_overhead)?;
        self.card.map_or(Ok(()), |card| {
            own.no_negative_span("card.gap", card.gap)?;
            own.not_negative("card.per_byte", card.per_byte)
        })
    }

    /// Returns the smallest latency between nodes.
    pub(super) fn least_latency(&self) -> u64 {
        let links = [Some(&self.switch), self.racks.as_ref()];
        let latencies = links.into_iter().flatten();
        let latencies = latencies.map(|link| link.latency.as_nanos() as u64);
        latencies.min().unwrap_or_default()
    }

    /// Returns the link between two ranks.
    pub(super) fn link(&self, from: RankPlacement, to: RankPlacement) -> &NetworkLink {
        if from.rack != to.rack {
            self.racks.as_ref().unwrap_or(&self.switch)
        } else if from.node != to.node {
            &self.switch
        } else if from.socket != to.socket {
            &self.node
        } else {
            &self.socket
        }
    }

    /// Returns the number of bytes of a message of this many words.
    pub(super) fn bytes(&self, words: usize) -> u32 {
        self.header
            .saturating_add(u32::try_from(words * size_of::<u64>()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::random::stream;

    const ENDS: LinkEnds = LinkEnds {
        seed: 5,
        from: 1,
        to: 2,
        node: 1,
    };

    fn delays(link: &NetworkLink, messages: u64) -> Vec<f64> {
        let mut random = stream(3, Purpose::Rank, 0);
        let mut delays: Vec<_> = (0..messages)
            .map(|i| link.delay(ENDS, 10, i * 1_000, &mut random) as f64)
            .collect();
        delays.sort_by(f64::total_cmp);
        delays
    }

    #[test]
    fn a_delay_is_the_sum_of_its_parts() {
        let latency = Duration::from_nanos(1_000);
        let mut random = stream(0, Purpose::Rank, 0);
        let steady = NetworkLink {
            per_byte: 2.5,
            ..NetworkLink::steady(latency)
        };
        assert_eq!(steady.delay(ENDS, 10, 0, &mut random), 1_025);

        let asymmetric = NetworkLink {
            asymmetry: Duration::from_micros(1_000),
            ..NetworkLink::steady(latency)
        };
        let there = asymmetric.delay(ENDS, 0, 0, &mut random);
        let back = asymmetric.delay(
            LinkEnds {
                from: 2,
                to: 1,
                ..ENDS
            },
            0,
            0,
            &mut random,
        );
        assert_eq!(there, asymmetric.delay(ENDS, 0, 99, &mut random));
        assert!(
            there != back
                && [there, back]
                    .iter()
                    .all(|delay| (1_000..=1_001_000).contains(delay))
        );
    }

    #[test]
    fn tails_have_the_quantiles_of_their_distributions() {
        let quantile = |tail, share: f64| {
            let delays = delays(
                &NetworkLink {
                    tail,
                    ..NetworkLink::steady(Duration::ZERO)
                },
                100_000,
            );
            delays[(share * delays.len() as f64) as usize]
        };
        let log_normal = DelayTail::LogNormal {
            median: Duration::from_nanos(10_000),
            sigma: 0.5,
        };
        let pareto = DelayTail::Pareto {
            scale: Duration::from_nanos(10_000),
            shape: 2.0,
        };
        // exp(0.5 * 1.2816), and 0.1^(-1/2) - 1.
        for (tail, median, ninth) in [(log_normal, 1.0, 1.8980), (pareto, 0.41421, 2.16228)] {
            for (share, wanted) in [(0.5, median), (0.9, ninth)] {
                let found = quantile(tail, share) / 10_000.0;
                assert!(
                    (found / wanted - 1.0).abs() < 0.02,
                    "{tail:?}: {found} instead of {wanted}"
                );
            }
        }
    }

    #[test]
    fn bursts_delay_the_expected_share_of_messages() {
        let mean = Duration::from_micros(100);
        let chance = DelayBursts::Chance {
            probability: 0.2,
            mean,
        };
        // A spell of 30 us in every 100 us, and a message every 1 us.
        let spells = DelayBursts::Spells {
            every: Duration::from_micros(100),
            lasting: Duration::from_micros(30),
            mean,
        };
        for (bursts, share) in [(chance, 0.2), (spells, 0.3)] {
            let delays = delays(
                &NetworkLink {
                    bursts,
                    ..NetworkLink::steady(Duration::ZERO)
                },
                100_000,
            );
            let hit = delays.iter().filter(|delay| **delay > 0.0).count() as f64 / 1e5;
            let found = delays.iter().sum::<f64>() / (hit * 1e5);
            assert!(
                (hit - share).abs() < 0.01 && (found / 1e5 - 1.0).abs() < 0.03,
                "{bursts:?}: {hit}, {found}"
            );
        }
    }
}
