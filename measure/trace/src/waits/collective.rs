//! Waits in collective operations, by the pattern of their dependences.

use downbeat_clock_core::Duration;

use super::pattern::WaitPattern;
use crate::calls::{Operation, OperationMember};
use crate::{CollectiveKind, DependencePattern};

/// Passes the waits of all members of an operation to `lose`. Members that send nothing
/// are not waited for, and members that receive nothing do not wait.
pub(super) fn collective(
    operation: &Operation<'_>,
    mut lose: impl FnMut(WaitPattern, &OperationMember, Duration),
) {
    let members = operation.members;
    let root = operation.root as usize;
    match (operation.kind, operation.kind.pattern()) {
        (CollectiveKind::Barrier, _) => {
            if let Some(last) = members.iter().map(|member| member.enter).max() {
                for member in members {
                    lose(WaitPattern::Barrier, member, member.waited_until(last));
                }
            }
        }
        // Some members may have no data for some others, which need not wait for them.
        (CollectiveKind::Alltoallv, _) => {}
        (_, DependencePattern::AllToAll) => {
            let senders = members.iter().filter(|member| member.sent);
            if let Some(last) = senders.map(|member| member.enter).max() {
                for member in members.iter().filter(|member| member.received) {
                    lose(WaitPattern::AllToAll, member, member.waited_until(last));
                }
            }
        }
        (_, DependencePattern::FromRoot) => {
            let Some(enter) = members.get(root).map(|member| member.enter) else {
                return;
            };
            for member in other_members(members, root).filter(|member| member.received) {
                lose(WaitPattern::LateRoot, member, member.waited_until(enter));
            }
        }
        (_, DependencePattern::ToRoot) => {
            let senders = other_members(members, root).filter(|member| member.sent);
            let first = senders.map(|member| member.enter).min();
            let receiver = members.get(root).filter(|member| member.received);
            if let (Some(member), Some(first)) = (receiver, first) {
                lose(WaitPattern::EarlyRoot, member, member.waited_until(first));
            }
        }
        (_, DependencePattern::ToLater) => {
            let mut last = None;
            for member in members {
                if let Some(last) = last.filter(|_| member.sent || member.received) {
                    lose(WaitPattern::EarlyMember, member, member.waited_until(last));
                }
                last = last.max(Some(member.enter));
            }
        }
    }
}

/// Returns all members but the root.
fn other_members(
    members: &[OperationMember],
    root: usize,
) -> impl Iterator<Item = &OperationMember> {
    let others = members
        .iter()
        .enumerate()
        .filter(move |(rank, _)| *rank != root);
    others.map(|(_, member)| member)
}

#[cfg(test)]
mod tests {
    use downbeat_clock_core::Timestamp;

    use super::*;
    use WaitPattern::{AllToAll, Barrier, EarlyMember, EarlyRoot, LateRoot};

    /// Data of a member: none, sent, received, or both.
    const NONE: (bool, bool) = (false, false);
    const SENT: (bool, bool) = (true, false);
    const RECEIVED: (bool, bool) = (false, true);
    const BOTH: (bool, bool) = (true, true);

    /// Waits of members with these data that enter at 10, 40 and 25 and leave at 60, 50
    /// and 30. So the last one leaves before the second one enters, by wrong clocks.
    fn waits(
        kind: CollectiveKind,
        root: u32,
        data: [(bool, bool); 3],
    ) -> Vec<(WaitPattern, u32, i64)> {
        let times = [(10, 60), (40, 50), (25, 30)];
        let member = |(location, ((enter, exit), (sent, received)))| OperationMember {
            location,
            region: 0,
            enter: Timestamp::from_nanos(enter),
            waits_from: Timestamp::from_nanos(enter),
            exit: Timestamp::from_nanos(exit),
            sent,
            received,
        };
        let members: Vec<_> = (0..).zip(times.into_iter().zip(data)).map(member).collect();
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
        let barrier = waits(CollectiveKind::Barrier, 0, [NONE; 3]);
        assert_eq!(
            barrier,
            [(Barrier, 0, 30), (Barrier, 1, 0), (Barrier, 2, 5)]
        );
        let all = waits(CollectiveKind::Allreduce, 0, [BOTH; 3]);
        assert_eq!(all, [(AllToAll, 0, 30), (AllToAll, 1, 0), (AllToAll, 2, 5)]);
        let from_root = waits(CollectiveKind::Broadcast, 1, [RECEIVED, BOTH, RECEIVED]);
        assert_eq!(from_root, [(LateRoot, 0, 30), (LateRoot, 2, 5)]);
        let prefix = waits(CollectiveKind::Scan, 0, [BOTH; 3]);
        assert_eq!(prefix, [(EarlyMember, 1, 0), (EarlyMember, 2, 5)]);
        assert_eq!(waits(CollectiveKind::Alltoallv, 0, [BOTH; 3]), []);
    }

    #[test]
    fn an_early_root_waits_until_the_first_data_are_sent() {
        let reduce = |data| waits(CollectiveKind::Reduce, 0, data);
        assert_eq!(reduce([BOTH, SENT, SENT]), [(EarlyRoot, 0, 15)]);
        assert_eq!(reduce([BOTH, SENT, NONE]), [(EarlyRoot, 0, 30)]);
        assert_eq!(reduce([BOTH, NONE, NONE]), [], "nobody sends");
        assert_eq!(reduce([SENT; 3]), [], "the root receives nothing");
        let gather = |root| waits(CollectiveKind::Gather, root, [BOTH; 3]);
        assert_eq!(gather(1), [(EarlyRoot, 1, 0)]);
        assert_eq!(gather(9), [], "no such root");
    }

    #[test]
    fn members_without_data_neither_wait_nor_are_waited_for() {
        let all = waits(CollectiveKind::Allgather, 0, [RECEIVED, NONE, SENT]);
        assert_eq!(all, [(AllToAll, 0, 15)]);
        let from_root = waits(CollectiveKind::Scatter, 1, [RECEIVED, SENT, NONE]);
        assert_eq!(from_root, [(LateRoot, 0, 30)]);
        let prefix = waits(CollectiveKind::Exscan, 0, [SENT, NONE, RECEIVED]);
        assert_eq!(prefix, [(EarlyMember, 2, 5)]);
    }
}
