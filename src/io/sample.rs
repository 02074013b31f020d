//! Samples as files hold them.

/// The type of a sample in a file of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    /// 0 to 255.
    U8,
    /// 0 to 65535, the high byte first, as PNG has it.
    U16,
    /// A float in the machine's byte order.
    F32,
}

impl Sample {
    /// Bytes of one sample.
    pub(super) fn size(self) -> u64 {
        match self {
            Sample::U8 => 1,
            Sample::U16 => 2,
            Sample::F32 => 4,
        }
    }

    /// What full scale is: the largest integer, 1 for floats.
    pub(super) fn full(self) -> f32 {
        match self {
            Sample::U8 => 255.0,
            Sample::U16 => 65535.0,
            Sample::F32 => 1.0,
        }
    }

    /// `bytes` as floats.
    pub(super) fn unpack(self, bytes: &[u8], values: &mut [f32]) {
        match self {
            Sample::U8 => {
                for (v, &b) in values.iter_mut().zip(bytes) {
                    *v = f32::from(b);
                }
            }
            Sample::U16 => {
                for (v, &b) in values.iter_mut().zip(bytes.as_chunks().0) {
                    *v = f32::from(u16::from_be_bytes(b));
                }
            }
            Sample::F32 => {
                for (v, &b) in values.iter_mut().zip(bytes.as_chunks().0) {
                    *v = f32::from_ne_bytes(b);
                }
            }
        }
    }

    /// `values` as bytes. Integers are clamped to their range and rounded half to even; NaN is 0.
    pub(super) fn pack(self, values: &[f32], bytes: &mut [u8]) {
        let rounded = |v: f32| v.clamp(0.0, self.full()).round_ties_even();
        match self {
            Sample::U8 => {
                for (b, &v) in bytes.iter_mut().zip(values) {
                    *b = rounded(v) as u8;
                }
            }
            Sample::U16 => {
                for (b, &v) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
                    *b = (rounded(v) as u16).to_be_bytes();
                }
            }
            Sample::F32 => {
                for (b, &v) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
                    *b = v.to_ne_bytes();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_clamped_and_rounded_half_to_even() {
        let values = [
            -3.0,
            0.5,
            1.5,
            2.5,
            2.5000002,
            254.5,
            254.49998,
            255.5,
            1e9,
            f32::NAN,
            f32::NEG_INFINITY,
            f32::INFINITY,
        ];
        let mut bytes = [7; 12];
        Sample::U8.pack(&values, &mut bytes);
        assert_eq!(bytes, [0, 0, 2, 2, 3, 254, 254, 255, 255, 0, 0, 255]);
        let mut bytes = [7; 8];
        Sample::U16.pack(&[256.5, 65534.5, 7e4, -1.0], &mut bytes);
        assert_eq!(bytes, [1, 0, 255, 254, 255, 255, 0, 0]);
    }
}
