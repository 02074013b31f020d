//! The `stripmill` command: arguments, messages and exit codes. The work is the library's.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
