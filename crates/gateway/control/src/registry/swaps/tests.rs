use std::sync::atomic::{AtomicBool, Ordering};

use identity::grants::GrantRequest;
use identity::tokens::TokenRequest;

use super::*;
use model::ParticipantId;
use platform::unix_ms;

use crate::admin::{Admin, tests::started};

/// A participant with a token that is issued and revoked again and again, and has a grant meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_reads_the_identities_of_one_state_and_the_grants_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let (access, registry) = started(dir.path());
    let admin = Admin::new(access, Arc::clone(&registry));
    let boss = local_user(&registry.config().identity);
    let scout = ParticipantId::new("scout").unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = {
        let registry = Arc::clone(&registry);
        let scout = scout.clone();
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let none = Arc::default();
            let mut granted = 0_usize;
            while !is_over.load(Ordering::Acquire) {
                let now = registry.now();
                let now_ms = unix_ms();
                let is_known = now.identities.participant(&scout, now_ms).is_some();
                let is_granted = !Arc::ptr_eq(&now.grants.over(&scout, &none, None, now_ms), &none);
                assert!(is_known || !is_granted, "a grant of a token that is gone");
                granted += usize::from(is_granted);
            }
            granted
        })
    };
    for _ in 0..20 {
        let before = registry.epoch();
        let request = TokenRequest {
            name: "scout".to_owned(),
            ..TokenRequest::default()
        };
        admin.issue_token(&boss, true, request).unwrap();
        let grant = GrantRequest {
            participant: scout.clone(),
            topic: None,
            add: vec!["mcp/request:tools/call:dig".to_owned()],
            remove: Vec::new(),
            expires_ms: None,
            reason: None,
        };
        let granted = admin.grant(&grant, &boss).unwrap();
        assert_ne!(granted.before, granted.now);
        assert!(registry.epoch() > before, "doors look again");
        admin.revoke_tokens(&boss, "scout").unwrap();
    }
    is_over.store(true, Ordering::Release);
    assert!(reader.join().unwrap() > 0, "the reader saw none of it");
}
