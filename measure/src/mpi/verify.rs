//! Verification of the results of operations.

use core::ops::Range;

use super::entries::{InPlace, InPlaceRanks};
use super::error::OperationError;
use super::operation::MpiOperation;
use super::reference::{VerifyCase, encode};

/// Byte between elements.
const GAP: u8 = 0xa5;

impl MpiOperation {
    /// Calls the operation once with each of its roots, and compares the results of all ranks with expected ones. All ranks
    /// must call this, and all fail if one does. Afterwards the buffers have their initial content.
    ///
    /// For a barrier this only checks that it returns.
    ///
    /// # Errors
    /// If a result is wrong, or MPI fails.
    pub fn verify(&mut self) -> Result<(), OperationError> {
        let mut found = Ok(());
        for (call, root) in self.roots() {
            let case = self.case(root);
            let filled = self.in_each_thread(|operation| operation.fill_buffers(&case));
            self.call_now(call)?;
            let compared = self.in_each_thread(|operation| operation.compare(&case));
            found = found.and(filled).and(compared);
        }
        found = found.and(self.in_each_thread(Self::reset_buffers));
        match self.group.agree(0, found.is_err())?.failed {
            Some(rank) => found.and(Err(OperationError::WrongElsewhere { rank })),
            None => Ok(()),
        }
    }

    /// Uses the buffers of each thread's operation between calls. All ranks call this.
    fn in_each_thread(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<(), OperationError>,
    ) -> Result<(), OperationError> {
        let mut outcome = Ok(());
        let mut others = core::mem::take(&mut self.others);
        for other in &mut others {
            outcome = outcome.and(other.with_own_memory(&mut work));
        }
        self.others = others;
        outcome.and(self.with_own_memory(work))
    }

    fn case(&self, root: u32) -> VerifyCase {
        let rank = self.group.rank() as usize;
        VerifyCase {
            rank,
            ranks: self.group.size() as usize,
            root: root as usize,
            block: self.layout.count as usize,
            share: self
                .layout
                .starts
                .get(rank)
                .map_or(0, |start| *start as usize),
            datatype: self.settings.datatype,
            radius: self.settings.radius,
            reduction: self
                .kind()
                .has_reduction()
                .then_some(self.settings.reduction),
        }
    }

    /// Returns the range of this rank's contribution in the receive buffer, if it is there.
    fn in_place(&self, case: &VerifyCase) -> Option<Range<usize>> {
        match self.kind().entry().in_place {
            _ if !self.settings.in_place => None,
            InPlace::Whole(InPlaceRanks::Root) | InPlace::OwnBlock(InPlaceRanks::Root)
                if !case.is_root() =>
            {
                None
            }
            InPlace::Whole(_) => Some(0..self.layout.input),
            InPlace::OwnBlock(_) => Some(case.rank * case.block..(case.rank + 1) * case.block),
            InPlace::Kept | InPlace::No(_) => None,
        }
    }

    /// Returns true if this rank is the root, and keeps its own block in the send buffer.
    fn keeps_own_block(&self, case: &VerifyCase) -> bool {
        self.settings.in_place && case.is_root() && self.kind().entry().in_place == InPlace::Kept
    }

    /// Returns the expected element at an index of this rank's receive buffer.
    fn expected(&self, case: &VerifyCase, place: usize) -> Option<i64> {
        if self.keeps_own_block(case) {
            None
        } else {
            (self.kind().entry().expects)(case, place)
        }
    }

    /// Returns the bytes of an element in a buffer.
    fn bytes_of(&self, element: usize) -> Range<usize> {
        let (width, place) = (self.layout.width, self.layout.placement.place(element));
        place * width..(place + 1) * width
    }

    /// Writes this rank's contribution, and wrong values everywhere else.
    fn fill_buffers(&mut self, case: &VerifyCase) -> Result<(), OperationError> {
        let width = self.layout.width;
        self.memory.send.bytes_mut().fill(GAP);
        self.memory.recv.bytes_mut().fill(GAP);
        for place in 0..self.layout.send {
            let bytes = self.bytes_of(place);
            let content = encode(case.datatype, case.input(case.rank, place)).0;
            self.memory.send.bytes_mut()[bytes].copy_from_slice(&content[..width]);
        }
        let own = self.in_place(case).unwrap_or_default();
        for place in 0..self.layout.recv {
            let initial = if own.contains(&place) {
                Some(case.input(case.rank, place - own.start))
            } else {
                (self.kind().entry().begins_with)(case, place)
            };
            let content = match initial {
                Some(initial) => encode(case.datatype, initial).0,
                None => case.opposite(self.expected(case, place).unwrap_or_default()),
            };
            let bytes = self.bytes_of(place);
            self.memory.recv.bytes_mut()[bytes].copy_from_slice(&content[..width]);
        }
        self.publish_buffers()
    }

    /// Returns the index of the last element before a gap that was written to.
    fn changed_gap(&self) -> Option<usize> {
        let found = self.memory.recv.bytes();
        (0..self.layout.recv).find(|element| {
            let next = match element + 1 < self.layout.recv {
                true => self.bytes_of(element + 1).start,
                false => found.len(),
            };
            let mut gap = found[self.bytes_of(*element).end..next].iter();
            gap.any(|byte| *byte != GAP)
        })
    }

    fn compare(&mut self, case: &VerifyCase) -> Result<(), OperationError> {
        let (width, datatype) = (self.layout.width, case.datatype);
        let (rank, root) = (case.rank as u32, case.root as u32);
        self.memory.send.fetch()?;
        self.memory.recv.fetch()?;
        for element in 0..self.layout.output {
            let Some(expected) = self.expected(case, element) else {
                continue;
            };
            let found = &self.memory.recv.bytes()[self.bytes_of(element)];
            if !case.accepts(found, expected) {
                let expected = encode(datatype, expected).0;
                let [expected, found] =
                    [&expected[..width], found].map(|bytes| datatype.show(bytes));
                return Err(OperationError::WrongElement {
                    rank,
                    root,
                    element,
                    expected,
                    found,
                });
            }
        }
        if let Some(element) = self.changed_gap() {
            return Err(OperationError::GapOverwritten {
                rank,
                root,
                element,
            });
        }
        let contributed = self.memory.send.bytes();
        let overwritten = (0..self.layout.send).find(|element| {
            let sent = encode(datatype, case.input(case.rank, *element)).0;
            contributed[self.bytes_of(*element)] != sent[..width]
        });
        match overwritten {
            Some(element) => Err(OperationError::Overwritten {
                rank,
                root,
                element,
            }),
            None => Ok(()),
        }
    }
}
