//! Command `search`, and the servers of `add --from-registry`: the API of an MCP registry.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use setup::{CatalogPage, Described, NewServer, RegistryEntry};
use tls::ClientTls;
use tokio::time::timeout;

use super::arguments::pairs;
use crate::cli::{AddArgs, SearchArgs};
use crate::commands::view::short;
use crate::process::program_name;
use crate::remote::{Remote, api};
use json::visible;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const COLUMNS: [&str; 4] = ["NAME", "VERSION", "VIA", "DESCRIPTION"];
/// Time that a registry may take to answer.
const WAIT: Duration = Duration::from_secs(15);
/// Most servers of one page, by the registry's rule.
const LIMIT_MAX: u8 = 100;
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(crate) async fn search(args: SearchArgs, output: Output) -> Result<Exit, Failure> {
    let limit = args.limit.clamp(1, LIMIT_MAX).to_string();
    let word = encoded(&args.word);
    let path = format!("/v0.1/servers?search={word}&version=latest&limit={limit}");
    let (status, answer) = get(&args.registry.registry, &path, output).await?;
    if status != StatusCode::OK {
        return Err(odd(&args.registry.registry, status));
    }
    let page: CatalogPage =
        serde_json::from_value(answer.clone()).map_err(|_| odd(&args.registry.registry, status))?;
    if output.json {
        output.result_json(&answer);
        return Ok(Exit::Ok);
    }
    if page.servers.is_empty() {
        output.message(&format!(
            "no server has `{}` in its name",
            visible::line(&args.word)
        ));
        return Ok(Exit::Ok);
    }
    output.table(
        &COLUMNS,
        page.servers
            .iter()
            .map(|RegistryEntry { server }| row(server)),
    );
    output.message(&format!(
        "next: {} add NAME --from-registry SERVER",
        program_name()
    ));
    Ok(Exit::Ok)
}

fn row(server: &Described) -> Vec<String> {
    vec![
        server.name.clone(),
        server.version.clone(),
        server.kinds().join(", "),
        short(&server.description),
    ]
}

/// The server of a registry that the options of `add` choose.
pub(super) async fn chosen(
    name: &str,
    args: &AddArgs,
    output: Output,
) -> Result<NewServer, Failure> {
    let registry = &args.registry.registry;
    let path = format!("/v0.1/servers/{}/versions/latest", encoded(name));
    let (status, answer) = get(registry, &path, output).await?;
    if status == StatusCode::NOT_FOUND {
        let message = format!("the registry has no server `{}`", name.escape_debug());
        let hint = format!("look for its name with: {} search WORD", program_name());
        return Err(Failure::new(Exit::NotFound, "unknown_server", message).hint(hint));
    }
    let listed: Option<RegistryEntry> = serde_json::from_value(answer)
        .ok()
        .filter(|_| status == StatusCode::OK);
    let server = listed.ok_or_else(|| odd(registry, status))?.server;
    let set = pairs(&args.set, '=', "--set", "NAME=VALUE")?;
    let env = pairs(&args.env, '=', "--env", "KEY=VALUE")?;
    let headers = pairs(&args.header, ':', "--header", "\"NAME: VALUE\"")?;
    let given: BTreeMap<String, String> = set.into_iter().chain(env).chain(headers).collect();
    let offers = server.offers(&args.name, &given);
    let kinds: Vec<&str> = offers.iter().map(|offer| offer.kind.as_str()).collect();
    let wanted = args.via.as_deref();
    let chosen = offers
        .iter()
        .find(|offer| wanted.is_none_or(|wanted| offer.kind == wanted));
    let Some(offer) = chosen.cloned() else {
        let message = match wanted {
            Some(wanted) => {
                format!(
                    "`{}` is not offered via `{}`",
                    visible::line(&server.name),
                    wanted.escape_debug()
                )
            }
            None => format!(
                "`{}` is offered in no way that a gateway can use",
                visible::line(&server.name)
            ),
        };
        let hint = if kinds.is_empty() {
            server.kinds().join(", ")
        } else {
            kinds.join(", ")
        };
        return Err(Failure::new(Exit::Failed, "no_offer", message)
            .hint(format!("it is offered via: {hint}")));
    };
    if !offer.missing.is_empty() {
        let missing = visible::line(&offer.missing.join(", "));
        let example: Vec<String> = offer
            .missing
            .iter()
            .map(|name| format!("--set {name}=VALUE"))
            .collect();
        return Err(
            Failure::bad_argument(format!("this server needs values: {missing}"))
                .hint(visible::line(&example.join(" "))),
        );
    }
    for variable in &offer.to_set {
        output.message(&format!(
            "note: set {variable} where the gateway starts: the server needs it"
        ));
    }
    Ok(NewServer {
        prefix: args.prefix.clone(),
        ..offer.server
    })
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Asks a registry. Its URL may have a path.
async fn get(registry: &str, path: &str, output: Output) -> Result<(StatusCode, Value), Failure> {
    let remote = Remote::new(registry, None, ClientTls::of_machine())
        .map_err(|failure| failure.hint(format!("for example --registry {}", setup::REGISTRY)))?;
    let base = registry
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map_or("", |(_, path)| path);
    let base = base.trim_end_matches('/');
    let path = if base.is_empty() {
        path.to_owned()
    } else {
        format!("/{base}{path}")
    };
    let _spinner = output.spinner("asking the registry");
    let unreachable = |why: String| {
        let message = format!(
            "the registry at {} cannot be reached: {why}",
            visible::line(registry)
        );
        Failure::new(Exit::Failed, "registry_unreachable", message)
            .hint("is this machine online? Name another registry with --registry URL, or add the server by its command: portmoot add NAME -- COMMAND")
    };
    match timeout(WAIT, api::get_json(&remote, &path)).await {
        Ok(answer) => answer.map_err(|failure| unreachable(reason(&failure.message))),
        Err(_) => Err(unreachable(format!(
            "no answer within {} s",
            WAIT.as_secs()
        ))),
    }
}

/// The end of a message about a gateway that cannot be reached.
fn reason(message: &str) -> String {
    message
        .rsplit_once(": ")
        .map_or(message, |(_, reason)| reason)
        .to_owned()
}

fn odd(registry: &str, status: StatusCode) -> Failure {
    let message = format!(
        "{} does not answer as an MCP registry: status {status}",
        visible::line(registry)
    );
    Failure::new(Exit::Failed, "registry_foreign", message)
        .hint(format!("the public one is {}", setup::REGISTRY))
}
