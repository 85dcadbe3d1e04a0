//! Files of rules: faults with their places, which change nothing on a reload.

use platform::unix_ms;

use super::bank::{Bank, DAY_MS, UP_TO_100, whole_seconds};
use crate::home::Home;

/// The line at which the second of two rules begins.
const SECOND: usize = 14;
/// The line of what is written of its uses.
const USES: usize = SECOND + 10;

/// A rule that rejects.
const REJECTING: &str = "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
                         kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n";

#[test]
fn a_wrong_file_on_reload_changes_nothing() {
    let bank = Bank::new();
    let first = bank.approving("r1", "uses = 9", UP_TO_100);
    assert_eq!(first.lines().count() + 1, SECOND);
    bank.put(&first);
    let right = bank.approving("r2", "uses = 9", UP_TO_100);
    let year = whole_seconds(unix_ms() + DAY_MS)[..4].to_owned();
    let faults = [
        (
            right.replace("uses = 9", "uses = \"many\""),
            "rule r2: `uses` is no number",
            USES,
        ),
        (
            right.replace("uses = 9\n", ""),
            "rule r2: `uses` is missing",
            SECOND,
        ),
        (
            right.replace("\"ann\"", "\"anonymous-1\""),
            "rule r2: a guest is the author",
            SECOND,
        ),
        (
            right.replace("\"scout\"", "\"scout\", \"anonymous-1\""),
            "rule r2: a guest is among the proposers",
            SECOND,
        ),
        // The head of a rule may be written otherwise, and below other lines.
        (
            right
                .replace("[[rule]]", "# The second.\n\n  [[ rule ]]")
                .replace("\"scout\"", "\"scout\", \"anonymous-1\""),
            "rule r2: a guest is among the proposers",
            SECOND + 2,
        ),
        (
            right.replace(&format!("expires = \"{year}"), "expires = \"2999"),
            "rule r2: it would last longer than 30 days",
            SECOND,
        ),
    ];
    let count = faults.len();
    for (wrong, why, line) in faults {
        bank.home.write("rules.toml", &(first.clone() + &wrong));
        let check = ["config", "check", "--config", "portmoot.toml"];
        let check = bank.home.run(&check).expect(2);
        assert!(check.stderr.contains(why), "{why}: {}", check.stderr);
        let place = format!("rules.toml:{line}:");
        assert!(
            check.stderr.contains(&place),
            "{why}: {place}: {}",
            check.stderr
        );
        bank.gateway.signal("HUP");
        bank.gateway.receive(why);
        bank.is_paid(3);
    }
    assert_eq!(bank.rule("r1.1")["used"], count);
}

#[test]
fn a_found_configuration_names_no_rules() {
    let home = Home::new();
    home.write("portmoot.toml", "[topics.main]\nrules = \"rules.toml\"\n");
    home.write("rules.toml", REJECTING);
    let refused = home.run(&["config", "check"]).expect(2).stderr;
    for part in [
        "`topics.main.rules`: a file that you did not name has no rules",
        "name your configuration with --config FILE",
        "portmoot.toml:2:",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    home.run(&["serve", "--yes", "--listen", "127.0.0.1:0"])
        .expect(2);
    home.run(&["config", "check", "--config", "portmoot.toml"])
        .expect(0);
}
