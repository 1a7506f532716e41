//! Single bars, kept as long as there are few.

/// Part of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) region: u32,
    /// Begin and end in nanoseconds.
    pub(super) times: [i64; 2],
}

/// Bars of all locations; none if there were too many.
#[derive(Debug)]
pub(super) struct KeptBars {
    bars: Option<Vec<Vec<Bar>>>,
    count: usize,
    most: usize,
}

impl KeptBars {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            bars: Some(vec![]),
            count: 0,
            most,
        }
    }

    pub(super) fn add(&mut self, location: u32, bar: Bar) {
        let Some(bars) = &mut self.bars else { return };
        self.count += 1;
        if self.count > self.most {
            self.bars = None;
            return;
        }
        let place = location as usize;
        if bars.len() <= place {
            bars.resize_with(place + 1, Vec::new);
        }
        bars[place].push(bar);
    }

    /// Returns the bars by location, unless there were too many.
    pub(super) fn finish(self) -> Option<Vec<Vec<Bar>>> {
        self.bars
    }
}
