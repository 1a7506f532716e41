//! Encoding of extremes as integers.

use super::super::LocationId;
use super::super::extremes::Extremes;
use super::super::latencies::Site;
use super::TracePart;

pub(super) fn words_of(seen: &Extremes) -> [u64; 5] {
    let at = seen.at.map_or(u64::MAX, |site| site.location.into());
    let [process, node, beyond] = seen.outside.map(|time| time as u64);
    [seen.latest as u64, at, process, node, beyond]
}

pub(super) fn extremes_of(part: &TracePart, [latest, at, beside @ ..]: &[u64; 5]) -> Extremes {
    let site = |location: u32| -> Site { part.trace.site(LocationId(location)) };
    let at = u32::try_from(*at).ok().map(site);
    Extremes {
        latest: *latest as i64,
        at,
        outside: beside.map(|time| time as i64),
    }
}
