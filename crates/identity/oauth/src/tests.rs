//! Sign-ins and renewals against a scripted authorization server on loopback.

mod callers;
mod clients;
mod keys;
mod people;
mod reload;
mod renewal;
mod sessions;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use client::{AccountHolder, Accounts as _, Challenge, LinkError};
use http::HeaderValue;
use model::{Digest, ParticipantId};
use platform::unix_ms;
use store::{JournalWriter, recorder::Recorder};
use tls::ClientTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

use crate::account::Account;
use crate::account::session::SessionAccount;
use crate::config::{AccountOwner as Whose, AuthConfig, AuthorizationKind};
use crate::logins::{LoginError, SignInRequest};
use crate::registration::Use;
use crate::vault::Vault;
use crate::{AccountServer, CheckedToken, Configured, EXCHANGED_TOKENS_MAX, ServerAccounts};
use client::{AccountFault, Authorize};

/// A scripted server: metadata of a resource and its authorization server at one origin, and what
/// the token endpoint answers.
struct Script {
    origin: String,
    /// Members that replace those of the authorization server's metadata.
    metadata: Mutex<HashMap<&'static str, serde_json::Value>>,
    /// `resource` of the resource's metadata; empty if it has none.
    resource: Mutex<String>,
    /// Its authorization server.
    issuer: Mutex<String>,
    /// The secret of clients that are registered.
    secret: Mutex<Option<String>>,
    /// The bodies of registrations.
    wishes: Mutex<Vec<String>>,
    /// Status and body of the next answers of the token endpoint; then tokens that live for an
    /// hour.
    tokens: Mutex<Vec<(u16, String)>>,
    /// The bodies of token requests.
    asked: Mutex<Vec<String>>,
    /// Looks at the metadata of the authorization server.
    looks: AtomicUsize,
    registered: AtomicUsize,
    issued: AtomicUsize,
    /// Token requests that have arrived. They are answered while `gate` is open.
    arrived: AtomicUsize,
    gate: tokio::sync::Mutex<()>,
}

impl Script {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let script = Arc::new(Self {
            resource: Mutex::new(format!("{origin}/mcp")),
            issuer: Mutex::new(origin.clone()),
            secret: Mutex::default(),
            wishes: Mutex::default(),
            origin,
            metadata: Mutex::default(),
            tokens: Mutex::default(),
            asked: Mutex::default(),
            looks: AtomicUsize::new(0),
            registered: AtomicUsize::new(0),
            issued: AtomicUsize::new(0),
            arrived: AtomicUsize::new(0),
            gate: tokio::sync::Mutex::default(),
        });
        let serving = Arc::clone(&script);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let script = Arc::clone(&serving);
                tokio::spawn(async move {
                    let mut text = String::new();
                    let mut chunk = [0; 4096];
                    let body = loop {
                        let count = stream.read(&mut chunk).await.unwrap();
                        text.push_str(&String::from_utf8_lossy(&chunk[..count]));
                        let Some((head, body)) = text.split_once("\r\n\r\n") else {
                            continue;
                        };
                        let length = head
                            .lines()
                            .find_map(|line| line.strip_prefix("content-length: "));
                        if body.len() >= length.map_or(0, |length| length.parse().unwrap())
                            || count == 0
                        {
                            break body.to_owned();
                        }
                    };
                    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
                    if path == "/token" {
                        script.arrived.fetch_add(1, Ordering::SeqCst);
                        let _open = script.gate.lock().await;
                    }
                    let (status, answer) = script.answer(&path, &body);
                    let text = format!(
                        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                        answer.len()
                    );
                    let _ = stream.write_all(text.as_bytes()).await;
                });
            }
        });
        script
    }

    fn answer(&self, path: &str, body: &str) -> (u16, String) {
        let origin = &self.origin;
        match path {
            "/.well-known/oauth-protected-resource/mcp" => {
                let resource = self.resource.lock().unwrap().clone();
                let issuer = self.issuer.lock().unwrap().clone();
                if resource.is_empty() {
                    return (404, String::new());
                }
                let document = serde_json::json!({
                    "resource": resource, "authorization_servers": [issuer], "scopes_supported": ["read"],
                });
                (200, document.to_string())
            }
            "/.well-known/oauth-authorization-server" => {
                self.looks.fetch_add(1, Ordering::SeqCst);
                let mut document = serde_json::json!({
                    "issuer": origin,
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "revocation_endpoint": format!("{origin}/revoke"),
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": true,
                });
                for (name, value) in self.metadata.lock().unwrap().iter() {
                    document[*name] = value.clone();
                }
                (200, document.to_string())
            }
            "/register" => {
                self.wishes.lock().unwrap().push(body.to_owned());
                let count = self.registered.fetch_add(1, Ordering::SeqCst);
                let secret = self.secret.lock().unwrap().clone();
                let answer = serde_json::json!({
                    "client_id": format!("client-{count}"), "client_secret": secret, "client_secret_expires_at": null,
                });
                (201, answer.to_string())
            }
            "/token" => {
                self.asked.lock().unwrap().push(body.to_owned());
                let scripted = self.tokens.lock().unwrap().pop();
                scripted.unwrap_or_else(|| {
                    let count = self.issued.fetch_add(1, Ordering::SeqCst);
                    (200, format!(r#"{{"access_token":"canary-a{count}","token_type":"Bearer","expires_in":3600,"refresh_token":"canary-r{count}"}}"#))
                })
            }
            "/revoke" => {
                self.asked.lock().unwrap().push(format!("revoke {body}"));
                (200, String::new())
            }
            _ => (404, String::new()),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn accounts(journal: Option<&JournalWriter>) -> ServerAccounts {
    let journal = journal.map(|journal| journal.ledger().unwrap());
    let vault = Vault::new(Some(&[7; 32]), journal);
    ServerAccounts::new(
        vault,
        Recorder::default(),
        None,
        "http://127.0.0.1:7070".to_owned(),
    )
}

fn server(accounts: &ServerAccounts, script: &Script, auth: AuthConfig) -> Arc<AccountServer> {
    let url = format!("{}/mcp", script.origin);
    let tls = ClientTls::of_machine();
    accounts
        .configure(&Configured {
            name: "jira",
            url: &url,
            tls: &tls,
            auth: &auth,
        })
        .0
        .unwrap()
}

fn unauthorized() -> Challenge {
    Challenge {
        status: 401,
        challenge: "Bearer".to_owned(),
    }
}

/// Refuses the account's header once, as a server would.
async fn refused(
    account: &Account,
    attempt: usize,
    challenge: Challenge,
) -> Result<(), AccountFault> {
    let grant = account.grant().await.map_err(fault)?;
    account
        .refused(grant.stamp, attempt, challenge)
        .await
        .map_err(fault)
}

fn fault(error: LinkError) -> AccountFault {
    match error {
        LinkError::Account(fault) => fault,
        other => panic!("{other}"),
    }
}

async fn header(account: &Account) -> Result<Option<HeaderValue>, AccountFault> {
    Ok(account.grant().await.map_err(fault)?.header)
}

fn wish() -> SignInRequest {
    SignInRequest {
        redirect_uri: "http://127.0.0.1:1/callback".to_owned(),
        usage: Use::Native,
        scopes: Vec::new(),
        by: "boss".to_owned(),
        browser: None,
    }
}

fn state_of(url: &str) -> String {
    let url = Url::parse(url).unwrap();
    url.query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .into_owned()
}

/// Signs in: the person agrees at once.
async fn sign_in(
    accounts: &ServerAccounts,
    account: &Arc<Account>,
    script: &Script,
) -> Result<String, LoginError> {
    let begun = accounts.logins.begin(account, wish()).await?;
    let state = state_of(&begun.url);
    let issuer = &script.origin;
    let callback = format!("http://127.0.0.1:1/callback?code=c&state={state}&iss={issuer}");
    accounts
        .logins
        .complete(&callback, Some("boss"), None)
        .await?;
    Ok(begun.url)
}

fn bearer(token: &str) -> Option<HeaderValue> {
    Some(HeaderValue::from_str(&format!("Bearer {token}")).unwrap())
}

/// Tokens that expire after so many seconds.
fn tokens(name: &str, seconds: u64) -> (u16, String) {
    (
        200,
        format!(
            r#"{{"access_token":"a-{name}","token_type":"bearer","expires_in":{seconds},"refresh_token":"r-{name}"}}"#
        ),
    )
}

#[tokio::test]
async fn a_refusal_leads_to_a_sign_in_and_the_sign_in_to_a_token() {
    let script = Script::start().await;
    let all = accounts(None);
    let server = server(&all, &script, AuthConfig::default());
    let account = server.of(None);
    assert_eq!(
        (header(&account).await, server.blocked(None)),
        (Ok(None), None)
    );
    assert_eq!(
        refused(&account, 0, unauthorized()).await,
        Err(AccountFault::LoginNeeded)
    );
    assert_eq!(
        (server.blocked(None), account.state().state),
        (Some(AccountFault::LoginNeeded), "needs_login")
    );
    let url = Url::parse(&sign_in(&all, &account, &script).await.unwrap()).unwrap();
    let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
    let resource = format!("{}/mcp", script.origin);
    for (name, expect) in [
        ("response_type", "code"),
        ("client_id", "client-0"),
        ("scope", "read"),
        ("resource", resource.as_str()),
        ("code_challenge_method", "S256"),
        ("redirect_uri", "http://127.0.0.1:1/callback"),
    ] {
        assert_eq!(query[name], expect);
    }
    let asked = script.asked().remove(0);
    assert!(
        asked.contains("grant_type=authorization_code") && asked.contains("code_verifier="),
        "{asked}"
    );
    assert!(asked.contains("resource=http%3A%2F%2F127.0.0.1"), "{asked}");
    assert_eq!(header(&account).await, Ok(bearer("canary-a0")));
    assert_eq!(
        (server.blocked(None), account.state().state),
        (None, "ready")
    );
    // The same number while nothing changes: that is all that the path of a call looks at.
    let grant = account.grant().await.ok().unwrap();
    assert_eq!(
        (account.stamp(), account.stamp()),
        (grant.stamp, grant.stamp)
    );
    account.sign_out("boss").await.unwrap();
    assert!(
        script
            .asked()
            .last()
            .unwrap()
            .contains("revoke token=canary-r0&token_type_hint=refresh_token")
    );
    assert_eq!(
        (account.stamp(), header(&account).await),
        (0, Err(AccountFault::LoginNeeded))
    );
}

#[tokio::test]
async fn an_answer_counts_once_for_who_began_and_from_who_was_asked() {
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(&all, &script, AuthConfig::default()).of(None);
    for (promised, iss, expect) in [
        (true, Some("same"), Ok(())),
        (true, None, Err(LoginError::MixUp)),
        (true, Some("https://evil.example"), Err(LoginError::MixUp)),
        (true, Some("slash"), Err(LoginError::MixUp)),
        (false, None, Ok(())),
        (false, Some("same"), Ok(())),
        (false, Some("https://evil.example"), Err(LoginError::MixUp)),
    ] {
        script.metadata.lock().unwrap().insert(
            "authorization_response_iss_parameter_supported",
            promised.into(),
        );
        account.site.discover(None).await.unwrap();
        let state = state_of(&all.logins.begin(&account, wish()).await.unwrap().url);
        let iss = iss.map(|iss| {
            iss.replace("same", &script.origin)
                .replace("slash", &format!("{}/", script.origin))
        });
        let iss = iss.map(|iss| format!("&iss={iss}")).unwrap_or_default();
        let before = script.asked().len();
        let callback = format!("http://127.0.0.1:1/callback?state={state}{iss}");
        let complete = |callback: String, by| {
            let logins = &all.logins;
            async move { logins.complete(&callback, Some(by), None).await.map(|_| ()) }
        };
        // Another participant brings it: nothing happens. The text of an error from elsewhere is
        // not shown.
        assert_eq!(
            complete(format!("{callback}&code=c"), "eve").await,
            Err(LoginError::Unknown)
        );
        let ended = complete(format!("{callback}&code=c"), "boss").await;
        assert_eq!(ended, expect, "{promised} {iss}");
        assert_eq!(
            script.asked().len() - before,
            usize::from(expect.is_ok()),
            "{promised} {iss}"
        );
        assert_eq!(
            complete(format!("{callback}&code=c"), "boss").await,
            Err(LoginError::Unknown)
        );
    }
    for callback in [
        "",
        "x",
        "http://127.0.0.1/callback?code=c",
        "http://127.0.0.1/callback?state=a&state=b&code=c",
    ] {
        let ended = all
            .logins
            .complete(callback, Some("boss"), None)
            .await
            .err();
        assert_eq!(ended, Some(LoginError::Unreadable), "{callback}");
    }
    let state = state_of(&all.logins.begin(&account, wish()).await.unwrap().url);
    let denied = format!(
        "http://127.0.0.1:1/callback?state={state}&error=access_denied&iss={}",
        script.origin
    );
    let ended = all.logins.complete(&denied, Some("boss"), None).await.err();
    assert_eq!(ended, Some(LoginError::Denied("access_denied".to_owned())));
    // The words of the authorization server are shown, made safe and no longer than a line.
    let state = state_of(&all.logins.begin(&account, wish()).await.unwrap().url);
    let words = format!("Unregistered%1B%5B2J%0Aredirect_uri{}", "x".repeat(1_000));
    let denied = format!(
        "http://127.0.0.1:1/callback?state={state}&error=invalid_request&error_description={words}&iss={}",
        script.origin
    );
    let Some(LoginError::Denied(why)) =
        all.logins.complete(&denied, Some("boss"), None).await.err()
    else {
        panic!("it was denied");
    };
    assert!(
        why.starts_with("invalid_request (Unregistered") && why.contains("redirect_uri"),
        "{why}"
    );
    assert!(
        !why.chars().any(char::is_control) && why.chars().count() < 300,
        "{why}"
    );
}

#[tokio::test]
async fn scopes_of_a_token_answer_may_be_a_list() {
    let script = Script::start().await;
    let all = accounts(None);
    let machine = AuthConfig {
        kind: AuthorizationKind::ClientCredentials,
        client_id: Some("me".to_owned()),
        ..AuthConfig::default()
    };
    for (scope, granted) in [
        (r#"["read","write more"]"#, vec!["read", "write", "more"]),
        (r#""read write""#, vec!["read", "write"]),
        ("[]", vec![]),
    ] {
        let auth = AuthConfig {
            scopes: vec![format!("asked-{}", granted.len())],
            ..machine.clone()
        };
        let account = server(&all, &script, auth).of(None);
        let body = format!(r#"{{"access_token":"t","token_type":"Bearer","scope":{scope}}}"#);
        script.tokens.lock().unwrap().push((200, body));
        assert_eq!(refused(&account, 0, unauthorized()).await, Ok(()));
        assert_eq!(account.state().scopes, granted, "{scope}");
    }
}

#[tokio::test]
async fn metadata_of_others_is_not_followed() {
    let script = Script::start().await;
    let all = accounts(None);
    let refuses = async |auth: AuthConfig| {
        let account = server(&all, &script, auth).of(None);
        matches!(
            refused(&account, 0, unauthorized()).await,
            Err(AccountFault::MetadataRefused(_))
        )
    };
    let fresh = || AuthConfig {
        scopes: vec![format!("s{}", platform::unix_ms())],
        ..AuthConfig::default()
    };
    *script.resource.lock().unwrap() = "https://evil.example/mcp".to_owned();
    assert!(refuses(fresh()).await);
    *script.resource.lock().unwrap() = format!("{}/mcp", script.origin);
    let pinned = AuthConfig {
        issuer: Some("https://other.example".to_owned()),
        ..fresh()
    };
    assert!(refuses(pinned).await);
    for (name, value) in [
        ("issuer", "https://evil.example".into()),
        ("token_endpoint", "http://203.0.113.1/token".into()),
        ("authorization_endpoint", "javascript:alert(1)".into()),
        (
            "code_challenge_methods_supported",
            serde_json::json!(["plain"]),
        ),
    ] {
        script.metadata.lock().unwrap().insert(name, value);
        assert!(
            refuses(AuthConfig {
                client_id: Some(name.to_owned()),
                ..fresh()
            })
            .await,
            "{name}"
        );
        script.metadata.lock().unwrap().clear();
    }
    assert!(script.asked().is_empty() && script.registered.load(Ordering::SeqCst) == 0);
}

#[tokio::test]
async fn scopes_are_joined_and_asked_for_three_times() {
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(&all, &script, AuthConfig::default()).of(None);
    sign_in(&all, &account, &script).await.unwrap();
    let challenge = || Challenge {
        status: 403,
        challenge: "Bearer error=\"insufficient_scope\", scope=\"write\"".to_owned(),
    };
    for _ in 0..3 {
        assert_eq!(
            refused(&account, 0, challenge()).await,
            Err(AccountFault::ScopesNeeded("write".to_owned()))
        );
        assert_eq!(account.state().state, "ready", "other calls go on");
        let url = sign_in(&all, &account, &script).await.unwrap();
        assert!(url.contains("scope=read+write"), "{url}");
    }
    let refused = refused(&account, 0, challenge()).await;
    assert_eq!(
        refused,
        Err(AccountFault::ScopesRefused("write".to_owned(), 3))
    );
}

#[tokio::test]
async fn a_restart_keeps_accounts_and_registrations_and_no_text_in_clear() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::start().await;
    {
        let journal = JournalWriter::open(folder.path()).unwrap();
        let all = accounts(Some(&journal));
        let account = server(&all, &script, AuthConfig::default()).of(None);
        script.tokens.lock().unwrap().push(tokens("canary-old", 0));
        sign_in(&all, &account, &script).await.unwrap();
        // Renewed, and killed at once: the new pair was written before it was used.
        assert_eq!(header(&account).await, Ok(bearer("canary-a0")));
    }
    let journal = JournalWriter::open(folder.path()).unwrap();
    let all = accounts(Some(&journal));
    let account = server(&all, &script, AuthConfig::default()).of(None);
    assert_eq!(
        (header(&account).await, account.state().state),
        (Ok(bearer("canary-a0")), "ready")
    );
    assert_eq!(refused(&account, 0, unauthorized()).await, Ok(()));
    assert!(
        script
            .asked()
            .last()
            .unwrap()
            .contains("refresh_token=canary-r0"),
        "the newest one is used"
    );
    sign_in(&all, &account, &script).await.unwrap();
    assert_eq!(
        script.registered.load(Ordering::SeqCst),
        1,
        "the registration is kept"
    );
    // Another issuer is pinned: what the first one issued is of no use.
    let pinned = AuthConfig {
        issuer: Some("https://other.example".to_owned()),
        ..AuthConfig::default()
    };
    assert_eq!(
        header(&server(&all, &script, pinned).of(None)).await,
        Ok(None)
    );
    drop((all, account, journal));
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(
            !bytes.windows(7).any(|window| window == b"canary-"),
            "{}",
            file.path().display()
        );
    }
}
