//! AVX-512F: 16 lanes.

use std::arch::x86_64::*;

use super::simd::{Kernel, Simd};

/// Proves AVX-512F; with it come AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// The token, where the machine has the level.
    #[inline]
    pub(super) fn new() -> Option<Self> {
        is_x86_feature_detected!("avx512f").then_some(Avx512(()))
    }
}

/// Methods that touch no memory.
macro_rules! ops {
    ($($name:ident($($arg:ident: $ty:ty),+) -> $out:ty { $body:expr })+) => {$(
        #[inline(always)]
        fn $name(self, $($arg: $ty),+) -> $out {
            // SAFETY: the token proves the feature.
            unsafe { $body }
        }
    )+};
}

/// A mask of the first `n` lanes.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    if n >= 16 { !0 } else { (1 << n) - 1 }
}

impl Simd for Avx512 {
    type F32 = __m512;
    type I32 = __m512i;
    type Mask = __mmask16;
    const LANES: usize = 16;
    const TILE: usize = 14;

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f")]
        fn with<K: Kernel>(s: Avx512, kernel: K) -> K::Output {
            kernel.run(s)
        }
        // SAFETY: the token proves the feature.
        unsafe { with(self, kernel) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m512 {
        let from = &from[..16];
        // SAFETY: the token proves the feature; the slice has 16 elements.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> __m512 {
        // SAFETY: the token proves the feature; lanes beyond the slice are masked out.
        unsafe { _mm512_maskz_loadu_ps(first(from.len()), from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, v: __m512, to: &mut [f32]) {
        let to = &mut to[..16];
        // SAFETY: the token proves the feature; the slice has 16 elements.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn store_partial(self, v: __m512, to: &mut [f32]) {
        // SAFETY: the token proves the feature; lanes beyond the slice are masked out.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), v) }
    }

    #[inline(always)]
    fn prefetch(self, x: &f32) {
        // SAFETY: it reads nothing, and every x86-64 machine has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(x).cast()) }
    }

    ops! {
        splat(x: f32) -> __m512 { _mm512_set1_ps(x) }
        add(a: __m512, b: __m512) -> __m512 { _mm512_add_ps(a, b) }
        sub(a: __m512, b: __m512) -> __m512 { _mm512_sub_ps(a, b) }
        mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        div(a: __m512, b: __m512) -> __m512 { _mm512_div_ps(a, b) }
        fma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        min(a: __m512, b: __m512) -> __m512 { _mm512_min_ps(a, b) }
        max(a: __m512, b: __m512) -> __m512 { _mm512_max_ps(a, b) }
        sqrt(a: __m512) -> __m512 { _mm512_sqrt_ps(a) }
        abs(a: __m512) -> __m512 { _mm512_abs_ps(a) }
        neg(a: __m512) -> __m512 {
            _mm512_castsi512_ps(_mm512_xor_si512(
                _mm512_castps_si512(a),
                _mm512_set1_epi32(i32::MIN),
            ))
        }
        floor(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a)
        }
        ceil(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(a)
        }
        round(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
        }
        lt(a: __m512, b: __m512) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b) }
        le(a: __m512, b: __m512) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b) }
        eq(a: __m512, b: __m512) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b) }
        both(a: __mmask16, b: __mmask16) -> __mmask16 { _mm512_kand(a, b) }
        either(a: __mmask16, b: __mmask16) -> __mmask16 { _mm512_kor(a, b) }
        not(a: __mmask16) -> __mmask16 { _mm512_knot(a) }
        select(mask: __mmask16, yes: __m512, no: __m512) -> __m512 {
            _mm512_mask_blend_ps(mask, no, yes)
        }
        bits(a: __m512) -> __m512i { _mm512_castps_si512(a) }
        of_bits(a: __m512i) -> __m512 { _mm512_castsi512_ps(a) }
        to_int(a: __m512) -> __m512i { _mm512_cvtps_epi32(a) }
        of_int(a: __m512i) -> __m512 { _mm512_cvtepi32_ps(a) }
        int_splat(x: i32) -> __m512i { _mm512_set1_epi32(x) }
        int_add(a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi32(a, b) }
        int_sub(a: __m512i, b: __m512i) -> __m512i { _mm512_sub_epi32(a, b) }
        int_and(a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        int_or(a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        int_eq(a: __m512i, b: __m512i) -> __mmask16 { _mm512_cmpeq_epi32_mask(a, b) }
        int_shl(a: __m512i, by: u32) -> __m512i {
            _mm512_sll_epi32(a, _mm_cvtsi32_si128(by as i32))
        }
        int_sar(a: __m512i, by: u32) -> __m512i {
            _mm512_sra_epi32(a, _mm_cvtsi32_si128(by as i32))
        }
    }
}
