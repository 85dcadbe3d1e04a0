//! Consent to starting servers: shows each command in full and asks the operator.

mod danger;

use std::fmt::Write as _;

use access::config::Config;
use upstream::config::{Secret, ServerConfig, StdioConfig, Transport};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::{Terminal, confirm};
use json::visible;

/// Describes a server for the operator who gives consent: the whole command with variables unexpanded, the names of its
/// environment variables, and warnings about dangerous commands. Control characters are visible.
pub(crate) fn describe(server: &ServerConfig) -> String {
    let name = visible::line(server.name.as_str());
    match &server.transport {
        Transport::Stdio(child) => describe_command(&name, child),
        Transport::Http(http) | Transport::Sse(http) => {
            let headers: Vec<&str> = http.headers.iter().map(|(name, _)| name.as_str()).collect();
            let mut out = format!("server `{name}` connects to {}", visible::line(http.url.written()));
            if !headers.is_empty() {
                let _ = write!(out, "\n    headers: {}", visible::line(&headers.join(", ")));
            }
            out
        }
        Transport::Demo => format!("server `{name}` is built in"),
        Transport::Participant => format!("server `{name}` is a participant with `serves = true`"),
    }
}

fn describe_command(name: &str, child: &StdioConfig) -> String {
    let words = std::iter::once(child.command.as_str()).chain(child.args.iter().map(Secret::written));
    let line: Vec<String> = words.map(word).collect();
    let mut out = format!("server `{name}` starts: {}", line.join(" "));
    if !child.env.is_empty() {
        let names: Vec<&str> = child.env.iter().map(|(name, _)| name.as_str()).collect();
        let _ = write!(out, "\n    environment: {}", visible::line(&names.join(", ")));
    }
    if let Some(cwd) = &child.cwd {
        let _ = write!(out, "\n    directory: {}", visible::line(&cwd.display().to_string()));
    }
    for danger in dangers(child) {
        let _ = write!(out, "\n    DANGER: {danger}");
    }
    out
}

/// Checks the expanded command, not its spelling in the configuration.
fn dangers(child: &StdioConfig) -> Vec<&'static str> {
    let words = std::iter::once(child.command.as_str()).chain(child.args.iter().map(Secret::expose));
    let mut found = danger::dangers(&words.collect::<Vec<_>>());
    let loaders = |name: &str| name.starts_with("LD_") || name.starts_with("DYLD_") || name == "NODE_OPTIONS";
    if child.env.iter().any(|(name, _)| loaders(name)) {
        found.push("its environment can make programs load other code");
    }
    found
}

/// Shows the command of every enabled server and asks for consent to those that do not come from the operator's own
/// configuration. A declined server is disabled.
///
/// # Errors
/// When a server needs consent and the terminal is not interactive.
pub(crate) fn obtain(
    config: &mut Config,
    terminal: &mut dyn Terminal,
    yes: bool,
    output: Output,
) -> Result<(), Failure> {
    for server in config.servers.iter_mut().filter(|server| server.enabled) {
        let text = describe(server);
        if !server.origin.needs_consent() {
            if matches!(server.transport, Transport::Stdio(_)) {
                output.message(&text);
            }
            continue;
        }
        if yes {
            output.message(&format!("{text}\n    consent: --yes"));
            continue;
        }
        if !terminal.is_interactive() {
            let message = format!("this server starts only with your consent\n{text}");
            let hint = "name the configuration with --config FILE, or give consent with --yes";
            return Err(Failure::new(Exit::Refused, "consent_needed", message).hint(hint));
        }
        terminal.show(&text);
        server.enabled =
            confirm(terminal, "This server does not come from your own configuration. Start it?");
    }
    Ok(())
}

/// Applies earlier consent to a reloaded configuration, without asking: a server that needs consent stays enabled if it is
/// unchanged, and is disabled otherwise. Returns the names of the disabled servers.
pub(crate) fn carry_over(before: &Config, after: &mut Config) -> Vec<String> {
    let agreed = |server: &ServerConfig| {
        let old = before.servers.iter().find(|old| old.name == server.name);
        old.is_some_and(|old| old.enabled && old.transport == server.transport)
    };
    let mut disabled = Vec::new();
    for server in after.servers.iter_mut().filter(|server| server.enabled && server.origin.needs_consent()) {
        if !agreed(server) {
            server.enabled = false;
            disabled.push(server.name.to_string());
        }
    }
    disabled
}

/// Quotes a word as for a shell, so that two words cannot look like one.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,${}~".contains(c);
    let text = visible::line(text);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests;
