//! Tables of text.

use std::fmt::Write;

/// Rows of cells, the first the heads of the columns. Columns are as wide as need be; those after the
/// first `left` are numbers, aligned to the right.
pub(super) struct Table {
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(left: usize, heads: &[&str]) -> Self {
        Table {
            left,
            rows: vec![heads.iter().map(|h| (*h).to_owned()).collect()],
        }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |k: usize| {
            self.rows
                .iter()
                .filter_map(|r| r.get(k))
                .map(|c| c.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (k, cell) in row.iter().enumerate() {
                let width = widths[k];
                if k < self.left {
                    write!(line, "  {cell:width$}")?;
                } else {
                    write!(line, "  {cell:>width$}")?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
