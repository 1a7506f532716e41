//! Merged trace of a recording, as text.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::counts::{Counts, add};

/// Counts of all ranks in a trace.
pub(crate) struct MergedTrace {
    ranks: Vec<Counts>,
    /// Sessions in which the clock of each rank was compared.
    sessions: Vec<u64>,
}

impl MergedTrace {
    /// Reads a trace in the text format.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
        Self::parse(&text).ok_or_else(|| format!("{}: no trace", path.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let (mut ranks, mut sessions): (Vec<Counts>, Vec<u64>) = (vec![], vec![]);
        let mut rank_of: Vec<usize> = vec![];
        let mut regions: Vec<&str> = vec![];
        // Region that each location entered last.
        let mut entered: HashMap<usize, &str> = HashMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["location", ..] => {
                    rank_of.push(ranks.len());
                    ranks.push(Counts::default());
                    sessions.push(0);
                }
                ["thread", _, rank, ..] => rank_of.push(rank.parse().ok()?),
                ["region", ..] => regions.push(line.splitn(3, ' ').nth(2)?),
                ["sample", location, session, ..] => {
                    let at = rank_of.get(location.parse::<usize>().ok()?)?;
                    sessions[*at] = session.parse::<u64>().ok()? + 1;
                }
                [location, _, what, ..] if location.starts_with(|c: char| c.is_ascii_digit()) => {
                    let location: usize = location.parse().ok()?;
                    let counts = &mut ranks[*rank_of.get(location)?];
                    // The number of bytes comes last, and is left out where it is
                    // unknown.
                    let end = |length: usize| {
                        let [peer, tag] = [*words.get(3)?, *words.get(5)?];
                        let bytes = words.get(length).unwrap_or(&"-1");
                        Some(format!("{peer} {tag} {bytes}"))
                    };
                    match what {
                        "enter" => {
                            let region = *regions.get(words.get(3)?.parse::<usize>().ok()?)?;
                            entered.insert(location, region);
                            // Those in parentheses are of the tracer.
                            if !region.starts_with('(') {
                                add(&mut counts.calls, region, 1);
                            }
                        }
                        // Calls that found nothing are one region with their number.
                        "note" if words.last() == Some(&"calls") => {
                            let region = entered.get(&location)?;
                            let number = words.get(3)?.parse().ok()?;
                            add(&mut counts.failed, region, number);
                            if let Some(calls) = counts.calls.get_mut(*region) {
                                *calls -= 1;
                            }
                        }
                        "send" => add(&mut counts.sent, &end(6)?, 1),
                        "receive" => add(&mut counts.received, &end(6)?, 1),
                        "receive-complete" => add(&mut counts.received, &end(7)?, 1),
                        "put" | "get" | "atomic" => {
                            let (target, bytes) = (words.get(3)?, words.get(6)?);
                            let access = format!("{what} to {target} of {bytes} bytes");
                            add(&mut counts.accesses, &access, 1);
                        }
                        "access-complete" => counts.completed += 1,
                        "collective-end" | "collective-complete" => {
                            counts.collectives += 1;
                            if let Some(bytes) = words.last().filter(|bytes| **bytes != "0") {
                                add(&mut counts.given, bytes, 1);
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        (!ranks.is_empty()).then_some(Self { ranks, sessions })
    }

    /// Number of sessions of a rank.
    pub(crate) fn sessions(&self, rank: u32) -> u64 {
        self.sessions[rank as usize]
    }

    /// Returns the counts of a rank; the trace must have it.
    pub(crate) fn of(&self, rank: u32) -> &Counts {
        &self.ranks[rank as usize]
    }
}
