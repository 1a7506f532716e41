//! A table that is made column by column.

use super::{RowMark, Table, TableRow};

/// Table with a row for each item, while columns are added: each is a heading, and the
/// cell of an item.
#[derive(Debug)]
pub struct TableColumns<R> {
    items: Vec<R>,
    table: Table,
}

impl<R> TableColumns<R> {
    pub(super) fn new(items: impl IntoIterator<Item = R>) -> Self {
        let items: Vec<R> = items.into_iter().collect();
        let table = Table {
            headings: vec![],
            rows: items.iter().map(|_| TableRow::default()).collect(),
            keys: 1,
        };
        Self { items, table }
    }

    /// Adds a column.
    pub fn column(mut self, heading: &str, cell: impl Fn(&R) -> String) -> Self {
        self.table.headings.push(heading.to_owned());
        for (item, row) in self.items.iter().zip(&mut self.table.rows) {
            row.cells.push(cell(item));
        }
        self
    }

    /// Marks rows for pages.
    pub fn mark(mut self, mark: impl Fn(&R) -> Option<RowMark>) -> Self {
        for (item, row) in self.items.iter().zip(&mut self.table.rows) {
            row.mark = mark(item);
        }
        self
    }

    /// Returns the table, whose first columns together name a row.
    pub fn named_by(self, columns: usize) -> Table {
        self.table.named_by(columns)
    }

    /// Returns the table, whose first column names a row.
    pub fn table(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_a_row_and_every_column_a_cell_of_it() {
        let table = Table::of([1, 20])
            .column("number", ToString::to_string)
            .column("twice", |number| (2 * number).to_string())
            .mark(|number| (*number > 1).then_some(RowMark::Highlight))
            .table();
        assert_eq!(
            table.to_string(),
            "number  twice\n     1      2\n    20     40\n"
        );
        let marks: Vec<_> = table.rows.iter().map(|row| row.mark.clone()).collect();
        assert_eq!(marks, [None, Some(RowMark::Highlight)]);
    }
}
