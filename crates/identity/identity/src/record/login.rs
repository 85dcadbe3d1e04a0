//! Records of the gateway's own authorization server: families of refresh tokens, and consents.

use auth::TokenHash;
use serde::{Deserialize, Serialize};

use crate::login::CONSOLE_CLIENT;

/// A family of refresh tokens: what one consent of a participant gave to one client. No record
/// holds a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// Its id, 32 hexadecimal digits.
    pub id: String,
    /// The participant as which the client acts.
    pub participant: String,
    /// SHA-256 of the client's id, 64 hexadecimal digits.
    pub client: String,
    /// The name of the client, made safe for people.
    pub client_name: String,
    /// The client's id, if it is the URL of its document or a configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    /// The URL of the endpoint for which its access tokens are.
    pub resource: String,
    /// The scopes of its access tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// SHA-256 of the newest refresh token, 64 hexadecimal digits.
    pub sha256: String,
    /// SHA-256 of the refresh token before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Time of the consent in Unix milliseconds.
    pub began_ms: u64,
    /// Time of the newest refresh token in Unix milliseconds.
    pub renewed_ms: u64,
    /// Time at which the newest refresh token expires, in Unix milliseconds.
    pub expires_ms: u64,
    /// Time at which the family ends however often it is renewed, in Unix milliseconds.
    pub ends_ms: u64,
}

impl Family {
    /// Whether its client opens anything with its tokens. The gateway's own console does not: when its
    /// sign-ins end, other clients of the participant go on.
    #[must_use]
    pub fn opens(&self) -> bool {
        self.client != client_digest(CONSOLE_CLIENT)
    }
}

/// SHA-256 of the id of a client, as records have it: 64 hexadecimal digits.
#[must_use]
pub fn client_digest(id: &str) -> String {
    TokenHash::of(id).to_string()
}

/// The next refresh token of a family. The one before stays known, so that its second use is
/// noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewedFamily {
    /// Id of the family.
    pub id: String,
    /// SHA-256 of the token, 64 hexadecimal digits.
    pub sha256: String,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
    /// Time at which the token expires, in Unix milliseconds.
    pub expires_ms: u64,
}

/// A participant's consent: a client may act as the participant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// The participant.
    pub participant: String,
    /// SHA-256 of the client's id, 64 hexadecimal digits.
    pub client: String,
    /// The name of the client, made safe for people.
    pub client_name: String,
    /// URI to which the client is sent back.
    pub redirect_uri: String,
    /// The URL of the endpoint.
    pub resource: String,
    /// The scopes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Whether the participant wants not to be asked again in the same browser.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remembered: bool,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_ins_of_the_console_open_nothing_and_those_of_clients_do() {
        let family = |client: &str| Family {
            id: "f".to_owned(),
            participant: "ann".to_owned(),
            client: client_digest(client),
            client_name: client.to_owned(),
            client_uri: None,
            resource: String::new(),
            scopes: Vec::new(),
            sha256: String::new(),
            before: None,
            began_ms: 0,
            renewed_ms: 0,
            expires_ms: 0,
            ends_ms: 0,
        };
        assert!(!family(CONSOLE_CLIENT).opens());
        assert!(family("https://client.example/c").opens());
    }
}
