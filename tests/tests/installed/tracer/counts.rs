//! Counts of what a program did, as it wrote them itself or as its trace has them.

use std::collections::BTreeMap;

type Numbers = BTreeMap<String, u64>;

/// Counts of one rank.
#[derive(Default)]
pub(crate) struct Counts {
    /// Calls by name, without those that found nothing.
    pub(crate) calls: Numbers,
    /// Tests and probes that found nothing.
    pub(crate) failed: Numbers,
    /// Messages by receiver, tag and length.
    pub(crate) sent: Numbers,
    /// Messages by sender, tag and length.
    pub(crate) received: Numbers,
    /// One-sided accesses by kind, target and bytes.
    pub(crate) accesses: Numbers,
    /// Accesses that are complete.
    pub(crate) completed: u64,
    /// Collective operations that are complete, except on neighbours.
    pub(crate) collectives: u64,
    /// Those to which the rank gave data, by their length; only programs in C count them.
    pub(crate) given: Numbers,
}

impl Counts {
    /// Reads the file of a program: see `counts.h`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut counts = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            // Other lines end with indices, which can be negative.
            let Ok(number) = words.last()?.parse() else {
                continue;
            };
            match words[..] {
                ["call", name, _] => add(&mut counts.calls, name, number),
                ["failed", name, _] => add(&mut counts.failed, name, number),
                ["sent", rank, tag, bytes, _] => {
                    add(&mut counts.sent, &format!("{rank} {tag} {bytes}"), number);
                }
                ["received", rank, tag, bytes, _] => {
                    add(
                        &mut counts.received,
                        &format!("{rank} {tag} {bytes}"),
                        number,
                    );
                }
                ["given", bytes, _] => add(&mut counts.given, bytes, number),
                ["rma", name, target, bytes, _] => {
                    let kind = match name {
                        "MPI_Put" | "MPI_Rput" => "put",
                        "MPI_Get" | "MPI_Rget" => "get",
                        _ => "atomic",
                    };
                    let access = format!("{kind} to {target} of {bytes} bytes");
                    add(&mut counts.accesses, &access, number);
                    counts.completed += number;
                }
                ["collective", name, _] if !name.contains("eighbor") => {
                    counts.collectives += number;
                }
                _ => {}
            }
        }
        (!counts.calls.is_empty()).then_some(counts)
    }

    /// Number of all calls.
    pub(crate) fn all_calls(&self) -> u64 {
        self.calls.values().chain(self.failed.values()).sum()
    }

    /// Lists the numbers that differ from those of the trace.
    pub(crate) fn differences(&self, trace: &Self) -> impl Iterator<Item = String> {
        let given = Numbers::new();
        let found = if self.given.is_empty() {
            &given
        } else {
            &trace.given
        };
        let kinds = [
            ("calls of", &self.calls, &trace.calls),
            ("unsuccessful calls of", &self.failed, &trace.failed),
            ("messages to", &self.sent, &trace.sent),
            ("messages from", &self.received, &trace.received),
            ("operations given bytes:", &self.given, found),
            ("accesses", &self.accesses, &trace.accesses),
        ];
        let sums = [
            ("collective operations", self.collectives, trace.collectives),
            ("completed accesses", self.completed, trace.completed),
        ];
        let sums = sums.into_iter().filter(|(_, own, trace)| own != trace);
        let last =
            sums.map(|(kind, own, trace)| format!("{kind}: {own} counted, {trace} in the trace"));
        let lines = kinds.into_iter().flat_map(|(kind, own, trace)| {
            let names: std::collections::BTreeSet<&String> =
                own.keys().chain(trace.keys()).collect();
            names.into_iter().filter_map(move |name| {
                let [own, trace] =
                    [own, trace].map(|numbers| numbers.get(name).copied().unwrap_or(0));
                (own != trace)
                    .then(|| format!("{kind} {name}: {own} counted, {trace} in the trace"))
            })
        });
        lines.chain(last).collect::<Vec<_>>().into_iter()
    }
}

/// Adds to a number.
pub(crate) fn add(numbers: &mut Numbers, name: &str, number: u64) {
    *numbers.entry(name.to_owned()).or_default() += number;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_are_listed() {
        let text = "call MPI_Send 2\nfailed MPI_Test 4\nsent 1 7 80 2\nreceived 0 7 80 1\nrma MPI_Rput 1 8 5\nrma MPI_Put 1 8 1\n\
                    collective MPI_Barrier 3\n\
                    collective MPI_Neighbor_alltoall 1\nindex MPI_Waitany -32766\n";
        let own = Counts::parse(text).unwrap();
        assert_eq!(own.all_calls(), 6);
        assert_eq!(own.differences(&Counts::parse(text).unwrap()).count(), 0);
        let other = text
            .replace("80 2", "80 3")
            .replace("Barrier 3", "Barrier 1")
            .replace("MPI_Test", "MPI_Testany")
            .replace("MPI_Put 1 8 1", "MPI_Put 1 8 2");
        let found: Vec<String> = own.differences(&Counts::parse(&other).unwrap()).collect();
        assert_eq!(found.len(), 6, "{found:?}");
        assert_eq!(found[2], "messages to 1 7 80: 2 counted, 3 in the trace");
        assert_eq!(
            found[3],
            "accesses put to 1 of 8 bytes: 6 counted, 7 in the trace"
        );
        assert!(Counts::parse("").is_none());
    }
}
