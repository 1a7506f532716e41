//! Vectors over the ranks or the nodes of a part.

use core::ops::{Index, IndexMut, Range};

/// Values of the ranks or the nodes of a part, by their numbers in the whole cluster.
#[derive(Clone, Debug)]
pub(super) struct PartVec<T> {
    first: u32,
    values: Vec<T>,
}

impl<T> PartVec<T> {
    pub(super) fn new(numbers: Range<u32>, value: impl FnMut(u32) -> T) -> Self {
        Self {
            first: numbers.start,
            values: numbers.map(value).collect(),
        }
    }

    /// Returns true if the rank or the node belongs to the part.
    #[inline]
    pub(super) fn contains(&self, number: u32) -> bool {
        (number.wrapping_sub(self.first) as usize) < self.values.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (self.first..).zip(&self.values)
    }
}

impl<T> Index<u32> for PartVec<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.values[number.wrapping_sub(self.first) as usize]
    }
}

impl<T> IndexMut<u32> for PartVec<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number.wrapping_sub(self.first) as usize]
    }
}
