//! The vector operations that kernels are written in.

/// Something to run, written once over all levels.
pub(crate) trait Kernel {
    /// What it gives.
    type Output;

    /// Runs it. Implementations must be `#[inline(always)]`.
    fn run<S: Simd>(self, s: S) -> Self::Output;
}

/// A token that proves that a level's instructions are there, and the operations on its vectors.
///
/// Vectors are of f32 (`F32`), of i32 (`I32`) and of truth values (`Mask`), all with `LANES` lanes.
pub(crate) trait Simd: Copy + Send + Sync {
    /// A vector of f32.
    type F32: Copy + Send + Sync;
    /// A vector of i32.
    type I32: Copy + Send + Sync;
    /// A truth value per lane.
    type Mask: Copy + Send + Sync;
    /// Lanes of a vector.
    const LANES: usize;
    /// Pixels of a register tile that is two vectors of channels wide.
    const TILE: usize;

    /// Runs a kernel as a function of its own, compiled for this level.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;

    /// All lanes `x`.
    fn splat(self, x: f32) -> Self::F32;
    /// The first `LANES` of `from`; panics where there are fewer.
    fn load(self, from: &[f32]) -> Self::F32;
    /// As many of `from` as there are lanes, or all of it and zeros.
    fn load_partial(self, from: &[f32]) -> Self::F32;
    /// Writes all lanes to the start of `to`; panics where it is shorter.
    fn store(self, v: Self::F32, to: &mut [f32]);
    /// Writes as many lanes as `to` has room for.
    fn store_partial(self, v: Self::F32, to: &mut [f32]);

    /// Asks for the cache line that `x` begins in, to be read soon. It changes nothing else.
    #[inline(always)]
    fn prefetch(self, _x: &f32) {}

    /// `a + b`.
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a - b`.
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a · b`.
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a / b`.
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a · b + c` in one rounding.
    fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// `if a < b { a } else { b }`: `b` where they are equal or either is NaN.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `if a > b { a } else { b }`: `b` where they are equal or either is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The square root, correctly rounded.
    fn sqrt(self, a: Self::F32) -> Self::F32;
    /// Clears the sign.
    fn abs(self, a: Self::F32) -> Self::F32;
    /// Flips the sign.
    fn neg(self, a: Self::F32) -> Self::F32;
    /// Rounds down.
    fn floor(self, a: Self::F32) -> Self::F32;
    /// Rounds up.
    fn ceil(self, a: Self::F32) -> Self::F32;
    /// Rounds to the nearest, half to even.
    fn round(self, a: Self::F32) -> Self::F32;

    /// `a < b`; false where either is NaN.
    fn lt(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `a ≤ b`; false where either is NaN.
    fn le(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `a = b`; false where either is NaN.
    fn eq(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// Both.
    fn both(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Either or both.
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// The opposite.
    fn not(self, a: Self::Mask) -> Self::Mask;
    /// `yes` where the mask holds, else `no`.
    fn select(self, mask: Self::Mask, yes: Self::F32, no: Self::F32) -> Self::F32;

    /// The bits of each lane.
    fn bits(self, a: Self::F32) -> Self::I32;
    /// The lanes with these bits.
    fn of_bits(self, a: Self::I32) -> Self::F32;
    /// To the nearest integer, half to even; `i32::MIN` where it does not fit or is NaN.
    fn to_int(self, a: Self::F32) -> Self::I32;
    /// The nearest f32.
    fn of_int(self, a: Self::I32) -> Self::F32;
    /// All lanes `x`.
    fn int_splat(self, x: i32) -> Self::I32;
    /// `a + b`, wrapping.
    fn int_add(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// `a - b`, wrapping.
    fn int_sub(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bits in both.
    fn int_and(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bits in either.
    fn int_or(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Shifts left by `by < 32`.
    fn int_shl(self, a: Self::I32, by: u32) -> Self::I32;
    /// Shifts right by `by < 32`, filling with the sign.
    fn int_sar(self, a: Self::I32, by: u32) -> Self::I32;
    /// `a = b`.
    fn int_eq(self, a: Self::I32, b: Self::I32) -> Self::Mask;
}
