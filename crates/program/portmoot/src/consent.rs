//! Consent to a configuration file that the operator did not name: shows everything that it sets
//! and asks the operator.

mod danger;

use std::fmt::Write as _;

use config::Config;
use upstream::config::{
    Confinement, ProtoConfig, SandboxSupport, SecretText, ServerConfig, StdioConfig, Transport,
    support,
};

use config::{FoundFile, Loaded, NamedSecret, SecretSource};
use json::visible;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{Terminal, confirm};

/// Describes a server for the log: the whole command with variables unexpanded, the names of its
/// environment variables, whose values may be secrets, and warnings about dangerous commands.
/// Control characters are visible.
pub(crate) fn describe(server: &ServerConfig) -> String {
    let name = visible::line(server.name.as_str());
    match &server.transport {
        Transport::Stdio(child) | Transport::Proto(ProtoConfig::Child { child, .. }) => {
            describe_command(&name, child)
        }
        Transport::Http(http)
        | Transport::Sse(http)
        | Transport::Proto(
            ProtoConfig::Tcp(http) | ProtoConfig::WebSocket(http) | ProtoConfig::Grpc(http),
        ) => {
            let headers: Vec<&str> = http.headers.iter().map(|(name, _)| name.as_str()).collect();
            let mut out = format!(
                "server `{name}` connects to {}",
                visible::line(http.url.written())
            );
            if !headers.is_empty() {
                let _ = write!(out, "\n    headers: {}", visible::line(&headers.join(", ")));
            }
            out
        }
        Transport::OpenApi(api) => {
            let names = api
                .http
                .headers
                .iter()
                .chain(&api.query)
                .map(|(name, _)| name.as_str());
            let sent: Vec<&str> = names.collect();
            let mut out = format!(
                "server `{name}` calls the API at {}, as {} describes it",
                visible::line(api.http.url.written()),
                visible::line(&api.description.written())
            );
            if !sent.is_empty() {
                let _ = write!(
                    out,
                    "\n    sent with each call: {}",
                    visible::line(&sent.join(", "))
                );
            }
            out
        }
        Transport::Unusable { why, .. } => {
            format!("server `{name}` cannot start: {}", visible::line(why))
        }
        Transport::Demo => format!("server `{name}` is built in"),
        Transport::Participant => format!("server `{name}` is a participant with `serves = true`"),
    }
}

fn describe_command(name: &str, child: &StdioConfig) -> String {
    let words =
        std::iter::once(child.command.as_str()).chain(child.args.iter().map(SecretText::written));
    let line: Vec<String> = words.map(word).collect();
    let mut out = format!("server `{name}` starts: {}", line.join(" "));
    if !child.env.is_empty() {
        let names: Vec<&str> = child.env.iter().map(|(name, _)| name.as_str()).collect();
        let _ = write!(
            out,
            "\n    environment: {}",
            visible::line(&names.join(", "))
        );
    }
    if let Some(cwd) = &child.cwd {
        let _ = write!(
            out,
            "\n    directory: {}",
            visible::line(&cwd.display().to_string())
        );
    }
    out += &describe_confinement(&child.confinement);
    for danger in dangers(child) {
        let _ = write!(out, "\n    DANGER: {danger}");
    }
    out
}

/// Text about the confinement of a process, a line for each means.
fn describe_confinement(confinement: &Confinement) -> String {
    let mut out = String::new();
    if let Some(files) = &confinement.files {
        out += "\n    sandbox: files";
        for (does, paths) in [("reads", &files.read), ("writes", &files.write)] {
            let paths: Vec<String> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            if !paths.is_empty() {
                let _ = write!(out, "; {does} {}", visible::line(&paths.join(", ")));
            }
        }
        match support() {
            SandboxSupport::None(why) => _ = write!(out, "\n    it cannot start: {why}"),
            SandboxSupport::Files(gaps) if gaps.is_empty() => {}
            SandboxSupport::Files(gaps) => {
                let _ = write!(
                    out,
                    "\n    this kernel does not prevent {}",
                    gaps.join(", ")
                );
            }
        }
    }
    let limits = &confinement.limits;
    let named = [
        ("memory_bytes_max", limits.memory_bytes_max),
        ("processes_max", limits.processes_max),
        ("open_files_max", limits.open_files_max),
        (
            "cpu_time_max",
            limits.cpu_time_max.map(|time| time.as_secs()),
        ),
    ];
    let named: Vec<String> = named
        .iter()
        .filter_map(|(name, limit)| limit.map(|limit| format!("{name} = {limit}")))
        .collect();
    if !named.is_empty() {
        let _ = write!(out, "\n    limits: {}", named.join(", "));
    }
    out
}

/// Warnings about a command and its environment. The command is checked as it is started, not as it
/// is written.
fn dangers(child: &StdioConfig) -> Vec<String> {
    let words =
        std::iter::once(child.command.as_str()).chain(child.args.iter().map(SecretText::expose));
    dangers_of(
        &words.collect::<Vec<_>>(),
        child.env.iter().map(|(name, _)| name.as_str()),
    )
}

/// Warnings about a command line and the names of its environment variables.
pub(crate) fn dangers_of<'a>(
    words: &[&str],
    variables: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let found = danger::dangers(words);
    let loading: Vec<&str> = variables.filter(|name| danger::loads_code(name)).collect();
    let environment = (!loading.is_empty()).then(|| {
        format!(
            "has an environment that decides which code it runs ({})",
            visible::line(&loading.join(", "))
        )
    });
    found
        .into_iter()
        .map(str::to_owned)
        .chain(environment)
        .collect()
}

/// Shows the command of every enabled server.
pub(crate) fn show_commands(config: &Config, output: Output) {
    let enabled = config.servers.iter().filter(|server| server.enabled);
    let started = enabled.filter(|server| server.transport.child().is_some());
    started.for_each(|server| output.message(&describe(server)));
}

/// Shows the command of every secret that one prints.
pub(crate) fn show_secret_commands(loaded: &Loaded, output: Output) {
    loaded
        .secrets
        .iter()
        .filter_map(describe_secret)
        .for_each(|text| output.message(&text));
}

/// Describes the command that prints a secret, with warnings about it; `None` if the secret comes
/// from elsewhere.
pub(crate) fn describe_secret(secret: &NamedSecret) -> Option<String> {
    let words = command_of(secret)?;
    let line: Vec<String> = words.iter().map(|text| word(text)).collect();
    let mut out = format!(
        "secret `{}` is printed by: {}",
        visible::line(&secret.key),
        line.join(" ")
    );
    for danger in dangers_of(&words, std::iter::empty()) {
        let _ = write!(out, "\n    DANGER: {danger}");
    }
    Some(out)
}

fn command_of(secret: &NamedSecret) -> Option<Vec<&str>> {
    match &secret.source {
        SecretSource::Command(words) => Some(words.iter().map(String::as_str).collect()),
        SecretSource::File(_) | SecretSource::Kept(_) => None,
    }
}

/// Asks for consent to the file that the operator did not name, if there is one: everything that it
/// sets is shown. `yes` is the consent of `--yes`; `None` stands for a command without that option.
///
/// # Errors
/// When the operator does not consent, or cannot be asked because the terminal is not interactive.
pub(crate) fn obtain(
    loaded: &Loaded,
    terminal: &mut dyn Terminal,
    yes: Option<bool>,
    output: Output,
) -> Result<(), Failure> {
    let Some(found) = &loaded.found else {
        return Ok(());
    };
    let name = visible::line(&found.name);
    let text = prompt(found, &loaded.config, &loaded.secrets);
    if yes == Some(true) {
        output.message(&format!("{text}\nconsent to `{name}`: --yes"));
        return Ok(());
    }
    let refused = |code, message: String| {
        let or_yes = if yes.is_some() {
            ", or consent with --yes"
        } else {
            ""
        };
        let hint = format!(
            "if you trust it, name it: --config {name}{or_yes}; else run the command in another directory, or name your own file"
        );
        Err(Failure::new(Exit::Refused, code, message).hint(hint))
    };
    if !terminal.is_interactive() {
        return refused(
            "consent_needed",
            format!("`{name}` is used only with your consent\n{text}"),
        );
    }
    terminal.show(&text);
    if confirm(terminal, &format!("Use all of `{name}`?")) {
        return Ok(());
    }
    refused(
        "consent_refused",
        format!("you did not consent to `{name}`"),
    )
}

/// Everything that a found file sets, and warnings about what it starts.
fn prompt(found: &FoundFile, config: &Config, secrets: &[NamedSecret]) -> String {
    let mut out = format!(
        "`{}` was found in this directory, and you did not name it. It may come from another person. It says:\n\n",
        visible::line(&found.name)
    );
    for line in found.text.lines() {
        let _ = writeln!(out, "    {line}");
    }
    let servers = config.servers.iter().filter(|server| server.enabled);
    for server in servers.filter(|server| {
        found
            .servers
            .iter()
            .any(|name| name == server.name.as_str())
    }) {
        if let Transport::OpenApi(_) = server.transport {
            let _ = write!(out, "\n{}", describe(server));
        }
        let Some(child) = server.transport.child() else {
            continue;
        };
        if child.confinement.files.is_none() {
            let name = visible::line(server.name.as_str());
            let _ = write!(out, "\nDANGER: server `{name}` runs without a sandbox");
        }
        for danger in dangers(child) {
            let _ = write!(
                out,
                "\nDANGER: server `{}` {danger}",
                visible::line(server.name.as_str())
            );
        }
    }
    for (secret, words) in secrets
        .iter()
        .filter_map(|secret| Some((secret, command_of(secret)?)))
    {
        let key = visible::line(&secret.key);
        let _ = write!(
            out,
            "\nDANGER: the gateway itself runs a command for the secret `{key}`"
        );
        for danger in dangers_of(&words, std::iter::empty()) {
            let _ = write!(out, "\nDANGER: the command for the secret `{key}` {danger}");
        }
    }
    for (secret, name) in secrets
        .iter()
        .filter_map(|secret| Some((secret, secret.kept()?)))
    {
        let key = visible::line(&secret.key);
        let _ = write!(out, "\nDANGER: your secret `{name}` is given to `{key}`");
    }
    out
}

/// Applies earlier consent to a reloaded configuration, without asking.
///
/// # Errors
/// When a file that the operator did not name says something else than what the operator consented
/// to.
pub(crate) fn carry_over(agreed: Option<&FoundFile>, after: &Loaded) -> Result<(), Failure> {
    let Some(found) = after.found.as_ref().filter(|found| agreed != Some(found)) else {
        return Ok(());
    };
    let name = visible::line(&found.name);
    let message = format!("`{name}` has changed, and is used only with your consent");
    Err(Failure::new(Exit::Refused, "consent_needed", message).hint(format!(
        "restart the gateway to consent to the change; of a file that you name (--config {name}), changes are taken over"
    )))
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
