//! Evaluates approvers on traces of calls, or measures what rules cost, or trials of a change on the past. See the README for the traces and the tables.

use std::process::ExitCode;

use portmoot_bench::flags::Flags;
use portmoot_bench::{approvers, rule_costs, rule_past};

fn main() -> ExitCode {
    let flags = Flags::read();
    if flags.has("--costs") {
        rule_costs::run();
        return ExitCode::SUCCESS;
    }
    let missed = if flags.has("--past") {
        rule_past::run(&flags)
    } else {
        approvers::run(&flags)
    };
    for miss in &missed {
        eprintln!("missed: {miss}");
    }
    if missed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
