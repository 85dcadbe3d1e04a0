//! Accounts of sessions: each has the tokens of one sign-in.

use super::*;
use crate::account::session::SessionAccount;

#[tokio::test]
async fn a_session_has_the_tokens_of_one_sign_in() {
    let script = Script::start().await;
    let all = accounts(None);
    let account = server(
        &all,
        &script,
        AuthConfig {
            account: Whose::Caller,
            ..AuthConfig::default()
        },
    )
    .of(Some("ann"));
    let session = || SessionAccount::new(Arc::clone(&account));
    let sent = async |session: &SessionAccount| {
        session
            .grant()
            .await
            .map_err(fault)
            .map(|grant| grant.header)
    };
    // Nothing was sent in its name before the first sign-in.
    let early = session();
    sign_in(&all, &account, &script).await.unwrap();
    assert_eq!(
        (early.is_void(), sent(&early).await),
        (false, Ok(bearer("canary-a0")))
    );
    // A renewal is the same person's.
    let stamp = early.stamp();
    early.refused(stamp, 0, unauthorized()).await.unwrap();
    assert_eq!(
        (early.is_void(), sent(&early).await),
        (false, Ok(bearer("canary-a1")))
    );
    assert_eq!(early.at_hand().unwrap().header, bearer("canary-a1"));
    for is_sign_out in [false, true] {
        let before = session();
        let stamp = before.stamp();
        assert_ne!(stamp, 0);
        if is_sign_out {
            account.sign_out("boss").await.unwrap();
        } else {
            sign_in(&all, &account, &script).await.unwrap();
        }
        assert_eq!(
            (before.is_void(), before.stamp()),
            (true, 0),
            "{is_sign_out}"
        );
        assert!(before.at_hand().is_none(), "{is_sign_out}");
        let expect = if is_sign_out {
            AccountFault::LoginNeeded
        } else {
            AccountFault::Replaced
        };
        assert_eq!(sent(&before).await, Err(expect), "{is_sign_out}");
        let asked = script.asked().len();
        assert_eq!(
            before
                .refused(stamp, 0, unauthorized())
                .await
                .map_err(fault),
            Err(AccountFault::Replaced)
        );
        assert_eq!(script.asked().len(), asked, "no token is renewed for it");
    }
    // What is begun now is the next person's.
    let next = session();
    sign_in(&all, &account, &script).await.unwrap();
    assert_eq!(
        (next.is_void(), sent(&next).await),
        (false, Ok(bearer("canary-a3")))
    );
}
