//! ID tokens, as far as a sign-in at the gateway's pages looks at them (OpenID Connect Core 1.0, section
//! 3.1.3.7). One comes from the token endpoint itself, over the connection on which its server proved
//! who it is: that stands in place of its signature (point 6 there).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;

use super::place::{Asked, PersonError, SKEW_MS};

/// The sign-in that an ID token must be about.
pub(super) struct Expected<'e> {
    pub(super) issuer: &'e str,
    pub(super) client: &'e str,
    pub(super) nonce: &'e str,
    pub(super) now_ms: u64,
}

/// Checks an ID token; returns when its person was asked who it is.
pub(super) fn check(token: Option<&str>, expected: &Expected<'_>) -> Result<Asked, PersonError> {
    let token = token.ok_or(PersonError::IdToken("is missing"))?;
    let claims = claims(token).ok_or(PersonError::IdToken("cannot be read"))?;
    let is_text =
        |name: &str, wanted: &str| claims.get(name).and_then(Value::as_str) == Some(wanted);
    if !is_text("iss", expected.issuer) {
        return Err(PersonError::IdToken("is of another issuer"));
    }
    if !is_for(&claims, expected.client) {
        return Err(PersonError::IdToken("is for another client"));
    }
    let nonce = claims.get("nonce").and_then(Value::as_str);
    let nonce = nonce.unwrap_or_default().as_bytes();
    if !bool::from(nonce.ct_eq(expected.nonce.as_bytes())) {
        return Err(PersonError::IdToken("is of another sign-in"));
    }
    let now_ms = expected.now_ms;
    let time = |name: &str| time_ms(&claims, name);
    if time("exp").is_none_or(|end_ms| end_ms.saturating_add(SKEW_MS) <= now_ms) {
        return Err(PersonError::IdToken("has expired"));
    }
    if time("iat").is_none_or(|at_ms| at_ms > now_ms.saturating_add(SKEW_MS)) {
        return Err(PersonError::IdToken(
            "is of the future, or does not say when it was issued",
        ));
    }
    // A clock that goes ahead makes nothing younger than it is.
    Ok(time("auth_time").map_or(Asked::Unknown, |at_ms| Asked::At(at_ms.min(now_ms))))
}

fn claims(token: &str) -> Option<Map<String, Value>> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// Whether a token is for this client: it is among the audiences, and the one to which the token was
/// issued, where there are several or one is named.
fn is_for(claims: &Map<String, Value>, client: &str) -> bool {
    let is_client = |value: &Value| value.as_str() == Some(client);
    let is_issued_to = claims.get("azp").map(is_client);
    match claims.get("aud") {
        Some(Value::Array(all)) if all.len() > 1 => {
            all.iter().any(is_client) && is_issued_to == Some(true)
        }
        Some(Value::Array(all)) => all.iter().any(is_client) && is_issued_to != Some(false),
        Some(one) => is_client(one) && is_issued_to != Some(false),
        None => false,
    }
}

fn time_ms(claims: &Map<String, Value>, name: &str) -> Option<u64> {
    let value = claims.get(name)?;
    let secs = value
        .as_u64()
        .or_else(|| value.as_f64().map(|secs| secs as u64))?;
    Some(secs.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW_MS: u64 = 1_000_000_000;
    const NOW_S: u64 = NOW_MS / 1_000;

    fn token(changes: &Value) -> String {
        let mut claims = json!({
            "iss": "https://idp.example", "aud": "gw", "nonce": "n", "sub": "ann",
            "iat": NOW_S, "exp": NOW_S + 60, "auth_time": NOW_S - 5,
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.x", part(&json!({ "alg": "RS256" })), part(&claims))
    }

    fn asked(token: Option<&str>) -> Result<Asked, PersonError> {
        check(
            token,
            &Expected {
                issuer: "https://idp.example",
                client: "gw",
                nonce: "n",
                now_ms: NOW_MS,
            },
        )
    }

    #[test]
    fn an_id_token_is_of_its_issuer_client_and_sign_in() {
        for (changes, expect) in [
            (json!({}), Ok(Asked::At(NOW_MS - 5_000))),
            (json!({ "auth_time": null }), Ok(Asked::Unknown)),
            (json!({ "auth_time": NOW_S + 9_000 }), Ok(Asked::At(NOW_MS))),
            (
                json!({ "aud": ["gw"], "azp": "gw" }),
                Ok(Asked::At(NOW_MS - 5_000)),
            ),
            (
                json!({ "aud": ["gw", "b"], "azp": "gw" }),
                Ok(Asked::At(NOW_MS - 5_000)),
            ),
            (json!({ "exp": NOW_S - 30 }), Ok(Asked::At(NOW_MS - 5_000))),
            (json!({ "aud": ["gw", "b"] }), Err("is for another client")),
            (json!({ "aud": "b" }), Err("is for another client")),
            (json!({ "aud": null }), Err("is for another client")),
            (json!({ "azp": "b" }), Err("is for another client")),
            (
                json!({ "iss": "https://evil.example" }),
                Err("is of another issuer"),
            ),
            (json!({ "nonce": "m" }), Err("is of another sign-in")),
            (json!({ "nonce": null }), Err("is of another sign-in")),
            (json!({ "exp": NOW_S - 61 }), Err("has expired")),
            (json!({ "exp": "soon" }), Err("has expired")),
            (
                json!({ "iat": NOW_S + 61 }),
                Err("is of the future, or does not say when it was issued"),
            ),
        ] {
            let expect = expect.map_err(PersonError::IdToken);
            assert_eq!(asked(Some(&token(&changes))), expect, "{changes}");
        }
        for wrong in ["", "a.b", "a.!.c", "a.e30.c.d"] {
            let expect = Err(PersonError::IdToken("cannot be read"));
            assert_eq!(asked(Some(wrong)), expect, "{wrong}");
        }
        assert_eq!(asked(None), Err(PersonError::IdToken("is missing")));
    }
}
