//! Registration of clients by themselves (RFC 7591): a request in, the client's metadata or an
//! error out.

use serde::Serialize;
use serde_json::Value;

use crate::client::safe_name;
use crate::redirect;

/// The longest registration, in bytes.
pub const REGISTRATION_BYTES_MAX: usize = 16 * 1024;
/// The most redirect URIs of a registration. Further ones are dropped.
pub const REDIRECT_URIS_MAX: usize = 10;
/// The longest scope text that is given back, in bytes.
const SCOPE_BYTES_MAX: usize = 1024;

/// Registration of a client, as it asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Its name, made safe.
    pub name: String,
    /// Its acceptable redirect URIs.
    pub redirect_uris: Vec<String>,
    /// The scope that it wants. It limits nothing.
    pub scope: Option<String>,
    /// Use that the client names: `native` or `web`.
    pub application_type: Option<String>,
}

/// An error of RFC 7591, section 3.2.2: the code, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationError {
    /// The code.
    pub code: &'static str,
    /// The sentence.
    pub description: String,
}

fn invalid(description: impl Into<String>) -> RegistrationError {
    RegistrationError {
        code: "invalid_client_metadata",
        description: description.into(),
    }
}

/// Reads a registration.
///
/// # Errors
/// The error to answer with.
pub fn read(body: &[u8], private: &[String]) -> Result<Registration, RegistrationError> {
    if body.len() > REGISTRATION_BYTES_MAX {
        return Err(invalid(format!(
            "the registration is longer than {REGISTRATION_BYTES_MAX} bytes"
        )));
    }
    let Ok(Value::Object(asked)) = serde_json::from_slice(body) else {
        return Err(invalid("the registration is no JSON object"));
    };
    let text = |name: &str| asked.get(name).and_then(Value::as_str);
    for (list, needed) in [
        ("grant_types", "authorization_code"),
        ("response_types", "code"),
    ] {
        if let Some(Value::Array(values)) = asked.get(list)
            && !values.iter().any(|value| value == needed)
        {
            return Err(invalid(format!(
                "`{list}` must have `{needed}`: this server gives out nothing else"
            )));
        }
    }
    let mut kept = Vec::new();
    let mut fault = None;
    let uris = asked.get("redirect_uris").and_then(Value::as_array);
    for uri in uris
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(REDIRECT_URIS_MAX)
    {
        match redirect::destination(uri, private) {
            Ok(_) if kept.iter().any(|known| known == uri) => {}
            Ok(_) => kept.push(uri.to_owned()),
            Err(why) => fault = fault.or(Some(why)),
        }
    }
    if kept.is_empty() {
        let why = fault.map_or_else(
            || "there is none".to_owned(),
            |why| format!("the first one {why}"),
        );
        let description = format!("no redirect URI is acceptable: {why}");
        return Err(RegistrationError {
            code: "invalid_redirect_uri",
            description,
        });
    }
    let scope = text("scope").filter(|scope| scope.len() <= SCOPE_BYTES_MAX);
    let application_type = text("application_type").filter(|kind| ["native", "web"].contains(kind));
    Ok(Registration {
        name: safe_name(text("client_name").unwrap_or_default()),
        redirect_uris: kept,
        scope: scope.map(str::to_owned),
        application_type: application_type.map(str::to_owned),
    })
}

/// The answer to a registration (RFC 7591, section 3.2.1).
#[derive(Debug, Serialize)]
pub struct RegistrationAnswer<'r> {
    /// Its id.
    pub client_id: &'r str,
    /// Time in seconds since 1970.
    pub client_id_issued_at: u64,
    /// Its name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub client_name: &'r str,
    /// The redirect URIs that were kept.
    pub redirect_uris: &'r [String],
    /// Grants that it may ask for.
    pub grant_types: [&'static str; 2],
    /// Responses that it may ask for.
    pub response_types: [&'static str; 1],
    /// It has no secret.
    pub token_endpoint_auth_method: &'static str,
    /// The scope that it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'r str>,
    /// Use of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_type: Option<&'r str>,
}

impl Registration {
    /// The answer, with the id that the client got.
    #[must_use]
    pub fn answer<'r>(&'r self, client_id: &'r str, now_ms: u64) -> RegistrationAnswer<'r> {
        RegistrationAnswer {
            client_id,
            client_id_issued_at: now_ms / 1000,
            client_name: &self.name,
            redirect_uris: &self.redirect_uris,
            grant_types: ["authorization_code", "refresh_token"],
            response_types: ["code"],
            token_endpoint_auth_method: "none",
            scope: self.scope.as_deref(),
            application_type: self.application_type.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acceptable_uris_are_kept_and_others_dropped() {
        let private = ["cursor://anysphere.cursor-mcp/oauth/callback".to_owned()];
        let many: Vec<String> = (0..12)
            .map(|number| format!("https://app.example/{number}"))
            .collect();
        let many = serde_json::json!({ "redirect_uris": many }).to_string();
        let long = |bytes: usize| {
            let head = r#"{"redirect_uris":["https://a.example/"],"client_name":""#;
            format!("{head}{}\"}}", "x".repeat(bytes - head.len() - 2))
        };
        let at_limit = long(REGISTRATION_BYTES_MAX);
        let too_long = long(REGISTRATION_BYTES_MAX + 1);
        let cursor = r#"{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback",
            "https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback","vscode://x"]}"#;
        for (body, expect) in [
            (cursor, Ok(3)),
            (
                r#"{"redirect_uris":["https://a.example/","https://a.example/"]}"#,
                Ok(1),
            ),
            (many.as_str(), Ok(REDIRECT_URIS_MAX)),
            (at_limit.as_str(), Ok(1)),
            (too_long.as_str(), Err("invalid_client_metadata")),
            (
                r#"{"redirect_uris":["http://evil.example/"]}"#,
                Err("invalid_redirect_uri"),
            ),
            (r#"{"redirect_uris":[]}"#, Err("invalid_redirect_uri")),
            (
                r#"{"redirect_uris":"https://a.example/"}"#,
                Err("invalid_redirect_uri"),
            ),
            (r#"{"redirect_uris":[1,null]}"#, Err("invalid_redirect_uri")),
            ("{}", Err("invalid_redirect_uri")),
            ("[]", Err("invalid_client_metadata")),
            ("", Err("invalid_client_metadata")),
            (
                "{\"redirect_uris\":[\"https://a.example/\"]",
                Err("invalid_client_metadata"),
            ),
            (
                r#"{"redirect_uris":["https://a.example/"],"grant_types":["client_credentials"]}"#,
                Err("invalid_client_metadata"),
            ),
            (
                r#"{"redirect_uris":["https://a.example/"],"response_types":["token"]}"#,
                Err("invalid_client_metadata"),
            ),
            (
                r#"{"redirect_uris":["https://a.example/"],"token_endpoint_auth_method":"client_secret_basic","scope":"x"}"#,
                Ok(1),
            ),
        ] {
            let read = read(body.as_bytes(), &private);
            let found = read
                .as_ref()
                .map(|read| read.redirect_uris.len())
                .map_err(|error| error.code);
            assert_eq!(found, expect, "{:.200}", body);
        }
    }
}
