use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tls::ClientTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// An identity provider that answers with what it was given last for a path; each connection has
/// one request.
struct Provider {
    origin: String,
    asked: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<VecDeque<(String, String)>>>,
    open: Arc<AtomicUsize>,
}

impl Provider {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let answers = Arc::<Mutex<VecDeque<(String, String)>>>::default();
        let open = Arc::<AtomicUsize>::default();
        let asked_of = Arc::clone(&asked);
        let answers_of = Arc::clone(&answers);
        let open_of = Arc::clone(&open);
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let asked = Arc::clone(&asked_of);
                let answers = Arc::clone(&answers_of);
                let open = Arc::clone(&open_of);
                tokio::spawn(async move {
                    open.fetch_add(1, Ordering::SeqCst);
                    let mut text = Vec::new();
                    let mut part = [0; 4096];
                    while !is_whole(&text) {
                        let read = socket.read(&mut part).await.unwrap_or(0);
                        if read == 0 {
                            return;
                        }
                        text.extend_from_slice(&part[..read]);
                    }
                    let text = String::from_utf8(text).unwrap();
                    let path = text.split(' ').nth(1).unwrap().to_owned();
                    asked.lock().push(text);
                    let found = answers
                        .lock()
                        .iter()
                        .rev()
                        .find(|(at, _)| *at == path)
                        .map(|(_, answer)| answer.clone());
                    let answer = found.unwrap_or_else(|| {
                        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".into()
                    });
                    socket.write_all(answer.as_bytes()).await.unwrap();
                });
            }
        });
        Self {
            origin,
            asked,
            answers,
            open,
        }
    }

    fn answers(&self, path: &str, headers: &str, body: &str) {
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        self.answers.lock().push_back((path.to_owned(), answer));
    }

    fn describes_itself(&self, path: &str, issuer: &str) {
        let body = json!({"issuer": issuer, "jwks_uri": format!("{}/keys", self.origin),
                          "introspection_endpoint": format!("{}/about", self.origin)});
        self.answers(path, "", &body.to_string());
    }

    fn has_keys(&self, ids: &[&str], headers: &str) {
        self.answers("/keys", headers, &key_set(ids));
    }

    fn asked_for(&self, path: &str) -> usize {
        self.asked
            .lock()
            .iter()
            .filter(|text| text.split(' ').nth(1) == Some(path))
            .count()
    }

    fn issuer(&self, issuer: &str, source: TokenCheck) -> Arc<Issuer> {
        let spec = IssuerSpec {
            issuer: issuer.to_owned(),
            source,
            allowed: Vec::new(),
        };
        Issuer::new(spec, Dialer::new(ClientTls::of_machine())).unwrap()
    }
}

fn is_whole(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length: ")
            .map(str::to_owned)
    });
    length.is_none_or(|length| body.len() >= length.parse().unwrap())
}

fn key_set(ids: &[&str]) -> String {
    let key = |id: &&str| json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    json!({"keys": ids.iter().map(key).collect::<Vec<_>>()}).to_string()
}

#[tokio::test]
async fn issuers_are_discovered_in_the_order_of_clients() {
    for at in 0..3 {
        let provider = Provider::start().await;
        let issuer = format!("{}/realms/x", provider.origin);
        let place = &well_known_urls(&Url::parse(&issuer).unwrap())[at];
        provider.describes_itself(place.strip_prefix(&provider.origin).unwrap(), &issuer);
        provider.has_keys(&["a"], "");
        let known = provider.issuer(&issuer, TokenCheck::Keys(None));
        assert!(known.look_for_key(None).await, "{place}");
        assert_eq!(
            (known.keys().unwrap().len(), known.condition()),
            (1, Condition::Ready)
        );
        assert_eq!(provider.asked.lock().len(), at + 2);
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_is_refused() {
    let provider = Provider::start().await;
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ] {
        // One slash more.
        provider.describes_itself(path, &format!("{}/", provider.origin));
    }
    provider.has_keys(&["a"], "");
    let known = provider.issuer(&provider.origin, TokenCheck::Keys(None));
    assert!(!known.look_for_key(None).await);
    let Condition::Unreachable(why) = known.condition() else {
        panic!("{:?}", known.condition())
    };
    assert!(why.contains("not of the issuer"), "{why}");
    assert_eq!(provider.asked_for("/keys"), 0);
}

#[tokio::test]
async fn unknown_keys_are_looked_for_once_by_all_that_wait_and_seldom() {
    let provider = Provider::start().await;
    provider.has_keys(&["a"], "");
    let known = provider.issuer(
        &provider.origin,
        TokenCheck::Keys(Some(format!("{}/keys", provider.origin))),
    );
    assert!(known.look_for_key(None).await);
    let seen = known.keys();
    provider.has_keys(&["b", "a"], "");
    let looks = (0..20).map(|_| {
        let known = Arc::clone(&known);
        let seen = seen.clone();
        tokio::spawn(async move { known.look_for_key(seen.as_ref()).await })
    });
    for look in looks.collect::<Vec<_>>() {
        assert!(look.await.unwrap());
    }
    assert_eq!(provider.asked_for("/keys"), 2);
    provider.has_keys(&["c"], "");
    assert!(
        !known.look_for_key(known.keys().as_ref()).await,
        "it was looked for a moment ago"
    );
    assert_eq!(provider.asked_for("/keys"), 2);
}

#[tokio::test]
async fn keys_stay_while_the_issuer_fails_and_are_not_sent_twice() {
    let provider = Provider::start().await;
    provider.has_keys(
        &["a"],
        "etag: \"1\"\r\ncache-control: public, max-age=3600\r\n",
    );
    let known = provider.issuer(
        &provider.origin,
        TokenCheck::Keys(Some(format!("{}/keys", provider.origin))),
    );
    known.fetch().await;
    assert!(known.due() > Duration::from_secs(3500), "{:?}", known.due());
    let unchanged = "HTTP/1.1 304 Not Modified\r\ncontent-length: 0\r\n\r\n".to_owned();
    provider
        .answers
        .lock()
        .push_back(("/keys".into(), unchanged));
    known.fetch().await;
    assert_eq!(known.condition(), Condition::Ready);
    assert!(
        provider.asked.lock()[1]
            .to_lowercase()
            .contains("if-none-match: \"1\"")
    );
    for (body, why) in [
        ("{}", "no JSON Web Key Set"),
        ("{\"keys\":[]}", "no public key"),
    ] {
        provider.answers("/keys", "", body);
        known.fetch().await;
        let Condition::Stale(found) = known.condition() else {
            panic!("{:?}", known.condition())
        };
        assert!(found.contains(why), "{found}");
        assert_eq!(known.keys().unwrap().len(), 1);
    }
    assert!(known.due() <= KEYS_RETRY);
    let long = "x".repeat(auth::jwt::JWKS_BYTES_MAX + 1);
    provider.answers("/keys", "", &long);
    known.fetch().await;
    assert!(matches!(known.condition(), Condition::Stale(why) if why.contains("longer than")));
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_fails_is_asked_again_soon_and_no_fetch_takes_long() {
    // It takes connections and says nothing: discovery has three addresses, and one limit.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}/x", listener.local_addr().unwrap());
    let spec = IssuerSpec {
        issuer,
        source: TokenCheck::Keys(None),
        allowed: Vec::new(),
    };
    let known = Issuer::new(spec, Dialer::new(ClientTls::of_machine())).unwrap();
    let begun = Instant::now();
    assert!(!known.look_for_key(None).await);
    assert!(
        begun.elapsed() <= KEYS_LIMIT + Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert!(known.is_stale() && known.due() <= KEYS_RETRY_FIRST);
    assert_eq!(known.asked().keys, Count { all: 1, failed: 1 });
}

#[tokio::test]
async fn ages_of_keys_have_bounds() {
    for (control, expect) in [
        ("max-age=3600", 3600),
        ("public, max-age=5", 60),
        ("max-age=9999999", 86_400),
        ("no-store", 900),
        ("", 900),
    ] {
        let mut headers = http::HeaderMap::new();
        headers.insert(http::header::CACHE_CONTROL, control.parse().unwrap());
        assert_eq!(
            Freshness::of(&headers).fresh,
            Duration::from_secs(expect),
            "{control}"
        );
    }
}

#[tokio::test]
async fn an_issuer_is_asked_about_opaque_tokens() {
    let provider = Provider::start().await;
    provider.describes_itself("/.well-known/oauth-authorization-server", &provider.origin);
    provider.answers("/about", "", r#"{"active":true,"sub":"ann"}"#);
    let credentials = Credentials {
        client_id: "a b".into(),
        client_secret: "s:1".into(),
    };
    assert!(!format!("{credentials:?}").contains("s:1"));
    let known = provider.issuer(
        &provider.origin,
        TokenCheck::Introspection(None, credentials),
    );
    let answer = known.introspect("tok en").await.unwrap();
    assert_eq!(answer["sub"], "ann");
    let asked = provider.asked.lock().last().unwrap().clone();
    assert!(
        asked.ends_with("token=tok+en&token_type_hint=access_token"),
        "{asked}"
    );
    assert!(
        asked.to_lowercase().contains(&format!(
            "authorization: basic {}",
            "YStiOnMlM0Ex".to_lowercase()
        )),
        "{asked}"
    );
    provider.answers.lock().push_back((
        "/about".into(),
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".into(),
    ));
    assert!(matches!(
        known.introspect("t").await,
        Err(IssuerError::Status(_, 401))
    ));
    for (answer, why) in [
        ("{}", "whether the token is active"),
        (r#"{"active":"true"}"#, "active"),
        ("[]", "no JSON object"),
    ] {
        provider.answers("/about", "", answer);
        let error = known.introspect("t").await.unwrap_err().to_string();
        assert!(error.contains(why), "{answer}: {error}");
    }
    assert!(matches!(known.condition(), Condition::Unreachable(_)));
    assert!(provider.open.load(Ordering::SeqCst) > 2);
}
