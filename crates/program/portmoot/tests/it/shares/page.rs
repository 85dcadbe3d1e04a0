//! The table of docs/limits.md: its rows are the plays of the greedy participant, and its names are
//! the code's.

use std::path::{Path, PathBuf};

use super::{PLAYED, UNREACHED};

/// The text of all Rust files below a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.extension() {
        Some(end) if end == "rs" => std::fs::read_to_string(path).unwrap(),
        _ if path.is_dir() => sources(&path),
        _ => String::new(),
    };
    entries.map(text).collect()
}

/// The rows of a page's tables with so many columns, without their heads.
fn rows(page: &str, columns: usize) -> Vec<Vec<&str>> {
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.matches(" | ").count() + 1 == columns);
    let cells = rows.map(|line| line.trim_matches(['|', ' ']).split(" | ").collect());
    cells.filter(|row: &Vec<&str>| row[0] != "bound").collect()
}

/// Bounds, each with its tests.
fn rows_of_tests() -> Vec<(&'static str, &'static str)> {
    let page = include_str!("../../../../../../docs/conformance/limits.md");
    rows(page, 2)
        .into_iter()
        .map(|row| (row[0], row[1]))
        .collect()
}

#[test]
fn every_shared_bound_is_exhausted_or_names_its_test() {
    let page = include_str!("../../../../../../docs/limits.md");
    let rows = rows(page, 5);
    let tests = rows_of_tests();
    assert!(rows.len() > 15, "{rows:?}");
    let greedy = "`a_greedy_participant_disturbs_no_other`";
    let played = || {
        PLAYED
            .iter()
            .flat_map(|(_, plays)| *plays)
            .map(|(bound, _)| *bound)
    };
    for row in &rows {
        let is_played = played().any(|bound| bound == row[0]);
        let is_unreached = UNREACHED.iter().any(|(bound, _)| *bound == row[0]);
        assert!(
            is_played != is_unreached,
            "it is played, or there is a reason against it: {row:?}"
        );
        let named: Vec<&str> = tests
            .iter()
            .filter(|(bound, _)| *bound == row[0])
            .map(|(_, tests)| *tests)
            .collect();
        let [named] = named.as_slice() else {
            panic!("docs/conformance/limits.md: {row:?}")
        };
        assert_eq!(named.contains(greedy), is_played, "{row:?}");
        assert!(named.starts_with('`'), "no test is named: {row:?}");
    }
    for bound in played().chain(UNREACHED.iter().map(|(bound, _)| *bound)) {
        assert_eq!(
            rows.iter().filter(|row| row[0] == bound).count(),
            1,
            "docs/limits.md: `{bound}`"
        );
    }
    // What a row calls its bound and its share is a constant or a field of the code, or a setting.
    let configuration = include_str!("../../../../../../docs/configuration.md");
    let table = configuration
        .split("## `[server.limits]`")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let code = sources(&harness::repository().join("crates"));
    let names = rows
        .iter()
        .flat_map(|row| [row[2], row[3]])
        .flat_map(|cell| cell.split('`').skip(1).step_by(2));
    for name in names.filter(|name| name.contains('_')) {
        let known = [format!("const {name}: "), format!("pub {name}: ")];
        let is_setting = table.contains(&format!("\n| `{name}` |"));
        assert!(
            is_setting || known.iter().any(|known| code.contains(known)),
            "docs/limits.md names `{name}`"
        );
    }
    for key in table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
    {
        assert!(
            page.contains(&format!("`{key}`")),
            "docs/limits.md does not name `{key}`"
        );
    }
}
