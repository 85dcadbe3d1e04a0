//! Reloads that meet a renewal, a sign-in or its end.

use std::time::Duration;

use tokio::time::timeout;

use super::*;
use crate::account::Flight;

const LIMIT: Duration = Duration::from_secs(20);

/// Another configuration of the server, which changes nothing for what is kept.
fn other(number: usize) -> AuthConfig {
    AuthConfig {
        audience: Some(format!("c{number}")),
        ..AuthConfig::default()
    }
}

async fn until(what: &str, check: impl Fn() -> bool) {
    let waiting = async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LIMIT, waiting)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test]
async fn a_reload_during_a_renewal_loses_nothing() {
    for (reloads, is_removed) in [(1, false), (2, false), (3, false), (1, true), (2, true)] {
        let script = Script::start().await;
        let folder = tempfile::tempdir().unwrap();
        let journal = JournalWriter::open(folder.path()).unwrap();
        let all = accounts(Some(&journal));
        let account = server(&all, &script, AuthConfig::default()).of(None);
        script.tokens.lock().unwrap().push(tokens("old", 0));
        sign_in(&all, &account, &script).await.unwrap();
        let held = script.gate.lock().await;
        let old = Arc::clone(&account);
        let renewing = tokio::spawn(async move { header(&old).await });
        until("the renewal is under way", || {
            script.arrived.load(Ordering::SeqCst) == 2
        })
        .await;
        let reload = |number| {
            if is_removed {
                all.retain(&[]);
            }
            server(&all, &script, other(number)).of(None)
        };
        let new: Vec<Arc<Account>> = (0..reloads).map(reload).collect();
        let last = Arc::clone(new.last().unwrap());
        let asking = Arc::clone(&last);
        let asking = tokio::spawn(async move { header(&asking).await });
        tokio::task::yield_now().await;
        assert!(!asking.is_finished() && last.state().state == "refreshing");
        drop(held);
        assert_eq!(
            timeout(LIMIT, renewing).await.unwrap().unwrap(),
            Ok(bearer("canary-a0"))
        );
        assert_eq!(
            timeout(LIMIT, asking).await.unwrap().unwrap(),
            Ok(bearer("canary-a0")),
            "{reloads}"
        );
        let asked = script.asked();
        let used = asked
            .iter()
            .filter(|body| body.contains("refresh_token=r-old"))
            .count();
        assert_eq!((asked.len(), used), (2, 1), "{asked:?}");
        // The next renewal is by the newest token, and by the configuration in force alone.
        assert_eq!(refused(&last, 0, unauthorized()).await, Ok(()));
        assert!(
            script
                .asked()
                .last()
                .unwrap()
                .contains("refresh_token=canary-r0")
        );
        for before in new.iter().rev().skip(1).chain([&account]) {
            let stamp = before.stamp();
            let asked = before
                .refused(stamp, 0, unauthorized())
                .await
                .map_err(fault);
            assert_eq!(asked, Err(AccountFault::Replaced));
            assert_eq!(before.sign_out("boss").await, Err(AccountFault::Replaced));
        }
        assert_eq!(
            (script.asked().len(), header(&last).await),
            (3, Ok(bearer("canary-a1")))
        );
    }
}

#[tokio::test]
async fn a_sign_in_that_a_reload_interrupts_is_refused_with_words() {
    for is_asking in [false, true] {
        let script = Script::start().await;
        let folder = tempfile::tempdir().unwrap();
        let journal = JournalWriter::open(folder.path()).unwrap();
        let all = Arc::new(accounts(Some(&journal)));
        let account = server(&all, &script, AuthConfig::default()).of(None);
        let state = state_of(&all.logins.begin(&account, wish()).await.unwrap().url);
        let callback = format!(
            "http://127.0.0.1:1/callback?code=c&state={state}&iss={}",
            script.origin
        );
        let complete = || {
            let all = Arc::clone(&all);
            let callback = callback.clone();
            async move {
                all.logins
                    .complete(&callback, Some("boss"), None)
                    .await
                    .map(|_| ())
            }
        };
        let ended = if is_asking {
            // The reload comes while the authorization server is asked for tokens.
            let held = script.gate.lock().await;
            let completing = tokio::spawn(complete());
            until("the code is exchanged", || {
                script.arrived.load(Ordering::SeqCst) == 1
            })
            .await;
            server(&all, &script, other(0));
            drop(held);
            timeout(LIMIT, completing).await.unwrap().unwrap()
        } else {
            server(&all, &script, other(0));
            complete().await
        };
        assert_eq!(ended, Err(LoginError::Replaced));
        let refusal = LoginError::Replaced.refusal("jira");
        assert!(refusal.message.contains("configured anew"), "{refusal}");
        assert!(
            refusal
                .hint
                .unwrap()
                .contains("portmoot servers login jira")
        );
        assert_eq!(
            script.asked().len(),
            usize::from(is_asking),
            "a code that cannot be used is not"
        );
        assert_eq!(
            all.logins.begin(&account, wish()).await.err(),
            Some(LoginError::Replaced)
        );
        // Neither configuration has it, now or after a restart.
        let new = all.server("jira").unwrap().of(None);
        assert_eq!((account.is_empty(), new.is_empty()), (true, true));
        assert!(
            server(&accounts(Some(&journal)), &script, other(0))
                .of(None)
                .is_empty()
        );
        // The next one counts.
        sign_in(&all, &new, &script).await.unwrap();
        assert_eq!(new.state().state, "ready");
    }
}

#[tokio::test]
async fn what_was_being_written_at_a_reload_is_taken_over() {
    let script = Script::start().await;
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(folder.path()).unwrap();
    let all = accounts(Some(&journal));
    let before = server(&all, &script, AuthConfig::default());
    sign_in(&all, &before.of(None), &script).await.unwrap();
    let vault = &all.services().vault;
    let place = before.of(None).place();
    let kept = vault.account(&place, None).unwrap();
    vault.end(&place).await.unwrap();
    // A sign-in that was being written when the new configuration read what is kept.
    let flight = Flight::default();
    let writing = Arc::clone(&flight).lock_owned().await;
    let account = Account::new(&before.site, None, None, Some(Arc::clone(&flight)));
    let mut changes = before.site.changes();
    vault.keep(&place, &kept).await.unwrap();
    assert!(account.is_empty());
    drop(writing);
    timeout(LIMIT, changes.changed()).await.unwrap().unwrap();
    assert_eq!(header(&account).await, Ok(bearer("canary-a0")));
    // A request that comes first does the same.
    let mut older = kept.clone();
    (older.at_ms, older.tokens.expires_ms) = (kept.at_ms - 1, Some(0));
    older.tokens.access = crate::secret::Secret::new("older".to_owned());
    let early = Account::new(&before.site, None, Some(older), None);
    assert_eq!(
        (early.stamp(), header(&early).await),
        (0, Ok(bearer("canary-a0")))
    );
    assert_eq!(script.asked().len(), 1, "no refresh token is used for it");
    // The same with the end of one.
    let writing = Arc::clone(&flight).lock_owned().await;
    let account = Account::new(&before.site, None, Some(kept), Some(flight));
    vault.end(&place).await.unwrap();
    drop(writing);
    timeout(LIMIT, changes.changed()).await.unwrap().unwrap();
    assert_eq!(header(&account).await, Err(AccountFault::LoginNeeded));
}

#[tokio::test]
async fn every_part_of_a_servers_configuration_reaches_its_accounts() {
    let script = Script::start().await;
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalWriter::open(folder.path()).unwrap();
    let all = accounts(Some(&journal));
    let url = format!("{}/mcp", script.origin);
    let machine = ClientTls::of_machine();
    let pinned = ClientTls::pinned([1; 32]);
    let configure = |url: &str, tls: &ClientTls, auth: AuthConfig| {
        let (server, same) = all.configure(&Configured {
            name: "jira",
            url,
            tls,
            auth: &auth,
        });
        (server.unwrap(), same)
    };
    let (first, _) = configure(&url, &machine, AuthConfig::default());
    sign_in(&all, &first.of(None), &script).await.unwrap();
    let (again, same) = configure(&url, &machine, AuthConfig::default());
    assert!(same && Arc::ptr_eq(&first, &again));
    let (second, same) = configure(&url, &pinned, AuthConfig::default());
    assert!(!same && first.site.is_replaced() && second.site.tls == pinned);
    assert_eq!(
        header(&second.of(None)).await,
        Ok(bearer("canary-a0")),
        "the account is the same"
    );
    // Tokens of a person are of no use to a machine.
    let machines = AuthConfig {
        kind: AuthorizationKind::ClientCredentials,
        client_id: Some("me".to_owned()),
        ..other(0)
    };
    let (third, same) = configure(&url, &machine, machines);
    assert!(!same && third.of(None).is_empty());
    let none = AuthConfig {
        kind: AuthorizationKind::None,
        ..AuthConfig::default()
    };
    let gone = all.configure(&Configured {
        name: "jira",
        url: &url,
        tls: &machine,
        auth: &none,
    });
    assert!(gone.0.is_none() && third.site.is_replaced() && all.servers().is_empty());
}
