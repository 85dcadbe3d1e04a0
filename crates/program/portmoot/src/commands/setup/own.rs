//! Commands `init`, `add` and `rm`, and those that edit tools: servers of `portmoot.toml`.

use std::net::IpAddr;
use std::path::Path;

use serde_json::json;
use setup::{
    CLIENTS, ClientServers, FileChange, FileScope, NewServer, NewTransport, TextFile, ToolEdit,
};

use super::arguments::pairs;
use super::{
    carry_out, checked, described, is_itself, leave_out_itself, own_addresses, own_file, report,
    running, search, shown, surrounded, warn_of, write,
};
use crate::cli::{AddArgs, InitArgs, OwnFileArgs, RmArgs};
use crate::process::program_name;
use json::visible;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{ProcessTerminal, Terminal, confirm};

/// Prints the next step of a user with a changed configuration file.
fn next(file: &Path, output: Output) {
    let program = program_name();
    let is_default = config::ConfigSources::default()
        .edited_file(&crate::process::env)
        .as_deref()
        == Some(file);
    let named = if is_default {
        String::new()
    } else {
        format!(" --config {}", file.display())
    };
    let clients = format!("      {program} connect    which clients are there");
    let Some(owner) = running(file) else {
        return output.message(&format!("next: {program} serve{named}\n{clients}"));
    };
    let gateway = match &owner.listen {
        Some(listen) => format!("the gateway that runs on {listen} (process {})", owner.pid),
        None => format!("the gateway that runs (process {})", owner.pid),
    };
    let is_read = owner
        .files
        .iter()
        .any(|read| is_same_file(Path::new(read), file));
    if is_read {
        return output.message(&format!(
            "{gateway} reads this file, and takes the change over within seconds\nnext: {program} servers ls\n{clients}"
        ));
    }
    let reads = match owner.files.as_slice() {
        [] => "no file".to_owned(),
        files => visible::line(&files.join(", ")),
    };
    output.warn(&format!(
        "{gateway} does not read this file, but {reads}: it does not have the change"
    ));
    output.message(&format!(
        "next: stop it (kill {}), then: {program} serve{named}\n{clients}",
        owner.pid
    ));
}

/// Whether two paths name one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

pub(crate) fn init(args: &InitArgs, output: Output) -> Result<Exit, Failure> {
    let file = own_file(&args.file)?;
    let path = file.path.clone();
    if file.exists() {
        let message = format!("{} is there already", shown(&path));
        let program = program_name();
        return Err(Failure::new(Exit::Failed, "file_exists", message).hint(format!(
            "add servers with: {program} add NAME -- COMMAND, or {program} import CLIENT; choose another file with --config"
        )));
    }
    let mut terminal = ProcessTerminal;
    if !terminal.is_interactive() && !args.change.yes && !args.change.dry_run {
        let failure = Failure::new(
            Exit::Refused,
            "consent_needed",
            "init asks, and stdin is not a terminal",
        );
        return Err(failure.hint("answer all questions with --yes, or see the file with --dry-run"));
    }
    let mut servers: Vec<NewServer> = Vec::new();
    let mut notes = Vec::new();
    let own = own_addresses(&file);
    for mut found in found_clients(output)? {
        leave_out_itself(&mut found, &own);
        let new = found
            .servers
            .iter()
            .filter(|one| !servers.iter().any(|known| known.name == one.name));
        let new: Vec<NewServer> = new.cloned().collect();
        if new.is_empty() {
            continue;
        }
        let names: Vec<&str> = new.iter().map(|server| server.name.as_str()).collect();
        let question = format!(
            "Import {} of {} ({})?",
            visible::line(&names.join(", ")),
            found.client.name,
            shown(&found.file.path)
        );
        if args.change.yes || args.change.dry_run || confirm(&mut terminal, &question) {
            servers.extend(new);
            notes.extend(found.notes);
        }
    }
    let change = setup::add(file, &servers)?;
    checked(&change)?;
    warn_of(&servers, output);
    notes
        .iter()
        .for_each(|note| output.message(&format!("note: {}", visible::line(note))));
    let question = format!("Write {}?", shown(&path));
    let changed = carry_out(&[&change], args.change, Some(&question), output, || {
        write(&change)
    })?;
    finish(&change, changed, &servers, output);
    Ok(Exit::Ok)
}

/// The servers of all clients that are there. A broken file is named, and left out.
fn found_clients(output: Output) -> Result<Vec<ClientServers>, Failure> {
    surrounded(|at| {
        let mut all = Vec::new();
        for client in &CLIENTS {
            let Some(spot) = client
                .spot(FileScope::User, at)
                .filter(|spot| spot.file.exists())
            else {
                continue;
            };
            match setup::found(client, &spot, at) {
                Ok(found) => all.push(found),
                Err(error) => output.warn(&visible::lines(&error.to_string())),
            }
        }
        Ok(all)
    })
}

/// Reports a changed configuration file.
fn finish(change: &FileChange, changed: bool, servers: &[NewServer], output: Output) {
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    if output.json {
        output.result_json(&report(
            &change.file.path,
            changed,
            &json!({ "servers": names }),
        ));
    } else if changed {
        output.message(&format!("wrote {}", shown(&change.file.path)));
        next(&change.file.path, output);
    }
}

pub(crate) async fn add(args: AddArgs, output: Output) -> Result<Exit, Failure> {
    let file = own_file(&args.file)?;
    check_name(&args.name)?;
    without_dashes(&args)?;
    let known = setup::entries(&file)?
        .into_iter()
        .find(|entry| entry.name == args.name);
    let (server, asks, notes) = match (&args.from_registry, &args.openapi) {
        (Some(name), _) => {
            let server = search::chosen(name, &args, output).await?;
            // The command is a stranger's.
            (
                server,
                Some("Add this server? It runs what the registry says."),
                Vec::new(),
            )
        }
        (None, Some(description)) => {
            let (transport, notes) = described::typed(&args, description)?;
            (
                NewServer {
                    prefix: args.prefix.clone(),
                    ..NewServer::new(&args.name, transport)
                },
                None,
                notes,
            )
        }
        (None, None) => (typed(&args)?, None, Vec::new()),
    };
    if is_itself(&server, &own_addresses(&file)) {
        let message = format!(
            "`{}` would be this gateway itself: the URL is its own address",
            args.name
        );
        return Err(Failure::new(Exit::Refused, "config_itself", message)
            .hint("nothing was changed; clients of the gateway reach all its servers without it"));
    }
    if known
        .as_ref()
        .is_some_and(|entry| !setup::is_same(entry, &server))
        && !args.replace
    {
        let message = format!("{} has a server `{}`", shown(&file.path), args.name);
        return Err(Failure::new(Exit::Failed, "server_exists", message)
            .hint("choose another name, or replace it with --replace"));
    }
    let change = setup::add(file, std::slice::from_ref(&server))?;
    checked(&change)?;
    if asks.is_some() {
        warn_of(std::slice::from_ref(&server), output);
    }
    let changed = carry_out(&[&change], args.change, asks, output, || write(&change))?;
    if let Some(option) = server.referring_option().filter(|_| changed) {
        output.message(&format!(
            "note: {} is in the file as you gave it; to keep it out, write {option} and set that variable where the gateway starts",
            server.secrets().first().map_or("a secret", String::as_str)
        ));
    }
    notes
        .iter()
        .filter(|_| changed)
        .for_each(|note| output.message(&format!("note: {note}")));
    finish(&change, changed, &[server], output);
    Ok(Exit::Ok)
}

/// Refuses a command that stands where a URL may be.
fn without_dashes(args: &AddArgs) -> Result<(), Failure> {
    let is_command = |url: &&String| {
        !args.surplus.is_empty() || (args.openapi.is_none() && !url.contains("://"))
    };
    let Some(first) = args.url.as_ref().filter(is_command) else {
        return Ok(());
    };
    let words: Vec<&str> = std::iter::once(first)
        .chain(&args.surplus)
        .map(String::as_str)
        .collect();
    let message = if args.surplus.is_empty() {
        format!("`{}` is not a URL", visible::line(first))
    } else {
        "a command needs `--` before it".to_owned()
    };
    if let Some(url) = meant_url(first).filter(|_| args.surplus.is_empty()) {
        return Err(
            Failure::bad_argument(message).hint(format!("did you mean {}?", visible::line(&url)))
        );
    }
    Err(Failure::bad_argument(message).hint(format!(
        "{} add {} -- {}",
        program_name(),
        args.name,
        visible::line(&words.join(" "))
    )))
}

/// The URL that is meant by a text without a scheme, such as `127.0.0.1:7310/mcp`; `None` of a text
/// that may be a command.
fn meant_url(text: &str) -> Option<String> {
    let (authority, path) = text
        .split_once('/')
        .map_or((text, None), |(authority, path)| (authority, Some(path)));
    let bare = authority
        .rsplit_once(':')
        .filter(|(_, port)| port.parse::<u16>().is_ok());
    let host = bare.map_or(authority, |(host, _)| host);
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let is_host = address.is_some()
        || (host.starts_with(|c: char| c.is_ascii_alphanumeric()) && host.chars().all(is_name));
    let is_dotted = path.is_some() && host.contains('.');
    let is_meant = bare.is_some() || address.is_some() || host == "localhost" || is_dotted;
    if !is_host || !is_meant || Path::new(text).exists() {
        return None;
    }
    let is_near = match address {
        Some(IpAddr::V4(v4)) => v4.is_loopback() || v4.is_private(),
        Some(IpAddr::V6(v6)) => v6.is_loopback(),
        None => host == "localhost" || !host.contains('.'),
    };
    let scheme = if is_near { "http" } else { "https" };
    Some(format!("{scheme}://{text}"))
}

fn check_name(name: &str) -> Result<(), Failure> {
    setup::check_name(name).map_err(|why| {
        Failure::bad_argument(format!(
            "`{}` cannot be the name of a server: {why}",
            name.escape_debug()
        ))
    })
}

/// The server that the command line describes.
fn typed(args: &AddArgs) -> Result<NewServer, Failure> {
    let env = pairs(&args.env, '=', "--env", "KEY=VALUE")?;
    let headers = pairs(&args.header, ':', "--header", "\"NAME: VALUE\"")?;
    let unused = |option: &str, of: &str| {
        Failure::bad_argument(format!("{option} is for a server with a {of}"))
    };
    let transport = match (&args.url, args.command.split_first()) {
        (Some(url), None) => {
            if !env.is_empty() || args.cwd.is_some() {
                return Err(unused("--env or --cwd", "command"));
            }
            NewTransport::Url {
                url: url.clone(),
                headers,
                is_sse: args.sse,
            }
        }
        (None, Some((command, rest))) => {
            if !headers.is_empty() || args.sse {
                return Err(unused("--header or --sse", "URL"));
            }
            let command = command.clone();
            let args_of = rest.to_vec();
            NewTransport::Command {
                command,
                args: args_of,
                env,
                cwd: args.cwd.clone(),
            }
        }
        _ => {
            let program = program_name();
            return Err(Failure::bad_argument("a server needs a URL or a command").hint(format!(
                "{program} add {0} -- COMMAND ARGUMENT..., {program} add {0} https://HOST/mcp, or {program} add {0} --openapi FILE",
                args.name
            )));
        }
    };
    Ok(NewServer {
        prefix: args.prefix.clone(),
        ..NewServer::new(&args.name, transport)
    })
}

/// Checks that a configuration file has a server of this name.
fn check_known(file: &TextFile, name: &str) -> Result<(), Failure> {
    let entries = setup::entries(file)?;
    if entries.iter().any(|entry| entry.name == name) {
        return Ok(());
    }
    let message = format!(
        "{} has no server `{}`",
        shown(&file.path),
        name.escape_debug()
    );
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let hint = if names.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has: {}", names.join(", "))
    };
    Err(Failure::new(Exit::NotFound, "unknown_server", message).hint(hint))
}

/// Commands `tools disable`, `enable` and `rename`.
pub(crate) fn edit_tools(
    file: &OwnFileArgs,
    server: &str,
    edit: ToolEdit<'_>,
    dry_run: bool,
    output: Output,
) -> Result<Exit, Failure> {
    let file = own_file(file)?;
    check_known(&file, server)?;
    let change = setup::edit_tools(file, server, edit)?;
    checked(&change)?;
    let how = crate::cli::ChangeArgs { dry_run, yes: true };
    let changed = carry_out(&[&change], how, None, output, || write(&change))?;
    if output.json {
        output.result_json(&report(
            &change.file.path,
            changed,
            &json!({ "server": server }),
        ));
    } else if changed {
        output.message(&format!("wrote {}", shown(&change.file.path)));
        let program = program_name();
        output.message(&format!(
            "a running gateway takes the change over within seconds: {program} tools ls"
        ));
    } else if !dry_run {
        output.message(&format!("{} says so already", shown(&change.file.path)));
    }
    Ok(Exit::Ok)
}

pub(crate) fn rm(args: &RmArgs, output: Output) -> Result<Exit, Failure> {
    let file = own_file(&args.file)?;
    for name in &args.names {
        check_known(&file, name)?;
    }
    let change = setup::remove(file, &args.names)?;
    checked(&change)?;
    let how = crate::cli::ChangeArgs {
        dry_run: args.dry_run,
        yes: true,
    };
    let changed = carry_out(&[&change], how, None, output, || change.make())?;
    if output.json {
        output.result_json(&report(
            &change.file.path,
            changed,
            &json!({ "removed": args.names }),
        ));
    } else if changed {
        let names = visible::line(&args.names.join("`, `"));
        output.message(&format!(
            "removed `{names}` from {}",
            shown(&change.file.path)
        ));
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_an_address_is_one() {
        for (text, url) in [
            ("127.0.0.1:7310/mcp", Some("http://127.0.0.1:7310/mcp")),
            ("localhost:8080", Some("http://localhost:8080")),
            ("localhost/mcp", Some("http://localhost/mcp")),
            ("[::1]:80/mcp", Some("http://[::1]:80/mcp")),
            ("mcp.example.com/mcp", Some("https://mcp.example.com/mcp")),
            ("mcp.example.com:443", Some("https://mcp.example.com:443")),
            ("10.0.0.7/sse", Some("http://10.0.0.7/sse")),
            ("npx", None),
            ("./server.py", None),
            ("/usr/bin/server", None),
            ("server.py", None),
            ("bin/server", None),
            ("a b:80/x", None),
        ] {
            assert_eq!(meant_url(text).as_deref(), url, "{text}");
        }
    }
}
