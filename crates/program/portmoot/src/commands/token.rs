//! Commands `token new`, `token rotate`, `token ls` and `token revoke`: through the running
//! gateway, else on the data directory.

use std::path::PathBuf;

use auth::LOCAL_USER;
use config::Config;
use identity::AccessState;
use identity::tokens::{IssuedTokenRow, TokenRequest, issue, revoke, rotate};
use identity::{Authority, TOKENS};
use platform::unix_ms;
use serde_json::{Value, json};
use store::JournalWriter;
use store::audit::LogFiles;
use store::recorder::Recorder;

use crate::cli::{GatewayArgs, TokenCommand};
use crate::commands::config::{alone, data_dir, note_unmatched};
use crate::commands::target::Target;
use crate::commands::view::{cell, texts};
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::{duration_of, minute};

const COLUMNS: [&str; 5] = ["NAME", "CAPABILITIES", "TOPICS", "CREATED", "EXPIRES"];

/// Token store: the running gateway, or the journal in the data directory.
enum TokenStore {
    Gateway(Remote),
    Local { config: Box<Config>, dir: PathBuf },
}

pub(crate) async fn run(command: TokenCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        TokenCommand::New {
            name,
            capabilities,
            topics,
            expires,
            gateway,
        } => {
            note_unmatched(&capabilities, output);
            let lifetime_ms = match expires {
                Some(text) => u64::try_from(duration_of("--expires", &text)?.as_millis()).ok(),
                None => None,
            };
            let request = TokenRequest {
                name,
                capabilities: written(capabilities),
                topics: written(topics),
                lifetime_ms,
            };
            let answer = new(token_store(&gateway, output)?, request).await?;
            print(&answer, output);
            note_defaults(&answer, output);
        }
        TokenCommand::Rotate {
            name,
            overlap,
            gateway,
        } => {
            let lasts = duration_of("--overlap", &overlap)?;
            let overlap_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
            let answer = rotated(token_store(&gateway, output)?, &name, overlap_ms).await?;
            print(&answer, output);
            output.message(&format!(
                "the token before is valid for another {overlap} at most"
            ));
        }
        TokenCommand::Ls { gateway, .. } => {
            let answer = ls(token_store(&gateway, output)?).await?;
            let none = "no token is issued; to issue one: portmoot token new NAME";
            output.listing_or(&answer, "tokens", &COLUMNS, none, row);
            if has_tokens(&answer) == Some(true) && !output.json {
                output.message(
                    "when one was last used: portmoot audit query --participant NAME --last 1",
                );
            }
        }
        TokenCommand::Revoke { name, gateway } => {
            let answer = revoke_tokens(token_store(&gateway, output)?, &name).await?;
            // Only for a message: a list that cannot be had says nothing.
            let left = match token_store(&gateway, output) {
                Ok(store) => ls(store).await.ok(),
                Err(_) => None,
            };
            let was_last = left.is_some_and(|left| has_tokens(&left) == Some(false));
            print_revoked(&name, &answer, was_last, output);
        }
    }
    Ok(Exit::Ok)
}

/// A list of flags; `None` if there is none of them.
fn written(list: Vec<String>) -> Option<Vec<String>> {
    if list.is_empty() { None } else { Some(list) }
}

/// Whether a list of tokens has any; `None` if it is no list.
fn has_tokens(answer: &Value) -> Option<bool> {
    Some(!answer.get("tokens")?.as_array()?.is_empty())
}

/// Prints what ended with the tokens of a participant.
fn print_revoked(name: &str, answer: &Value, was_last: bool, output: Output) {
    let ended = count(answer, "grants_ended");
    let kept = count(answer, "grants_kept");
    if output.json {
        output.result_json(&json!({ "revoked": name, "grants_ended": ended, "grants_kept": kept }));
        return;
    }
    output.message(&format!("all tokens of `{name}` are revoked"));
    if was_last {
        output.message(
            "it was the last token that was issued: callers need a token until the gateway starts again, if it runs",
        );
    }
    if ended > 0 {
        output.message(&format!(
            "{ended} changes of its capabilities have ended: the next `{name}` does not get them"
        ));
    }
    if kept > 0 {
        output.message(&format!(
            "`{name}` is configured: {kept} changes of its capabilities stay; to end them, clear its grants"
        ));
    }
}

fn count(answer: &Value, member: &str) -> u64 {
    answer
        .get(member)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

fn token_store(args: &GatewayArgs, output: Output) -> Result<TokenStore, Failure> {
    match Target::of(&args.running, Some(args.yes), output)? {
        Target::Running(running) => running.endpoint().map(TokenStore::Gateway),
        Target::Own(loaded) => {
            alone(&loaded, "tokens of a cluster are kept by its nodes")?;
            let dir = data_dir(&loaded, "tokens cannot be stored")?;
            Ok(TokenStore::Local {
                config: Box::new(loaded.config),
                dir,
            })
        }
    }
}

async fn new(token_store: TokenStore, request: TokenRequest) -> Result<Value, Failure> {
    match token_store {
        TokenStore::Gateway(remote) => {
            let body = json!(request);
            api::post(&remote, &["tokens"], &[], body.to_string())
                .await?
                .read()
        }
        TokenStore::Local { config, dir } => {
            let random: [u8; 32] = platform::random();
            let journal = JournalWriter::open(&dir)?;
            let audit = Recorder::open(config.audit.policy(), Some(&journal), LogFiles::default())?;
            let permit = audit.reserve()?;
            let name = request.name.clone();
            let made = issue(
                &journal.ledger()?,
                &config.identity,
                Authority::Operator,
                request,
                &random,
                unix_ms(),
            );
            permit.write_change((TOKENS, &name, None), LOCAL_USER, "issued", &made);
            Ok(json!(made?))
        }
    }
}

async fn rotated(token_store: TokenStore, name: &str, overlap_ms: u64) -> Result<Value, Failure> {
    match token_store {
        TokenStore::Gateway(remote) => {
            let body = json!({ "overlap_ms": overlap_ms }).to_string();
            api::post(&remote, &["tokens", name, "rotate"], &[], body)
                .await?
                .read()
        }
        TokenStore::Local { config, dir } => {
            let random: [u8; 32] = platform::random();
            let journal = JournalWriter::open(&dir)?;
            let audit = Recorder::open(config.audit.policy(), Some(&journal), LogFiles::default())?;
            let permit = audit.reserve()?;
            let made = rotate(
                &journal.ledger()?,
                &config.identity,
                Authority::Operator,
                name,
                overlap_ms,
                &random,
                unix_ms(),
            );
            permit.write_change((TOKENS, name, None), LOCAL_USER, "rotated", &made);
            Ok(json!(made?))
        }
    }
}

/// Prints a new token.
fn print(answer: &Value, output: Output) {
    if output.json {
        return output.result_json(answer);
    }
    output.message(&format!(
        "token for `{}`; it cannot be shown again:",
        cell(answer, "name")
    ));
    output.result(&cell(answer, "token"));
    output.message(
        "a client sends it as `Authorization: Bearer TOKEN`, a command gets it as `PORTMOOT_TOKEN=TOKEN portmoot tools ls`",
    );
    if answer
        .get("closes")
        .and_then(Value::as_bool)
        .unwrap_or_default()
    {
        output.message("from now on callers need a token: clients without one are refused, but for your own commands here");
    }
}

/// Notes that the bearer of a new token has the default capabilities, as no table names it: the name
/// may be a typo.
fn note_defaults(answer: &Value, output: Output) {
    let has_own = answer.get("capabilities").is_some_and(Value::is_array);
    if output.json || has_own || is_configured(answer) {
        return;
    }
    output.message(&format!(
        "no [participants.{}]: default capabilities, to propose, to answer and to chat; for others write that table, or name them with --capability",
        cell(answer, "name")
    ));
}

async fn ls(token_store: TokenStore) -> Result<Value, Failure> {
    match token_store {
        TokenStore::Gateway(remote) => api::get(&remote, &["tokens"], &[]).await?.read(),
        TokenStore::Local { dir, config } => {
            let state = AccessState::peek(&dir)?;
            let tokens = state.tokens().iter();
            let rows = tokens.map(|token| IssuedTokenRow::of(token, &config.identity));
            Ok(json!({ "tokens": rows.collect::<Vec<_>>() }))
        }
    }
}

async fn revoke_tokens(token_store: TokenStore, name: &str) -> Result<Value, Failure> {
    match token_store {
        TokenStore::Gateway(remote) => api::delete(&remote, &["tokens", name]).await?.read(),
        TokenStore::Local { config, dir } => {
            let journal = JournalWriter::open(&dir)?;
            let audit = Recorder::open(config.audit.policy(), Some(&journal), LogFiles::default())?;
            let permit = audit.reserve()?;
            let end = revoke(
                &journal.ledger()?,
                &config.identity,
                Authority::Operator,
                name,
                unix_ms(),
            );
            permit.write_change((TOKENS, name, None), LOCAL_USER, "revoked", &end);
            Ok(json!(end?))
        }
    }
}

fn row(token: &Value) -> Vec<String> {
    let created_ms = token.get("created_ms").and_then(Value::as_u64);
    let expires_ms = token.get("expires_ms").and_then(Value::as_u64);
    let expires = match expires_ms {
        None => "never".to_owned(),
        Some(end) if end <= unix_ms() => format!("expired {}", minute(end)),
        Some(end) => minute(end),
    };
    vec![
        cell(token, "name"),
        narrowed(token, "capabilities"),
        narrowed(token, "topics"),
        created_ms.map(minute).unwrap_or_default(),
        expires,
    ]
}

/// Whether the configuration has the participant of a token.
fn is_configured(token: &Value) -> bool {
    token.get("configured") == Some(&Value::Bool(true))
}

/// A list of the token's own; without one, that of its participant in the configuration counts, or
/// the default.
fn narrowed(token: &Value, member: &str) -> String {
    match token.get(member) {
        None | Some(Value::Null) if is_configured(token) => "(configured)".to_owned(),
        None | Some(Value::Null) => "(default)".to_owned(),
        Some(_) => texts(token, member).join(", "),
    }
}
