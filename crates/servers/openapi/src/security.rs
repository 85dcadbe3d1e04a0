//! Credentials that an API asks for: what the operator configures for it.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::openapi::security::{ApiKey, SecurityScheme};

use crate::document::Document;
use crate::refs;

/// The most schemes of a description that are read.
const SCHEMES_MAX: usize = 16;

/// An entry of a server's configuration with which every request has a key: name and value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// In `headers`.
    Header(String, String),
    /// In `query`.
    Query(String, String),
}

/// Credential that an API asks for, by one of its security schemes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiCredential {
    /// A header with this name.
    Header(String),
    /// A parameter of the query with this name.
    Query(String),
    /// A cookie with this name.
    Cookie(String),
    /// `Authorization` with this scheme, such as `bearer`.
    Authorization(String),
    /// A token of an authorization server.
    OAuth,
    /// A client certificate.
    Certificate,
}

impl ApiCredential {
    /// The setting by which the operator gives the credential, in words.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Header(name) => format!("the header `{name}` (`headers`)"),
            Self::Query(name) => format!("the parameter `{name}` of the query (`query`)"),
            Self::Cookie(name) => format!("the cookie `{name}` (`headers`, `Cookie`)"),
            Self::Authorization(scheme) => {
                format!("the header `Authorization` with the scheme `{scheme}` (`headers`)")
            }
            Self::OAuth => "a token of its authorization server (`auth`, or `headers`)".to_owned(),
            Self::Certificate => "a client certificate (`client_cert` and `client_key`)".to_owned(),
        }
    }

    /// A key as the API asks for it, under the scheme's own name; `None` where it takes more than a
    /// key.
    #[must_use]
    pub fn sent(&self, key: &str) -> Option<Sent> {
        Some(match self {
            Self::Header(name) => Sent::Header(name.clone(), key.to_owned()),
            Self::Query(name) => Sent::Query(name.clone(), key.to_owned()),
            Self::Cookie(name) => Sent::Header("Cookie".to_owned(), format!("{name}={key}")),
            Self::Authorization(scheme) if scheme.eq_ignore_ascii_case("bearer") => {
                Sent::Header("Authorization".to_owned(), format!("Bearer {key}"))
            }
            Self::Authorization(_) | Self::OAuth | Self::Certificate => return None,
        })
    }
}

impl Document {
    /// Credentials that the API asks for, by its security schemes. Schemes that cannot be read are
    /// left out.
    #[must_use]
    pub fn credentials(&self) -> Vec<ApiCredential> {
        let schemes = self
            .root
            .pointer("/components/securitySchemes")
            .and_then(Value::as_object);
        let mut credentials = Vec::new();
        for scheme in schemes.into_iter().flat_map(Map::values).take(SCHEMES_MAX) {
            let Ok(scheme) = refs::object(&self.root, scheme) else {
                continue;
            };
            credentials.extend(credential(scheme));
        }
        credentials
    }
}

/// The credential of a security scheme; `None` if the scheme cannot be read.
fn credential(scheme: &Value) -> Option<ApiCredential> {
    // What flows of OAuth say is found with the server itself; incomplete ones are common.
    match scheme.get("type").and_then(Value::as_str)? {
        "oauth2" | "openIdConnect" => return Some(ApiCredential::OAuth),
        "mutualTLS" => return Some(ApiCredential::Certificate),
        _ => {}
    }
    // Names of schemes are read in letters of any case (RFC 9110, 11.1).
    if let Some(http) = scheme.get("scheme").and_then(Value::as_str) {
        return Some(ApiCredential::Authorization(shown(http)));
    }
    Some(match SecurityScheme::deserialize(scheme).ok()? {
        SecurityScheme::ApiKey(ApiKey::Header(key)) => ApiCredential::Header(shown(&key.name)),
        SecurityScheme::ApiKey(ApiKey::Query(key)) => ApiCredential::Query(shown(&key.name)),
        SecurityScheme::ApiKey(ApiKey::Cookie(key)) => ApiCredential::Cookie(shown(&key.name)),
        SecurityScheme::Http(_) => return None,
        SecurityScheme::OAuth2(_) | SecurityScheme::OpenIdConnect(_) => ApiCredential::OAuth,
        SecurityScheme::MutualTls { .. } => ApiCredential::Certificate,
    })
}

/// A name of a description as operators read it: one line, not too long.
fn shown(name: &str) -> String {
    let start: String = name.chars().take(64).collect();
    start.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemes_say_what_is_configured() {
        let text = json!({ "openapi": "3.1.0", "paths": {}, "components": { "securitySchemes": {
            "a": { "type": "apiKey", "in": "header", "name": "X-Key" }, "b": { "type": "apiKey", "in": "query", "name": "key" },
            "c": { "type": "apiKey", "in": "cookie", "name": "sid" }, "d": { "type": "http", "scheme": "Bearer" },
            "e": { "type": "oauth2", "flows": {} }, "f": { "$ref": "#/components/securitySchemes/a" },
            "g": { "type": "mutualTLS" }, "h": { "type": "else" }, "i": 7, "j": { "$ref": "https://other.test/" } } } });
        let document = Document::read(text.to_string().as_bytes()).unwrap();
        let header = ApiCredential::Header("X-Key".to_owned());
        let expected = vec![
            header.clone(),
            ApiCredential::Query("key".to_owned()),
            ApiCredential::Cookie("sid".to_owned()),
            ApiCredential::Authorization("Bearer".to_owned()),
            ApiCredential::OAuth,
            header,
            ApiCredential::Certificate,
        ];
        assert_eq!(document.credentials(), expected);
        let words: Vec<String> = expected.iter().map(ApiCredential::advice).collect();
        let sent: Vec<_> = expected.iter().map(|one| one.sent("${K}")).collect();
        let header =
            |name: &str, value: &str| Some(Sent::Header(name.to_owned(), value.to_owned()));
        let key = header("X-Key", "${K}");
        let query = Some(Sent::Query("key".to_owned(), "${K}".to_owned()));
        let bearer = header("Authorization", "Bearer ${K}");
        assert_eq!(
            sent,
            [
                key.clone(),
                query,
                header("Cookie", "sid=${K}"),
                bearer,
                None,
                key,
                None
            ]
        );
        assert!(
            words[0].contains("X-Key")
                && words[1].contains("`query`")
                && words[3].contains("Bearer")
        );
    }
}
