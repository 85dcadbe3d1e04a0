use super::*;
use crate::characters::IDENTIFIER_CHARS_MAX;
use crate::guards::{GUARDS_MAX, SAME_MEMBERS_MAX, USES_MAX};
use crate::value_test::{CONSTANTS_MAX, SHAPES_MAX};

/// An approving rule with these lines behind its head, and these conditions.
fn approving(lines: &str, when: &str) -> String {
    format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:create_issue\"\nto = \"github\"\nproposers = [\"scout\"]\n\
         definition = \"{0}\"\nserver = \"{0}\"\nexpires = \"2026-12-06T09:00:00Z\"\nuses = 33\n\
         {lines}\n[rule.when]\n{when}\n",
        "ab".repeat(32)
    )
}

fn asking(lines: &str, when: &str) -> String {
    format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"ask\"\n\
         kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n{lines}\n[rule.when]\n{when}\n"
    )
}

#[track_caller]
fn one(text: &str) -> CallRule {
    let mut rules = parse_rules(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(rules.len(), 1);
    rules.remove(0)
}

#[track_caller]
fn round_trips(text: &str) {
    let rule = one(text);
    let printed = rule.text();
    assert_eq!(one(&printed), rule, "{printed}");
    assert_eq!(one(&printed).text(), printed);
    assert_eq!(one(&printed).digest(), rule.digest());
}

#[track_caller]
fn refused(text: &str, message: &str) -> RuleFileError {
    let error = parse_rules(text)
        .map(|rules| panic!("{message}: {rules:?}"))
        .unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains(message), "{shown}\n{text}");
    assert!(!error.remedy.is_empty());
    error
}

const ALL_CONDITIONS: &str = r#"
"/repo"   = { one_of = ["acme/site", "acme/docs", { json = "null" }] }
"/title"  = { equals = "Nightly \"report\"\n" }
"/labels" = { count = [0, 3], each = { one_of = ["bot", "report"] } }
"/file"   = { under = "/srv/docs" }
"/id"     = { chars = "A-Z0-9", length = [6, 6] }
"/ref"    = { shape = ["A-9", "a9"], length = [3, 12] }
"/amount" = { integer = [1, 200] }
"/price"  = { decimal = [0.5, 99.95] }
"/site"   = { url = { origin = "https://api.example.com", under = "/v1", query = ["id"] } }
"/flag"   = { equals = true }
"/big"    = { equals = { json = "1e400" } }
"/empty"  = { count = [0, 0] }
"/gone"   = { absent = true }
"/a~1b/c" = { equals = 1.50 }
"#;

#[test]
fn every_condition_and_guard_round_trips() {
    let lines = "rate = \"12/h\"\nduring = \"Mon-Fri 06:00-18:00 UTC\"\ndestructive = true\nversion = 3\n\
        sum = [{ of = \"/amount\", max = 499.5, within = \"1d\" }]\n\
        count = [{ same = \"/repo\", max = 3, within = \"7d\" }]\n\
        after = [{ kind = \"mcp/request:tools/call:get\", to = \"bank\", same = { \"/id\" = \"/invoice/id\" }, within = \"1h\" }]";
    round_trips(&approving(lines, ALL_CONDITIONS));
    round_trips(&approving("", ""));
    round_trips(&asking(
        "rate = \"5/m\"\nexpires = 2026-12-06T11:00:00+02:00",
        "\"/text\" = { length = [1000, 4000000] }\n\"/x\" = { type = \"array\" }\n\"/to\" = { some = { equals = \"boss\" } }",
    ));
}

#[test]
fn the_sentence_names_every_condition() {
    let rule = one(&approving("rate = \"12/h\"", ALL_CONDITIONS));
    let sentence = rule.sentence();
    for (pointer, test) in rule.when.iter() {
        let words = format!("{} {}", pointer.words(), test.words());
        assert!(sentence.contains(&words), "{words}: {sentence}");
    }
    let start = "scout may call create_issue of github when ";
    assert!(sentence.starts_with(start), "{sentence}");
    let end = "as written, and nothing else is given; only while at most 12 calls an hour; at most 33 times, \
        until Sunday 6 December 2026 09:00:00 UTC; on ann's authority.";
    assert!(sentence.ends_with(end), "{sentence}");
    let repo = "repo is \"acme/docs\", \"acme/site\" or null";
    assert!(sentence.contains(repo), "{sentence}");
}

#[test]
fn a_rejection_of_all_is_said_of_no_participant() {
    let rejecting = asking("", "").replace("\"ask\"", "\"reject\"");
    for proposers in ["[\"*\"]", "[\"scout\", \"*\"]"] {
        let sentence = one(&rejecting.replace("[\"*\"]", proposers)).sentence();
        let start = "no participant may call pay of any server; on ann's authority.";
        assert_eq!(sentence, start, "{proposers}");
    }
    let sentence = one(&rejecting.replace("[\"*\"]", "[\"scout\"]")).sentence();
    assert!(sentence.starts_with("scout may not call pay"), "{sentence}");
}

#[test]
fn a_sentence_cannot_be_forged_by_names() {
    let text = approving("", "").replace("create_issue", "x of github without arguments; y");
    let sentence = one(&text).sentence();
    assert!(
        sentence.contains("call \"x of github without arguments; y\" of github"),
        "{sentence}"
    );
}

#[test]
fn each_rule_has_the_place_at_which_it_begins() {
    let first = asking("", "");
    let second = first
        .replace("r1", "r2")
        .replace("[[rule]]", "  [[ rule ]]");
    let text = format!("{first}# [[rule]]\n{second}");
    let places = |text: &str| -> Vec<(usize, usize)> {
        let written = parse_written_rules(text).unwrap();
        written.iter().map(|one| (one.line, one.column)).collect()
    };
    let count = first.lines().count();
    assert_eq!(places(&text), [(1, 1), (count + 2, 3)]);
    let inline = "{ id = 'r1', author = 'ann', decision = 'ask', kind = 'mcp/request:x', proposers = ['é'] }";
    let other = inline.replace("r1", "r2");
    let text = format!("rule = [{inline}, {other}]");
    let begins = "rule = [".len() + 1;
    let next = begins + inline.chars().count() + ", ".len();
    assert_eq!(places(&text), [(1, begins), (1, next)]);
}

#[test]
fn an_error_names_place_rule_and_remedy() {
    let text = approving(
        "",
        "\"/repo\" = { equals = \"a\" }\n\"/n\" = { integer = [5, 1] }",
    );
    let error = refused(&text, "the lowest is above the highest");
    let line = text
        .lines()
        .position(|line| line.contains("integer"))
        .unwrap()
        + 1;
    assert_eq!(
        (error.line, error.column, error.rule.as_deref()),
        (line, 20, Some("r1"))
    );
    assert_eq!(
        error.to_string(),
        format!(
            "line {line}, column 20: rule r1: the lowest is above the highest; write the lower one first"
        )
    );
    refused("[[rule]\n", "line 1");
    refused("[[rule]]\nauthor = \"ann\"", "`id` is missing");
    refused("rules = 1", "`rules` is not known here; the keys are rule");
    assert_eq!(parse_rules("").unwrap(), []);
}

#[test]
fn what_is_missing_or_unknown_is_refused() {
    for key in [
        "author",
        "decision",
        "kind",
        "to",
        "proposers",
        "definition",
        "server",
        "expires",
        "uses",
    ] {
        let text: String = approving("", "")
            .lines()
            .filter(|line| !line.starts_with(&format!("{key} =")))
            .map(|line| format!("{line}\n"))
            .collect();
        refused(&text, &format!("`{key}` is missing"));
    }
    refused(&approving("colour = 1", ""), "`colour` is not known here");
    refused(
        &approving("", "\"/a\" = { regex = \".*\" }"),
        "`regex` is not known here",
    );
    refused(
        &approving("", "\"/a\" = { not = { equals = 1 } }"),
        "`not` is not known here",
    );
    refused(
        &approving("", "\"/a\" = { equals = 1, one_of = [1] }"),
        "not exactly one sort",
    );
    refused(&approving("", "\"/a\" = {}"), "not exactly one sort");
    refused(
        &approving("", "\"/a\" = { equals = 1, length = [1, 2] }"),
        "not exactly one sort",
    );
    refused(&approving("", "\"/a\" = 5"), "is no table");
    refused(&approving("", "repo = { equals = 1 }"), "begins with `/`");
}

#[test]
fn an_approving_rule_describes_its_calls() {
    let swap = |from: &str, to: &str| approving("", "").replace(from, to);
    refused(&swap("create_issue", "create_*"), "`*` is no wildcard here");
    refused(&swap(":create_issue", ""), "names one tool");
    refused(
        &swap("mcp/request:tools/call:create_issue", "chat"),
        "is about requests",
    );
    refused(&swap("[\"scout\"]", "[\"*\"]"), "names its proposers");
    refused(
        &swap("[\"scout\"]", "[\"ann\"]"),
        "its author's own proposals",
    );
    refused(&swap("[\"scout\"]", "[]"), "has 0 proposers");
    refused(&swap("[\"scout\"]", "[\"scout\", \"scout\"]"), "twice");
    for like in [
        "type = \"string\"",
        "length = [1, 5]",
        "some = { equals = 1 }",
        "count = [0, 5]",
    ] {
        refused(
            &approving("", &format!("\"/a\" = {{ {like} }}")),
            "does not describe",
        );
    }
    for odd in ["1e3", "-0.0", "1234567890123456", "inf", "nan", "0x10"] {
        refused(
            &approving("", &format!("\"/a\" = {{ equals = {odd} }}")),
            "line",
        );
    }
    refused(
        &approving("", "\"/a\" = { integer = [1.5, 2] }"),
        "has no fraction",
    );
    refused(
        &approving("", "\"/a\" = { one_of = [1, \"a\"] }"),
        "several types",
    );
    refused(&approving("", "\"/a\" = { one_of = [1, 1] }"), "twice");
    refused(
        &approving("", "\"/a\" = { equals = \"p\u{430}ypal\" }"),
        "several ways",
    );
    refused(
        &approving("", "\"/a\" = { equals = \"a\u{200b}\" }"),
        "several ways",
    );
    refused(
        &approving("", "\"/a\" = { under = \"/srv\" }"),
        "at least 2 segments",
    );
    refused(
        &approving("", "\"/a\" = { chars = \"a-z;\", length = [1, 5] }"),
        "a set has letters",
    );
    refused(
        &approving("", "\"/a\" = { count = [0, 1], each = { count = [0, 0] } }"),
        "one level deep",
    );
    refused(&approving("expires = 5", ""), "duplicate key");
    refused(
        &swap("\"2026-12-06T09:00:00Z\"", "\"2026-12-06\""),
        "no time",
    );
    refused(
        &swap("\"2026-12-06T09:00:00Z\"", "2026-12-06T09:00:00.5Z"),
        "no time",
    );
}

#[test]
fn a_rule_that_tightens_has_no_budget_and_no_evasion() {
    for line in [
        "uses = 3",
        "destructive = true",
        "definition = \"00\"",
        "server = \"00\"",
    ] {
        refused(
            &asking(line, ""),
            "would end a rule that only rejects or asks",
        );
    }
    refused(
        &asking("", "\"/a\" = { count = [0, 5], each = { equals = 1 } }"),
        "evade",
    );
}

#[test]
fn every_limit_is_reached_and_passed() {
    let constants = |count: usize| {
        let list: Vec<String> = (0..count).map(|at| at.to_string()).collect();
        approving(
            "",
            &format!("\"/a\" = {{ one_of = [{}] }}", list.join(", ")),
        )
    };
    one(&constants(CONSTANTS_MAX));
    refused(&constants(CONSTANTS_MAX + 1), "has 9 constants");
    let shapes = |count: usize| {
        let list: Vec<String> = (1..=count)
            .map(|at| format!("\"{}\"", "a9".repeat(at)))
            .collect();
        approving(
            "",
            &format!(
                "\"/a\" = {{ shape = [{}], length = [1, 9] }}",
                list.join(", ")
            ),
        )
    };
    one(&shapes(SHAPES_MAX));
    refused(&shapes(SHAPES_MAX + 1), "has 4 shapes");
    let length = |max: u32| {
        approving(
            "",
            &format!("\"/a\" = {{ chars = \"a\", length = [1, {max}] }}"),
        )
    };
    one(&length(IDENTIFIER_CHARS_MAX));
    refused(&length(IDENTIFIER_CHARS_MAX + 1), "out of bounds");
    let uses = |count: u32| approving("", "").replace("uses = 33", &format!("uses = {count}"));
    one(&uses(USES_MAX));
    refused(&uses(USES_MAX + 1), "out of bounds");
    refused(&uses(0), "out of bounds");
    let sums = |count: usize| {
        let sum = "{ of = \"/a\", max = 1, within = \"1d\" }";
        approving(&format!("sum = [{}]", vec![sum; count].join(", ")), "")
    };
    one(&sums(GUARDS_MAX));
    refused(&sums(GUARDS_MAX + 1), "has 5 of `sum`");
    let same = |count: usize| {
        let pairs: Vec<String> = (0..count)
            .map(|at| format!("\"/m{at}\" = \"/x\""))
            .collect();
        let pairs = pairs.join(", ");
        let kind = "mcp/request:tools/call:get";
        approving(
            &format!(
                "after = [{{ kind = \"{kind}\", to = \"bank\", same = {{ {pairs} }}, within = \"1h\" }}]"
            ),
            "",
        )
    };
    one(&same(SAME_MEMBERS_MAX));
    refused(&same(SAME_MEMBERS_MAX + 1), "too many members");
    let proposers = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("\"p{at}\"")).collect();
        approving("", "").replace("[\"scout\"]", &format!("[{}]", names.join(", ")))
    };
    one(&proposers(PROPOSERS_MAX));
    refused(&proposers(PROPOSERS_MAX + 1), "has 17 proposers");
    let padded = |bytes: usize| format!("#{}", "x".repeat(bytes - 1));
    assert_eq!(parse_rules(&padded(RULES_FILE_BYTES_MAX)).unwrap(), []);
    refused(&padded(RULES_FILE_BYTES_MAX + 1), "longer than");
}

#[test]
fn a_topic_and_a_tool_have_so_many_rules() {
    let file = |count: usize, tools: usize| {
        let rules = (0..count).map(|at| {
            let tool = at % tools;
            approving("", "")
                .replace("\"r1\"", &format!("\"r{at}\""))
                .replace("create_issue", &format!("tool{tool}"))
        });
        rules.collect::<String>()
    };
    assert_eq!(parse_rules(&file(RULES_MAX, 8)).unwrap().len(), RULES_MAX);
    refused(&file(RULES_MAX + 1, 9), "more than 256 rules");
    assert_eq!(
        parse_rules(&file(TOOL_RULES_MAX, 1)).unwrap().len(),
        TOOL_RULES_MAX
    );
    refused(
        &file(TOOL_RULES_MAX + 1, 1),
        "more than 32 rules of one tool",
    );
    refused(&approving("", "").repeat(2), "taken");
}
