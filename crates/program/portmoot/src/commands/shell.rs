//! Commands `completions`, `man` and `version`. A test keeps the reference page `docs/cli.md` up to
//! date.

use std::path::Path;

use clap_complete::Shell;
use serde_json::json;
use wire::mcp::Version;

use crate::cli::command;
use crate::commands::names;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Prints a completion script.
pub(crate) fn completions(shell: Shell, output: Output) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "portmoot", &mut script);
    output.result(&names::with_names(shell, &String::from_utf8_lossy(&script)));
    Exit::Ok
}

/// Prints the version of this program and the revisions of MCP, oldest first.
pub(crate) fn version(output: Output) -> Exit {
    let version = env!("CARGO_PKG_VERSION");
    let revisions: Vec<&str> = Version::ALL
        .iter()
        .map(|revision| revision.as_str())
        .collect();
    if output.json {
        output.result_json(&json!({ "version": version, "mcp": revisions }));
    } else {
        output.result(&format!("portmoot {version}\nMCP {}", revisions.join(", ")));
    }
    Exit::Ok
}

/// Prints the main manual page, or writes all pages to a directory.
pub(crate) fn man(dir: Option<&Path>, output: Output) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Failed, "unwritable", format!("cannot write: {error}"))
    };
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command())
            .render(&mut page)
            .map_err(failed)?;
        output.result(&String::from_utf8_lossy(&page));
        return Ok(Exit::Ok);
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command(), dir))
        .map_err(failed)?;
    output.message(&format!("wrote the manual pages to {}", dir.display()));
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fmt::Write as _;

    use clap::Command;

    use super::*;

    /// An option is described once for all commands when at least this many describe it in the same
    /// words.
    const SHARED_BY: usize = 20;

    /// A part of a help text.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
    enum Part {
        /// Text and arguments, kept as they are.
        Lines(String),
        /// A heading of options.
        Heading(String),
        /// An option with its description, under this heading.
        Described { heading: String, option: String },
    }

    /// The help of a command with its path, such as `portmoot tools call`.
    struct Page {
        path: String,
        parts: Vec<Part>,
    }

    /// The help of all commands as a Markdown page. Options that many commands share are described
    /// once, after the first command.
    fn reference() -> String {
        let mut root = command();
        root.build();
        let mut pages = Vec::new();
        collect(&mut pages, &mut root, "portmoot");
        let shared = shared_options(&pages);
        let mut out = String::from(
            "# Command line\n\nA test generates this page from the help texts; \
             `UPDATE=1 cargo nextest run -p portmoot reference` updates it.\n",
        );
        for page in &pages {
            let _ = write!(
                out,
                "\n## {}\n\n```text\n{}\n```\n",
                page.path,
                printed(page, &shared)
            );
            if page.path == "portmoot" {
                let _ = write!(
                    out,
                    "\n## Options of many commands\n\n```text\n{}\n```\n",
                    described(&shared)
                );
            }
        }
        out
    }

    /// Adds the pages of a command and of all commands beneath it.
    fn collect(pages: &mut Vec<Page>, command: &mut Command, path: &str) {
        // Help of a fixed width, independent of the environment.
        let mut shown = command
            .clone()
            .term_width(100)
            .display_name(path)
            .bin_name(path);
        let help = shown
            .render_long_help()
            .to_string()
            .replace(" (see a summary with '-h')", "");
        pages.push(Page {
            path: path.to_owned(),
            parts: parts(&help),
        });
        let shown = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let names: Vec<String> = shown.map(|command| command.get_name().to_owned()).collect();
        for name in names.iter().filter(|name| *name != "help") {
            if let Some(command) = command.find_subcommand_mut(name) {
                collect(pages, command, &format!("{path} {name}"));
            }
        }
    }

    fn parts(help: &str) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut heading = String::new();
        for line in help.trim_end().lines().map(str::trim_end) {
            let is_indented = line.starts_with(' ');
            if !is_indented && !line.is_empty() {
                heading = line.to_owned();
            }
            let is_option =
                is_indented && line.trim_start().starts_with('-') && heading.ends_with(':');
            match parts.last_mut() {
                _ if is_option => {
                    // Between two options no line is left empty.
                    let option = line.to_owned();
                    parts.push(Part::Described {
                        heading: heading.clone(),
                        option,
                    });
                }
                Some(Part::Described { option, .. }) if is_indented || line.is_empty() => {
                    let _ = write!(option, "\n{line}");
                }
                _ if is_heading_of_options(line) => parts.push(Part::Heading(line.to_owned())),
                Some(Part::Lines(lines)) => {
                    let _ = write!(lines, "\n{line}");
                }
                // A list of something else, such as commands.
                Some(Part::Heading(listed)) => {
                    let lines = format!("{listed}\n{line}");
                    parts.pop();
                    parts.push(Part::Lines(lines));
                }
                _ => parts.push(Part::Lines(line.to_owned())),
            }
        }
        for part in &mut parts {
            if let Part::Described { option: text, .. } | Part::Lines(text) = part {
                text.truncate(text.trim_end().len());
            }
        }
        parts
    }

    fn is_heading_of_options(line: &str) -> bool {
        !line.starts_with(' ')
            && line.ends_with(':')
            && !["Arguments:", "Commands:"].contains(&line)
    }

    fn shared_options(pages: &[Page]) -> BTreeSet<Part> {
        let mut commands = BTreeMap::new();
        for part in pages.iter().flat_map(|page| &page.parts) {
            if let Part::Described { .. } = part {
                *commands.entry(part.clone()).or_insert(0) += 1;
            }
        }
        commands.retain(|_, count| *count >= SHARED_BY);
        commands.into_keys().collect()
    }

    /// Text of a page: all but the shared options, and the headings under which those are found.
    fn printed(page: &Page, shared: &BTreeSet<Part>) -> String {
        let mut out = String::new();
        let mut pending_heading = None;
        let mut elsewhere: Vec<&str> = Vec::new();
        for part in &page.parts {
            match part {
                Part::Heading(heading) => pending_heading = Some(heading),
                Part::Described { heading, .. } if shared.contains(part) => {
                    let heading = heading.trim_end_matches(':');
                    if heading != "Options" && !elsewhere.contains(&heading) {
                        elsewhere.push(heading);
                    }
                }
                Part::Described { option, .. } => {
                    if let Some(heading) = pending_heading.take() {
                        let _ = write!(out, "\n\n{heading}");
                    }
                    let _ = write!(out, "\n{option}");
                }
                Part::Lines(lines) => {
                    let gap = if out.is_empty() { "" } else { "\n\n" };
                    let _ = write!(out, "{gap}{}", lines.trim_start_matches('\n'));
                }
            }
        }
        if !elsewhere.is_empty() {
            let _ = write!(
                out,
                "\n\nOptions of many commands: {}",
                elsewhere.join(", ")
            );
        }
        out
    }

    /// The shared options under their headings.
    fn described(shared: &BTreeSet<Part>) -> String {
        let mut out = String::new();
        let mut under = "";
        for part in shared {
            if let Part::Described { heading, option } = part {
                if heading != under {
                    let gap = if out.is_empty() { "" } else { "\n\n" };
                    let _ = write!(out, "{gap}{heading}");
                    under = heading;
                }
                let _ = write!(out, "\n{option}");
            }
        }
        out
    }

    /// Fails when docs/cli.md is stale.
    #[test]
    fn the_reference_page_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/cli.md");
        let page = reference();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == page,
            "docs/cli.md is stale: UPDATE=1 cargo nextest run -p portmoot reference"
        );
    }

    #[test]
    fn the_grammar_is_consistent() {
        command().debug_assert();
    }
}
