//! Heat diffusion on a plate whose rows are distributed over ranks, for any communicator.

use std::ops::Range;

use downbeat_regions::region;
use downbeat_sync::{Comm, CommError, collective};

pub(crate) const ROWS: usize = 240;
pub(crate) const COLUMNS: usize = 400;
pub(crate) const STEPS: usize = 100;
/// Number of steps between sums of the heat, which is conserved, and checkpoints.
const EVERY: usize = 10;
/// Integer units, so that sums do not depend on the order.
const HOT: i64 = 1 << 40;

/// Distribution of rows over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deal {
    /// All rows on the first ranks; the last one gets none, unless it is the only one.
    Packed,
    /// The same number of rows on all ranks, except for one row.
    Balanced,
}

impl Deal {
    /// Number of ranks with rows; they are the first ones.
    pub(crate) fn workers(self, ranks: u32) -> u32 {
        match self {
            Self::Packed => (ranks - 1).max(1),
            Self::Balanced => ranks,
        }
    }

    fn rows_of(self, rank: u32, ranks: u32) -> Range<usize> {
        let workers = self.workers(ranks) as usize;
        let first = |rank: usize| ROWS * rank.min(workers) / workers;
        first(rank as usize)..first(rank as usize + 1)
    }
}

/// Rows of one rank, with copies of the neighbouring rows. No heat leaves the plate.
pub(crate) struct Tile {
    rows: Range<usize>,
    heat: Vec<i64>,
    next: Vec<i64>,
}

impl Tile {
    pub(crate) fn new(deal: Deal, rank: u32, ranks: u32) -> Self {
        let rows = deal.rows_of(rank, ranks);
        let mut heat = vec![0; (rows.len() + 2) * COLUMNS];
        // A hot spot in the middle.
        for row in rows
            .clone()
            .filter(|row| (ROWS / 3..ROWS / 2).contains(row))
        {
            heat[(row + 1 - rows.start) * COLUMNS..][COLUMNS / 4..COLUMNS / 2].fill(HOT);
        }
        Self {
            rows,
            next: heat.clone(),
            heat,
        }
    }

    /// Own rows, without the copies.
    fn own(&self) -> &[i64] {
        &self.heat[COLUMNS..(self.rows.len() + 1) * COLUMNS]
    }

    /// Number of own cells.
    pub(crate) fn cells(&self) -> usize {
        self.own().len()
    }

    /// Moves heat from each cell to its cooler neighbours; the sum is conserved.
    pub(crate) fn relax(&mut self) {
        for row in 1..=self.rows.len() {
            let of = |row: usize| &self.heat[row * COLUMNS..(row + 1) * COLUMNS];
            let (here, above, below) = (of(row), of(row - 1), of(row + 1));
            let (is_first, is_last) = (self.rows.start + row == 1, self.rows.start + row == ROWS);
            for (column, next) in self.next[row * COLUMNS..(row + 1) * COLUMNS]
                .iter_mut()
                .enumerate()
            {
                let heat = here[column];
                let flow = |other: i64| (other - heat) / 8;
                let rows = if is_first { 0 } else { flow(above[column]) }
                    + if is_last { 0 } else { flow(below[column]) };
                let left = here
                    .get(column.wrapping_sub(1))
                    .map_or(0, |left| flow(*left));
                *next = heat + rows + left + here.get(column + 1).map_or(0, |right| flow(*right));
            }
        }
        std::mem::swap(&mut self.heat, &mut self.next);
    }

    /// Exchanges the outermost rows with the neighbouring ranks.
    pub(crate) async fn exchange<M: Comm>(&mut self, comm: &M) -> Result<(), CommError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        // Of two neighbours, the upper one sends first; every second pair at once, so that no chain
        // of waiting ranks forms.
        let upper_first = comm.rank().is_multiple_of(2);
        for with_lower in [upper_first, !upper_first] {
            match with_lower {
                true if self.rows.end < ROWS => {
                    let last = self.rows.len();
                    send_row(&self.heat[last * COLUMNS..], comm, comm.rank() + 1).await?;
                    receive_row(
                        &mut self.heat[(last + 1) * COLUMNS..],
                        comm,
                        comm.rank() + 1,
                    )
                    .await?;
                }
                false if self.rows.start > 0 => {
                    receive_row(&mut self.heat, comm, comm.rank() - 1).await?;
                    send_row(&self.heat[COLUMNS..], comm, comm.rank() - 1).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn total(&self) -> u64 {
        self.own()
            .iter()
            .fold(0, |sum, heat| sum.wrapping_add(*heat as u64))
    }

    /// Depends on the value of every cell, but not on the distribution.
    pub(crate) fn fingerprint(&self) -> u64 {
        let cells = (self.rows.start * COLUMNS..).zip(self.own());
        let mixed = cells.map(|(cell, heat)| {
            (*heat as u64 ^ (cell as u64) << 44).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        mixed.fold(0, |sum, mixed| sum.wrapping_add(mixed ^ mixed >> 29))
    }
}

async fn send_row<M: Comm>(from: &[i64], comm: &M, to: u32) -> Result<(), CommError> {
    let bytes: Vec<u8> = from[..COLUMNS]
        .iter()
        .flat_map(|heat| heat.to_le_bytes())
        .collect();
    comm.send_bytes(to, &bytes).await
}

async fn receive_row<M: Comm>(row: &mut [i64], comm: &M, from: u32) -> Result<(), CommError> {
    let mut bytes = [0; COLUMNS * size_of::<i64>()];
    comm.recv_bytes(from, &mut bytes).await?;
    for (heat, bytes) in row.iter_mut().zip(bytes.as_chunks().0) {
        *heat = i64::from_le_bytes(*bytes);
    }
    Ok(())
}

/// Final result, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeatTotals {
    /// Heat of the plate, before and after.
    pub(crate) heat: [u64; 2],
    pub(crate) fingerprint: u64,
}

/// Runs all steps with timed regions. Collective.
pub(crate) async fn spread<M: Comm>(deal: Deal, comm: &M) -> Result<HeatTotals, CommError> {
    let mut tile = Tile::new(deal, comm.rank(), comm.size());
    let before = collective::all_reduce(comm, tile.total(), u64::wrapping_add).await?;
    let mut after = before;
    let mut kept = Vec::new();
    for step in 1..=STEPS {
        let _step = region!("stencil step");
        {
            let _exchange = region!("halo exchange");
            tile.exchange(comm).await?;
        }
        {
            let _relax = region!("relax");
            tile.relax();
        }
        if step % EVERY == 0 {
            // Includes the time that early ranks wait.
            let _sum = region!("sum of heat");
            after = collective::all_reduce(comm, tile.total(), u64::wrapping_add).await?;
        }
        if step % EVERY == 0 && tile.cells() > 0 {
            let _checkpoint = region!("checkpoint");
            kept.clone_from(&tile.heat);
        }
    }
    let fingerprint = collective::all_reduce(comm, tile.fingerprint(), u64::wrapping_add).await?;
    Ok(HeatTotals {
        heat: [before, after],
        fingerprint,
    })
}

/// Result of a single rank without timers.
pub(crate) fn alone() -> HeatTotals {
    let mut tile = Tile::new(Deal::Balanced, 0, 1);
    let before = tile.total();
    (0..STEPS).for_each(|_| tile.relax());
    HeatTotals {
        heat: [before, tile.total()],
        fingerprint: tile.fingerprint(),
    }
}
