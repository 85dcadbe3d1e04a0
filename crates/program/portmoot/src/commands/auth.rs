//! Commands `auth check` and `auth probe`: why a token is refused, and what a client finds that
//! wants to sign in.

mod probe;

use std::io::{IsTerminal, Read, stdin};
use std::sync::Arc;

use auth::Participant;
use auth::jwt::ACCESS_TOKEN_BYTES_MAX;
use identity::bearers::Bearers;
use identity::bearers::explain::ExplainedToken;
use json::visible;
use serde_json::{Value, json};

use crate::cli::AuthCommand;
use crate::commands::config::{load, read_secrets, sources};
use crate::consent;
use config::Secrets;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::ProcessTerminal;

pub(crate) async fn run(command: AuthCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        AuthCommand::Check { topic, config } => {
            let mut loaded = load(&sources(&config), output)?;
            if loaded.config.identity.issuers.is_empty() {
                let failure = Failure::new(Exit::Usage, "no_issuers", "no issuer is configured");
                return Err(failure.hint("add [issuers.NAME]; docs/authorization.md shows how"));
            }
            if !loaded.secrets.is_empty() {
                consent::obtain(&loaded, &mut ProcessTerminal, None, output)?;
                read_secrets(&mut loaded, &Secrets::default(), output)?;
            }
            let token = read_token()?;
            let bearers = Bearers::new(Arc::default());
            bearers.take_over(&loaded.config.identity);
            let explained = bearers.explain(&token, Some(&topic)).await;
            Ok(show(&explained, output))
        }
        AuthCommand::Probe { url } => probe::run(&url, output).await,
    }
}

/// The token on stdin, without the blanks around it.
fn read_token() -> Result<String, Failure> {
    if stdin().is_terminal() {
        let failure = Failure::new(
            Exit::Usage,
            "no_token",
            "the token is read from stdin, which is a terminal",
        );
        return Err(
            failure.hint("pipe it in, so that no shell history has it: portmoot auth check < FILE")
        );
    }
    let mut text = String::new();
    let read = stdin()
        .take(4 * ACCESS_TOKEN_BYTES_MAX as u64)
        .read_to_string(&mut text);
    read.map_err(|error| {
        Failure::new(
            Exit::Usage,
            "no_token",
            format!("stdin cannot be read: {error}"),
        )
    })?;
    let text = text.trim();
    let token = text.strip_prefix("Bearer ").unwrap_or(text).trim();
    if token.is_empty() {
        return Err(Failure::new(Exit::Usage, "no_token", "stdin has no token"));
    }
    Ok(token.to_owned())
}

fn show(explained: &ExplainedToken, output: Output) -> Exit {
    let steps = &explained.steps;
    let participant = explained.bearer.as_deref();
    let exit = if participant.is_some() {
        Exit::Ok
    } else {
        Exit::Unauthenticated
    };
    if output.json {
        let rows: Vec<Value> = steps
            .iter()
            .map(|step| json!({ "what": step.what, "ok": step.fault.is_none(), "why": step.fault }))
            .collect();
        let participant = participant.map(described);
        output.result_json(
            &json!({ "ok": participant.is_some(), "steps": rows, "participant": participant }),
        );
        return exit;
    }
    for step in steps {
        match &step.fault {
            None => output.result(&format!("yes  {}", step.what)),
            Some(why) => output.result(&format!("no   {}: {}", step.what, visible::lines(why))),
        }
    }
    if let Some(one) = participant {
        let list = |all: Vec<&str>| {
            if all.is_empty() {
                "nothing".to_owned()
            } else {
                all.join(", ")
            }
        };
        output.result(&format!("\nparticipant   {}", one.id));
        output.result(&format!(
            "topics        {}",
            list(one.topics.iter().map(|topic| topic.as_str()).collect())
        ));
        let own = one.capabilities.iter().map(|one| one.as_str()).collect();
        output.result(&format!("capabilities  {}", list(own)));
        if let Some(narrowing) = one.narrowing() {
            let scopes = narrowing.to.iter().map(|one| one.as_str()).collect();
            output.result(&format!("of which only {}", list(scopes)));
        }
    }
    exit
}

fn described(one: &Participant) -> Value {
    let texts = |all: &model::Capabilities| {
        all.iter()
            .map(|one| one.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    json!({
        "id": one.id.as_str(),
        "topics": one.topics.iter().map(|topic| topic.as_str()).collect::<Vec<_>>(),
        "capabilities": texts(&one.capabilities),
        "scope": one.narrowing().map(|narrowing| texts(&narrowing.to)),
        "expires_ms": one.expires_ms,
    })
}
