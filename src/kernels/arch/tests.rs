//! Every operation, on every level this machine has, against one lane's scalar arithmetic.

use super::{Isa, Kernel, Simd};

/// Finite, huge, tiny, denormal, halves, signed zeros, infinite, NaN.
fn values() -> Vec<f32> {
    let mut values = vec![
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        -1.5,
        2.5,
        -2.5,
        1.0,
        -1.0,
        3.75,
        -3.75,
        1e-40,
        -1e-40,
        1e38,
        -1e38,
        8_388_609.0,
        -8_388_609.0,
        2.147_483_5e9,
        -2_147_483_648.0,
        3e9,
        -3e9,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        1.000_000_1,
        0.333_333_34,
    ];
    let mut x = 1u32;
    values.extend((0..100).map(|_| {
        x = x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (x as f32 / 2f32.powi(31) - 1.0) * 2f32.powi((x >> 8) as i32 % 20)
    }));
    values
}

type Binary = (&'static str, fn(f32, f32) -> f32);

const SCALAR: &[Binary] = &[
    ("add", |a, b| a + b),
    ("sub", |a, b| a - b),
    ("mul", |a, b| a * b),
    ("div", |a, b| a / b),
    ("fma", |a, b| a.mul_add(b, 0.1)),
    ("min", |a, b| if a < b { a } else { b }),
    ("max", |a, b| if a > b { a } else { b }),
    ("sqrt", |a, _| a.sqrt()),
    ("abs", |a, _| a.abs()),
    ("neg", |a, _| -a),
    ("floor", |a, _| a.floor()),
    ("ceil", |a, _| a.ceil()),
    ("round", |a, _| a.round_ties_even()),
    ("lt", |a, b| f32::from(a < b)),
    ("le", |a, b| f32::from(a <= b)),
    ("eq", |a, b| f32::from(a == b)),
    ("both", |a, b| f32::from(a < b && a < 1.0)),
    ("either", |a, b| f32::from(a < b || a < 1.0)),
    ("not", |a, b| {
        f32::from(!matches!(a.partial_cmp(&b), Some(std::cmp::Ordering::Less)))
    }),
    ("to_int", |a, _| {
        let r = f64::from(a).round_ties_even();
        let fits = (-2_147_483_648.0..2_147_483_648.0).contains(&r);
        if fits {
            r as i32 as f32
        } else {
            -2_147_483_648.0
        }
    }),
    ("int_add", |a, b| {
        f32::from_bits(a.to_bits().wrapping_add(b.to_bits()))
    }),
    ("int_sub", |a, b| {
        f32::from_bits(a.to_bits().wrapping_sub(b.to_bits()))
    }),
    ("int_and", |a, b| f32::from_bits(a.to_bits() & b.to_bits())),
    ("int_or", |a, b| f32::from_bits(a.to_bits() | b.to_bits())),
    ("int_eq", |a, b| f32::from(a.to_bits() == b.to_bits())),
    ("int_splat", |a, _| {
        f32::from_bits(a.to_bits().wrapping_add(0x0080_0000))
    }),
    ("int_shl", |a, _| f32::from_bits(a.to_bits() << 5)),
    ("int_sar", |a, _| {
        f32::from_bits((a.to_bits() as i32 >> 23) as u32)
    }),
];

struct Apply<'a> {
    name: &'a str,
    a: &'a [f32],
    b: &'a [f32],
    to: &'a mut [f32],
}

impl Kernel for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (one, zero) = (s.splat(1.0), s.splat(0.0));
        for i in (0..self.to.len()).step_by(S::LANES) {
            let (a, b) = (s.load_partial(&self.a[i..]), s.load_partial(&self.b[i..]));
            let (ia, ib) = (s.bits(a), s.bits(b));
            let v = match self.name {
                "add" => s.add(a, b),
                "sub" => s.sub(a, b),
                "mul" => s.mul(a, b),
                "div" => s.div(a, b),
                "fma" => s.fma(a, b, s.splat(0.1)),
                "min" => s.min(a, b),
                "max" => s.max(a, b),
                "sqrt" => s.sqrt(a),
                "abs" => s.abs(a),
                "neg" => s.neg(a),
                "floor" => s.floor(a),
                "ceil" => s.ceil(a),
                "round" => s.round(a),
                "lt" => s.select(s.lt(a, b), one, zero),
                "le" => s.select(s.le(a, b), one, zero),
                "eq" => s.select(s.eq(a, b), one, zero),
                "both" => s.select(s.both(s.lt(a, b), s.lt(a, one)), one, zero),
                "either" => s.select(s.either(s.lt(a, b), s.lt(a, one)), one, zero),
                "not" => s.select(s.not(s.lt(a, b)), one, zero),
                "to_int" => s.of_int(s.to_int(a)),
                "int_add" => s.of_bits(s.int_add(ia, ib)),
                "int_sub" => s.of_bits(s.int_sub(ia, ib)),
                "int_and" => s.of_bits(s.int_and(ia, ib)),
                "int_or" => s.of_bits(s.int_or(ia, ib)),
                "int_eq" => s.select(s.int_eq(ia, ib), one, zero),
                "int_splat" => s.of_bits(s.int_add(ia, s.int_splat(0x0080_0000))),
                "int_shl" => s.of_bits(s.int_shl(ia, 5)),
                "int_sar" => s.of_bits(s.int_sar(ia, 23)),
                name => unreachable!("{name}"),
            };
            s.store_partial(v, &mut self.to[i..]);
        }
    }
}

#[test]
fn every_level_computes_what_scalars_do() {
    let values = values();
    let pairs = || {
        values
            .iter()
            .flat_map(|&a| values.iter().map(move |&b| (a, b)))
    };
    let (a, b): (Vec<f32>, Vec<f32>) = pairs().unzip();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for &(name, scalar) in SCALAR {
            let mut to = vec![0.0; a.len()];
            isa.run(Apply {
                name,
                a: &a,
                b: &b,
                to: &mut to,
            });
            for (i, (a, b)) in pairs().enumerate() {
                let (want, got) = (scalar(a, b), to[i]);
                let same = want.to_bits() == got.to_bits() || (want.is_nan() && got.is_nan());
                assert!(
                    same,
                    "{name}({a}, {b}) on {}: {got}, not {want}",
                    isa.name()
                );
            }
        }
    }
}

struct Copy<'a> {
    from: &'a [f32],
    to: &'a mut [f32],
    whole: bool,
}

impl Kernel for Copy<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        if self.whole {
            s.store(s.load(self.from), self.to);
        } else {
            s.store_partial(s.load_partial(self.from), self.to);
        }
        S::LANES
    }
}

#[test]
fn partial_loads_and_stores_stay_inside() {
    let from: Vec<f32> = (1..=20).map(|i| i as f32).collect();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for (loaded, stored) in (0..20).flat_map(|i| (0..20).map(move |j| (i, j))) {
            let mut to = [-1.0; 20];
            let (from, part) = (&from[..loaded], &mut to[..stored]);
            let lanes = isa.run(Copy {
                from,
                to: part,
                whole: false,
            });
            for (i, &got) in to.iter().enumerate() {
                let inside = if i < loaded { (i + 1) as f32 } else { 0.0 };
                let want = if i < stored.min(lanes) { inside } else { -1.0 };
                assert_eq!(got, want, "{} {loaded} {stored} {i}", isa.name());
            }
        }
    }
}

#[test]
fn whole_loads_and_stores_panic_where_there_is_too_little() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        let lanes = isa.run(Copy {
            from: &[0.0; 16],
            to: &mut [0.0; 16],
            whole: true,
        });
        let copy = |from: usize, to: usize| {
            let (from, mut to) = (vec![0.0; from], vec![0.0; to]);
            let run = || {
                isa.run(Copy {
                    from: &from,
                    to: &mut to,
                    whole: true,
                })
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok()
        };
        assert!(copy(lanes, lanes));
        assert!(!copy(lanes - 1, lanes));
        assert!(!copy(lanes, lanes - 1));
    }
}

#[test]
fn the_environment_lowers_the_level() {
    let best = Isa::choose(None).unwrap();
    assert!(best.available());
    for isa in Isa::ALL {
        let chosen = Isa::choose(Some(isa.name()));
        assert_eq!(chosen.is_ok(), isa.available());
        assert!(chosen.is_err() || chosen.unwrap() == isa);
    }
    let error = Isa::choose(Some("sse9")).unwrap_err().to_string();
    assert!(
        error.contains("sse9") && error.contains("portable"),
        "{error}"
    );
}
