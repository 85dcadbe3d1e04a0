//! The documentation: links, the table of contents, the site as mdBook builds it, and commands that
//! the program knows.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{deps, repository};

use crate::home::Home;

/// The pages that people read, below the root.
fn pages() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ]
    .into_iter()
    .chain([
        "packages/README.md",
        "bench/README.md",
        "bench/clients/README.md",
        "clients/python/README.md",
    ])
    .map(PathBuf::from)
    .collect();
    found.extend(guides());
    for folder in harness::crates().values() {
        let page = folder.join("README.md");
        if page.exists() {
            found.push(page.strip_prefix(repository()).unwrap().to_owned());
        }
    }
    found
}

/// The pages of the site.
fn guides() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["docs", "docs/conformance"] {
        let entries = std::fs::read_dir(repository().join(folder)).unwrap();
        let names = entries.map(|entry| Path::new(folder).join(entry.unwrap().file_name()));
        found.extend(names.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found.sort();
    found
}

fn read(page: &Path) -> String {
    std::fs::read_to_string(repository().join(page)).unwrap()
}

/// The text of a page outside of blocks of code, whose brackets are no links.
fn prose(text: &str) -> String {
    let mut inside = false;
    let is_prose = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence && !line.starts_with("    ")
    };
    text.lines().filter(is_prose).collect::<Vec<_>>().join("\n")
}

/// Where the links and pictures of a page lead.
fn links(text: &str) -> Vec<String> {
    // Code in a line has no links.
    let plain: String = prose(text)
        .split('`')
        .step_by(2)
        .collect::<Vec<_>>()
        .join("``");
    let rest = plain.split("](").skip(1);
    rest.filter_map(|rest| Some(rest.split(')').next()?.to_owned()))
        .collect()
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> HashSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c })
            .collect::<String>()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let (mut wrong, mut followed) = (Vec::new(), 0);
    for page in pages() {
        let folder = page.parent().unwrap();
        for link in links(&read(&page))
            .into_iter()
            .filter(|link| !link.contains("://"))
        {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() {
                page.clone()
            } else {
                folder.join(path)
            };
            let is_there = repository().join(&target).exists();
            let has_anchor =
                anchor.is_empty() || (is_there && anchors(&read(&target)).contains(anchor));
            if !is_there || !has_anchor {
                wrong.push(format!("{}: {link}", page.display()));
            }
            followed += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(followed > 150, "{followed}");
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let contents = links(&read(Path::new("docs/SUMMARY.md")));
    let mut listed: Vec<PathBuf> = contents
        .iter()
        .map(|link| Path::new("docs").join(link))
        .collect();
    listed.sort();
    let mut there = guides();
    there.retain(|page| !page.ends_with("SUMMARY.md"));
    assert_eq!(listed, there);
}

/// All files below a folder.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, found)
        } else {
            found.push(path)
        }
    }
}

#[test]
fn the_site_builds_and_its_links_lead_somewhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut build = Command::new(deps().mdbook());
    let built = build
        .arg("build")
        .arg(repository())
        .arg("--dest-dir")
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(
        built.status.success() && !said.contains("ERROR") && !said.contains("WARN"),
        "{said}"
    );
    let mut files = Vec::new();
    below(folder.path(), &mut files);
    let (mut wrong, mut followed) = (Vec::new(), 0);
    for page in files
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "html"))
    {
        let text = std::fs::read_to_string(page).unwrap();
        let hrefs = text
            .split(" href=\"")
            .chain(text.split(" src=\""))
            .filter(|rest| !rest.starts_with('<'));
        for link in hrefs.filter_map(|rest| rest.split('"').next()) {
            let path = link.split(['#', '?']).next().unwrap();
            let elsewhere = link.contains(':') || path.is_empty() || path.starts_with('/');
            if !elsewhere && !page.parent().unwrap().join(path).exists() {
                wrong.push(format!("{}: {link}", page.display()));
            }
            followed += 1;
        }
    }
    wrong.retain(|line| !line.contains("404.html") && !line.contains("toc.html"));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(followed > 500, "{followed}");
    assert!(
        folder.path().join("first-hour.html").exists()
            && folder.path().join("openapi.json").exists()
    );
}

/// The words of a command line as a shell splits them, up to the end of the command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut depth) = (Vec::new(), None::<String>, None, 0);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '#') if word.is_none() => break,
            (None, '|' | '>' | ';' | ')') => break,
            (None, '&') if chars.peek() == Some(&'&') => break,
            (None, ' ') => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some('"'), '(') => (depth, _) = (depth + 1, word.get_or_insert_default().push(c)),
            (Some('"'), ')') => (depth, _) = (depth - 1, word.get_or_insert_default().push(c)),
            (Some(open), c) if open == c && depth == 0 => quote = None,
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The command lines of this program in the blocks of a page, without its name.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("\n```").skip(1).step_by(2);
    let of_shell = blocks.filter_map(|block| {
        block
            .strip_prefix("sh\n")
            .or(block.strip_prefix("console\n"))
    });
    let lines = of_shell.flat_map(|block| block.lines().map(|line| line.trim_start_matches("$ ")));
    let mut found = Vec::new();
    for line in lines {
        // A command may stand in another one.
        for (at, name) in line.match_indices("portmoot ") {
            let before = line[..at].chars().next_back();
            let begins = before.is_none_or(|c| "(/ \"".contains(c));
            let is_command = line[..at].is_empty()
                || line[..at].ends_with("$(")
                || line[..at].ends_with(") ")
                || line[..at].ends_with("&& ")
                || line[..at].ends_with("target/release/");
            if begins && is_command {
                found.push(line[at + name.len()..].to_owned());
            }
        }
    }
    found
}

/// With `--help` at its end a command is parsed up to there, and changes nothing.
#[test]
fn the_program_knows_every_command_of_the_guides() {
    let home = Home::new();
    let (mut asked, mut seen) = (0, HashSet::new());
    for page in guides().into_iter().chain([
        PathBuf::from("README.md"),
        PathBuf::from("packages/README.md"),
    ]) {
        for line in commands(&read(&page))
            .into_iter()
            .filter(|line| seen.insert(line.clone()))
        {
            let mut words = words(&line);
            let end = words
                .iter()
                .position(|word| word == "--")
                .unwrap_or(words.len());
            words.truncate(end);
            // `&` is the shell's, and begins the command in the background.
            words.retain(|word| word != "..." && word != "&" && !word.ends_with('\\'));
            words.push("--help".to_owned());
            let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = home.run(&arguments);
            assert_eq!(
                ran.code,
                0,
                "{}: portmoot {line}\n{}",
                page.display(),
                ran.stderr
            );
            asked += 1;
        }
    }
    assert!(asked > 50, "{asked}");
}

#[test]
fn the_readme_is_short() {
    let lines = read(Path::new("README.md")).lines().count();
    assert!(lines < 150, "{lines}");
}
