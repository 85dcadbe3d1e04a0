//! The gateway, as its console needs it.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use auth::{PublicUrl, Sealer};
use oauth::person::{Awaited, SignInPlace};

/// Where the console runs, as it is configured now.
#[derive(Debug, Clone)]
pub struct ConsoleSettings {
    /// `[console] enabled`.
    pub enabled: Option<bool>,
    /// Milliseconds for which a proof of who a person is counts.
    pub proof_ms: u64,
    /// The address on which the gateway listens.
    pub listen: SocketAddr,
    /// Whether it speaks TLS there.
    pub has_tls: bool,
    /// Its address for clients outside.
    pub public_url: Option<PublicUrl>,
    /// Whether callers need a token.
    pub needs_token: bool,
    /// The places at which people sign in, beside the sign-in page.
    pub places: Vec<PlaceName>,
}

/// A place at which people sign in, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceName {
    /// Its name in addresses: letters, digits, `-` and `_`.
    pub name: String,
    /// Its name for people, after "sign in at".
    pub label: String,
}

/// The bearer of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenBearer {
    /// This participant.
    Participant(String),
    /// None that is known, for this reason.
    Unknown(String),
    /// Its issuer cannot be asked now.
    Unsure,
}

impl ConsoleSettings {
    /// Whether there is a console.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        let is_here = self.listen.ip().is_loopback() && self.public_url.is_none();
        self.enabled.unwrap_or(is_here)
    }

    /// The path prefix of the public URL.
    pub(crate) fn prefix(&self) -> &str {
        self.public_url.as_ref().map_or("", PublicUrl::prefix)
    }

    /// The name of a place for people.
    pub(crate) fn label<'s>(&'s self, place: &'s str) -> &'s str {
        let known = self.places.iter().find(|known| known.name == place);
        known.map_or(place, |known| &known.label)
    }

    /// The resource that tokens of the console are for: the main endpoint.
    pub(crate) fn resource(&self) -> String {
        let url = self.public_url.as_ref();
        url.map_or_else(String::new, |url| url.at("/mcp"))
    }
}

/// The gateway, as its console needs it.
pub trait ConsoleHome: Send + Sync + 'static {
    /// Where the console runs.
    fn settings(&self) -> ConsoleSettings;
    /// Seals cookies.
    fn sealer(&self) -> &Sealer;
    /// The participant of a token; without one the local user, while callers need none.
    fn participant(&self, bearer: Option<&str>) -> Option<String>;
    /// The bearer of a token, of whom the token's issuer is asked if it has to be; `from` is the address
    /// that shows it.
    fn bearer_of<'a>(
        &'a self,
        bearer: Option<&'a str>,
        from: Option<IpAddr>,
    ) -> Awaited<'a, TokenBearer>;
    /// The place of this name at which people sign in.
    fn place(&self, name: &str) -> Option<Arc<dyn SignInPlace>>;
    /// Now, in Unix milliseconds.
    fn now_ms(&self) -> u64;
    /// Ends when the gateway stops.
    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Records that a participant has signed in or out, or that a sign-in was refused.
    fn record(&self, sign_in: &ConsoleSignIn<'_>);
}

/// An act at the console that the audit log has.
#[derive(Debug, Clone, Copy)]
pub struct ConsoleSignIn<'r> {
    /// The participant, if it is known.
    pub participant: Option<&'r str>,
    /// The address of the browser.
    pub from: Option<IpAddr>,
    /// Whether it was refused.
    pub is_refused: bool,
    /// The act, in words.
    pub why: &'r str,
}
