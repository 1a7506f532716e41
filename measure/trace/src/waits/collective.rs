//! Waits in collective operations, by the pattern of their dependences.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::pattern::WaitPattern;
use crate::calls::{Operation, OperationMember};
use crate::{CollectiveKind, Pattern};

/// Passes the waits of all members of an operation to `lose`.
pub(super) fn collective(
    operation: &Operation<'_>,
    mut lose: impl FnMut(WaitPattern, &OperationMember, Duration),
) {
    let members = operation.members;
    let root = operation.root as usize;
    match operation.kind.pattern() {
        Pattern::AllToAll => {
            let pattern = match operation.kind {
                CollectiveKind::Barrier => WaitPattern::Barrier,
                _ => WaitPattern::AllToAll,
            };
            if let Some(last) = last_enter(members) {
                for member in members {
                    lose(pattern, member, member.waited_until(last));
                }
            }
        }
        Pattern::FromRoot => {
            let Some(enter) = members.get(root).map(|member| member.enter) else {
                return;
            };
            let others = (0..).zip(members).filter(|(rank, _)| *rank != root);
            for (_, member) in others {
                lose(WaitPattern::LateRoot, member, member.waited_until(enter));
            }
        }
        Pattern::ToRoot => {
            if let (Some(member), Some(last)) = (members.get(root), last_enter(members)) {
                lose(WaitPattern::EarlyRoot, member, member.waited_until(last));
            }
        }
        Pattern::ToLater => {
            let mut last = None;
            for member in members {
                if let Some(last) = last {
                    lose(WaitPattern::EarlyMember, member, member.waited_until(last));
                }
                last = last.max(Some(member.enter));
            }
        }
    }
}

fn last_enter(members: &[OperationMember]) -> Option<Timestamp<Global>> {
    members.iter().map(|member| member.enter).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits of members that enter at 10, 40 and 25 and leave at 60, 50 and 30.
    fn waits(kind: CollectiveKind, root: u32) -> Vec<(WaitPattern, u32, i64)> {
        let times = [(10, 60), (40, 50), (25, 30)];
        let member = |(location, (enter, exit)): (u32, (i64, i64))| OperationMember {
            location,
            region: 0,
            enter: Timestamp::from_nanos(enter),
            waits_from: Timestamp::from_nanos(enter),
            exit: Timestamp::from_nanos(exit),
        };
        let members: Vec<_> = (0..).zip(times).map(member).collect();
        let operation = Operation {
            kind,
            root,
            members: &members,
        };
        let mut found = vec![];
        collective(&operation, |pattern, member, lost| {
            found.push((pattern, member.location, lost.as_nanos()));
        });
        found
    }

    #[test]
    fn members_wait_for_those_whose_data_they_need() {
        use WaitPattern::{AllToAll, Barrier, EarlyMember, EarlyRoot, LateRoot};
        // The last member leaves before the second one enters, by wrong clocks.
        let all = |pattern| vec![(pattern, 0, 30), (pattern, 1, 0), (pattern, 2, 5)];
        assert_eq!(waits(CollectiveKind::Barrier, 0), all(Barrier));
        assert_eq!(waits(CollectiveKind::Allreduce, 0), all(AllToAll));
        let from_root = vec![(LateRoot, 0, 30), (LateRoot, 2, 5)];
        assert_eq!(waits(CollectiveKind::Broadcast, 1), from_root);
        assert_eq!(waits(CollectiveKind::Reduce, 0), [(EarlyRoot, 0, 30)]);
        assert_eq!(waits(CollectiveKind::Gather, 1), [(EarlyRoot, 1, 0)]);
        assert_eq!(waits(CollectiveKind::Gather, 9), [], "no such root");
        let prefix = vec![(EarlyMember, 1, 0), (EarlyMember, 2, 5)];
        assert_eq!(waits(CollectiveKind::Scan, 0), prefix);
    }
}
