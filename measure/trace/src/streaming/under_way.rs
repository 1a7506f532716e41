//! Values of messages that are under way.

use super::Census;

/// Values of messages under way, by the numbers that a [`CausalOrder`](super::CausalOrder) gave them:
/// no two messages under way have the same, and there are no more numbers than messages under way at
/// one time.
#[derive(Clone, Debug)]
pub(crate) struct UnderWay<T>(Vec<Option<T>>);

impl<T> UnderWay<T> {
    /// Returns the state before the first event, or after the last one.
    pub(crate) fn none(census: &Census) -> Self {
        let mut values = vec![];
        values.resize_with(census.under_way as usize, || None);
        Self(values)
    }

    /// Adds a message, in the direction of time or in the other one.
    #[inline]
    pub(crate) fn insert(&mut self, message: u64, value: T) {
        // There are only numbers that were given.
        if let Some(of) = self.0.get_mut(message as usize) {
            *of = Some(value);
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, message: u64) -> Option<T> {
        self.0.get_mut(message as usize)?.take()
    }
}
