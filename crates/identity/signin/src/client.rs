//! Clients: configured ones, those that publish a document about themselves, and those that
//! registered themselves.

use auth::{SealKey, Sealer};
use identity::login::{Clients, ConfiguredClient, LoginConfig};
use json::visible;
use oauth::dialer::DialError;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::redirect;

/// Prefix of the id of a client that registered itself.
pub const CLIENT_PREFIX: &str = "pm_cl_";
/// The longest id of a client, in bytes: one that registered itself with the most and longest
/// redirect URIs has it.
pub const CLIENT_ID_BYTES_MAX: usize = 32 * 1024;
/// The longest name of a client, in characters. The rest is cut off.
pub const CLIENT_NAME_CHARS_MAX: usize = 64;

const PURPOSE: &str = "login-client";

/// Trust in a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientTrust {
    /// The operator has registered it.
    Configured,
    /// Its document is on a host that the operator trusts.
    Verified,
    /// Its document is on another host.
    Document,
    /// It has registered itself, and says of itself what it wants.
    Registered,
}

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its id, byte for byte.
    pub id: String,
    /// Its name, without characters that hide others; empty if it has none.
    pub name: String,
    /// Trust in the client.
    pub standing: ClientTrust,
    /// Its redirect URIs, all acceptable.
    pub redirect_uris: Vec<String>,
}

/// Result of a look-up by a client's id, before any document is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientLookup {
    /// The client is known.
    Found(Client),
    /// Its document has to be fetched from this URL, which is its id.
    Document(Url),
}

/// Why there is no such client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownClient {
    /// Not configured, not sealed by this gateway, no URL of a document.
    #[error("this gateway does not know the client")]
    Unknown,
    /// The operator accepts no such clients.
    #[error("the operator of this gateway accepts other clients only")]
    NotAccepted,
    /// Its document cannot be used.
    #[error("the client's document cannot be used: {0}")]
    Document(String),
    /// Its document cannot be fetched. Why is for operators: it may name addresses of the network
    /// that the gateway runs in.
    #[error("the client's document cannot be fetched")]
    Fetch(DialError),
}

impl UnknownClient {
    /// The whole reason, for the audit log.
    #[must_use]
    pub fn for_operators(&self) -> String {
        match self {
            Self::Fetch(why) => format!("{self}: {why}"),
            Self::Unknown | Self::NotAccepted | Self::Document(_) => self.to_string(),
        }
    }
}

/// Content of the id of a client that registered itself.
#[derive(Serialize, Deserialize)]
struct Sealed {
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "r")]
    redirect_uris: Vec<String>,
}

/// Makes and reads the ids of clients that register themselves. Nothing else is kept of them.
#[derive(Debug, Clone)]
pub struct ClientIds(Sealer);

impl ClientIds {
    /// With the key of the authorization server, so that ids are good for as long as the data
    /// directory.
    #[must_use]
    pub fn new(key: &SealKey) -> Self {
        Self(Sealer::new(key, None))
    }

    /// The id of a client with this name and these redirect URIs. `nonce` is 24 fresh random bytes.
    #[must_use]
    pub fn seal(&self, name: &str, redirect_uris: &[String], nonce: [u8; 24]) -> String {
        let sealed = Sealed {
            name: name.to_owned(),
            redirect_uris: redirect_uris.to_vec(),
        };
        let state = serde_json::to_vec(&sealed).unwrap_or_default();
        format!(
            "{CLIENT_PREFIX}{}",
            self.0.seal(PURPOSE, "", u64::MAX, nonce, &state)
        )
    }

    fn open(&self, id: &str) -> Option<Client> {
        let state = self
            .0
            .open(PURPOSE, "", 0, id.strip_prefix(CLIENT_PREFIX)?)
            .ok()?;
        let Sealed {
            name,
            redirect_uris,
        } = serde_json::from_slice(&state).ok()?;
        Some(Client {
            id: id.to_owned(),
            name,
            standing: ClientTrust::Registered,
            redirect_uris,
        })
    }
}

/// Looks up a client by its id.
///
/// # Errors
/// Why there is none.
pub fn look_up(
    id: &str,
    login: &LoginConfig,
    ids: &ClientIds,
) -> Result<ClientLookup, UnknownClient> {
    if id.len() > CLIENT_ID_BYTES_MAX {
        return Err(UnknownClient::Unknown);
    }
    if let Some(configured) = login.configured.iter().find(|one| one.id == id) {
        return Ok(ClientLookup::Found(of_config(configured)));
    }
    if let Some(mut client) = ids.open(id) {
        if login.clients != Clients::Any {
            return Err(UnknownClient::NotAccepted);
        }
        // The operator may have changed the list since.
        client
            .redirect_uris
            .retain(|uri| redirect::destination(uri, &login.private_redirects).is_ok());
        return Ok(ClientLookup::Found(client));
    }
    let url = document_url(id).ok_or(UnknownClient::Unknown)?;
    match login.clients {
        Clients::Any => Ok(ClientLookup::Document(url)),
        Clients::Trusted if is_trusted(&url, login) => Ok(ClientLookup::Document(url)),
        Clients::Trusted | Clients::Configured => Err(UnknownClient::NotAccepted),
    }
}

fn of_config(one: &ConfiguredClient) -> Client {
    let id = one.id.clone();
    let name = one.name.clone();
    Client {
        id,
        name,
        standing: ClientTrust::Configured,
        redirect_uris: one.redirect_uris.clone(),
    }
}

/// Whether a document is on a trusted host, on the port of https.
#[must_use]
pub fn is_trusted(url: &Url, login: &LoginConfig) -> bool {
    let host = url.host_str().unwrap_or_default();
    url.port().is_none() && login.trusted_hosts.iter().any(|known| known == host)
}

/// The URL of a client's document, if an id is one: https with a path, spelled as a parser spells
/// it, without credentials, query, fragment and dot segments
/// (draft-ietf-oauth-client-id-metadata-document-00, section 3).
#[must_use]
pub fn document_url(id: &str) -> Option<Url> {
    let url = oauth::dialer::parse_url(id).ok()?;
    let plain = url.scheme() == "https" && url.query().is_none() && url.path().len() > 1;
    (plain && url.as_str() == id).then_some(url)
}

/// A name for people: without hidden characters, on one line, cut.
#[must_use]
pub fn safe_name(name: &str) -> String {
    let shown = |one: &char| !visible::is_hidden(*one) && *one != '\u{fffd}';
    let kept: String = name
        .chars()
        .filter(shown)
        .take(CLIENT_NAME_CHARS_MAX)
        .collect();
    kept.trim().to_owned()
}

impl Client {
    /// The id, if people can read it.
    #[must_use]
    pub fn uri(&self) -> Option<&str> {
        match self.standing {
            ClientTrust::Configured | ClientTrust::Verified | ClientTrust::Document => {
                Some(&self.id)
            }
            ClientTrust::Registered => None,
        }
    }

    /// Name of the client for people.
    #[must_use]
    pub fn shown(&self) -> &str {
        match (self.name.as_str(), self.uri()) {
            ("", Some(uri)) => uri,
            ("", None) => "a client without a name",
            (name, _) => name,
        }
    }

    /// The redirect URI of a request: one that is registered, or the only one if the request names
    /// none and it is not on loopback.
    #[must_use]
    pub fn redirect_uri(&self, requested: Option<&str>) -> Option<String> {
        match (requested, self.redirect_uris.as_slice()) {
            (Some(requested), registered) => {
                let found = registered
                    .iter()
                    .any(|known| redirect::matches(known, requested));
                found.then(|| requested.to_owned())
            }
            (None, [only]) if !only.starts_with("http://") => Some(only.clone()),
            (None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> ClientIds {
        ClientIds::new(&[1; 32])
    }

    #[test]
    fn clients_are_found_by_what_their_ids_are() {
        let sealed = ids().seal(
            "Editor",
            &["http://127.0.0.1/cb".to_owned(), "vscode://x".to_owned()],
            [2; 24],
        );
        let foreign = ClientIds::new(&[9; 32]).seal("Editor", &[], [2; 24]);
        let desk = ConfiguredClient {
            id: "desk".into(),
            name: "Desk".into(),
            redirect_uris: vec!["http://127.0.0.1/callback".into()],
        };
        let login = |clients| LoginConfig {
            clients,
            configured: vec![desk.clone()],
            ..LoginConfig::default()
        };
        let (trusted, other) = (
            "https://claude.ai/oauth/metadata",
            "https://app.example/client.json",
        );
        use UnknownClient as U;
        for (clients, id, expect) in [
            (Clients::Any, "desk", Ok("Desk")),
            (Clients::Configured, "desk", Ok("Desk")),
            (Clients::Any, &sealed, Ok("Editor")),
            (Clients::Trusted, &sealed, Err(U::NotAccepted)),
            (Clients::Configured, &sealed, Err(U::NotAccepted)),
            (Clients::Any, &foreign, Err(U::Unknown)),
            (Clients::Any, trusted, Ok(trusted)),
            (Clients::Any, other, Ok(other)),
            (Clients::Trusted, trusted, Ok(trusted)),
            (Clients::Trusted, other, Err(U::NotAccepted)),
            (
                Clients::Trusted,
                "https://claude.ai:8443/x",
                Err(U::NotAccepted),
            ),
            (
                Clients::Trusted,
                "https://claude.ai.evil.example/x",
                Err(U::NotAccepted),
            ),
            (Clients::Configured, trusted, Err(U::NotAccepted)),
            (Clients::Any, "Desk", Err(U::Unknown)),
            (Clients::Any, "", Err(U::Unknown)),
        ] {
            let found = look_up(id, &login(clients), &ids()).map(|found| match found {
                ClientLookup::Found(client) => client.name,
                ClientLookup::Document(url) => url.to_string(),
            });
            assert_eq!(found, expect.map(str::to_owned), "{clients:?} {id}");
        }
        let Ok(ClientLookup::Found(client)) = look_up(&sealed, &login(Clients::Any), &ids()) else {
            panic!()
        };
        assert_eq!(
            client.redirect_uris,
            ["http://127.0.0.1/cb"],
            "a scheme that is not listed any more"
        );
    }

    #[test]
    fn a_document_is_at_a_plain_https_url_with_a_path() {
        for (id, is_url) in [
            ("https://app.example/client.json", true),
            ("https://app.example:8443/a/b", true),
            ("https://app.example/", false),
            ("https://app.example", false),
            ("http://app.example/c", false),
            ("https://app.example/c?x=1", false),
            ("https://app.example/c#x", false),
            ("https://a@app.example/c", false),
            ("https://app.example/a/../c", false),
            ("https://APP.example/c", false),
            ("https://app.example:443/c", false),
            ("https://app.example/ä", false),
            ("https://app.example/c ", false),
        ] {
            assert_eq!(document_url(id).is_some(), is_url, "{id}");
        }
    }

    #[test]
    fn a_request_without_redirect_uri_means_the_only_one() {
        let client = |uris: &[&str]| Client {
            id: "x".into(),
            name: String::new(),
            standing: ClientTrust::Registered,
            redirect_uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
        };
        let web = "https://app.example/cb";
        assert_eq!(client(&[web]).redirect_uri(None).as_deref(), Some(web));
        assert_eq!(
            client(&[web, "https://b.example/"]).redirect_uri(None),
            None
        );
        assert_eq!(client(&["http://127.0.0.1/"]).redirect_uri(None), None);
        assert!(
            client(&["http://127.0.0.1/"])
                .redirect_uri(Some("http://127.0.0.1:5/"))
                .is_some()
        );
        assert_eq!(
            client(&[web]).redirect_uri(Some("https://app.example/cb/")),
            None
        );
    }

    #[test]
    fn names_hide_nothing() {
        assert_eq!(safe_name(" Ed\u{202e}it\nor\u{200b} "), "Editor");
        assert_eq!(safe_name(&"x".repeat(100)).len(), CLIENT_NAME_CHARS_MAX);
    }
}
