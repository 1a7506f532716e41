//! Priority queue of events.

/// Event: its time in the high half, then the sender and the message, so that events are ordered as
/// numbers.
pub(super) type SimEvent = u128;

/// Children of a node: a flat heap is faster than a binary one, because the children are adjacent.
const WIDTH: usize = 4;

/// Heap of events, of which the earliest is first.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    events: Vec<SimEvent>,
}

impl EventQueue {
    pub(super) fn push(&mut self, event: SimEvent) {
        let mut hole = self.events.len();
        self.events.push(event);
        while hole > 0 {
            let parent = (hole - 1) / WIDTH;
            if self.events[parent] <= event {
                break;
            }
            self.events[hole] = self.events[parent];
            hole = parent;
        }
        self.events[hole] = event;
    }

    pub(super) fn first(&self) -> Option<SimEvent> {
        self.events.first().copied()
    }

    pub(super) fn pop(&mut self) {
        let last = self.events.pop().filter(|_| !self.events.is_empty());
        if let Some(last) = last {
            self.replace_first(last);
        }
    }

    /// Replaces the first event by another: half the cost of removing one and adding the other.
    pub(super) fn replace_first(&mut self, event: SimEvent) {
        let events = &mut self.events[..];
        let mut hole = 0;
        loop {
            let child = WIDTH * hole + 1;
            let Some(children) = events
                .get(child..(child + WIDTH).min(events.len()))
                .filter(|some| !some.is_empty())
            else {
                break;
            };
            let (mut least, mut at) = (children[0], child);
            for (i, other) in children.iter().enumerate().skip(1) {
                if *other < least {
                    (least, at) = (*other, child + i);
                }
            }
            if event <= least {
                break;
            }
            events[hole] = least;
            hole = at;
        }
        if let Some(slot) = events.get_mut(hole) {
            *slot = event;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_order(pushed: Vec<u128>, replaced: Vec<u128>) {
            let mut queue = EventQueue::default();
            pushed.iter().for_each(|event| queue.push(*event));
            let mut kept = pushed;
            kept.sort_unstable();
            for event in replaced.into_iter().take(kept.len()) {
                queue.replace_first(event);
                kept[0] = event;
                kept.sort_unstable();
            }
            for event in kept {
                prop_assert_eq!(queue.first(), Some(event));
                queue.pop();
            }
            prop_assert_eq!(queue.first(), None);
            queue.pop();
        }
    }
}
