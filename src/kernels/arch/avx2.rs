//! AVX2 and FMA: 8 lanes.

use std::arch::x86_64::*;

use super::simd::{Kernel, Simd};

/// Proves AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The token, where the machine has the level.
    #[inline]
    pub(super) fn new() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        has.then_some(Avx2(()))
    }
}

/// Methods that touch no memory.
macro_rules! ops {
    ($($name:ident($($arg:ident: $ty:ty),+) -> $out:ty { $body:expr })+) => {$(
        #[inline(always)]
        fn $name(self, $($arg: $ty),+) -> $out {
            // SAFETY: the token proves the features.
            unsafe { $body }
        }
    )+};
}

/// A mask of the first `n` lanes.
#[inline(always)]
fn first(_: Avx2, n: usize) -> __m256i {
    let n = n.min(8) as i32;
    // SAFETY: the token proves the features.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lanes)
    }
}

impl Simd for Avx2 {
    type F32 = __m256;
    type I32 = __m256i;
    type Mask = __m256;
    const LANES: usize = 8;
    const TILE: usize = 6;

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma")]
        fn with<K: Kernel>(s: Avx2, kernel: K) -> K::Output {
            kernel.run(s)
        }
        // SAFETY: the token proves the features.
        unsafe { with(self, kernel) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m256 {
        let from = &from[..8];
        // SAFETY: the token proves the features; the slice has 8 elements.
        unsafe { _mm256_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> __m256 {
        // SAFETY: the token proves the features; lanes beyond the slice are masked out.
        unsafe { _mm256_maskload_ps(from.as_ptr(), first(self, from.len())) }
    }

    #[inline(always)]
    fn store(self, v: __m256, to: &mut [f32]) {
        let to = &mut to[..8];
        // SAFETY: the token proves the features; the slice has 8 elements.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn store_partial(self, v: __m256, to: &mut [f32]) {
        // SAFETY: the token proves the features; lanes beyond the slice are masked out.
        unsafe { _mm256_maskstore_ps(to.as_mut_ptr(), first(self, to.len()), v) }
    }

    #[inline(always)]
    fn prefetch(self, x: &f32) {
        // SAFETY: it reads nothing, and every x86-64 machine has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(x).cast()) }
    }

    ops! {
        splat(x: f32) -> __m256 { _mm256_set1_ps(x) }
        add(a: __m256, b: __m256) -> __m256 { _mm256_add_ps(a, b) }
        sub(a: __m256, b: __m256) -> __m256 { _mm256_sub_ps(a, b) }
        mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        div(a: __m256, b: __m256) -> __m256 { _mm256_div_ps(a, b) }
        fma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        min(a: __m256, b: __m256) -> __m256 { _mm256_min_ps(a, b) }
        max(a: __m256, b: __m256) -> __m256 { _mm256_max_ps(a, b) }
        sqrt(a: __m256) -> __m256 { _mm256_sqrt_ps(a) }
        abs(a: __m256) -> __m256 { _mm256_andnot_ps(_mm256_set1_ps(-0.0), a) }
        neg(a: __m256) -> __m256 { _mm256_xor_ps(_mm256_set1_ps(-0.0), a) }
        floor(a: __m256) -> __m256 {
            _mm256_round_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a)
        }
        ceil(a: __m256) -> __m256 {
            _mm256_round_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(a)
        }
        round(a: __m256) -> __m256 {
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
        }
        lt(a: __m256, b: __m256) -> __m256 { _mm256_cmp_ps::<_CMP_LT_OQ>(a, b) }
        le(a: __m256, b: __m256) -> __m256 { _mm256_cmp_ps::<_CMP_LE_OQ>(a, b) }
        eq(a: __m256, b: __m256) -> __m256 { _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b) }
        both(a: __m256, b: __m256) -> __m256 { _mm256_and_ps(a, b) }
        either(a: __m256, b: __m256) -> __m256 { _mm256_or_ps(a, b) }
        not(a: __m256) -> __m256 {
            _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))
        }
        select(mask: __m256, yes: __m256, no: __m256) -> __m256 {
            _mm256_blendv_ps(no, yes, mask)
        }
        bits(a: __m256) -> __m256i { _mm256_castps_si256(a) }
        of_bits(a: __m256i) -> __m256 { _mm256_castsi256_ps(a) }
        to_int(a: __m256) -> __m256i { _mm256_cvtps_epi32(a) }
        of_int(a: __m256i) -> __m256 { _mm256_cvtepi32_ps(a) }
        int_splat(x: i32) -> __m256i { _mm256_set1_epi32(x) }
        int_add(a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi32(a, b) }
        int_sub(a: __m256i, b: __m256i) -> __m256i { _mm256_sub_epi32(a, b) }
        int_and(a: __m256i, b: __m256i) -> __m256i { _mm256_and_si256(a, b) }
        int_or(a: __m256i, b: __m256i) -> __m256i { _mm256_or_si256(a, b) }
        int_eq(a: __m256i, b: __m256i) -> __m256 {
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))
        }
        int_shl(a: __m256i, by: u32) -> __m256i {
            _mm256_sll_epi32(a, _mm_cvtsi32_si128(by as i32))
        }
        int_sar(a: __m256i, by: u32) -> __m256i {
            _mm256_sra_epi32(a, _mm_cvtsi32_si128(by as i32))
        }
    }
}
