//! The tables of conditions and bounds in docs/rules.md, against the language itself.

use std::collections::BTreeSet;

use super::*;

/// A row of a table: what a rule has, as text, and the words that its sentence has for it.
struct DocumentedRow {
    written: String,
    words: String,
    decisions: Vec<String>,
}

#[test]
fn each_documented_condition_is_one_and_reads_as_it_says() {
    let rows = rows_below("## Conditions");
    let mut named = BTreeSet::new();
    for row in &rows {
        for decision in ["approve", "ask"] {
            let is_documented = row.decisions.iter().any(|one| one == decision);
            let read = parse_rules(&rule_with(row, decision));
            assert_eq!(
                read.is_ok(),
                is_documented,
                "{decision}: {}: {read:?}",
                row.written
            );
            for rule in read.into_iter().flatten() {
                let sentence = rule.sentence();
                assert!(sentence.contains(&row.words), "{}: {sentence}", row.written);
            }
        }
        named.extend(words_of(&row.written));
    }
    for sort in tests_of_values::SORTS {
        assert!(named.contains(sort), "docs/rules.md has no row for {sort}");
    }
    for key in ["uses", "during", "rate", "sum", "count", "after"] {
        let has_key = |row: &DocumentedRow| row.written.starts_with(&format!("{key} = "));
        assert!(
            rows.iter().any(has_key),
            "docs/rules.md has no row for {key}"
        );
    }
}

/// The rows of the tables of one section.
fn rows_below(heading: &str) -> Vec<DocumentedRow> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/rules.md");
    let page = std::fs::read_to_string(file).unwrap();
    let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let read = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [written, words, decisions] = cells.try_into().unwrap();
        DocumentedRow {
            written: written.trim().trim_matches('`').to_owned(),
            words: words.to_owned(),
            decisions: decisions.trim().split(", ").map(str::to_owned).collect(),
        }
    };
    rows.map(read).collect()
}

/// A rule with what a row has: a condition, or a line of the rule itself.
fn rule_with(row: &DocumentedRow, decision: &str) -> String {
    let bounds = match decision {
        "approve" if row.written.starts_with("uses") => "expires = \"2026-12-06T09:00:00Z\"\n",
        "approve" => "expires = \"2026-12-06T09:00:00Z\"\nuses = 7\n",
        _ => "",
    };
    let pins = format!(
        "definition = \"{0}\"\nserver = \"{0}\"\n{bounds}",
        "ab".repeat(32)
    );
    let pins = if decision == "approve" { &*pins } else { "" };
    let (line, when) = if row.written.starts_with('"') {
        ("", &*row.written)
    } else {
        (&*row.written, "")
    };
    format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"{decision}\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         {pins}{line}\n[rule.when]\n{when}\n"
    )
}

/// The words of a text, without signs.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|symbol: char| !symbol.is_alphanumeric() && symbol != '_')
}
