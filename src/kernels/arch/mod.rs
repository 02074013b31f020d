//! Vectors: which instructions there are, and kernels written once over all of them.
//!
//! A kernel is a [`Kernel`]: a struct of its operands with one `#[inline(always)]` method that is
//! generic over a [`Simd`] token. [`Isa::run`] calls it inside a function compiled for that level.
//! Functions that the method calls must be `#[inline(always)]` as well, closures included (do not
//! hand them to functions that might not be inlined): what is not inlined is compiled for the base
//! instructions, right but slow.
//!
//! Every operation is correctly rounded, on every level, so that the same source gives the same
//! bits: no approximate reciprocals, no flushing of denormals, `min` and `max` with fixed operands.

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "instructions of a level, behind a token that proves it"
)]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "instructions of a level, behind a token that proves it"
)]
mod avx512;
#[expect(
    unsafe_code,
    reason = "bounds are checked once for a row of taps, not in the loop"
)]
pub(crate) mod depth;
#[expect(
    unsafe_code,
    reason = "bounds are checked once for a run of channels, not in the loop"
)]
pub(crate) mod dots;
#[expect(unsafe_code, reason = "parts write disjoint elements of the same rows")]
pub(crate) mod parts;
mod portable;
mod simd;
#[expect(
    unsafe_code,
    reason = "bounds are checked once for a run of channels, not in the loop"
)]
pub(crate) mod tile;
#[expect(
    unsafe_code,
    reason = "bounds are checked once for a patch of pixels, not in the loop"
)]
pub(crate) mod transform;

pub(crate) use simd::{Kernel, Simd};

use crate::{Error, Result};

/// A level of instructions, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Any machine; fused multiply-adds are exact, in software where need be.
    Portable,
    /// AVX2 and FMA, 8 lanes.
    Avx2,
    /// AVX-512F, 16 lanes.
    Avx512,
}

impl Isa {
    /// All levels, lowest first.
    pub const ALL: [Isa; 3] = [Isa::Portable, Isa::Avx2, Isa::Avx512];

    /// The highest level that this machine has, or the lower one that the environment's
    /// `STRIPMILL_ISA` names: `avx512`, `avx2` or `portable`.
    pub fn detect() -> Result<Isa> {
        let asked = std::env::var_os("STRIPMILL_ISA");
        Isa::choose(asked.as_ref().map(|name| name.to_string_lossy()).as_deref())
    }

    fn choose(asked: Option<&str>) -> Result<Isa> {
        let best = Isa::ALL.into_iter().rfind(|isa| isa.available());
        let best = best.unwrap_or(Isa::Portable);
        let Some(name) = asked else { return Ok(best) };
        let isa = Isa::ALL.into_iter().find(|isa| isa.name() == name);
        isa.filter(|isa| isa.available()).ok_or_else(|| {
            let names: Vec<_> = Isa::ALL.iter().filter(|isa| isa.available()).collect();
            let names: Vec<_> = names.iter().map(|isa| isa.name()).collect();
            let why = if isa.is_some() {
                "this machine does not have it"
            } else {
                "unknown"
            };
            Error::Usage(format!(
                "STRIPMILL_ISA={name}: {why}; use one of {}",
                names.join(", ")
            ))
        })
    }

    /// The level's name, as `STRIPMILL_ISA` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Whether this machine has it.
    pub fn available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::Avx2::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::Avx512::new().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }

    /// Runs a kernel, compiled for this level.
    ///
    /// # Panics
    ///
    /// Where the machine does not have the level; [`Isa::detect`] gives one that it has.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Isa::Portable => return portable::Portable.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                if let Some(s) = avx2::Avx2::new() {
                    return s.run(kernel);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                if let Some(s) = avx512::Avx512::new() {
                    return s.run(kernel);
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => {}
        }
        panic!("this machine has no {}", self.name())
    }
}

#[cfg(test)]
mod tests;
