//! Tests of sign-ins of people, before they reach a server.

use super::*;

const CALLBACK: &str = "https://gw.example/console/signed-in/corp";

fn server(names_itself: bool) -> AuthorizationServer {
    AuthorizationServer {
        authorization_endpoint: Some("https://idp.example/authorize?a=1".to_owned()),
        authorization_response_iss_parameter_supported: names_itself,
        ..AuthorizationServer::bare("https://idp.example")
    }
}

/// A sign-in with these scopes, and the query of its address.
fn begun(scopes: &[&str], max_age_secs: u64, has_resource: bool) -> (PersonSignIn, String) {
    let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    let params = [("audience".to_owned(), "api://x".to_owned())];
    let client = AskingClient {
        id: "a b",
        scopes: &scopes,
        params: &params,
        has_resource,
    };
    let wish = PersonWish {
        redirect_uri: CALLBACK,
        resource: "https://gw.example/mcp",
        max_age_secs,
    };
    let sign_in = PersonSignIn::new(&client, &wish);
    let address = sign_in.address(&server(true), &client).unwrap();
    (sign_in, address)
}

fn given(address: &str, name: &str) -> Option<String> {
    let url = url::Url::parse(address).unwrap();
    let mut pairs = url.query_pairs();
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

#[test]
fn a_person_is_asked_for_this_resource_and_address_and_when_it_is_wished_anew() {
    let (sign_in, address) = begun(&["openid", "x"], 0, true);
    for (name, value) in [
        ("a", "1"),
        ("audience", "api://x"),
        ("response_type", "code"),
        ("client_id", "a b"),
        ("redirect_uri", CALLBACK),
        ("resource", "https://gw.example/mcp"),
        ("code_challenge_method", "S256"),
        ("prompt", "login"),
        ("max_age", "0"),
        ("scope", "openid x"),
        ("state", sign_in.state()),
        ("nonce", sign_in.nonce.as_deref().unwrap()),
    ] {
        assert_eq!(given(&address, name).as_deref(), Some(value), "{address}");
    }
    assert!(!address.contains(&sign_in.verifier), "{address}");
    let (other, address) = begun(&["x"], 60, false);
    for name in ["nonce", "max_age", "prompt", "resource"] {
        assert_eq!(given(&address, name), None, "{name}: {address}");
    }
    assert!(other.state != sign_in.state && other.verifier != sign_in.verifier);
}

#[test]
fn an_answer_is_of_its_sign_in_and_server() {
    let (sign_in, _) = begun(&[], 60, true);
    let (other, _) = begun(&[], 60, true);
    let code = |names_itself, query: String| {
        let answer = format!("{CALLBACK}?{query}");
        let read = sign_in.code(&server(names_itself), &answer);
        read.map(|code| code.expose().to_owned())
    };
    let (state, iss) = (sign_in.state(), "iss=https%3A%2F%2Fidp.example");
    let good = Ok("c".to_owned());
    assert_eq!(code(true, format!("code=c&state={state}&{iss}")), good);
    assert_eq!(code(false, format!("code=c&state={state}")), good);
    let step = |error: LoginError| Err(PersonError::Step(error));
    for (query, error) in [
        (
            format!("code=c&state={}&{iss}", other.state()),
            LoginError::Unknown,
        ),
        (format!("code=c&state={state}"), LoginError::MixUp),
        (
            format!("code=c&state={state}&iss=https://evil.example"),
            LoginError::MixUp,
        ),
        (
            format!("code=c&code=d&state={state}&{iss}"),
            LoginError::Unreadable,
        ),
        (format!("code=c&{iss}"), LoginError::Unreadable),
        (format!("state={state}&{iss}"), LoginError::Unreadable),
        (
            format!(
                "error=access_denied&error_description=no%0A%3Cb%3E&code=c&state={state}&{iss}"
            ),
            LoginError::Denied("access_denied (no\\u{a}<b>)".to_owned()),
        ),
    ] {
        assert_eq!(code(true, query.clone()), step(error), "{query}");
    }
    let late = PersonSignIn {
        begun_ms: unix_ms() - LOGIN_MS_MAX,
        ..sign_in
    };
    let answer = format!("{CALLBACK}?code=c&state={}&{iss}", late.state);
    let read = late.code(&server(true), &answer);
    assert_eq!(
        read.map(|code| code.expose().to_owned()),
        step(LoginError::Unknown)
    );
}

#[test]
fn who_was_to_be_asked_anew_was() {
    let sign_in = |max_age_secs| PersonSignIn {
        begun_ms: 10_000_000,
        ..begun(&["openid"], max_age_secs, true).0
    };
    for (max_age_secs, asked, expect) in [
        (0, Asked::At(10_000_000), Ok(())),
        (0, Asked::At(10_000_000 - SKEW_MS), Ok(())),
        (
            0,
            Asked::At(10_000_000 - SKEW_MS - 1),
            Err(PersonError::NotAsked),
        ),
        (0, Asked::Unknown, Err(PersonError::NoTime)),
        (60, Asked::Unknown, Ok(())),
        (60, Asked::At(10_000_000 - SKEW_MS - 60_000), Ok(())),
        (
            60,
            Asked::At(10_000_000 - SKEW_MS - 60_001),
            Err(PersonError::NotAsked),
        ),
    ] {
        assert_eq!(
            sign_in(max_age_secs).check_asked(asked),
            expect,
            "{asked:?}"
        );
    }
}
