//! What starting a server means, shown in full, and the consent to it. Must not start anything.

mod danger;

use std::fmt::Write as _;

use gateway::config::Config;
use upstream::config::{Secret, ServerConfig, StdioConfig, Transport};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::{Terminal, confirm};
use crate::visible;

/// What a server is, for the eyes of whoever has to agree: the whole command with variables as they were written, the
/// names of its own environment variables, and what is dangerous about it. Control characters are visible.
pub(crate) fn describe(server: &ServerConfig) -> String {
    let name = visible::line(server.name.as_str());
    match &server.transport {
        Transport::Stdio(child) => describe_command(&name, child),
        Transport::Http(http) | Transport::Sse(http) => {
            let headers: Vec<&str> = http.headers.iter().map(|(name, _)| name.as_str()).collect();
            let mut out = format!("server `{name}` is reached at {}", visible::line(http.url.written()));
            if !headers.is_empty() {
                let _ = write!(out, "\n    headers: {}", visible::line(&headers.join(", ")));
            }
            out
        }
        Transport::Demo => format!("server `{name}` is built in"),
        Transport::Participant => format!("`{name}` is a participant that serves"),
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

/// What is run counts, not how it was written.
fn dangers(child: &StdioConfig) -> Vec<&'static str> {
    let words = std::iter::once(child.command.as_str()).chain(child.args.iter().map(Secret::expose));
    let mut found = danger::dangers(&words.collect::<Vec<_>>());
    let loaders = |name: &str| name.starts_with("LD_") || name.starts_with("DYLD_") || name == "NODE_OPTIONS";
    if child.env.iter().any(|(name, _)| loaders(name)) {
        found.push("its environment makes programs load other code");
    }
    found
}

/// Shows what every enabled server starts, and asks for those that come from elsewhere than the operator's own
/// configuration. A server that is declined is disabled.
///
/// # Errors
/// When there is somebody to ask about and nobody to ask.
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
                output.talk(&text);
            }
            continue;
        }
        if yes {
            output.talk(&format!("{text}\n    consent: --yes"));
            continue;
        }
        if !terminal.is_attended() {
            let message = format!("this server needs your consent before it starts\n{text}");
            let hint = "name the configuration yourself (--config FILE), or agree with --yes";
            return Err(Failure::new(Exit::Refused, "consent_needed", message).hint(hint));
        }
        terminal.show(&text);
        server.enabled = confirm(terminal, "It does not come from your own configuration. Start it?");
    }
    Ok(())
}

/// After a reload nobody can be asked: what needs consent keeps running if it is what was agreed to, and is disabled
/// otherwise. Gives the names of those.
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

/// A word as a shell would need it, so that two words cannot look like one.
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
