//! The gateway's own authorization server as it is configured: `[login]`.

use std::time::Duration;

/// The id of the gateway's own console as a client, which no other client may have.
pub const CONSOLE_CLIENT: &str = "portmoot-console";

/// Time after which a person signs in to the console again, in milliseconds.
pub const CONSOLE_SESSION_MS: u64 = 12 * 3_600_000;
/// The name of the gateway itself among the places at which people sign in to its console. No issuer has it.
pub const OWN_PLACE: &str = "portmoot";

/// The path to which a place of this name leads people back.
#[must_use]
pub fn console_callback(place: &str) -> String {
    format!("/console/signed-in/{place}")
}

/// `[login]`, while it is enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginConfig {
    /// The clients that may ask for a sign-in.
    pub clients: Clients,
    /// Hosts whose clients are shown as verified, lower case.
    pub trusted_hosts: Vec<String>,
    /// Redirect URIs with schemes of applications that are accepted, byte for byte.
    pub private_redirects: Vec<String>,
    /// Time that an access token is valid.
    pub access: Duration,
    /// Time that a refresh token is valid without use.
    pub refresh: Duration,
    /// Time that a sign-in lasts, however often it is renewed.
    pub longest: Duration,
    /// Time that the refresh token before the newest one is answered with the newest one.
    pub grace: Duration,
    /// Whether a call for which an access token is not good has its client ask for a wider one.
    pub step_up: bool,
    /// Whether a participant may sign in with its token in place of a one-time code.
    pub paste_tokens: bool,
    /// Clients that the operator has registered.
    pub configured: Vec<ConfiguredClient>,
}

/// The clients that may ask for a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clients {
    /// All: configured ones, those that publish a document about themselves, those that register
    /// themselves.
    #[default]
    Any,
    /// Configured ones, and those whose document is on a trusted host.
    Trusted,
    /// Configured ones.
    Configured,
}

/// A client that the operator has registered: `[login.client.ID]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredClient {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its redirect URIs.
    pub redirect_uris: Vec<String>,
}

impl Default for LoginConfig {
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        const DAY: u64 = 86_400;
        Self {
            clients: Clients::Any,
            trusted_hosts: texts(&["claude.ai", "vscode.dev", "chatgpt.com"]),
            private_redirects: texts(&["cursor://anysphere.cursor-mcp/oauth/callback"]),
            access: Duration::from_secs(600),
            refresh: Duration::from_secs(30 * DAY),
            longest: Duration::from_secs(90 * DAY),
            grace: Duration::from_secs(30),
            step_up: false,
            paste_tokens: false,
            configured: Vec::new(),
        }
    }
}
