//! Racks and islands of the hosts of a job: by a file, or by the switches that Slurm names.

use std::path::Path;

use downbeat_common::{Failure, agree_blocking, read_text};
use downbeat_sync::{Comm, NodePlace, NodePlaces, PlaceLevel, block_on_ready, collective};

/// Units above the node of this rank.
pub(crate) struct AboveNodes {
    pub(crate) place: NodePlace,
    /// Levels whose units are known.
    pub(crate) levels: Vec<PlaceLevel>,
}

const LEVELS: [PlaceLevel; 2] = [PlaceLevel::Island, PlaceLevel::Rack];

impl AboveNodes {
    /// Finds the units, if they are known. All ranks call this; rank 0 knows the `hosts` of all and reads the file.
    pub(crate) fn find(
        all: &impl Comm,
        file: Option<&Path>,
        hosts: &[String],
    ) -> Result<Self, Failure> {
        match file {
            Some(path) => Self::by_file(all, path, hosts),
            None => Self::by_slurm(all),
        }
    }

    fn by_file(all: &impl Comm, path: &Path, hosts: &[String]) -> Result<Self, Failure> {
        let failure =
            |why: String| Failure::option("--places", format!("{}: {why}", path.display()));
        let read = || -> Result<_, Failure> {
            let text = read_text(path).map_err(|why| Failure::option("--places", why))?;
            let places: NodePlaces = text.parse().map_err(|why| failure(format!("{why}")))?;
            let of_host = |host: &String| {
                let place = places.of_host(host);
                place.ok_or_else(|| failure(format!("host {host} has no line")))
            };
            let of_ranks: Vec<NodePlace> = hosts.iter().map(of_host).collect::<Result<_, _>>()?;
            Ok((LEVELS.map(|level| places.has(level)), of_ranks))
        };
        let first = all.rank() == 0;
        let found = agree_blocking(all, if first { read().map(Some) } else { Ok(None) })?;
        let (known, of_ranks) = found.unwrap_or_default();
        let known = block_on_ready(collective::broadcast(all, known))?;
        let send = |(to, place): (u32, &NodePlace)| {
            block_on_ready(all.send(to, [place.island, place.rack]))
        };
        (0..)
            .zip(&of_ranks)
            .try_for_each(send)
            .map_err(Failure::run)?;
        let [island, rack]: [u32; 2] = block_on_ready(all.recv(0))?;
        let place = NodePlace { island, rack };
        let is_known = |(level, known): (_, bool)| known.then_some(level);
        Ok(Self {
            place,
            levels: LEVELS.into_iter().zip(known).filter_map(is_known).collect(),
        })
    }

    /// Takes the switches that Slurm names, if it does so to all ranks.
    fn by_slurm(all: &impl Comm) -> Result<Self, Failure> {
        let found = NodePlace::of_slurm();
        let unknown = collective::lowest_rank_where(all, found.is_none());
        let unknown = block_on_ready(unknown).map_err(Failure::run)?;
        let place = found.filter(|_| unknown.is_none());
        Ok(Self {
            place: place.unwrap_or_default(),
            levels: place.map_or_else(Vec::new, |_| LEVELS.to_vec()),
        })
    }
}
