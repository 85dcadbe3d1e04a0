//! Command `auth probe`: what a client finds that comes to an MCP server without a token, step by
//! step.

use bytes::Bytes;
use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use json::visible;
use oauth::dialer::{AllowedAddresses, Dialer, FetchRequest, Fetched, Redirects, parse_url};
use oauth::issuer::well_known_urls;
use serde_json::{Value, json};
use tls::ClientTls;
use url::{Position, Url};

use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"portmoot","version":"0"}}}"#;

/// Finding of one step.
struct Found {
    what: String,
    is_good: bool,
    text: String,
}

/// The steps so far.
struct Probe {
    dialer: Dialer,
    reach: AllowedAddresses,
    found: Vec<Found>,
}

pub(super) async fn run(text: &str, output: Output) -> Result<Exit, Failure> {
    let url =
        parse_url(text).map_err(|error| Failure::new(Exit::Usage, "bad_url", error.to_string()))?;
    let dialer = Dialer::new(ClientTls::of_machine());
    let mut probe = Probe {
        dialer,
        reach: AllowedAddresses::of(&url, &[]),
        found: Vec::new(),
    };
    probe.server(text, &url).await;
    let is_good = probe.found.iter().all(|found| found.is_good);
    if output.json {
        let step =
            |found: &Found| json!({ "what": found.what, "ok": found.is_good, "found": found.text });
        let steps: Vec<Value> = probe.found.iter().map(step).collect();
        output.result_json(&json!({ "ok": is_good, "steps": steps }));
    } else {
        for Found {
            what,
            is_good,
            text,
        } in &probe.found
        {
            let mark = if *is_good { "yes" } else { "no " };
            output.result(&format!("{mark}  {what}: {}", visible::lines(text)));
        }
    }
    Ok(if is_good { Exit::Ok } else { Exit::Failed })
}

impl Probe {
    fn note(&mut self, what: impl Into<String>, is_good: bool, text: impl Into<String>) -> bool {
        self.found.push(Found {
            what: what.into(),
            is_good,
            text: text.into(),
        });
        is_good
    }

    async fn server(&mut self, text: &str, url: &Url) {
        let post = FetchRequest::post(text, "application/json", Bytes::from_static(INITIALIZE));
        let accept = http::HeaderValue::from_static("application/json, text/event-stream");
        let asked = match post {
            Ok(post) => {
                self.dialer
                    .fetch(post.header(http::header::ACCEPT, accept), &self.reach)
                    .await
            }
            Err(error) => Err(error),
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) => {
                self.note("the server answers", false, error.to_string());
                return;
            }
        };
        if answer.status != StatusCode::UNAUTHORIZED {
            let mut text = format!("it answers without a token: {}", answer.status);
            if answer.status == StatusCode::NOT_FOUND && url.path().len() <= 1 {
                text += &format!("; did you mean {}/mcp?", &url[..Position::BeforePath]);
            }
            self.note(
                "the server asks for a token",
                answer.status.is_success(),
                text,
            );
            return;
        }
        let challenge = answer
            .headers
            .get(WWW_AUTHENTICATE)
            .and_then(|value| value.to_str().ok());
        let challenge = challenge.unwrap_or_default().to_owned();
        self.note(
            "the server asks for a token",
            !challenge.is_empty(),
            format!("401, {challenge}"),
        );
        let origin = &url[..Position::BeforePath];
        let path = url.path().trim_end_matches('/');
        let well_known = format!("{origin}/.well-known/oauth-protected-resource");
        let named = parameter(&challenge, "resource_metadata").map(str::to_owned);
        // Some clients forget what the challenge named, and look below the well-known address.
        let mut places: Vec<String> = named
            .into_iter()
            .chain([format!("{well_known}{path}")])
            .collect();
        places.dedup();
        let mut documents = Vec::new();
        for place in places {
            documents.extend(self.resource(text, &place).await);
        }
        if documents.is_empty() {
            documents.extend(self.resource(text, &well_known).await);
        }
        let servers = documents
            .iter()
            .find_map(|document| document.get("authorization_servers"));
        let servers = servers
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if servers.is_empty() {
            self.note("it names an authorization server", false, "none");
        }
        for server in servers.iter().filter_map(Value::as_str) {
            self.authorization_server(server).await;
        }
    }

    /// The metadata of the resource at an address, which must be about the address that was typed.
    async fn resource(&mut self, typed: &str, place: &str) -> Option<Value> {
        let document = self.document("metadata of the resource", place).await?;
        let resource = document
            .get("resource")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let found = format!("{resource} for {typed}");
        self.note(
            "its `resource` is the address that was typed",
            resource == typed,
            found,
        );
        Some(document)
    }

    async fn authorization_server(&mut self, issuer: &str) {
        let url = match parse_url(issuer) {
            Ok(url) => url,
            Err(error) => {
                self.note("authorization server", false, error.to_string());
                return;
            }
        };
        for place in well_known_urls(&url) {
            let Ok(fetched) = self.fetch(&place).await else {
                continue;
            };
            let Some(document) = object(&fetched) else {
                continue;
            };
            self.note("metadata of the authorization server", true, place.clone());
            let text = |name: &str| {
                document
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let own = text("issuer");
            self.note(
                "its `issuer` is the one that was named",
                own == issuer,
                format!("{own} for {issuer}"),
            );
            for name in ["authorization_endpoint", "token_endpoint"] {
                let found = text(name);
                self.note(name, !found.is_empty(), found);
            }
            let lists = |name: &str, wanted: &str| {
                let all = document.get(name).and_then(Value::as_array);
                all.is_some_and(|all| all.iter().any(|one| one == wanted))
            };
            let has_s256 = lists("code_challenge_methods_supported", "S256");
            self.note(
                "PKCE with S256",
                has_s256,
                if has_s256 {
                    "listed"
                } else {
                    "not listed: MCP clients refuse it"
                },
            );
            let by_document =
                document.get("client_id_metadata_document_supported") == Some(&Value::Bool(true));
            let dynamic = !text("registration_endpoint").is_empty();
            let ways = match (by_document, dynamic) {
                (true, true) => "by metadata document, and dynamically",
                (true, false) => "by metadata document",
                (false, true) => "dynamically",
                (false, false) => "only by the operator: clients need a configured `client_id`",
            };
            self.note("clients register", true, ways);
            return;
        }
        self.note(
            "metadata of the authorization server",
            false,
            format!("{issuer} has none"),
        );
    }

    async fn document(&mut self, what: &str, place: &str) -> Option<Value> {
        let fetched = match self.fetch(place).await {
            Ok(fetched) => fetched,
            Err(error) => {
                self.note(what, false, format!("{place}: {error}"));
                return None;
            }
        };
        let document = object(&fetched);
        let text = match &document {
            Some(_) => place.to_owned(),
            None => format!("{place}: {}, no JSON object", fetched.status),
        };
        self.note(what, document.is_some(), text);
        document
    }

    async fn fetch(&self, place: &str) -> Result<Fetched, oauth::dialer::DialError> {
        let fetch = FetchRequest::get(place)?.redirects(Redirects::SameOrigin);
        self.dialer.fetch(fetch, &self.reach).await
    }
}

fn object(fetched: &Fetched) -> Option<Value> {
    let is_ok = fetched.status == StatusCode::OK;
    is_ok
        .then(|| serde_json::from_slice(&fetched.body).ok())
        .flatten()
        .filter(Value::is_object)
}

/// The value of a parameter of a challenge (RFC 9110, section 11.2), which is a quoted text here.
fn parameter<'c>(challenge: &'c str, name: &str) -> Option<&'c str> {
    let (_, rest) = challenge.split_once(&format!("{name}=\""))?;
    rest.split('"').next()
}
