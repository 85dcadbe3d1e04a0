//! Credentials that an API asks for: what the operator configures for it.

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::security::{ApiKey, SecurityScheme};

use crate::document::Document;
use crate::refs;

/// The most schemes of a description that are read.
const SCHEMES_MAX: usize = 16;

/// What an API asks for, by one of its security schemes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
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

impl Credential {
    /// What the operator configures, in words.
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
}

/// What the security schemes of a description ask for. Those that cannot be read are left out.
pub(crate) fn credentials(document: &Document) -> Vec<Credential> {
    let schemes = document.root.pointer("/components/securitySchemes").and_then(Value::as_object);
    let read = schemes.into_iter().flatten().take(SCHEMES_MAX).filter_map(|(_, scheme)| {
        let scheme = refs::object(&document.root, scheme).ok()?;
        credential(scheme)
    });
    read.collect()
}

fn credential(scheme: &Value) -> Option<Credential> {
    // What flows of OAuth say is found with the server itself; incomplete ones are common.
    match scheme.get("type").and_then(Value::as_str)? {
        "oauth2" | "openIdConnect" => return Some(Credential::OAuth),
        "mutualTLS" => return Some(Credential::Certificate),
        _ => {}
    }
    let http = scheme.get("scheme").and_then(Value::as_str);
    let shown = |name: &str| name.chars().take(64).collect::<String>().escape_debug().to_string();
    Some(match SecurityScheme::deserialize(scheme).ok()? {
        SecurityScheme::ApiKey(ApiKey::Header(key)) => Credential::Header(shown(&key.name)),
        SecurityScheme::ApiKey(ApiKey::Query(key)) => Credential::Query(shown(&key.name)),
        SecurityScheme::ApiKey(ApiKey::Cookie(key)) => Credential::Cookie(shown(&key.name)),
        SecurityScheme::Http(_) => Credential::Authorization(shown(http?)),
        SecurityScheme::OAuth2(_) | SecurityScheme::OpenIdConnect(_) => Credential::OAuth,
        SecurityScheme::MutualTls { .. } => Credential::Certificate,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemes_say_what_is_configured() {
        let text = json!({ "openapi": "3.1.0", "paths": {}, "components": { "securitySchemes": {
            "a": { "type": "apiKey", "in": "header", "name": "X-Key" }, "b": { "type": "apiKey", "in": "query", "name": "key" },
            "c": { "type": "apiKey", "in": "cookie", "name": "sid" }, "d": { "type": "http", "scheme": "bearer" },
            "e": { "type": "oauth2", "flows": {} }, "f": { "$ref": "#/components/securitySchemes/a" },
            "g": { "type": "mutualTLS" }, "h": { "type": "else" }, "i": 7, "j": { "$ref": "https://other.test/" } } } });
        let document = Document::read(text.to_string().as_bytes()).unwrap();
        let header = Credential::Header("X-Key".to_owned());
        let expected = vec![
            header.clone(),
            Credential::Query("key".to_owned()),
            Credential::Cookie("sid".to_owned()),
            Credential::Authorization("bearer".to_owned()),
            Credential::OAuth,
            header,
            Credential::Certificate,
        ];
        assert_eq!(credentials(&document), expected);
        let words: Vec<String> = expected.iter().map(Credential::advice).collect();
        assert!(words[0].contains("X-Key") && words[1].contains("`query`") && words[3].contains("bearer"));
    }
}
