//! Commands `secret set`, `secret list` and `secret remove`: secrets that the gateway keeps itself.
//! They need no running gateway, which watches their files.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Read, stdin};
use std::path::Path;

use platform::open_regular;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::cli::{ConfigArgs, SecretCommand, SecretPlace};
use crate::commands::config::{load, sources};
use crate::commands::view::cell;
use crate::consent;
use config::{KeepError, KeptIn, KeptSecret, Loaded, SECRET_BYTES_MAX, SecretName};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{ProcessTerminal, hidden};
use terminal::timestamp::minute;

const COLUMNS: [&str; 3] = ["NAME", "KEPT", "SET"];
/// Bytes of a line end after a value.
const LINE_END_BYTES: usize = 2;

pub(crate) async fn run(command: SecretCommand, output: Output) -> Result<Exit, Failure> {
    // The keyring may wait for a person.
    let run = move || match command {
        SecretCommand::Set {
            name,
            from_file,
            place,
            config,
        } => set(&named(&name)?, from_file.as_deref(), place, &config, output),
        SecretCommand::List(config) => list(&config, output),
        SecretCommand::Remove { name, config } => remove(&named(&name)?, &config, output),
    };
    let ended = tokio::task::spawn_blocking(run).await;
    ended.unwrap_or_else(|error| Err(Failure::new(Exit::Failed, "secret", error.to_string())))
}

fn named(text: &str) -> Result<SecretName, Failure> {
    SecretName::new(text).map_err(|error| Failure::bad_argument(error.to_string()))
}

/// The configuration, to which the operator agrees if it is a file that says where secrets are kept
/// and was not named.
fn agreed(args: &ConfigArgs, output: Output) -> Result<Loaded, Failure> {
    let loaded = load(&sources(args), output)?;
    if loaded.keeps_by_found_file() {
        consent::obtain(&loaded, &mut ProcessTerminal, None, output)?;
    }
    Ok(loaded)
}

fn set(
    name: &SecretName,
    file: Option<&Path>,
    place: Option<SecretPlace>,
    args: &ConfigArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let loaded = agreed(args, output)?;
    let value = value(name, file)?;
    let wish = place.map(|place| match place {
        SecretPlace::Keyring => KeptIn::Keyring,
        SecretPlace::File => KeptIn::File,
    });
    let kept_in = loaded
        .kept
        .set(name, &value, wish)
        .map_err(|error| failure(&error))?;
    if output.json {
        output.result_json(&json!({ "name": name.as_str(), "kept": word(Some(kept_in)) }));
        return Ok(Exit::Ok);
    }
    let place = match kept_in {
        KeptIn::Keyring => "in the keyring of the system",
        KeptIn::File => "in a sealed file of the data directory",
    };
    output.message(&format!("the secret `{name}` is kept {place}"));
    let uses: Vec<String> = uses(&loaded, name).map(|key| format!("`{key}`")).collect();
    match uses.as_slice() {
        [] => output.message(&format!(
            "to use it, write in the configuration: env = {{ API_KEY = {{ secret = \"{name}\" }} }}"
        )),
        uses => output.message(&format!("it is the value of {}", uses.join(", "))),
    }
    Ok(Exit::Ok)
}

fn list(args: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let loaded = agreed(args, output)?;
    let kept = loaded.kept.list().map_err(|error| failure(&error))?;
    let row = |one: &KeptSecret| {
        let keys: Vec<&str> = uses(&loaded, &one.name).collect();
        json!({ "name": one.name.as_str(), "kept": word(one.kept_in), "set_ms": one.at_ms, "used_by": keys })
    };
    let answer = json!({ "secrets": kept.iter().map(row).collect::<Vec<_>>() });
    let none = "no secret is kept; to keep one: portmoot secret set NAME";
    output.listing_or(&answer, "secrets", &COLUMNS, none, |one| {
        let at_ms = one
            .get("set_ms")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        vec![
            cell(one, "name"),
            cell(one, "kept"),
            if at_ms == 0 {
                "-".to_owned()
            } else {
                minute(at_ms)
            },
        ]
    });
    Ok(Exit::Ok)
}

fn remove(name: &SecretName, args: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let loaded = agreed(args, output)?;
    let Some(removed) = loaded.kept.remove(name).map_err(|error| failure(&error))? else {
        let failure = Failure::new(
            Exit::NotFound,
            "unknown_secret",
            format!("no secret `{name}` is kept"),
        );
        return Err(failure.hint("list them: portmoot secret list"));
    };
    if output.json {
        output.result_json(&json!({ "removed": name.as_str() }));
    } else {
        output.message(&format!("the secret `{name}` is removed"));
        for key in uses(&loaded, name) {
            output.warn(&format!("`{key}` has no value from now on"));
        }
    }
    if let Some(error) = removed.left {
        output.warn(&format!(
            "its value is still in the keyring, as \"Portmoot: {name}\": {error}"
        ));
    }
    Ok(Exit::Ok)
}

/// The full names of the keys whose value a secret is.
fn uses<'l>(loaded: &'l Loaded, name: &'l SecretName) -> impl Iterator<Item = &'l str> {
    loaded
        .secrets
        .iter()
        .filter(move |secret| secret.kept() == Some(name))
        .map(|secret| secret.key.as_str())
}

fn word(kept_in: Option<KeptIn>) -> &'static str {
    match kept_in {
        Some(KeptIn::Keyring) => "keyring",
        Some(KeptIn::File) => "file",
        None => "unreadable",
    }
}

fn failure(error: &KeepError) -> Failure {
    Failure::new(Exit::Failed, "secret_not_kept", error.to_string()).hint(error.hint())
}

/// The value: of a file, of stdin, or typed and not shown.
fn value(name: &SecretName, file: Option<&Path>) -> Result<Zeroizing<Vec<u8>>, Failure> {
    match file {
        Some(path) => {
            let what = path.display().to_string();
            let file = open_regular(OpenOptions::new().read(true), path)
                .map_err(|error| unreadable(&what, &error))?;
            bounded(file, SECRET_BYTES_MAX).map_err(|error| unreadable(&what, &error))
        }
        None => read_value(
            &format!("Value of `{name}` (it is not shown):"),
            SECRET_BYTES_MAX,
        ),
    }
}

/// A value of at most so many bytes, of stdin or typed and not shown. Of a longer one so much comes
/// that it is seen to be too long. Blocks.
pub(super) fn read_value(prompt: &str, bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if !stdin().is_terminal() {
        return bounded(stdin().lock(), bytes_max).map_err(|error| unreadable("stdin", &error));
    }
    let line = hidden(prompt, bytes_max).map_err(|error| unreadable("the terminal", &error))?;
    line.ok_or_else(|| Failure::bad_argument("no value was typed, or a too long one"))
}

fn unreadable(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Usage,
        "unreadable",
        format!("{what} cannot be read: {error}"),
    )
}

/// At most one byte more than a value can have, with a line end.
fn bounded(source: impl Read, bytes_max: usize) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let most = bytes_max + LINE_END_BYTES + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    source.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
