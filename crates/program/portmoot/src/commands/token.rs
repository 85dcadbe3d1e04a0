//! Commands `token new`, `token rotate`, `token ls` and `token revoke`: through the running
//! gateway, else on the data directory.

use std::path::PathBuf;

use access::AccessState;
use access::config::Config;
use access::tokens::{Token, TokenRequest, issue, revoke, rotate};
use access::{Authority, TOKENS};
use auth::LOCAL_USER;
use platform::unix_ms;
use serde_json::{Value, json};
use store::JournalWriter;
use store::recorder::Recorder;

use crate::cli::{GatewayArgs, TokenCommand};
use crate::commands::config::{data_dir, note_unmatched};
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
            let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
            let lifetime = expires
                .as_deref()
                .map(|text| duration_of("--expires", text))
                .transpose()?;
            let lifetime_ms =
                lifetime.and_then(|lifetime| u64::try_from(lifetime.as_millis()).ok());
            let request = TokenRequest {
                name,
                capabilities: some(capabilities),
                topics: some(topics),
                lifetime_ms,
            };
            print(&new(token_store(&gateway, output)?, request).await?, output);
        }
        TokenCommand::Rotate {
            name,
            overlap,
            gateway,
        } => {
            let lasts = duration_of("--overlap", &overlap)?;
            let overlap_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
            print(
                &rotated(token_store(&gateway, output)?, &name, overlap_ms).await?,
                output,
            );
            output.message(&format!(
                "the token before is valid for another {overlap} at most"
            ));
        }
        TokenCommand::Ls { gateway, .. } => {
            let answer = ls(token_store(&gateway, output)?).await?;
            let none = "no token is issued; to issue one: portmoot token new NAME";
            output.listing_or(&answer, "tokens", (&COLUMNS, none), row);
            let is_any = answer
                .get("tokens")
                .and_then(Value::as_array)
                .is_some_and(|all| !all.is_empty());
            if is_any && !output.json {
                output.message(
                    "when one was last used: portmoot audit query --participant NAME --last 1",
                );
            }
        }
        TokenCommand::Revoke { name, gateway } => {
            let answer = revoke_tokens(token_store(&gateway, output)?, &name).await?;
            let left = match token_store(&gateway, output) {
                Ok(store) => ls(store).await.ok(),
                Err(_) => None,
            };
            let is_last = left
                .and_then(|left| Some(left.get("tokens")?.as_array()?.is_empty()))
                .unwrap_or_default();
            let count = |member: &str| {
                answer
                    .get(member)
                    .and_then(Value::as_u64)
                    .unwrap_or_default()
            };
            let ended = count("grants_ended");
            let kept = count("grants_kept");
            if output.json {
                output.result_json(
                    &json!({ "revoked": name, "grants_ended": ended, "grants_kept": kept }),
                );
            } else {
                output.message(&format!("all tokens of `{name}` are revoked"));
                if is_last {
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
        }
    }
    Ok(Exit::Ok)
}

fn token_store(args: &GatewayArgs, output: Output) -> Result<TokenStore, Failure> {
    match Target::of(&args.running, Some(args.yes), output)? {
        Target::Running(running) => running.endpoint().map(TokenStore::Gateway),
        Target::Own(loaded) => {
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
            let audit = Recorder::open(config.audit.policy(), Some(&journal))?;
            let permit = audit.reserve()?;
            let name = request.name.clone();
            let made = issue(
                &journal.ledger()?,
                &config,
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
            let audit = Recorder::open(config.audit.policy(), Some(&journal))?;
            let permit = audit.reserve()?;
            let rotation = (name, overlap_ms);
            let made = rotate(
                &journal.ledger()?,
                &config,
                Authority::Operator,
                rotation,
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
    if answer
        .get("closes")
        .and_then(Value::as_bool)
        .unwrap_or_default()
    {
        output.message("from now on callers need a token: clients without one are refused");
    }
}

async fn ls(token_store: TokenStore) -> Result<Value, Failure> {
    match token_store {
        TokenStore::Gateway(remote) => api::get(&remote, &["tokens"], &[]).await?.read(),
        TokenStore::Local { dir, .. } => {
            let state = AccessState::peek(&dir)?;
            Ok(json!({ "tokens": state.tokens().iter().map(Token::of).collect::<Vec<_>>() }))
        }
    }
}

async fn revoke_tokens(token_store: TokenStore, name: &str) -> Result<Value, Failure> {
    match token_store {
        TokenStore::Gateway(remote) => api::delete(&remote, &["tokens", name]).await?.read(),
        TokenStore::Local { config, dir } => {
            let journal = JournalWriter::open(&dir)?;
            let audit = Recorder::open(config.audit.policy(), Some(&journal))?;
            let permit = audit.reserve()?;
            let end = revoke(
                &journal.ledger()?,
                &config,
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
    let list = |name: &str| match token.get(name) {
        None | Some(Value::Null) => "(configured)".to_owned(),
        Some(_) => texts(token, name).join(", "),
    };
    let time = |name: &str| token.get(name).and_then(Value::as_u64);
    let expires = match time("expires_ms") {
        None => "never".to_owned(),
        Some(end) if end <= unix_ms() => format!("expired {}", minute(end)),
        Some(end) => minute(end),
    };
    let created = time("created_ms").map(minute).unwrap_or_default();
    vec![
        cell(token, "name"),
        list("capabilities"),
        list("topics"),
        created,
        expires,
    ]
}
