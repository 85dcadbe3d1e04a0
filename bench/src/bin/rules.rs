//! Evaluates approvers on traces of calls. See the README for the traces and the tables.

use portmoot_bench::approvers;
use portmoot_bench::flags::Flags;

fn main() {
    approvers::run(&Flags::read());
}
