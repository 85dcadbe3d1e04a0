//! Keys of callers: where they are of use, what a refusal leads to, and what they are not taken
//! for.

use super::*;
use crate::account::CallerKey;
use crate::token::TOKEN_BYTES_MAX;

fn keyed() -> AuthConfig {
    AuthConfig {
        kind: AuthorizationKind::Key,
        account: Whose::Caller,
        ..AuthConfig::default()
    }
}

/// The accounts at a server that is a process.
fn at(all: &ServerAccounts, auth: &AuthConfig, url: &str) -> Arc<AccountServer> {
    let tls = ClientTls::of_machine();
    all.configure(&Configured {
        name: "crm",
        url,
        tls: &tls,
        auth,
    })
    .0
    .unwrap()
}

fn key_of(account: &Arc<Account>) -> Result<Option<String>, AccountFault> {
    SessionAccount::new(Arc::clone(account))
        .key()
        .map(|key| key.map(|key| key.to_string()))
}

#[test]
fn a_key_is_printable_and_bounded() {
    let longest = "x".repeat(TOKEN_BYTES_MAX);
    for (text, is_good) in [
        ("k", true),
        (" a key \n", true),
        (longest.as_str(), true),
        (&(longest.clone() + "x"), false),
        ("", false),
        (" \n", false),
        ("a\nb", false),
        ("a\0b", false),
        ("\u{e4}", false),
    ] {
        assert_eq!(CallerKey::new(text).is_ok(), is_good, "{text:?}");
    }
}

#[tokio::test]
async fn a_key_is_its_participants_at_its_server_alone() {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(folder.path()).unwrap();
    let all = accounts(Some(&journal));
    let server = at(&all, &keyed(), "server:one");
    let ann = server.of(Some("ann"));
    let bob = server.of(Some("bob"));
    assert_eq!(key_of(&ann), Err(AccountFault::KeyNeeded));
    ann.enter_key(CallerKey::new("canary-a").unwrap(), "ann")
        .await
        .unwrap();
    assert_eq!(
        (key_of(&ann), key_of(&bob)),
        (
            Ok(Some("canary-a".to_owned())),
            Err(AccountFault::KeyNeeded)
        )
    );
    // It stands in no header of its own.
    assert!(ann.at_hand().unwrap().header.is_none());
    let session = SessionAccount::new(Arc::clone(&ann));
    ann.enter_key(CallerKey::new("canary-b").unwrap(), "ann")
        .await
        .unwrap();
    assert!(
        session.is_void() && session.key() == Err(AccountFault::Replaced),
        "another key, another session"
    );

    // After a restart it is there, and at another program or as a token of an issuer it is not.
    let again = accounts(Some(&journal));
    let of = |auth: &AuthConfig, url: &str| at(&again, auth, url).of(Some("ann"));
    assert_eq!(
        key_of(&of(&keyed(), "server:one")),
        Ok(Some("canary-b".to_owned()))
    );
    assert_eq!(
        key_of(&of(&keyed(), "server:two")),
        Err(AccountFault::KeyNeeded)
    );
    let over_http = at(&again, &keyed(), "https://crm.example/mcp");
    over_http
        .of(Some("ann"))
        .enter_key(CallerKey::new("canary-c").unwrap(), "ann")
        .await
        .unwrap();
    let by_sign_in = AuthConfig {
        account: Whose::Caller,
        ..AuthConfig::default()
    };
    assert!(
        !of(&by_sign_in, "https://crm.example/mcp").is_ready(),
        "a key is no token"
    );

    let ann = of(&keyed(), "server:one");
    assert_eq!(ann.sign_out("ann").await.unwrap(), None);
    assert_eq!(key_of(&ann), Err(AccountFault::KeyNeeded));
    drop((all, again, server));
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
async fn a_key_that_the_server_refuses_is_asked_for_again() {
    let all = accounts(None);
    let server = at(&all, &keyed(), "https://crm.example/mcp");
    let ann = server.of(Some("ann"));
    ann.enter_key(CallerKey::new("one").unwrap(), "ann")
        .await
        .unwrap();
    let refused = |status| {
        let ann = Arc::clone(&ann);
        async move {
            let stamp = ann.stamp();
            ann.refused(
                stamp,
                0,
                Challenge {
                    status,
                    challenge: String::new(),
                },
            )
            .await
        }
    };
    // A request that may not be made says nothing about the key.
    assert_eq!(
        refused(403).await,
        Err(LinkError::Account(AccountFault::KeyRefused))
    );
    assert_eq!(ann.blocked(), None);
    assert_eq!(
        refused(401).await,
        Err(LinkError::Account(AccountFault::KeyRefused))
    );
    assert_eq!(
        (ann.blocked(), key_of(&ann)),
        (
            Some(AccountFault::KeyRefused),
            Err(AccountFault::KeyRefused)
        )
    );
    ann.enter_key(CallerKey::new("two").unwrap(), "ann")
        .await
        .unwrap();
    assert_eq!(
        (ann.blocked(), key_of(&ann)),
        (None, Ok(Some("two".to_owned())))
    );
    // No person signs in at it.
    let wish = SignInRequest {
        redirect_uri: String::new(),
        usage: Use::Native,
        scopes: Vec::new(),
        by: "ann".to_owned(),
        browser: None,
    };
    let begun = all.logins.begin(&ann, wish).await;
    assert!(matches!(begun, Err(LoginError::NoLogins(_))));
}
