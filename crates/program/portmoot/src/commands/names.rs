//! Names for completion: what a running gateway has, for the scripts of `completions`, and what
//! asks for them there.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use clap_complete::Shell;
use serde_json::Value;
use tokio::time::timeout;

use crate::cli::{NameKind, RunningArgs};
use crate::commands::target::running_endpoint;
use crate::commands::view::cell;
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Time that a person waits for names at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// Commands whose next argument is a name, by what it names.
const NAMED: [(NameKind, &[&str]); 5] = [
    (
        NameKind::Servers,
        &[
            "logs",
            "rm",
            "servers show",
            "servers restart",
            "servers disable",
            "servers enable",
            "servers login",
            "servers logout",
            "servers auth",
            "pins show",
            "pins approve",
            "pins reset",
        ],
    ),
    (NameKind::Tools, &["tools show", "tools call"]),
    (
        NameKind::Proposals,
        &[
            "proposals show",
            "proposals approve",
            "proposals reject",
            "proposals withdraw",
        ],
    ),
    (
        NameKind::Participants,
        &[
            "participants can",
            "participants grant",
            "participants allow",
            "participants revoke",
            "login code",
        ],
    ),
    (NameKind::Tokens, &["token rotate", "token revoke"]),
];

impl NameKind {
    /// Its word on the command line.
    fn word(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Tools => "tools",
            Self::Proposals => "proposals",
            Self::Participants => "participants",
            Self::Tokens => "tokens",
        }
    }

    /// The member of an entry that is the name.
    fn member(self) -> &'static str {
        match self {
            Self::Servers | Self::Tools | Self::Tokens => "name",
            Self::Proposals | Self::Participants => "id",
        }
    }
}

/// Prints the names of a kind, a line each; none if no gateway runs.
///
/// # Errors
/// As of other commands; the scripts print none.
pub(crate) async fn run(
    kind: NameKind,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    let Ok(answer) = timeout(PATIENCE, api::get(&endpoint, &[kind.word()], &[])).await else {
        return Ok(Exit::Failed);
    };
    let answer: Value = answer?.read()?;
    let entries = answer
        .get(kind.word())
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let names: BTreeSet<String> = entries
        .iter()
        .map(|entry| cell(entry, kind.member()))
        .collect();
    names
        .iter()
        .filter(|name| is_plain(name))
        .for_each(|name| output.result(name));
    Ok(Exit::Ok)
}

/// Whether a name means nothing to a shell: the scripts of some expand the words that they
/// complete, and tools are named by others.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:/@-".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)
}

/// The script of a shell, as it is generated, with the names of what a running gateway has.
pub(crate) fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{}", of_bash()),
        Shell::Zsh => match script.rsplit_once(ZSH_START) {
            Some((before, after)) => format!("{before}{}\n{ZSH_START}{after}", of_zsh()),
            None => script.to_owned(),
        },
        Shell::Fish => format!("{script}{}", of_fish()),
        _ => script.to_owned(),
    }
}

/// Line from which on the script for zsh acts, after its functions.
const ZSH_START: &str = "if [ \"$funcstack[1]\" = \"_portmoot\" ]; then";

/// The kind for each command, as branches of a `case` of shells.
fn branches(words: usize) -> String {
    let mut all = String::new();
    for (kind, paths) in NAMED {
        let paths = paths.iter().filter(|path| path.split(' ').count() == words);
        let quoted: Vec<String> = paths.map(|path| format!("\"{path}\"")).collect();
        if !quoted.is_empty() {
            let _ = writeln!(
                all,
                "            {}) kind={} ;;",
                quoted.join("|"),
                kind.word()
            );
        }
    }
    all
}

fn of_bash() -> String {
    format!(
        r#"_portmoot_names() {{
    _portmoot "$@"
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" kind=""
    if [[ "$COMP_CWORD" -gt 1 ]]; then
        case "${{COMP_WORDS[1]}}" in
{}        esac
    fi
    if [[ "$COMP_CWORD" -gt 2 ]]; then
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{}        esac
    fi
    if [[ -n "$kind" && "$current" != -* && "$before" != -* ]]; then
        COMPREPLY=( $(compgen -W "$("${{COMP_WORDS[0]}}" names "$kind" </dev/null 2>/dev/null)" -- "$current") )
    fi
}}
complete -F _portmoot_names -o bashdefault -o default portmoot
"#,
        branches(1),
        branches(2)
    )
}

fn of_zsh() -> String {
    format!(
        r#"functions[_portmoot_options]=$functions[_portmoot]
_portmoot() {{
    local kind=""
    if (( CURRENT > 2 )); then
        case "$words[2]" in
{}        esac
    fi
    if (( CURRENT > 3 )); then
        case "$words[2] $words[3]" in
{}        esac
    fi
    if [[ -n "$kind" && "$words[CURRENT]" != -* && "$words[CURRENT-1]" != -* ]]; then
        compadd -- ${{(f)"$("$words[1]" names "$kind" </dev/null 2>/dev/null)"}}
    else
        _portmoot_options "$@"
    fi
}}
"#,
        branches(1),
        branches(2)
    )
}

fn of_fish() -> String {
    let mut all = String::new();
    for (kind, paths) in NAMED {
        for path in paths {
            let seen: Vec<String> = path
                .split(' ')
                .map(|word| format!("__fish_seen_subcommand_from {word}"))
                .collect();
            let _ = writeln!(
                all,
                "complete -c portmoot -n \"{}\" -f -a \"(portmoot names {} </dev/null 2>/dev/null)\"",
                seen.join("; and "),
                kind.word()
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    #[test]
    fn every_completed_command_is_one() {
        let root = command();
        for path in NAMED.iter().flat_map(|(_, paths)| *paths) {
            let found = path
                .split(' ')
                .try_fold(&root, |at, word| at.find_subcommand(word));
            let takes_name = found.is_some_and(|found| found.get_positionals().next().is_some());
            assert!(takes_name, "{path}");
        }
    }

    #[test]
    fn names_that_mean_something_to_a_shell_are_left_out() {
        for name in ["git_log", "a.b/c", "team:x@y"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", "-x", "a b", "$(touch x)", "a`b`", "a;b", "a'b", "ä"] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn the_script_for_zsh_has_the_names_before_it_acts() {
        let plain = format!(
            "#compdef portmoot\n_portmoot() {{\n}}\n{ZSH_START}\n    _portmoot \"$@\"\nfi\n"
        );
        let script = with_names(Shell::Zsh, &plain);
        assert!(
            script.find("_portmoot_options") < script.find(ZSH_START),
            "{script}"
        );
        assert!(
            script.contains("\"tools show\"|\"tools call\") kind=tools"),
            "{script}"
        );
    }
}
