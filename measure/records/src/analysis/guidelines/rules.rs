//! Rules by which an operation must not be slower than others that have the same result, after PGMPI and pgchecker (Hunold,
//! Carpen-Amarie, Träff).

/// Operation that must not be slower than others, one after the other.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) operation: &'static str,
    pub(super) others: &'static [Term],
}

/// Operation on the other side of a rule, and its size.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) operation: &'static str,
    pub(super) size: TermSize,
}

/// Size of an operation whose result is that of another one, by the size of the latter for `n` ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermSize {
    /// The same.
    Same,
    /// `n` times as large: a message for every rank instead of one.
    TimesRanks,
    /// An `n`th, if the size can be divided: the share of a rank.
    OverRanks,
}

impl Rule {
    /// Writes the other side.
    pub(super) fn bound(&self) -> String {
        let term = |term: &Term| match term.size {
            TermSize::Same => term.operation.to_owned(),
            TermSize::TimesRanks => format!("{} of n times the size", term.operation),
            TermSize::OverRanks => format!("{} of 1/n of the size", term.operation),
        };
        let terms: Vec<String> = self.others.iter().map(term).collect();
        terms.join(" + ")
    }
}

impl TermSize {
    /// Returns the size; `None` if there is no such one.
    pub(super) fn of(self, bytes: u64, ranks: u32) -> Option<u64> {
        let ranks = u64::from(ranks);
        match self {
            Self::Same => Some(bytes),
            Self::TimesRanks => bytes.checked_mul(ranks),
            Self::OverRanks => (ranks > 0 && bytes.is_multiple_of(ranks)).then(|| bytes / ranks),
        }
    }
}

const fn same(operation: &'static str) -> Term {
    Term {
        operation,
        size: TermSize::Same,
    }
}

const fn times_ranks(operation: &'static str) -> Term {
    Term {
        operation,
        size: TermSize::TimesRanks,
    }
}

const fn over_ranks(operation: &'static str) -> Term {
    Term {
        operation,
        size: TermSize::OverRanks,
    }
}

const fn rule(operation: &'static str, others: &'static [Term]) -> Rule {
    Rule { operation, others }
}

/// All rules but those of the forms of an operation. Messages of `gather` and `scatter` are those of one rank, messages of `reduce` and
/// `bcast` all there is.
pub(super) static RULES: [Rule; 21] = [
    rule("bcast", &[over_ranks("scatter"), over_ranks("allgather")]),
    rule("reduce", &[same("allreduce")]),
    rule(
        "reduce",
        &[over_ranks("reduce_scatter_block"), over_ranks("gather")],
    ),
    rule("allreduce", &[same("reduce"), same("bcast")]),
    rule(
        "allreduce",
        &[over_ranks("reduce_scatter_block"), over_ranks("allgather")],
    ),
    rule("gather", &[same("allgather")]),
    rule("gather", &[times_ranks("reduce")]),
    rule("gather", &[same("gatherv")]),
    rule("scatter", &[times_ranks("bcast")]),
    rule("scatter", &[same("scatterv")]),
    rule("allgather", &[same("gather"), times_ranks("bcast")]),
    rule("allgather", &[same("alltoall")]),
    rule("allgather", &[times_ranks("allreduce")]),
    rule("allgather", &[same("allgatherv")]),
    rule("alltoall", &[same("alltoallv")]),
    rule("alltoallv", &[same("alltoallw")]),
    rule("reduce_scatter", &[same("allreduce")]),
    rule("reduce_scatter", &[same("reduce"), over_ranks("scatterv")]),
    rule(
        "reduce_scatter_block",
        &[times_ranks("reduce"), same("scatter")],
    ),
    rule("reduce_scatter_block", &[times_ranks("reduce_scatter")]),
    rule("scan", &[same("exscan"), same("reduce_local")]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_from_the_number_of_ranks() {
        assert_eq!(TermSize::Same.of(24, 4), Some(24));
        assert_eq!(TermSize::TimesRanks.of(24, 4), Some(96));
        assert_eq!(TermSize::OverRanks.of(24, 4), Some(6));
        assert_eq!(TermSize::OverRanks.of(25, 4), None);
        assert_eq!(TermSize::TimesRanks.of(u64::MAX, 2), None);
    }

    /// Both sides give a rank as much: in units of the message of one rank, of `n` ranks.
    #[test]
    fn both_sides_move_equal_amounts() {
        let n = 6;
        // Size of what all ranks together have in the end, for a message of `bytes`.
        let result = |operation: &str, bytes: u64| match operation {
            "bcast" | "allreduce" | "scan" | "exscan" => n * bytes,
            "reduce" | "reduce_scatter" => bytes,
            "gather" | "gatherv" | "scatter" | "scatterv" | "reduce_scatter_block" => n * bytes,
            "allgather" | "allgatherv" | "alltoall" | "alltoallv" | "alltoallw" => n * n * bytes,
            other => panic!("{other}"),
        };
        for Rule { operation, others } in &RULES {
            let last = others.iter().rfind(|term| term.operation != "reduce_local");
            let last = last.expect("a rule has another side");
            let bytes = last.size.of(60, n as u32).expect("60 can be divided by 6");
            assert!(
                result(last.operation, bytes) >= result(operation, 60),
                "{operation} and {}",
                last.operation
            );
        }
    }
}
