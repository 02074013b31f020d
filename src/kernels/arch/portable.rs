//! Plain arrays, for any machine. The other levels are tested against it.

use super::simd::{Kernel, Simd};

const LANES: usize = 8;

/// Proves nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

#[inline(always)]
fn map<A: Copy, B>(a: [A; LANES], f: impl Fn(A) -> B) -> [B; LANES] {
    a.map(f)
}

#[inline(always)]
fn map2<A: Copy, B: Copy, C>(a: [A; LANES], b: [B; LANES], f: impl Fn(A, B) -> C) -> [C; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// Methods of one and of two operands, lane by lane.
macro_rules! ops {
    ($($name:ident($a:ident: $A:ty) -> $out:ty { $body:expr })+) => {$(
        #[inline(always)]
        fn $name(self, a: [$A; LANES]) -> [$out; LANES] {
            map(a, |$a| $body)
        }
    )+};
    ($($name:ident($a:ident, $b:ident: $A:ty) -> $out:ty { $body:expr })+) => {$(
        #[inline(always)]
        fn $name(self, a: [$A; LANES], b: [$A; LANES]) -> [$out; LANES] {
            map2(a, b, |$a, $b| $body)
        }
    )+};
}

impl Simd for Portable {
    type F32 = [f32; LANES];
    type I32 = [i32; LANES];
    type Mask = [bool; LANES];
    const LANES: usize = LANES;
    const TILE: usize = 4;

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> [f32; LANES] {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> [f32; LANES] {
        std::array::from_fn(|i| from[i])
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> [f32; LANES] {
        std::array::from_fn(|i| from.get(i).copied().unwrap_or(0.0))
    }

    #[inline(always)]
    fn store(self, v: [f32; LANES], to: &mut [f32]) {
        to[..LANES].copy_from_slice(&v);
    }

    #[inline(always)]
    fn store_partial(self, v: [f32; LANES], to: &mut [f32]) {
        let n = to.len().min(LANES);
        to[..n].copy_from_slice(&v[..n]);
    }

    ops! {
        add(a, b: f32) -> f32 { a + b }
        sub(a, b: f32) -> f32 { a - b }
        mul(a, b: f32) -> f32 { a * b }
        div(a, b: f32) -> f32 { a / b }
        min(a, b: f32) -> f32 { if a < b { a } else { b } }
        max(a, b: f32) -> f32 { if a > b { a } else { b } }
        lt(a, b: f32) -> bool { a < b }
        le(a, b: f32) -> bool { a <= b }
        eq(a, b: f32) -> bool { a == b }
        both(a, b: bool) -> bool { a & b }
        either(a, b: bool) -> bool { a | b }
        int_add(a, b: i32) -> i32 { a.wrapping_add(b) }
        int_sub(a, b: i32) -> i32 { a.wrapping_sub(b) }
        int_and(a, b: i32) -> i32 { a & b }
        int_or(a, b: i32) -> i32 { a | b }
        int_eq(a, b: i32) -> bool { a == b }
    }

    ops! {
        sqrt(a: f32) -> f32 { a.sqrt() }
        abs(a: f32) -> f32 { a.abs() }
        neg(a: f32) -> f32 { -a }
        floor(a: f32) -> f32 { a.floor() }
        ceil(a: f32) -> f32 { a.ceil() }
        round(a: f32) -> f32 { a.round_ties_even() }
        not(a: bool) -> bool { !a }
        bits(a: f32) -> i32 { a.to_bits() as i32 }
        of_bits(a: i32) -> f32 { f32::from_bits(a as u32) }
        to_int(a: f32) -> i32 {
            if a.abs() < 2_147_483_648.0 { a.round_ties_even() as i32 } else { i32::MIN }
        }
        of_int(a: i32) -> f32 { a as f32 }
    }

    #[inline(always)]
    fn fma(self, a: [f32; LANES], b: [f32; LANES], c: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }

    #[inline(always)]
    fn select(self, mask: [bool; LANES], yes: [f32; LANES], no: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| if mask[i] { yes[i] } else { no[i] })
    }

    #[inline(always)]
    fn int_splat(self, x: i32) -> [i32; LANES] {
        [x; LANES]
    }

    #[inline(always)]
    fn int_shl(self, a: [i32; LANES], by: u32) -> [i32; LANES] {
        map(a, |a| a << by)
    }

    #[inline(always)]
    fn int_sar(self, a: [i32; LANES], by: u32) -> [i32; LANES] {
        map(a, |a| a >> by)
    }
}
