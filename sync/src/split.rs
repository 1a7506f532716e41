//! Assignment of ranks to the groups of a split.

/// Request of one rank in a split. Sorted, requests are in the order of the new groups and of their ranks; those without
/// a color are first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SplitRequest {
    pub(crate) color: Option<u32>,
    pub(crate) key: u32,
    pub(crate) rank: u32,
}

/// Sorts the requests, and returns those of each color in the order of the new ranks.
pub(crate) fn groups(requests: &mut [SplitRequest]) -> impl Iterator<Item = &[SplitRequest]> {
    requests.sort_unstable();
    requests.chunk_by(|a, b| a.color == b.color)
}
