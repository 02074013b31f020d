//! Staging: a file is read and written through one bounded buffer, in blocks that are contiguous in
//! the file.

use std::ops::Range;

/// Most bytes of a staging buffer, unless a single column takes more.
pub(super) const STAGING: u64 = 256 << 10;

/// A rectangle that is contiguous in the file: several full-width rows, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Rows, counted from the first of the request.
    pub(super) rows: Range<usize>,
    /// Columns of the image.
    pub(super) cols: Range<u64>,
}

impl Block {
    /// Columns of all its rows.
    pub(super) fn len(&self) -> u64 {
        self.rows.len() as u64 * (self.cols.end - self.cols.start)
    }
}

/// Cuts `rows` rows of columns `cols` into blocks of a file whose rows are `width` columns of `unit`
/// bytes; each fits a buffer of [`buffer_len`] bytes.
pub(super) fn blocks(
    rows: usize,
    cols: Range<u64>,
    width: u64,
    unit: u64,
) -> impl Iterator<Item = Block> {
    let most = (STAGING / unit).max(1);
    let piece = cols.end - cols.start;
    let row_step = if piece == width {
        (most / width.max(1)).max(1) as usize
    } else {
        1
    };
    (0..rows).step_by(row_step).flat_map(move |row| {
        let rows = row..rows.min(row + row_step);
        let end = cols.end;
        cols.clone()
            .step_by(most.min(piece.max(1)) as usize)
            .map(move |col| Block {
                rows: rows.clone(),
                cols: col..end.min(col + most),
            })
    })
}

/// Bytes of the buffer that holds any block of an image `height` × `width` of columns of `unit`
/// bytes.
pub(super) fn buffer_len(height: u64, width: u64, unit: u64) -> u64 {
    let whole = height.saturating_mul(width).saturating_mul(unit);
    STAGING.min(whole).max(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_each_column_once_and_fit() {
        for (rows, cols, width, unit) in [
            (5, 0..7, 7, 4),
            (5, 2..6, 7, 4),
            (3, 0..100_000, 100_000, 4),
            (2, 10..99_999, 100_000, 12),
            (700, 0..1000, 1000, 8),
            (2, 0..3, 3, 300_000),
            (4, 5..5, 9, 4),
            (0, 0..9, 9, 4),
        ] {
            let mut seen = vec![0u8; rows * width as usize];
            for block in blocks(rows, cols.clone(), width, unit) {
                assert!(block.len() * unit <= buffer_len(rows as u64, width, unit));
                assert!(block.rows.len() == 1 || block.cols == (0..width));
                for row in block.rows {
                    for col in block.cols.clone() {
                        seen[row * width as usize + col as usize] += 1;
                    }
                }
            }
            for (i, &count) in seen.iter().enumerate() {
                let wanted = cols.contains(&(i as u64 % width));
                assert_eq!(
                    count,
                    u8::from(wanted),
                    "{rows} {cols:?} {width} {unit}: {i}"
                );
            }
        }
    }
}
