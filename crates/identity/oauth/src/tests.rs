//! Sign-ins and renewals against a scripted authorization server on loopback.

mod clients;
mod keys;
mod reload;
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
async fn a_hundred_calls_at_the_expiry_renew_once() {
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(&all, &script, AuthConfig::default()).of(None);
    script.tokens.lock().unwrap().push(tokens("old", 0));
    sign_in(&all, &account, &script).await.unwrap();
    assert_eq!(account.stamp(), 0);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let account = Arc::clone(&account);
        calls.spawn(async move { header(&account).await });
    }
    while let Some(header) = calls.join_next().await {
        assert_eq!(header.unwrap(), Ok(bearer("canary-a0")));
    }
    let asked = script.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(
        asked[1].contains("grant_type=refresh_token&refresh_token=r-old")
            && !asked[1].contains("scope=")
    );
    // The same after a refusal by the server: one renewal for all that were refused.
    let stamp = account.grant().await.ok().unwrap().stamp;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let account = Arc::clone(&account);
        calls.spawn(async move { account.refused(stamp, 0, unauthorized()).await });
    }
    while let Some(again) = calls.join_next().await {
        assert_eq!(again.unwrap(), Ok(()));
    }
    assert_eq!(
        (script.asked().len(), header(&account).await),
        (3, Ok(bearer("canary-a1")))
    );
    // The renewed token is refused too: a person has to act.
    assert_eq!(
        refused(&account, 1, unauthorized()).await,
        Err(AccountFault::LoginNeeded)
    );
}

#[tokio::test]
async fn only_a_refused_renewal_ends_a_sign_in() {
    for (answers, expect, state) in [
        (vec![(503, String::new())], "waiting", "waiting"),
        (vec![(429, String::new())], "waiting", "waiting"),
        (
            vec![(400, r#"{"error":"temporarily_unavailable"}"#.to_owned())],
            "waiting",
            "waiting",
        ),
        // What says nothing about the tokens: pages of proxies, answers of another program.
        (
            vec![(200, "<html>hello</html>".to_owned())],
            "waiting",
            "waiting",
        ),
        (
            vec![(404, "<html>no such page</html>".to_owned())],
            "waiting",
            "waiting",
        ),
        (
            vec![(403, r#"{"message":"denied"}"#.to_owned())],
            "waiting",
            "waiting",
        ),
        (
            vec![(
                200,
                r#"{"access_token":"a b","token_type":"Bearer"}"#.to_owned(),
            )],
            "waiting",
            "waiting",
        ),
        (vec![(200, "x".repeat(100_000))], "waiting", "waiting"),
        (
            vec![(400, r#"{"error":"invalid_grant"}"#.to_owned())],
            "lost",
            "needs_login",
        ),
        (
            vec![(401, r#"{"error":"invalid_client"}"#.to_owned())],
            "lost",
            "needs_login",
        ),
    ] {
        let script = Script::start().await;
        let all = accounts(None);
        let account = server(&all, &script, AuthConfig::default()).of(None);
        script.tokens.lock().unwrap().push(tokens("old", 0));
        sign_in(&all, &account, &script).await.unwrap();
        script.tokens.lock().unwrap().extend(answers.clone());
        let found = match header(&account).await {
            Err(AccountFault::Waiting { retry_after_ms, .. })
                if (500..=1_000).contains(&retry_after_ms) =>
            {
                "waiting"
            }
            Err(AccountFault::MetadataRefused(_)) => "waiting",
            Err(AccountFault::LoginLost) => "lost",
            other => panic!("{answers:?} {other:?}"),
        };
        assert_eq!(
            (found, account.state().state),
            (expect, state),
            "{answers:?}"
        );
        // It is not asked again at once, and not at all once it is lost.
        let _ = header(&account).await;
        assert_eq!(script.asked().len(), 2, "{answers:?}");
    }
    // A token that still serves goes on to be used meanwhile.
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(&all, &script, AuthConfig::default()).of(None);
    sign_in(&all, &account, &script).await.unwrap();
    script.tokens.lock().unwrap().push((503, String::new()));
    assert!(refused(&account, 0, unauthorized()).await.is_err());
    assert_eq!(header(&account).await, Ok(bearer("canary-a0")));
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

#[tokio::test]
async fn callers_have_accounts_of_their_own() {
    let script = Script::start().await;
    let all = accounts(None);
    let auth = AuthConfig {
        account: Whose::Caller,
        ..AuthConfig::default()
    };
    let server = server(&all, &script, auth);
    let ann = server.of(Some("ann"));
    let bob = server.of(Some("bob"));
    // Without a token there is no session, not even one without a token.
    assert_eq!(header(&ann).await, Err(AccountFault::LoginNeeded));
    sign_in(&all, &ann, &script).await.unwrap();
    sign_in(&all, &bob, &script).await.unwrap();
    for _ in 0..1_000 {
        assert_eq!(header(&ann).await, Ok(bearer("canary-a0")));
        assert_eq!(header(&bob).await, Ok(bearer("canary-a1")));
    }
    bob.sign_out("boss").await.unwrap();
    assert_eq!(
        (header(&ann).await, header(&bob).await),
        (Ok(bearer("canary-a0")), Err(AccountFault::LoginNeeded))
    );
    assert_eq!(
        server.blocked(None),
        None,
        "no shared session could be blocked"
    );
}

#[tokio::test]
async fn a_machine_asks_by_itself_and_an_exchange_needs_the_callers_token() {
    let script = Script::start().await;
    let all = accounts(None);
    let machine = AuthConfig {
        kind: AuthorizationKind::ClientCredentials,
        client_id: Some("me".to_owned()),
        ..AuthConfig::default()
    };
    let account = server(&all, &script, machine.clone()).of(None);
    assert_eq!(header(&account).await, Ok(None));
    assert_eq!(refused(&account, 0, unauthorized()).await, Ok(()));
    assert_eq!(header(&account).await, Ok(bearer("canary-a0")));
    assert!(script.asked()[0].starts_with("grant_type=client_credentials&scope=read&resource="));
    // The server rejects what was issued just now: the next token is asked for later.
    assert!(matches!(
        refused(&account, 1, unauthorized()).await,
        Err(AccountFault::Refused(_))
    ));
    assert!(matches!(
        refused(&account, 0, unauthorized()).await,
        Err(AccountFault::Refused(_))
    ));
    assert_eq!(
        (script.asked().len(), account.state().state),
        (1, "waiting")
    );
    // The authorization server refuses: so it is asked again, later, without a person.
    let account = server(
        &all,
        &script,
        AuthConfig {
            scopes: vec!["more".to_owned()],
            ..machine.clone()
        },
    )
    .of(None);
    script
        .tokens
        .lock()
        .unwrap()
        .push((401, r#"{"error":"invalid_client"}"#.to_owned()));
    assert!(matches!(
        refused(&account, 0, unauthorized()).await,
        Err(AccountFault::Refused(_))
    ));
    assert_eq!(
        (account.blocked(), account.state().state),
        (None, "waiting")
    );

    let exchange = AuthConfig {
        kind: AuthorizationKind::Exchange,
        account: Whose::Caller,
        audience: Some("api".to_owned()),
        ..machine
    };
    let server = server(&all, &script, exchange);
    let ann = server.of(Some("ann"));
    assert!(matches!(
        refused(&ann, 0, unauthorized()).await,
        Err(AccountFault::MetadataRefused(_) | AccountFault::Refused(_))
    ));
    // Each token is exchanged for its own bearer, also if another one came later.
    let now_ms = unix_ms();
    let participant = ParticipantId::new("ann").unwrap();
    let came = |token: &str, at: u8, ends_ms: u64| {
        let hash = Digest([at; 32]);
        all.came(CheckedToken {
            participant: "ann",
            token,
            hash,
            ends_ms,
        });
        let holder = AccountHolder {
            participant: &participant,
            token: Some(hash),
        };
        (server.of_holder(Some(holder)), hash)
    };
    let (narrow, of_narrow) = came("narrow", 1, now_ms + 60_000);
    let (wide, of_wide) = came("wide", 2, now_ms + 60_000);
    assert_eq!(server.latest_token("ann"), Some(of_wide));
    assert_eq!(came("narrow", 1, now_ms + 60_000).1, of_narrow);
    assert_eq!(server.latest_token("ann"), Some(of_narrow));
    for (account, token) in [(&narrow, "narrow"), (&wide, "wide")] {
        assert_eq!(refused(account, 0, unauthorized()).await, Ok(()));
        let asked = script.asked().pop().unwrap();
        assert!(
            asked.contains(&format!("subject_token={token}&")) && asked.contains("audience=api"),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn accounts_of_exchanged_tokens_end_with_them_and_have_a_bound() {
    let script = Script::start().await;
    let all = accounts(None);
    let exchange = AuthConfig {
        kind: AuthorizationKind::Exchange,
        account: Whose::Caller,
        ..AuthConfig::default()
    };
    let server = server(&all, &script, exchange);
    let ann = ParticipantId::new("ann").unwrap();
    let now_ms = unix_ms();
    let hash = |at: usize| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&at.to_be_bytes());
        Digest(bytes)
    };
    let came = |at: usize, ends_ms: u64| {
        all.came(CheckedToken {
            participant: "ann",
            token: "t",
            hash: hash(at),
            ends_ms,
        });
        SessionAccount::new(server.of_holder(Some(AccountHolder {
            participant: &ann,
            token: Some(hash(at)),
        })))
    };
    let ended = came(0, now_ms.saturating_sub(1));
    let first = came(1, u64::MAX);
    assert!(ended.is_void() && !first.is_void());
    for at in 2..=EXCHANGED_TOKENS_MAX {
        came(at, u64::MAX);
    }
    assert!(!first.is_void());
    came(EXCHANGED_TOKENS_MAX + 1, u64::MAX);
    assert!(first.is_void(), "it was used longest ago");
    assert_eq!(
        server.all(&all.logins).len(),
        1,
        "participants are listed, not tokens"
    );
}
