//! The OpenAPI document of the API.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::{ServerBuilder, ServerVariableBuilder};
use utoipa::openapi::{Components, RefOr, Response};
use utoipa::{Modify, OpenApi};

use crate::{
    accounts, audit, audit_calls, brakes, calls, configured, console_codes, health, logins,
    messages, metrics, participants, pins, plans, proposal_list, proposals, rights, rule_adding,
    rule_offers, rules, servers, switches, tokens, tools,
};

/// The name of the security scheme.
const BEARER: &str = "bearer";
/// Pages that answer without a token also where callers need one. Of them `/readyz` says more to a
/// caller with one.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];
const TOKEN: &str = "A token of `portmoot token new`, of the gateway's own sign-in, or of a configured issuer; or the operator key, \
                     which is the file `operator.key` in the gateway's data directory. Without participants and tokens callers need \
                     none, except for changes of the configured servers and for the first token, which need the operator key.";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Portmoot",
        description = "The API of a running gateway, as the command `portmoot` uses it."
    ),
    modifiers(&Rest),
    paths(
        health::healthz,
        health::readyz,
        metrics::metrics,
        audit::entries,
        audit::check,
        audit_calls::calls,
        audit_calls::timeline,
        servers::servers,
        servers::server,
        servers::logs,
        configured::put,
        configured::remove,
        switches::restart,
        switches::disable,
        switches::enable,
        accounts::accounts,
        accounts::callback,
        accounts::begin,
        accounts::complete,
        accounts::begin_device,
        accounts::poll_device,
        accounts::logout,
        accounts::enter_key,
        accounts::connect_code,
        console_codes::console_code,
        pins::pins,
        pins::of_server,
        pins::approve,
        pins::reset,
        tools::tools,
        tools::tool,
        calls::call,
        calls::kept_result,
        tokens::tokens,
        tokens::issue,
        tokens::rotate,
        tokens::revoke,
        logins::one_time_code,
        logins::clients,
        logins::revoke_client,
        logins::consents,
        logins::withdraw_consent,
        participants::participants,
        rights::can,
        participants::grant,
        participants::clear,
        participants::promote,
        plans::propose,
        proposal_list::proposals,
        proposals::proposal,
        proposals::approve,
        proposals::reject,
        proposals::claim,
        proposals::extend,
        proposals::amend,
        proposals::withdraw,
        messages::send,
        brakes::pause,
        brakes::resume,
        rules::rules,
        rule_adding::add,
        rule_adding::like,
        rules::replay,
        rules::explain,
        rule_offers::offers,
        rule_offers::accept,
        rule_offers::dismiss,
        rule_offers::end,
    )
)]
struct Document;

/// The OpenAPI document, byte for byte as in `docs/openapi.json`.
pub fn document() -> String {
    // The document has only strings as keys, which JSON can always hold.
    let mut text = Document::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// Writer of the document's other parts: the address, the token, and a description of each
/// response.
struct Rest;

impl Modify for Rest {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let gateway = ServerVariableBuilder::new()
            .default_value("http://127.0.0.1:7070")
            .description(Some("The address of the gateway."))
            .build();
        let server = ServerBuilder::new()
            .url("{gateway}")
            .parameter("gateway", gateway)
            .build();
        document.servers = Some(vec![server]);
        let token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(TOKEN))
            .build();
        let components = document.components.get_or_insert_with(Components::default);
        components.add_security_scheme(BEARER, SecurityScheme::Http(token));
        for (path, item) in &mut document.paths.paths {
            let is_open = OPEN.contains(&path.as_str());
            for (method, operation) in operations(item) {
                operation.operation_id = Some(operation_id(method, path));
                operation.security = Some(requirements(is_open));
                for (status, response) in &mut operation.responses.responses {
                    if let RefOr::T(response) = response {
                        describe(status, response);
                    }
                }
            }
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("get", &mut item.get),
        ("put", &mut item.put),
        ("post", &mut item.post),
        ("delete", &mut item.delete),
    ];
    all.into_iter()
        .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// The name of an operation's function in a generated client, such as `post_tools_by_name_call`. It
/// depends on nothing but the operation.
fn operation_id(method: &str, path: &str) -> String {
    let words = path
        .trim_start_matches("/api/v1")
        .split('/')
        .filter(|word| !word.is_empty());
    words.fold(method.to_owned(), |id, word| match word.strip_prefix('{') {
        Some(parameter) => format!("{id}_by_{}", parameter.trim_end_matches('}')),
        None => format!("{id}_{word}").replace('-', "_"),
    })
}

fn requirements(is_open: bool) -> Vec<SecurityRequirement> {
    let bearer = SecurityRequirement::new(BEARER, Vec::<String>::new());
    if is_open {
        vec![SecurityRequirement::default(), bearer]
    } else {
        vec![bearer]
    }
}

/// Gives a response that has no description that of its status.
fn describe(status: &str, response: &mut Response) {
    if !response.description.is_empty() {
        return;
    }
    let description = match status {
        "200" => "Done.",
        "201" => "Created.",
        "202" => "Not done yet.",
        "204" => "Done. There is no body.",
        "4XX" => "Refused: the request is wrong, or the caller may not do this. The body says why.",
        "503" => "Not available now. The body says why.",
        "5XX" => "Failed: the gateway or a server could not do it. The body says why.",
        _ => "The body says what happened.",
    };
    description.clone_into(&mut response.description);
}
