//! Evaluates approvers on traces of calls. See the README for the traces and the tables.

use std::process::ExitCode;

use portmoot_bench::approvers;
use portmoot_bench::flags::Flags;

fn main() -> ExitCode {
    let missed = approvers::run(&Flags::read());
    for miss in &missed {
        eprintln!("missed: {miss}");
    }
    if missed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
