//! Clusters to simulate: built-in ones, or from a file.

use std::path::Path;

use downbeat_clock_core::Duration;
use downbeat_common::nearest;
use downbeat_common::{Failure, did_you_mean};
use downbeat_sync::sim::{Clocks, Drift, DriftWalk, Network, parse_duration};
use serde::Deserialize;

/// Content of a cluster file. Effects that are left out do not occur: no delay, no drift.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterFile {
    pub(crate) name: String,
    pub(crate) ranks_per_node: u32,
    #[serde(default = "one")]
    pub(crate) sockets_per_node: u32,
    pub(crate) nodes_per_rack: Option<u32>,
    pub(crate) network: Network,
    #[serde(default)]
    clocks: ClocksFile,
}

fn one() -> u32 {
    1
}

/// Built-in clusters, by name.
const KNOWN: [(&str, &str); 7] = [
    ("typical", include_str!("../clusters/typical.toml")),
    ("wandering", include_str!("../clusters/wandering.toml")),
    ("jupiter", include_str!("../clusters/jupiter.toml")),
    ("hydra", include_str!("../clusters/hydra.toml")),
    ("titan", include_str!("../clusters/titan.toml")),
    ("tcp", include_str!("../clusters/tcp.toml")),
    ("cloud", include_str!("../clusters/cloud.toml")),
];

impl ClusterFile {
    /// Finds a built-in cluster by its name, or else reads the file of this name.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        let known = KNOWN.into_iter().find(|(known, _)| *known == name);
        let text = match known {
            Some((_, text)) => text.to_owned(),
            None => downbeat_files::read_text(Path::new(name)).map_err(|why| {
                let names: Vec<&str> = KNOWN.into_iter().map(|(known, _)| known).collect();
                let meant = did_you_mean(nearest(name, names.iter().copied(), 1).first().copied());
                let names = names.join(", ");
                Failure::option(
                    "--cluster",
                    format!("{why}; expected a file or one of {names}{meant}"),
                )
            })?,
        };
        Self::parse(&text).map_err(|why| Failure::option("--cluster", format!("{name}: {why}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|why| {
            let message = why.message().replace('\n', " ");
            match why.span() {
                Some(span) => format!(
                    "line {}: {message}",
                    1 + text[..span.start].matches('\n').count()
                ),
                None => message,
            }
        })
    }

    pub(crate) fn clocks(&self) -> Clocks {
        let file = &self.clocks;
        let wander = |wander: &WanderFile| DriftWalk {
            drift_per_sqrt_second: wander.ppm_after_a_second / 1e6,
            interval: wander.interval,
            lasting: wander.lasting,
        };
        Clocks {
            offset: file.offset,
            drift: match file.drift {
                DriftFile::Within { ppm } => Drift::Within(ppm / 1e6),
                DriftFile::Normal { ppm } => Drift::Normal(ppm / 1e6),
            },
            wander: file.wander.as_ref().map(wander),
            read_cost: file.read_cost,
            granularity: file.granularity,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClocksFile {
    #[serde(deserialize_with = "parse_duration")]
    offset: Duration,
    drift: DriftFile,
    wander: Option<WanderFile>,
    #[serde(deserialize_with = "parse_duration")]
    read_cost: Duration,
    granularity: u64,
}

impl Default for ClocksFile {
    fn default() -> Self {
        Self {
            offset: Duration::ZERO,
            drift: DriftFile::Within { ppm: 0.0 },
            wander: None,
            read_cost: Duration::ZERO,
            granularity: 1,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase", tag = "kind")]
enum DriftFile {
    Within { ppm: f64 },
    Normal { ppm: f64 },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WanderFile {
    ppm_after_a_second: f64,
    #[serde(deserialize_with = "parse_duration")]
    interval: Duration,
    #[serde(deserialize_with = "parse_duration")]
    lasting: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_clusters_are_valid() {
        for (name, text) in KNOWN {
            let cluster = ClusterFile::parse(text).unwrap();
            assert_eq!(cluster.name, name);
            assert_eq!(cluster.network.validate(), Ok(()), "{name}");
            assert_eq!(cluster.clocks().validate(), Ok(()), "{name}");
        }
    }

    #[test]
    fn the_typical_cluster_equals_that_of_the_library() {
        let cluster = ClusterFile::find("typical").unwrap();
        assert_eq!(cluster.network, Network::typical());
        assert_eq!(cluster.clocks(), Clocks::typical());
    }

    #[test]
    fn errors_in_a_file_name_the_line() {
        let good = "name = \"x\"\nranks_per_node = 4\n[network]\nsocket = { latency = \"1us\" }\nnode = { latency = \"1us\" }\n\
                    switch = { latency = \"2us\" }\n[clocks]\ngranularity = 1\n";
        assert!(ClusterFile::parse(good).is_ok());
        let cases = [
            ("ranks_per_node = 4", "ranks_per_node = -4", "line 2: "),
            (
                "ranks_per_node = 4",
                "ranks_per_node = \"four\"",
                "line 2: ",
            ),
            ("[network]", "[netwrok]", "netwrok"),
            (
                "node = { latency = \"1us\" }",
                "node = { latency = \"1\" }",
                "line 5: ",
            ),
            (
                "node = { latency = \"1us\" }",
                "node = { latency = \"1us\", tail = { kind = \"odd\" } }",
                "line 5: ",
            ),
            ("granularity = 1", "granularity = nan", "line 8: "),
            ("granularity = 1", "granularity", "line 8: "),
            ("name = \"x\"", "", "name"),
        ];
        for (from, to, says) in cases {
            let why = ClusterFile::parse(&good.replace(from, to)).unwrap_err();
            assert!(why.contains(says) && !why.contains('\n'), "{to}: {why}");
        }
        assert!(ClusterFile::parse("\u{0}").is_err());
        let (without, _) = good.split_once("[clocks]").unwrap();
        assert_eq!(
            ClusterFile::parse(without).unwrap().clocks(),
            Clocks::perfect()
        );
    }
}
