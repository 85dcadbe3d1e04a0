//! Issued tokens joined with the configuration, over a real journal.

use std::path::Path;
use std::sync::Arc;

use auth::{Credential, Identities, Participant};
use model::TopicName;
use store::JournalWriter;

use super::*;
use crate::config::ParticipantConfig;
use crate::identities::identities;
use topic::section::TopicSection;

fn open_at(dir: &Path) -> Ledger<AccessState> {
    JournalWriter::open(dir).unwrap().ledger().unwrap()
}

fn config(participants: Vec<ParticipantConfig>) -> IdentityConfig {
    let topic = TopicSection {
        name: TopicName::new("main").unwrap(),
        access: topic::section::Access::Restricted,
        anonymous: None,
        anonymous_rate: topic::section::GUEST_RATE,
        history: 0,
        servers: Vec::new(),
        mcp_calls: topic::section::McpCalls::Kinds,
        builtin: Vec::new(),
        tools: None,
        tools_list: <_>::default(),
        list_wait: std::time::Duration::from_secs(1),
        proposal_ttl: std::time::Duration::from_secs(300),
        destructive_approvals: 1,
        result_bytes_max: None,
    };
    IdentityConfig {
        participants,
        topics: vec![topic],
        ..IdentityConfig::default()
    }
}

fn scout(capabilities: &[&str]) -> ParticipantConfig {
    ParticipantConfig {
        participant: Arc::new(Participant::new(
            ParticipantId::new("scout").unwrap(),
            Arc::new(Capabilities::parse(capabilities.iter().copied()).unwrap()),
            vec![TopicName::new("main").unwrap()],
        )),
        credentials: vec![Credential {
            hash: TokenHash::of("pm_configured"),
            expires_ms: None,
        }],
        certificates: Vec::new(),
        subject: None,
        capabilities_written: true,
        shadow: None,
        serves: false,
    }
}

fn request(name: &str, capabilities: Option<&[&str]>) -> TokenRequest {
    let capabilities =
        capabilities.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
    TokenRequest {
        name: name.into(),
        capabilities,
        ..TokenRequest::default()
    }
}

fn held(identities: &Identities, token: &str, now_ms: u64) -> Option<Vec<String>> {
    let found = identities.identify(Some(token), now_ms).ok()?;
    Some(
        found
            .capabilities
            .iter()
            .map(|one| one.as_str().to_owned())
            .collect(),
    )
}

#[test]
fn a_token_works_until_it_expires_or_is_revoked_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Vec::new());
    let journal = open_at(dir.path());
    assert!(
        !journal
            .state(|state| identities(&config, state, false, None))
            .requires_token()
    );
    let request = TokenRequest {
        lifetime_ms: Some(100),
        ..request("ci", Some(&["chat"]))
    };
    let TokenWithSecret {
        token,
        shown: issued,
        closes,
    } = issue(
        &journal,
        &config,
        Authority::Operator,
        request,
        &[1; 32],
        1_000,
    )
    .unwrap();
    assert!(closes, "callers needed none before");
    assert!(token.starts_with("pm_") && issued.expires_ms == Some(1_100));
    drop(journal);
    let journal = open_at(dir.path());
    let known = journal.state(|state| identities(&config, state, false, None));
    assert_eq!(held(&known, &token, 1_099), Some(vec!["chat".into()]));
    assert_eq!(held(&known, &token, 1_100), None);
    revoke(&journal, &config, Authority::Operator, "ci", 1_050).unwrap();
    let known = journal.state(|state| identities(&config, state, known.requires_token(), None));
    assert!(
        known.requires_token(),
        "a running gateway does not open when its last token goes"
    );
    assert_eq!(held(&known, &token, 1_050), None);
    assert_eq!(
        revoke(&journal, &config, Authority::Operator, "ci", 1_060)
            .unwrap_err()
            .code,
        RefusalCode::UnknownTarget
    );
}

#[test]
fn configured_capabilities_win_and_new_participants_may_propose() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(vec![scout(&["mcp/*"])]);
    let journal = open_at(dir.path());
    let TokenWithSecret { token: first, .. } = issue(
        &journal,
        &config,
        Authority::Operator,
        request("scout", None),
        &[1; 32],
        1,
    )
    .unwrap();
    let TokenWithSecret { token: second, .. } = issue(
        &journal,
        &config,
        Authority::Operator,
        request("new", None),
        &[2; 32],
        1,
    )
    .unwrap();
    let known = journal.state(|state| identities(&config, state, false, None));
    assert_eq!(held(&known, &first, 1), Some(vec!["mcp/*".into()]));
    assert_eq!(held(&known, "pm_configured", 1), Some(vec!["mcp/*".into()]));
    assert_eq!(
        held(&known, &second, 1).unwrap(),
        ["mcp/proposal:*", "mcp/response:*", "chat"]
    );
}

#[test]
fn an_invalid_request_is_refused_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = IdentityConfig {
        servers: vec![ParticipantId::new("search").unwrap()],
        ..config(vec![scout(&["mcp/*"])])
    };
    let journal = open_at(dir.path());
    issue(
        &journal,
        &config,
        Authority::Operator,
        request("ci", None),
        &[1; 32],
        1,
    )
    .unwrap();
    let nowhere = TokenRequest {
        topics: Some(vec!["nowhere".into()]),
        ..request("a", None)
    };
    for (request, code) in [
        (request("", None), RefusalCode::Malformed),
        (request("two words", None), RefusalCode::Malformed),
        (request("portmoot", None), RefusalCode::Malformed),
        (request("local", None), RefusalCode::Malformed),
        (request("search", None), RefusalCode::Malformed),
        (request("ci", None), RefusalCode::Forbidden),
        (request("a", Some(&["*"])), RefusalCode::Malformed),
        (request("scout", Some(&["chat"])), RefusalCode::Malformed),
        (nowhere, RefusalCode::Malformed),
    ] {
        let found = issue(
            &journal,
            &config,
            Authority::Operator,
            request.clone(),
            &[9; 32],
            1,
        );
        assert_eq!(
            found.map(drop).map_err(|refusal| refusal.code),
            Err(code),
            "{request:?}"
        );
    }
    assert_eq!(journal.state(|state| state.tokens().len()), 1);
}

#[test]
fn a_rotated_token_stays_valid_for_a_while_and_older_ones_end() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Vec::new());
    let journal = open_at(dir.path());
    let request = TokenRequest {
        lifetime_ms: Some(1_000),
        ..request("ci", Some(&["chat"]))
    };
    let first = issue(&journal, &config, Authority::Operator, request, &[1; 32], 0).unwrap();
    let rotate = |overlap_ms, random: u8, now_ms| {
        rotate(
            &journal,
            &config,
            Authority::Operator,
            "ci",
            overlap_ms,
            &[random; 32],
            now_ms,
        )
        .unwrap()
    };
    let second = rotate(100, 2, 500);
    assert_eq!(
        (second.shown.created_ms, second.shown.expires_ms),
        (500, Some(1_500))
    );
    let valid = |token: &TokenWithSecret, now_ms| {
        let known = journal.state(|state| identities(&config, state, true, None));
        held(&known, &token.token, now_ms)
    };
    let chat = Some(vec!["chat".to_owned()]);
    assert_eq!(
        [599, 600].map(|now| valid(&first, now)),
        [chat.clone(), None]
    );
    assert_eq!(
        [600, 1_499, 1_500].map(|now| valid(&second, now)),
        [chat.clone(), chat.clone(), None]
    );
    // The overlap does not outlast the token itself, and a third token ends the first.
    let third = rotate(5_000, 3, 550);
    assert_eq!(
        [
            valid(&first, 551),
            valid(&second, 1_499),
            valid(&second, 1_500)
        ],
        [None, chat.clone(), None]
    );
    assert_eq!(valid(&third, 1_549), chat);
    // Without an overlap the token before ends at once.
    rotate(0, 4, 560);
    assert_eq!(valid(&third, 560), None);
    let unknown = super::rotate(
        &journal,
        &config,
        Authority::Operator,
        "other",
        1,
        &[9; 32],
        1,
    );
    assert_eq!(
        unknown.map(drop).unwrap_err().code,
        RefusalCode::UnknownTarget
    );
}
