//! The document about the authorization server (RFC 8414).

use auth::PublicUrl;
use identity::login::{Clients, LoginConfig};
use serde_json::{Value, json};

/// The document.
#[must_use]
pub fn document(public_url: &PublicUrl, login: &LoginConfig, scopes: &[&str]) -> Value {
    let mut document = json!({
        "issuer": public_url.as_str(),
        "authorization_endpoint": public_url.at("/oauth/authorize"),
        "token_endpoint": public_url.at("/oauth/token"),
        "revocation_endpoint": public_url.at("/oauth/revoke"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": login.clients != Clients::Configured,
    });
    if let Value::Object(members) = &mut document {
        if login.clients == Clients::Any {
            members.insert(
                "registration_endpoint".to_owned(),
                public_url.at("/oauth/register").into(),
            );
        }
        if !scopes.is_empty() {
            members.insert("scopes_supported".to_owned(), json!(scopes));
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_what_is_accepted() {
        let url = PublicUrl::parse("https://gw.example/a").unwrap();
        for (clients, registers, documents) in [
            (Clients::Any, true, true),
            (Clients::Trusted, false, true),
            (Clients::Configured, false, false),
        ] {
            let login = LoginConfig {
                clients,
                ..LoginConfig::default()
            };
            let document = document(&url, &login, &["mcp:read"]);
            assert_eq!(document["issuer"], "https://gw.example/a");
            assert_eq!(
                document["token_endpoint"],
                "https://gw.example/a/oauth/token"
            );
            assert_eq!(document.get("registration_endpoint").is_some(), registers);
            assert_eq!(document["client_id_metadata_document_supported"], documents);
            assert_eq!(document["scopes_supported"][0], "mcp:read");
        }
    }
}
