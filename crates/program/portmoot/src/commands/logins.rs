//! Commands `login code`, `clients ls`, `clients revoke`, `consents ls` and `consents revoke`:
//! sign-ins at the running gateway.

use platform::unix_ms;
use serde_json::{Value, json};

use crate::cli::{ClientsCommand, ConsentsCommand, LoginCommand};
use crate::commands::target::running_endpoint;
use crate::commands::view::{cell, texts};
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::minute;

const CLIENTS: [&str; 7] = [
    "CLIENT",
    "NAME",
    "PARTICIPANT",
    "ENDPOINT",
    "SCOPES",
    "RENEWED",
    "EXPIRES",
];
const CONSENTS: [&str; 7] = [
    "CLIENT",
    "NAME",
    "PARTICIPANT",
    "ENDPOINT",
    "SCOPES",
    "GIVEN",
    "REMEMBERED",
];

pub(crate) async fn login(command: LoginCommand, output: Output) -> Result<Exit, Failure> {
    let LoginCommand::Code { name, gateway } = command;
    let remote = running_endpoint(&gateway, output)?;
    let body = json!({ "name": name }).to_string();
    let answer: Value = api::post(&remote, &["logins"], &[], body).await?.read()?;
    if output.json {
        output.result_json(&answer);
        return Ok(Exit::Ok);
    }
    let expires = answer
        .get("expires_ms")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let left = expires.saturating_sub(unix_ms()).div_ceil(60_000);
    output.message(&format!(
        "type this at the sign-in page as `{name}`; it is good once, for {left} minutes:"
    ));
    output.result(&cell(&answer, "code"));
    Ok(Exit::Ok)
}

pub(crate) async fn clients(command: ClientsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ClientsCommand::Ls(gateway) => {
            let remote = running_endpoint(&gateway, output)?;
            let answer: Value = api::get(&remote, &["clients"], &[]).await?.read()?;
            output.listing(&answer, "clients", &CLIENTS, |client| {
                let mut row = row(client);
                row.extend([time(client, "renewed_ms"), time(client, "expires_ms")]);
                row
            });
        }
        ClientsCommand::Revoke {
            client,
            participant,
            gateway,
        } => {
            let remote = running_endpoint(&gateway, output)?;
            let ended = end(&remote, "clients", &client, participant.as_deref()).await?;
            show(&ended, output);
        }
    }
    Ok(Exit::Ok)
}

pub(crate) async fn consents(command: ConsentsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ConsentsCommand::Ls(gateway) => {
            let remote = running_endpoint(&gateway, output)?;
            let answer: Value = api::get(&remote, &["consents"], &[]).await?.read()?;
            output.listing(&answer, "consents", &CONSENTS, |consent| {
                let mut row = row(consent);
                let remembered = consent
                    .get("remembered")
                    .and_then(Value::as_bool)
                    .unwrap_or_default();
                row.extend([
                    time(consent, "at_ms"),
                    if remembered { "yes" } else { "no" }.to_owned(),
                ]);
                row
            });
        }
        ConsentsCommand::Revoke {
            client,
            participant,
            gateway,
        } => {
            let remote = running_endpoint(&gateway, output)?;
            let ended = end(&remote, "consents", &client, participant.as_deref()).await?;
            show(&ended, output);
        }
    }
    Ok(Exit::Ok)
}

async fn end(
    remote: &Remote,
    list: &str,
    client: &str,
    participant: Option<&str>,
) -> Result<Value, Failure> {
    let query: Vec<(&str, &str)> = participant
        .map(|one| ("participant", one))
        .into_iter()
        .collect();
    api::delete_with(remote, &[list, client], &query)
        .await?
        .read()
}

fn show(ended: &Value, output: Output) {
    if output.json {
        return output.result_json(ended);
    }
    let count = |member: &str| {
        ended
            .get(member)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    };
    let clients = count("clients");
    let consents = count("consents");
    output.message(&format!(
        "{clients} sign-ins have ended, {consents} consents are forgotten"
    ));
}

fn row(one: &Value) -> Vec<String> {
    let scopes = match texts(one, "scopes").join(" ") {
        none if none.is_empty() => "(all)".to_owned(),
        scopes => scopes,
    };
    vec![
        cell(one, "client"),
        cell(one, "name"),
        cell(one, "participant"),
        cell(one, "resource"),
        scopes,
    ]
}

fn time(one: &Value, member: &str) -> String {
    one.get(member)
        .and_then(Value::as_u64)
        .map(minute)
        .unwrap_or_default()
}
