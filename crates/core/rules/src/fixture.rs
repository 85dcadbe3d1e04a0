//! A rule for the tests of this crate.

use crate::parse::parse_rules;
use crate::rule::CallRule;

/// A rule of `ann` that approves calls of the tool `t` of the server `s` five times, until the 6th of
/// December 2026, 09:00 UTC, with these lines of TOML as its conditions.
pub(crate) fn approving(id: &str, proposer: &str, when: &str) -> CallRule {
    let digest = "ab".repeat(32);
    let text = format!(
        "[[rule]]\nid = \"{id}\"\nauthor = \"ann\"\ndecision = \"approve\"\nkind = \"mcp/request:tools/call:t\"\n\
         to = \"s\"\nproposers = [\"{proposer}\"]\ndefinition = \"{digest}\"\nserver = \"{digest}\"\n\
         expires = \"2026-12-06T09:00:00Z\"\nuses = 5\n[rule.when]\n{when}\n"
    );
    parse_rules(&text).unwrap().remove(0)
}
