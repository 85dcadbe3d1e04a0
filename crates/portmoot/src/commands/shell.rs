//! Commands `completions`, `man` and `version`. A test keeps the reference page `docs/cli.md` up to date.

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
    let revisions: Vec<&str> = Version::ALL.iter().map(|revision| revision.as_str()).collect();
    if output.json {
        output.result_json(&json!({ "version": version, "mcp": revisions }));
    } else {
        output.result(&format!("portmoot {version}\nMCP {}", revisions.join(", ")));
    }
    Exit::Ok
}

/// Prints the main manual page, or writes all pages to a directory.
pub(crate) fn man(dir: Option<&Path>, output: Output) -> Result<Exit, Failure> {
    let failed =
        |error: std::io::Error| Failure::new(Exit::Failed, "unwritable", format!("cannot write: {error}"));
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command()).render(&mut page).map_err(failed)?;
        output.result(&String::from_utf8_lossy(&page));
        return Ok(Exit::Ok);
    };
    std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command(), dir)).map_err(failed)?;
    output.message(&format!("wrote the manual pages to {}", dir.display()));
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use clap::Command;

    use super::*;

    /// The help of all commands as a Markdown page.
    fn reference() -> String {
        let mut out = String::from(
            "# Command line\n\nA test generates this page from the help texts; \
             `UPDATE=1 cargo nextest run -p portmoot reference` updates it.\n",
        );
        let mut root = command();
        root.build();
        section(&mut out, &mut root, "portmoot");
        out
    }

    fn section(out: &mut String, command: &mut Command, path: &str) {
        // Help of a fixed width, independent of the environment.
        let mut shown = command.clone().term_width(100).display_name(path).bin_name(path);
        let help = shown.render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = write!(out, "\n## {path}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let names: Vec<String> = shown.map(|command| command.get_name().to_owned()).collect();
        for name in names.iter().filter(|name| *name != "help") {
            if let Some(command) = command.find_subcommand_mut(name) {
                section(out, command, &format!("{path} {name}"));
            }
        }
    }

    /// Fails when docs/cli.md is stale.
    #[test]
    fn the_reference_page_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        let page = reference();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page, "docs/cli.md is stale: UPDATE=1 cargo nextest run -p portmoot reference");
    }

    #[test]
    fn the_grammar_is_consistent() {
        command().debug_assert();
    }
}
