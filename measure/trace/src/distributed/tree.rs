//! Tree in which many ranks summarize collective operations: upwards, and down again.

/// Place of a rank in the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TeamTree {
    /// `None` at the top.
    pub(super) parent: Option<u32>,
    pub(super) children: Vec<u32>,
}

impl TeamTree {
    /// Maximum number of owners that tell each other directly, which is one step instead of several.
    const DIRECT: usize = if cfg!(test) { 2 } else { 8 };
    const CHILDREN: usize = if cfg!(test) { 2 } else { 4 };

    /// Returns the place of a rank in the tree of these owners.
    pub(super) fn new(owners: &[u32], rank: u32) -> Option<Self> {
        let index = owners.binary_search(&rank).ok()?;
        let children = (1..=Self::CHILDREN).map(|child| index * Self::CHILDREN + child);
        (owners.len() > Self::DIRECT).then(|| Self {
            parent: index
                .checked_sub(1)
                .map(|before| owners[before / Self::CHILDREN]),
            children: children
                .filter_map(|child| owners.get(child).copied())
                .collect(),
        })
    }

    pub(super) fn neighbours(&self) -> impl Iterator<Item = &u32> {
        self.parent.iter().chain(&self.children)
    }
}
