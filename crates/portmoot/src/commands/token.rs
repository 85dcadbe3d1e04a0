//! `token new`, `token ls` and `token revoke`: with the gateway that runs, or on the data directory when none does.

use std::path::PathBuf;

use auth::LOCAL_USER;
use gateway::audit::{Recorder, TOKENS};
use gateway::config::Config;
use gateway::admin::tokens::{TokenRequest, issue, revoke};
use serde_json::{Map, Value, json};
use store::{IssuedToken, Journal, JournalWriter};

use crate::cli::{GatewayArgs, TokenCommand};
use crate::commands::config::{load, sources};
use crate::commands::reach::{named, running};
use crate::commands::servers::cell;
use crate::config::{DURATION, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::{Api, Remote};
use crate::machine::now_ms;
use crate::moment::date;
use crate::output::Output;

const COLUMNS: [&str; 5] = ["NAME", "CAPABILITIES", "TOPICS", "CREATED", "EXPIRES"];

/// Where tokens are kept: asked of the gateway that owns them, or opened here.
enum Keeper {
    Gateway(Remote),
    Here { config: Box<Config>, dir: PathBuf },
}

pub(crate) async fn run(command: TokenCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        TokenCommand::New { name, capabilities, topics, expires, gateway } => {
            let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
            let lifetime_ms = expires.as_deref().map(lifetime).transpose()?;
            let request =
                TokenRequest { name, capabilities: some(capabilities), topics: some(topics), lifetime_ms };
            let answer = new(keeper(&gateway, output)?, request).await?;
            if output.json {
                output.result_json(&answer);
            } else {
                output.talk(&format!("a token for `{}`; it is shown only this once:", cell(&answer, "name")));
                output.result(&cell(&answer, "token"));
            }
        }
        TokenCommand::Ls { gateway } => {
            let answer = ls(keeper(&gateway, output)?).await?;
            let rows = answer.get("tokens").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            output.listing(&answer, &COLUMNS, &rows.iter().map(row).collect::<Vec<_>>());
        }
        TokenCommand::Revoke { name, gateway } => {
            take_back(keeper(&gateway, output)?, &name).await?;
            if output.json {
                output.result_json(&json!({ "revoked": name }))
            } else {
                output.talk(&format!("`{name}` has no token any more"))
            }
        }
    }
    Ok(Exit::Ok)
}

fn keeper(args: &GatewayArgs, output: Output) -> Result<Keeper, Failure> {
    if let Some(remote) = named(&args.running)? {
        return Ok(Keeper::Gateway(remote));
    }
    let loaded = load(&sources(&args.running.config), output)?;
    if let Some(remote) = running(&loaded, &args.running)? {
        return Ok(Keeper::Gateway(remote));
    }
    let dir = loaded.config.data_dir.clone().ok_or_else(|| {
        let failure = Failure::new(Exit::Usage, "no_data_dir", "there is no place to keep tokens in");
        failure.hint("name one: --data-dir DIR, or [server] data_dir")
    })?;
    Ok(Keeper::Here { config: Box::new(loaded.config), dir })
}

async fn new(keeper: Keeper, request: TokenRequest) -> Result<Value, Failure> {
    match keeper {
        Keeper::Gateway(remote) => {
            let body = json!({
                "name": request.name,
                "capabilities": request.capabilities,
                "topics": request.topics,
                "lifetime_ms": request.lifetime_ms,
            });
            Api::new(&remote).post(&["tokens"], &body).await
        }
        Keeper::Here { config, dir } => {
            let random: [u8; 32] = platform::random();
            let journal = JournalWriter::open(&dir)?;
            let audit = Recorder::open(&config, Some(&journal))?;
            let (place, name) = (audit.reserve()?, request.name.clone());
            let made = issue(&journal, &config, request, &random, now_ms());
            place.write_change((TOKENS, &name, None), LOCAL_USER, "issued", &made);
            let (token, issued) = made?;
            let mut answer = shown(&issued);
            answer.extend([("token".to_owned(), Value::from(token))]);
            Ok(Value::Object(answer))
        }
    }
}

async fn ls(keeper: Keeper) -> Result<Value, Failure> {
    match keeper {
        Keeper::Gateway(remote) => Api::new(&remote).get(&["tokens"], &[]).await,
        Keeper::Here { dir, .. } => {
            let journal = Journal::open(&dir)?;
            Ok(json!({ "tokens": journal.state().tokens().iter().map(shown).collect::<Vec<_>>() }))
        }
    }
}

async fn take_back(keeper: Keeper, name: &str) -> Result<(), Failure> {
    match keeper {
        Keeper::Gateway(remote) => Api::new(&remote).delete(&["tokens", name]).await.map(drop),
        Keeper::Here { config, dir } => {
            let journal = JournalWriter::open(&dir)?;
            let audit = Recorder::open(&config, Some(&journal))?;
            let place = audit.reserve()?;
            let end = revoke(&journal, name, now_ms());
            place.write_change((TOKENS, name, None), LOCAL_USER, "revoked", &end);
            Ok(end?)
        }
    }
}

/// A token as the API shows it: everything but its hash.
fn shown(token: &IssuedToken) -> Map<String, Value> {
    let members = [
        ("name", json!(token.name)),
        ("capabilities", json!(token.capabilities)),
        ("topics", json!(token.topics)),
        ("created_ms", json!(token.created_ms)),
        ("expires_ms", json!(token.expires_ms)),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn row(token: &Value) -> Vec<String> {
    let list = |name: &str| match token.get(name).and_then(Value::as_array) {
        Some(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        None => "(configured)".to_owned(),
    };
    let time = |name: &str| token.get(name).and_then(Value::as_u64);
    let expires = match time("expires_ms") {
        None => "never".to_owned(),
        Some(end) if end <= now_ms() => format!("expired {}", date(end)),
        Some(end) => date(end),
    };
    let created = time("created_ms").map(date).unwrap_or_default();
    vec![cell(token, "name"), list("capabilities"), list("topics"), created, expires]
}

fn lifetime(text: &str) -> Result<u64, Failure> {
    let wrong =
        || Failure::new(Exit::Usage, "bad_argument", format!("--expires must be {DURATION}, not \"{text}\""));
    let lifetime = duration(text).ok_or_else(wrong)?;
    u64::try_from(lifetime.as_millis()).map_err(|_| wrong())
}
