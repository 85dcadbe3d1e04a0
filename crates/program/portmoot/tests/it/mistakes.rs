//! Mistakes in configuration files, and how `config check` shows them with and without colours.
//!
//! Each file in `tests/mistakes` is a configuration with a mistake; the snapshots beside it are
//! what a person sees.
//! `UPDATE=1 cargo nextest run -p portmoot mistakes` writes them again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::home::{Home, Ran};
use crate::pty::run_at_terminal;

/// The files with mistakes, in the order of their names.
fn mistakes() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_input = |path: &PathBuf| {
        path.extension()
            .is_some_and(|end| end == "toml" || end == "json")
    };
    let mut files: Vec<PathBuf> = files.filter(is_input).collect();
    files.sort();
    files
}

/// Compares with a snapshot, or writes it.
fn compare(path: &Path, shown: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, shown).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(expected == shown, "{} differs:\n{shown}", path.display());
}

#[test]
fn mistakes_are_shown_with_an_excerpt_and_a_mark() {
    let files = mistakes();
    assert!(files.len() >= 20, "{}", files.len());
    let home = Home::new().env("ME", "a-token-that-is-long-enough");
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        home.write(name, &fs::read_to_string(&path).unwrap());
        let flag = if name.ends_with(".json") {
            "--mcp-config"
        } else {
            "--config"
        };
        let args = ["config", "check", flag, name];
        let plain = home.run(&args).expect(2);
        assert_eq!(plain.stdout, "");
        assert!(
            plain.stderr.contains(&format!("--> {name}:")),
            "{}",
            plain.stderr
        );
        assert!(
            !plain.stderr.contains("hush"),
            "a secret is shown: {}",
            plain.stderr
        );
        compare(&path.with_extension("txt"), &plain.stderr);
        let coloured: Ran = run_at_terminal(&home, &args, &[]).expect(2);
        compare(&path.with_extension("ansi"), &coloured.stderr);
        let mut bare = String::new();
        for (at, piece) in coloured.stderr.split('\u{1b}').enumerate() {
            bare += if at == 0 {
                piece
            } else {
                piece.split_once('m').unwrap().1
            };
        }
        assert_eq!(bare, plain.stderr, "colours change nothing else");
        let without = run_at_terminal(&home, &[&args[..], &["--no-color"]].concat(), &[]).expect(2);
        assert_eq!(without.stderr, plain.stderr);
    }
    let home = Home::new().env("NO_COLOR", "1");
    home.write("bad.toml", "[sever]\n");
    let ran = run_at_terminal(&home, &["config", "check", "--config", "bad.toml"], &[]).expect(2);
    assert!(
        ran.stderr.contains("--> bad.toml:1:2") && !ran.stderr.contains('\u{1b}'),
        "{}",
        ran.stderr
    );
}
