//! Commands `import`, `connect` and `disconnect`: the files of MCP clients.

use std::path::PathBuf;

use serde_json::json;
use setup::{
    CLIENTS, ClientProgram, ClientServers, Copies, Ending, FileChange, FileScope, Gateway, Merge,
    MergedFile, NewServer, Plan, Spot, Surroundings,
};

use super::{
    absolute, carry_out, checked, confine, leave_out_itself, own_addresses, own_file, place,
    report, shown, surrounded, warn_of, write,
};
use crate::cli::{ClientFileArgs, ConnectArgs, DisconnectArgs, ImportArgs, OwnFileArgs};
use crate::process::{env, program_name};
use json::visible;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const COLUMNS: [&str; 4] = ["CLIENT", "STATE", "SERVERS", "FILE"];

/// The client of this name.
fn named(name: &str) -> Result<&'static ClientProgram, Failure> {
    setup::client(name).ok_or_else(|| {
        let message = format!("there is no client `{}`", name.escape_debug());
        let known: Vec<&str> = CLIENTS.iter().map(|client| client.id).collect();
        Failure::new(Exit::NotFound, "unknown_client", message)
            .hint(format!("one of: {}", known.join(", ")))
    })
}

/// The file of a client that the options name.
fn spot(
    client: &ClientProgram,
    args: &ClientFileArgs,
    at: &Surroundings<'_>,
) -> Result<Spot, Failure> {
    if let Some(file) = &args.file {
        return Ok(client.at(absolute(file)?, FileScope::User, at));
    }
    let scope = if args.project {
        FileScope::Project
    } else {
        FileScope::User
    };
    client.spot(scope, at).ok_or_else(|| {
        Failure::bad_argument(format!("{} has no file in projects", client.name))
            .hint("leave --project out")
    })
}

/// Lists the clients with their states.
fn list(only_found: bool, output: Output) -> Result<Exit, Failure> {
    let rows: Vec<_> = surrounded(|at| {
        let row = |client: &'static ClientProgram, scope| {
            let spot = client.spot(scope, at)?;
            let exists = spot.file.exists();
            let is_users = || {
                client
                    .spot(FileScope::User, at)
                    .is_some_and(|user| user.file == spot.file)
            };
            let is_shown = match scope {
                FileScope::User => exists || !only_found,
                FileScope::Project => exists && !is_users(),
            };
            let (state, count) = match (setup::connected(&spot), setup::found(client, &spot, at)) {
                (Ok(names), Ok(found)) if exists => (
                    if names.is_empty() {
                        "not connected"
                    } else {
                        "connected"
                    },
                    Some(found.servers.len()),
                ),
                (Ok(_), Ok(_)) => (
                    if client.is_installed(at) {
                        "not connected"
                    } else {
                        "not found"
                    },
                    None,
                ),
                _ => ("broken file", None),
            };
            let project = scope == FileScope::Project;
            is_shown.then(|| {
                json!({ "client": client.id, "state": state, "servers": count, "project": project,
                    "file": spot.file.display().to_string() })
            })
        };
        let both = |client: &'static ClientProgram| {
            [
                row(client, FileScope::User),
                row(client, FileScope::Project),
            ]
        };
        Ok(CLIENTS.iter().flat_map(both).flatten().collect())
    })?;
    let answer = json!({ "clients": rows });
    output.listing(&answer, "clients", &COLUMNS, |row| {
        let text = |key: &str| {
            row.get(key)
                .and_then(|value| value.as_str())
                .unwrap_or_default()
                .to_owned()
        };
        let file = shown(&PathBuf::from(text("file")));
        let id = if row.get("project") == Some(&true.into()) {
            text("client") + " --project"
        } else {
            text("client")
        };
        let count = row.get("servers").and_then(serde_json::Value::as_u64);
        vec![
            id,
            text("state"),
            count.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            file,
        ]
    });
    Ok(Exit::Ok)
}

pub(crate) fn import(args: &ImportArgs, output: Output) -> Result<Exit, Failure> {
    let Some(name) = &args.client else {
        list(true, output)?;
        output.message(&format!("next: {} import CLIENT", program_name()));
        return Ok(Exit::Ok);
    };
    let client = named(name)?;
    let found = surrounded(|at| {
        let mut found = setup::found(client, &spot(client, &args.of, at)?, at)?;
        confine(&mut found, at);
        Ok(found)
    })?;
    let how = Merge {
        replace: args.replace,
        hide_secrets: args.hide_secrets,
    };
    let from = found.file.path.clone();
    let merged = merged(found, &args.own, how, output)?;
    let change = &merged.change;
    let question = format!("Write {}?", place(&change.file));
    let changed = carry_out(&[change], args.change, Some(&question), output, || {
        write(change)
    })?;
    if output.json {
        let more = json!({ "from": from.display().to_string(), "servers": merged.names, "notes": merged.notes });
        output.result_json(&report(&change.file.path, changed, &more));
    } else if changed {
        let program = program_name();
        output.message(&format!(
            "imported {} into {}\nnext: {program} connect {} --move    the client reaches them through the gateway, and starts them no more",
            visible::line(&merged.names.join(", ")),
            shown(&change.file.path),
            client.id
        ));
    } else if change.is_none() {
        let found = shown(&from);
        output.message(&match (from.exists(), merged.there.is_empty()) {
            (false, _) => {
                format!(
                    "nothing to import: there is no file {found}; name another one with --file FILE"
                )
            }
            (true, true) => {
                format!("nothing to import: {found} has no servers that the gateway could have")
            }
            (true, false) => format!("nothing to import: all servers of {found} are there already"),
        });
    }
    Ok(Exit::Ok)
}

/// The configuration file with a client's servers, checked.
fn merged(
    mut found: ClientServers,
    own: &OwnFileArgs,
    how: Merge,
    output: Output,
) -> Result<MergedFile, Failure> {
    let file = own_file(own)?;
    leave_out_itself(&mut found, &own_addresses(&file));
    let servers = found.servers.clone();
    let merged = setup::merge(found, file, how)?;
    checked(&merged.change)?;
    let is_new = |server: &&NewServer| merged.names.contains(&server.name);
    warn_of(
        &servers.iter().filter(is_new).cloned().collect::<Vec<_>>(),
        output,
    );
    merged
        .notes
        .iter()
        .for_each(|note| output.message(&format!("note: {}", visible::line(note))));
    Ok(merged)
}

pub(crate) fn connect(args: &ConnectArgs, output: Output) -> Result<Exit, Failure> {
    let Some(name) = &args.client else {
        list(false, output)?;
        output.message(&format!("next: {} connect CLIENT", program_name()));
        return Ok(Exit::Ok);
    };
    let client = named(name)?;
    let (spot, found, installed) = surrounded(|at| {
        let spot = spot(client, &args.of, at)?;
        let mut found = setup::found(client, &spot, at)?;
        confine(&mut found, at);
        Ok((spot, found, client.is_installed(at)))
    })?;
    if !installed && args.of.file.is_none() && !args.of.project {
        output.message(&format!(
            "note: {} was not found on this machine",
            client.name
        ));
    }
    let moved = args
        .moves
        .then(|| merged(found, &args.own, Merge::default(), output));
    let moved = moved.transpose()?;
    let names = moved.as_ref().map_or(&[][..], |merged| &merged.there);
    let copies = copies(args.data_dir.clone())?;
    // A server in the client's file has the client's spelling.
    let names = spellings(&spot, names)?;
    let plan = setup::connect(
        client,
        &spot,
        (&args.name, &gateway(args, &spot)?),
        &names,
        &copies,
    )?;
    let changes: Vec<&FileChange> = moved
        .iter()
        .map(|merged| &merged.change)
        .chain([&plan.change])
        .collect();
    let question = format!(
        "Write {}?",
        if changes.iter().filter(|one| !one.is_none()).count() > 1 {
            "both files".to_owned()
        } else {
            place(&plan.change.file)
        }
    );
    let changed = carry_out(&changes, args.change, Some(&question), output, || {
        moved.iter().try_for_each(|merged| write(&merged.change))?;
        plan.make()
    })?;
    let copy = plan.copy().filter(|_| !args.change.dry_run);
    if output.json {
        let more = json!({ "client": client.id, "moved": names, "copy": copy.map(|path| path.display().to_string()) });
        output.result_json(&report(&spot.file, changed, &more));
    } else if changed {
        let copy = copy.map_or(String::new(), |copy| {
            let what = if plan.is_copy_exact() {
                "the file as it was"
            } else {
                "the file without the gateway's entry"
            };
            format!("{what}: {}\n", shown(&copy))
        });
        output.message(&format!(
            "connected {}: {}\n{copy}to undo: {} disconnect {}{}",
            client.name,
            client.reload,
            program_name(),
            client.id,
            if args.of.project { " --project" } else { "" }
        ));
        output.message(&cost(client));
    } else if !args.change.dry_run {
        output.message(&format!("{} is connected already", client.name));
    }
    Ok(Exit::Ok)
}

/// Cost of a client once it is connected, for people.
fn cost(client: &ClientProgram) -> String {
    format!(
        "what it costs: {} gets all lists at once, and no server runs for that. A local server runs from its first use on:\n\
         one process for all clients, and one of the client's own where the server may ask its user. To see them: {} servers ls",
        client.name,
        program_name()
    )
}

/// The names in the client's file of servers that the configuration has.
fn spellings(spot: &Spot, names: &[String]) -> Result<Vec<String>, Failure> {
    let own = |name: &str| name.split_whitespace().collect::<Vec<_>>().join("-");
    let entries = setup::look(spot)?.1.into_iter().map(|entry| entry.name);
    Ok(entries.filter(|name| names.contains(&own(name))).collect())
}

/// Way in which the client reaches the gateway.
fn gateway(args: &ConnectArgs, spot: &Spot) -> Result<Gateway, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            Exit::Failed,
            "no_program",
            format!("the place of this program is not known: {error}"),
        )
    })?;
    let mut words = vec!["stdio".to_owned()];
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]))
    };
    option("--topic", args.topic.clone());
    option(
        "--data-dir",
        args.data_dir
            .as_deref()
            .map(absolute)
            .transpose()?
            .map(|dir| dir.display().to_string()),
    );
    let url = args
        .url
        .as_ref()
        .map(|url| setup::endpoint(url, args.topic.as_deref()));
    option(
        "--url",
        args.url.clone().filter(|_| !spot.shape.speaks_http()),
    );
    let token = args.token.clone();
    Ok(Gateway {
        command: program.display().to_string(),
        args: words,
        env: token
            .iter()
            .map(|token| ("PORTMOOT_TOKEN".to_owned(), token.clone()))
            .collect(),
        url,
        headers: token
            .into_iter()
            .map(|token| ("Authorization".to_owned(), format!("Bearer {token}")))
            .collect(),
    })
}

pub(crate) fn disconnect(args: &DisconnectArgs, output: Output) -> Result<Exit, Failure> {
    let client = named(&args.client)?;
    let spot = surrounded(|at| spot(client, &args.of, at))?;
    let plan = setup::disconnect(&spot, &copies(args.data_dir.clone())?)?;
    let question = format!("Write {}?", place(&plan.change.file));
    let changed = carry_out(
        &[&plan.change],
        args.change,
        Some(&question),
        output,
        || plan.make(),
    )?;
    if output.json {
        let is_restored = changed && plan.ending == Some(Ending::Restored);
        let more = json!({ "client": client.id, "restored": is_restored });
        output.result_json(&report(&spot.file, changed, &more));
    } else if changed {
        output.message(&format!("disconnected {}: {}", client.name, how(&plan)));
    }
    if !output.json && !args.change.dry_run {
        match plan.left(&spot).as_slice() {
            [] if changed => {}
            [] => output.message(&format!("{} is not connected", client.name)),
            left => output.message(&format!(
                "`{}` was in the file before `connect`, and stays; to take it out as well: {} disconnect {}",
                visible::line(&left.join("`, `")),
                program_name(),
                client.id
            )),
        }
    }
    Ok(Exit::Ok)
}

/// How a connection has ended, for people.
fn how(plan: &Plan) -> &'static str {
    match plan.ending {
        Some(Ending::Restored) => "the file is as it was before, byte for byte",
        Some(Ending::Changed) => {
            "another program has changed the file since: only the gateway's entry was taken out"
        }
        Some(Ending::TakenOut) => {
            "it was connected already when `connect` was run last: only the gateway's entry was taken out"
        }
        Some(Ending::Unknown) | None => {
            "no `connect` is known of it, so there is no file to give back: only the entry was taken out"
        }
    }
}

/// The copies in the data directory.
fn copies(data_dir: Option<PathBuf>) -> Result<Copies, Failure> {
    // A configuration file, which may be another person's, does not say where copies go.
    let dir = data_dir
        .or_else(|| config::state_dir(&env))
        .map(|dir| absolute(&dir))
        .transpose()?;
    dir.map(|dir| Copies::in_dir(&dir)).ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "no_data_dir",
            "there is no place for a copy of the client's file",
        )
        .hint("choose one: --data-dir DIR")
    })
}
