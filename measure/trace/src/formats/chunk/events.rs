//! Events of a chunk that is read: in the order of the file, or one process after the other.

use std::ops::Range;

use downbeat_files::Flaw;

use super::{Block, ChunkHead};
use crate::formats::action::read_action;
use crate::formats::bytes::{Input, Slice};
use crate::formats::item::What;

/// Events of a chunk, or of some of its blocks, in their order.
#[derive(Debug)]
pub(in crate::formats) struct ChunkEvents {
    head: ChunkHead,
    /// Index of the next run in the order.
    next: usize,
    /// Block of the current run, and the number of its remaining events.
    run: (usize, u32),
    /// For every block, the number of its events that are in no run so far.
    left: Vec<u32>,
    /// Data of the blocks, from the first one that is read.
    data: Vec<u8>,
    start: usize,
    at: Vec<BlockPosition>,
}

/// Events of one block that follow each other in the file.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::formats) struct Run {
    pub(in crate::formats) block: usize,
    /// Position of the first event in the whole trace.
    pub(in crate::formats) position: u64,
    pub(in crate::formats) count: u32,
}

/// Events of a block, in order.
#[derive(Debug)]
pub(in crate::formats) struct BlockEvents<'a> {
    times: Slice<'a>,
    actions: Slice<'a>,
    last: i64,
}

/// Position of the next event of a block in the data, and the time of the event before.
#[derive(Clone, Copy, Debug)]
pub(in crate::formats) struct BlockPosition {
    times: usize,
    actions: usize,
    last: i64,
}

impl BlockEvents<'_> {
    /// Reads the time of the next event.
    #[inline]
    pub(in crate::formats) fn time(&mut self) -> Result<i64, Flaw> {
        self.last = self.last.wrapping_add(self.times.signed()?);
        Ok(self.last)
    }

    /// Reads the contents of the next event.
    #[inline]
    pub(in crate::formats) fn what<'a>(&mut self, text: &'a mut String) -> Result<What<'a>, Flaw> {
        read_action(&mut self.actions, text)
    }

    pub(in crate::formats) const fn position(&self) -> BlockPosition {
        BlockPosition {
            times: self.times.at(),
            actions: self.actions.at(),
            last: self.last,
        }
    }
}

impl ChunkEvents {
    /// Returns the events of a chunk; `data` has the blocks that are read, from the one that begins
    /// at `start`.
    pub(in crate::formats) fn new(head: ChunkHead, data: Vec<u8>, start: usize) -> Self {
        let first = |block: &Block| BlockPosition {
            times: block.times.start.saturating_sub(start),
            actions: block.actions.start.saturating_sub(start),
            last: 0,
        };
        Self {
            next: 0,
            run: (0, 0),
            left: head.blocks.iter().map(|block| block.events).collect(),
            data,
            start,
            at: head.blocks.iter().map(first).collect(),
            head,
        }
    }

    /// Returns the index of the block of the next event; `None` at the end.
    #[inline]
    pub(in crate::formats) fn next_block(&mut self) -> Result<Option<usize>, Flaw> {
        if self.run.1 == 0 {
            match self.next_run()? {
                Some(run) => self.run = run,
                None => return Ok(None),
            }
        }
        self.run.1 -= 1;
        Ok(Some(self.run.0))
    }

    /// Returns the next run of events of one block: the index of the block, and the number of
    /// events. `None` at the end.
    pub(in crate::formats) fn next_run(&mut self) -> Result<Option<(usize, u32)>, Flaw> {
        let base = self.head.offset - self.head.order.len() as u64;
        let mut order = Slice::new(&self.head.order, self.next, base);
        if order.is_at_end() {
            return match self.left.iter().all(|left| *left == 0) {
                true => Ok(None),
                false => Err(order.flaw("the order of events ends before the events")),
            };
        }
        let run = order.number()?;
        let blocks = self.left.len() as u64;
        let (index, events) = ((run % blocks) as usize, run / blocks);
        self.next = order.at();
        let left = &mut self.left[index];
        if events >= u64::from(*left) {
            return Err(order.flaw("the order has more events of a location than there are"));
        }
        let count = events as u32 + 1;
        *left -= count;
        Ok(Some((index, count)))
    }

    /// Returns all runs of the processes that `process_of` returns for their blocks, ordered by
    /// process and then as in the file. `position` is that of the first event of the chunk.
    ///
    /// Events of different processes do not depend on each other until they are matched, and those
    /// of one process are in fewer places of the memory than those of all.
    pub(in crate::formats) fn runs(
        &mut self,
        mut position: u64,
        process_of: &[Option<u32>],
    ) -> Result<Vec<Run>, Flaw> {
        let mut runs = vec![];
        let mut ends = vec![];
        while let Some((block, count)) = self.next_run()? {
            if let Some(process) = process_of[block] {
                let process = process as usize;
                if ends.len() <= process {
                    ends.resize(process + 1, 0);
                }
                ends[process] += 1;
                runs.push((
                    process,
                    Run {
                        block,
                        position,
                        count,
                    },
                ));
            }
            position += u64::from(count);
        }
        let mut sum = 0;
        for end in &mut ends {
            (sum, *end) = (sum + *end, sum);
        }
        let mut sorted = vec![Run::default(); runs.len()];
        for (process, run) in runs {
            sorted[ends[process]] = run;
            ends[process] += 1;
        }
        Ok(sorted)
    }

    pub(in crate::formats) fn location(&self, block: usize) -> u32 {
        self.head.blocks[block].location
    }

    /// Reads the next event of a block: its offset in the file, its time, and its contents.
    #[inline]
    pub(in crate::formats) fn event<'a>(
        &mut self,
        block: usize,
        text: &'a mut String,
    ) -> Result<(u64, i64, What<'a>), Flaw> {
        let mut events = self.block(block);
        let (time, offset) = (events.time()?, events.actions.offset());
        let what = events.what(text)?;
        let at = events.position();
        self.go_to(block, at);
        Ok((offset, time, what))
    }

    /// Returns the rest of the events of a block.
    #[inline]
    pub(in crate::formats) fn block(&self, block: usize) -> BlockEvents<'_> {
        let (found, at) = (&self.head.blocks[block], self.at[block]);
        let base = self.head.offset + self.start as u64;
        let within = |range: &Range<usize>, at: usize| {
            let end = (range.end - self.start).min(self.data.len());
            Slice::new(&self.data[..end], at, base)
        };
        BlockEvents {
            times: within(&found.times, at.times),
            actions: within(&found.actions, at.actions),
            last: at.last,
        }
    }

    /// Moves to a position in a block.
    #[inline]
    pub(in crate::formats) fn go_to(&mut self, block: usize, position: BlockPosition) {
        self.at[block] = position;
    }

    /// Checks that a block whose events were read has no bytes left.
    pub(in crate::formats) fn check_end(&self, block: usize) -> Result<(), Flaw> {
        let (found, at) = (&self.head.blocks[block], self.at[block]);
        let [times, actions] = [at.times, at.actions].map(|at| at + self.start);
        if times == found.times.end && actions == found.actions.end {
            return Ok(());
        }
        let offset = self.head.offset + actions as u64;
        Err(Flaw::Byte(
            offset,
            "a block has more bytes than its events".to_owned(),
        ))
    }

    pub(in crate::formats) fn blocks(&self) -> usize {
        self.at.len()
    }
}
