//! Row kernels other than convolutions: every kernel on every level of instructions, at odd sizes,
//! against plain loops in f64; and the same bits whatever the level, the threads and the cut.

mod channels;
mod data;
mod func;
mod pool;
mod resize;
mod shuffle;
mod tail;
