//! Authorization requests: parameters and a client in, a request to put before a person or an error
//! out.
//!
//! Sources: OAuth 2.1 draft 13, section 4.1; RFC 7636; RFC 8707; RFC 9207.

use auth::PublicUrl;
use identity::sign_ins::{resource_of_topic, topic_of_resource};
use serde::{Deserialize, Serialize};

use crate::client::{Client, ClientTrust};
use crate::params::FormParams;
use crate::redirect::with_query;

/// The longest `state`, in bytes.
pub const STATE_BYTES_MAX: usize = 8 * 1024;
/// The characters of a challenge by the method `S256`: 256 bits in URL-safe base64.
const CHALLENGE_CHARS: usize = 43;

/// A request that may be put before a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRequest {
    /// The client's id.
    pub client_id: String,
    /// The client's name, made safe.
    pub client_name: String,
    /// Trust in the client.
    pub standing: ClientTrust,
    /// URI to which the answer goes, as it was requested or as the only registered one.
    pub redirect_uri: String,
    /// State that the client wants back.
    pub state: Option<String>,
    /// The challenge by the method `S256`.
    pub challenge: String,
    /// The resource, spelled in one way.
    pub resource: String,
    /// The scopes that will be granted.
    pub scopes: Vec<String>,
}

/// Address and scopes of the authorization server, by which requests are read.
#[derive(Debug, Clone, Copy)]
pub struct RequestTerms<'t> {
    /// Its address, which is its issuer.
    pub public_url: &'t PublicUrl,
    /// All scopes.
    pub scopes: &'t [&'t str],
    /// The scopes that are granted when none are asked for.
    pub baseline: &'t [&'t str],
}

/// Why a request is not put before a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFault {
    /// The answer cannot go to the client: a page says why.
    Page(String),
    /// The answer goes to the client.
    Client(ClientFault),
}

/// An error that the client receives (RFC 6749, section 4.1.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFault {
    /// The code.
    pub code: &'static str,
    /// A sentence of ASCII without quotes.
    pub description: &'static str,
    /// URI to which the answer goes.
    pub redirect_uri: String,
    /// State that the client wants back.
    pub state: Option<String>,
}

/// Where the answer to a request goes.
struct ReturnPath {
    redirect_uri: String,
    state: Option<String>,
}

/// What a request asks for.
struct AskedFor {
    challenge: String,
    resource: String,
}

/// A parameter for which the client gets an error.
struct ParamFault {
    code: &'static str,
    description: &'static str,
}

/// Reads a request of a client that is known.
///
/// # Errors
/// Where the error goes, and what it is.
pub fn read(
    params: &FormParams,
    client: &Client,
    terms: &RequestTerms<'_>,
) -> Result<AuthRequest, RequestFault> {
    // Before anything else: the answer goes nowhere unless the client and where it wants the answer
    // are clear.
    let back = return_path(params, client).map_err(RequestFault::Page)?;
    let ReturnPath {
        redirect_uri,
        state,
    } = back;
    match asked_for(params, terms.public_url) {
        Ok(asked) => Ok(AuthRequest {
            client_id: client.id.clone(),
            client_name: client.shown().to_owned(),
            standing: client.standing,
            redirect_uri,
            state,
            challenge: asked.challenge,
            resource: asked.resource,
            scopes: granted(params.get("scope"), terms),
        }),
        Err(fault) => Err(RequestFault::Client(ClientFault {
            code: fault.code,
            description: fault.description,
            redirect_uri,
            state,
        })),
    }
}

/// Where the answer goes; else why that is not clear.
fn return_path(params: &FormParams, client: &Client) -> Result<ReturnPath, String> {
    if params
        .repeated()
        .is_some_and(|name| ["client_id", "redirect_uri", "state"].contains(&name))
    {
        return Err("The request has a parameter twice.".to_owned());
    }
    let redirect_uri = client.redirect_uri(params.get("redirect_uri")).ok_or_else(|| {
        let why = match params.get("redirect_uri") {
            Some(_) => {
                "The address to which the client wants to be sent back is not among its registered ones."
            }
            None => "The request does not say where to send you back.",
        };
        why.to_owned()
    })?;
    let state = params.get("state");
    if state.is_some_and(|state| state.len() > STATE_BYTES_MAX) {
        return Err(format!("`state` is longer than {STATE_BYTES_MAX} bytes."));
    }
    Ok(ReturnPath {
        redirect_uri,
        state: state.map(str::to_owned),
    })
}

fn asked_for(params: &FormParams, public_url: &PublicUrl) -> Result<AskedFor, ParamFault> {
    if params.repeated().is_some() {
        return Err(invalid("a parameter is there twice"));
    }
    if params.get("request").is_some() || params.get("request_uri").is_some() {
        return Err(ParamFault {
            code: "request_not_supported",
            description: "requests are parameters here",
        });
    }
    match params.get("response_type") {
        Some("code") => {}
        Some(_) => {
            return Err(ParamFault {
                code: "unsupported_response_type",
                description: "response_type must be code",
            });
        }
        None => return Err(invalid("response_type is missing")),
    }
    let mode = params.get("response_mode");
    if mode.is_some_and(|mode| mode != "query") {
        return Err(invalid("response_mode must be query"));
    }
    let challenge = challenge(params)?;
    let resource = resource(params, public_url).ok_or(ParamFault {
        code: "invalid_target",
        description: "resource is no endpoint of this gateway",
    })?;
    Ok(AskedFor {
        challenge,
        resource,
    })
}

/// The challenge of a request, which must be one by the method `S256`.
fn challenge(params: &FormParams) -> Result<String, ParamFault> {
    let Some(challenge) = params.get("code_challenge") else {
        return Err(invalid("code_challenge is missing: PKCE is required"));
    };
    // Without a method it would be `plain` (RFC 7636, section 4.3).
    if params.get("code_challenge_method") != Some("S256") {
        return Err(invalid("code_challenge_method must be S256"));
    }
    if !is_challenge(challenge) {
        return Err(invalid("code_challenge is no SHA-256"));
    }
    Ok(challenge.to_owned())
}

fn invalid(description: &'static str) -> ParamFault {
    ParamFault {
        code: "invalid_request",
        description,
    }
}

fn is_challenge(text: &str) -> bool {
    text.len() == CHALLENGE_CHARS
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// The only resource of a request: that of the main endpoint if it names none, as clients of
/// 2025-03-26 do.
pub(crate) fn resource(params: &FormParams, public_url: &PublicUrl) -> Option<String> {
    let mut topics = params
        .all("resource")
        .map(|resource| topic_of_resource(public_url, resource));
    let first = topics.next().unwrap_or(Some("main"))?;
    topics
        .all(|other| other == Some(first))
        .then(|| resource_of_topic(public_url, first))
}

/// The scopes that are granted of those that are asked for: the known ones, or the baseline if none
/// is.
pub(crate) fn granted(asked: Option<&str>, terms: &RequestTerms<'_>) -> Vec<String> {
    let asked: Vec<&str> = asked.unwrap_or_default().split_ascii_whitespace().collect();
    let known: Vec<String> = terms
        .scopes
        .iter()
        .filter(|scope| asked.contains(*scope))
        .map(|scope| (*scope).to_owned())
        .collect();
    if known.is_empty() {
        terms
            .baseline
            .iter()
            .map(|scope| (*scope).to_owned())
            .collect()
    } else {
        known
    }
}

/// Whether an error may go to the client without a person's consent. A client that anybody can
/// register must not make the gateway redirect to wherever it likes (RFC 9700, section 4.11.2); a
/// program on the person's own computer receives it.
#[must_use]
pub fn may_redirect_error(standing: ClientTrust, is_local: bool) -> bool {
    match standing {
        ClientTrust::Configured | ClientTrust::Verified => true,
        ClientTrust::Document | ClientTrust::Registered => is_local,
    }
}

impl ClientFault {
    /// Address of the redirect with this error.
    #[must_use]
    pub fn location(&self, issuer: &str) -> String {
        error_location(
            &self.redirect_uri,
            self.state.as_deref(),
            issuer,
            (self.code, self.description),
        )
    }
}

impl AuthRequest {
    /// Address of the redirect with a code.
    #[must_use]
    pub fn code_location(&self, code: &str, issuer: &str) -> String {
        let mut parameters = vec![("code", code)];
        parameters.extend(self.state.as_deref().map(|state| ("state", state)));
        parameters.push(("iss", issuer));
        with_query(&self.redirect_uri, &parameters)
    }

    /// Address of the redirect with an error.
    #[must_use]
    pub fn error_location(&self, issuer: &str, error: (&str, &str)) -> String {
        error_location(&self.redirect_uri, self.state.as_deref(), issuer, error)
    }
}

fn error_location(
    uri: &str,
    state: Option<&str>,
    issuer: &str,
    (code, description): (&str, &str),
) -> String {
    let mut parameters = vec![("error", code), ("error_description", description)];
    parameters.extend(state.map(|state| ("state", state)));
    parameters.push(("iss", issuer));
    with_query(uri, &parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    const BASE: &str = "response_type=code&redirect_uri=http://127.0.0.1:5/cb&state=s%26t&code_challenge_method=S256";

    fn check(query: &str) -> Result<AuthRequest, RequestFault> {
        let client = Client {
            id: "desk".into(),
            name: "Desk".into(),
            standing: ClientTrust::Configured,
            redirect_uris: vec!["http://127.0.0.1/cb".into()],
        };
        let public_url = PublicUrl::parse("https://gw.example").unwrap();
        let scopes = ["mcp:read", "mcp:write"];
        let baseline = ["mcp:read"];
        let terms = RequestTerms {
            public_url: &public_url,
            scopes: &scopes,
            baseline: &baseline,
        };
        read(
            &FormParams::parse(query.as_bytes()).unwrap(),
            &client,
            &terms,
        )
    }

    #[test]
    fn a_good_request_is_read() {
        for (more, resource, scopes) in [
            ("", "https://gw.example/mcp", &["mcp:read"][..]),
            (
                "&scope=mcp:write+mcp:read",
                "https://gw.example/mcp",
                &["mcp:read", "mcp:write"],
            ),
            ("&scope=mcp:write", "https://gw.example/mcp", &["mcp:write"]),
            (
                "&scope=offline_access+unknown",
                "https://gw.example/mcp",
                &["mcp:read"],
            ),
            (
                "&resource=https://gw.example/mcp/",
                "https://gw.example/mcp",
                &["mcp:read"],
            ),
            (
                "&resource=https://gw.example",
                "https://gw.example/mcp",
                &["mcp:read"],
            ),
            (
                "&resource=https://gw.example/mcp/ops",
                "https://gw.example/mcp/ops",
                &["mcp:read"],
            ),
            (
                "&resource=https://gw.example/mcp&resource=https://gw.example/mcp/main",
                "https://gw.example/mcp",
                &["mcp:read"],
            ),
        ] {
            let request = check(&format!("{BASE}&code_challenge={CHALLENGE}{more}")).unwrap();
            assert_eq!(
                (request.resource.as_str(), &request.scopes[..]),
                (resource, &scopes.map_owned()[..])
            );
            assert_eq!(request.state.as_deref(), Some("s&t"));
            let location = request.code_location("c", "https://gw.example");
            let expect = "http://127.0.0.1:5/cb?code=c&state=s%26t&iss=https%3A%2F%2Fgw.example";
            assert_eq!(location, expect);
        }
    }

    trait Owned {
        fn map_owned(&self) -> Vec<String>;
    }

    impl Owned for [&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }

    #[test]
    fn errors_go_to_the_client_once_it_is_clear_where_that_is() {
        let good = format!("{BASE}&code_challenge={CHALLENGE}");
        for (query, expect) in [
            (good.replace("127.0.0.1:5/cb", "127.0.0.1:5/cc"), None),
            (good.replace("127.0.0.1:5/cb", "evil.example/cb"), None),
            (good.replace("redirect_uri", "redirect"), None),
            (format!("{good}&redirect_uri=http://127.0.0.1:5/cb"), None),
            (format!("{good}&state=2"), None),
            (
                good.replace("s%26t", &"s".repeat(STATE_BYTES_MAX + 1)),
                None,
            ),
            (format!("{good}&scope=a&scope=b"), Some("invalid_request")),
            (format!("{good}&request=x"), Some("request_not_supported")),
            (
                good.replace("=code&", "=token&"),
                Some("unsupported_response_type"),
            ),
            (good.replace("response_type", "x"), Some("invalid_request")),
            (
                format!("{good}&response_mode=fragment"),
                Some("invalid_request"),
            ),
            (BASE.to_owned(), Some("invalid_request")),
            (good.replace("S256", "plain"), Some("invalid_request")),
            (
                good.replace("&code_challenge_method=S256", ""),
                Some("invalid_request"),
            ),
            (
                format!("{BASE}&code_challenge=short"),
                Some("invalid_request"),
            ),
            (
                format!("{good}&resource=https://other.example/mcp"),
                Some("invalid_target"),
            ),
            (
                format!(
                    "{good}&resource=https://gw.example/mcp&resource=https://gw.example/mcp/ops"
                ),
                Some("invalid_target"),
            ),
        ] {
            match (check(&query), expect) {
                (Err(RequestFault::Page(_)), None) => {}
                (Err(RequestFault::Client(fault)), Some(code)) => {
                    assert_eq!(fault.code, code, "{query}");
                    let location = fault.location("https://gw.example");
                    assert!(
                        location.starts_with("http://127.0.0.1:5/cb?error="),
                        "{location}"
                    );
                    assert!(
                        location.ends_with("&state=s%26t&iss=https%3A%2F%2Fgw.example"),
                        "{location}"
                    );
                }
                (found, expect) => panic!("{query}: {found:?}, not {expect:?}"),
            }
        }
    }

    #[test]
    fn only_known_clients_make_the_gateway_redirect_without_consent() {
        for (standing, is_local, may) in [
            (ClientTrust::Configured, false, true),
            (ClientTrust::Verified, false, true),
            (ClientTrust::Document, false, false),
            (ClientTrust::Registered, false, false),
            (ClientTrust::Document, true, true),
            (ClientTrust::Registered, true, true),
        ] {
            assert_eq!(
                may_redirect_error(standing, is_local),
                may,
                "{standing:?} {is_local}"
            );
        }
    }
}
