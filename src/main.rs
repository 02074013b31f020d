//! The `stripmill` command.

fn main() {}
