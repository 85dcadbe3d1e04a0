//! Issued tokens joined with the configuration, over a real journal.

use std::sync::Arc;

use auth::{Credential, Identities, Participant};
use model::TopicName;

use super::*;
use crate::config::{ParticipantConfig, TopicConfig};
use crate::identities::identities;

fn config(participants: Vec<ParticipantConfig>) -> Config {
    let topic = TopicConfig {
        name: TopicName::new("main").unwrap(),
        access: crate::config::Access::Restricted,
        anonymous: None,
        anonymous_rate: crate::guests::GUEST_RATE,
        history: 0,
        servers: Vec::new(),
        mcp_calls: crate::config::McpCalls::Kinds,
        builtin: Vec::new(),
        list_wait: std::time::Duration::from_secs(1),
        proposal_ttl: std::time::Duration::from_secs(300),
    };
    Config { participants, topics: vec![topic], ..Config::default() }
}

fn scout(capabilities: &[&str]) -> ParticipantConfig {
    ParticipantConfig {
        participant: Arc::new(Participant {
            id: ParticipantId::new("scout").unwrap(),
            capabilities: Arc::new(Capabilities::parse(capabilities.iter().copied()).unwrap()),
            topics: vec![TopicName::new("main").unwrap()],
            rate: None,
        }),
        credentials: vec![Credential { hash: TokenHash::of("pm_configured"), expires_ms: None }],
        capabilities_written: true,
        serves: None,
    }
}

fn request(name: &str, capabilities: Option<&[&str]>) -> TokenRequest {
    let capabilities = capabilities.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
    TokenRequest { name: name.into(), capabilities, ..TokenRequest::default() }
}

fn held(identities: &Identities, token: &str, now_ms: u64) -> Option<Vec<String>> {
    let found = identities.identify(Some(token), now_ms).ok()?;
    Some(found.capabilities.iter().map(|one| one.as_str().to_owned()).collect())
}

#[test]
fn a_token_works_until_it_expires_or_is_revoked_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Vec::new());
    let journal = JournalWriter::open(dir.path()).unwrap();
    assert!(!journal.state(|state| identities(&config, state, false)).requires_token());
    let request = TokenRequest { lifetime_ms: Some(100), ..request("ci", Some(&["chat"])) };
    let TokenWithSecret { token, shown: issued } =
        issue(&journal, &config, request, &[1; 32], 1_000).unwrap();
    assert!(token.starts_with("pm_") && issued.expires_ms == Some(1_100));
    drop(journal);
    let journal = JournalWriter::open(dir.path()).unwrap();
    let known = journal.state(|state| identities(&config, state, false));
    assert_eq!(held(&known, &token, 1_099), Some(vec!["chat".into()]));
    assert_eq!(held(&known, &token, 1_100), None);
    revoke(&journal, "ci", 1_050).unwrap();
    let known = journal.state(|state| identities(&config, state, known.requires_token()));
    assert!(known.requires_token(), "a running gateway does not open when its last token goes");
    assert_eq!(held(&known, &token, 1_050), None);
    assert_eq!(revoke(&journal, "ci", 1_060).unwrap_err().code, RefusalCode::UnknownTarget);
}

#[test]
fn configured_capabilities_win_and_new_participants_may_propose() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(vec![scout(&["mcp/*"])]);
    let journal = JournalWriter::open(dir.path()).unwrap();
    let TokenWithSecret { token: first, .. } =
        issue(&journal, &config, request("scout", None), &[1; 32], 1).unwrap();
    let TokenWithSecret { token: second, .. } =
        issue(&journal, &config, request("new", None), &[2; 32], 1).unwrap();
    let known = journal.state(|state| identities(&config, state, false));
    assert_eq!(held(&known, &first, 1), Some(vec!["mcp/*".into()]));
    assert_eq!(held(&known, "pm_configured", 1), Some(vec!["mcp/*".into()]));
    assert_eq!(held(&known, &second, 1).unwrap(), ["mcp/proposal:*", "mcp/response:*", "chat"]);
}

#[test]
fn an_invalid_request_is_refused_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(vec![scout(&["mcp/*"])]);
    let journal = JournalWriter::open(dir.path()).unwrap();
    issue(&journal, &config, request("ci", None), &[1; 32], 1).unwrap();
    let nowhere = TokenRequest { topics: Some(vec!["nowhere".into()]), ..request("a", None) };
    for (request, code) in [
        (request("", None), RefusalCode::Malformed),
        (request("two words", None), RefusalCode::Malformed),
        (request("portmoot", None), RefusalCode::Malformed),
        (request("local", None), RefusalCode::Malformed),
        (request("ci", None), RefusalCode::Forbidden),
        (request("a", Some(&["*"])), RefusalCode::Malformed),
        (request("scout", Some(&["chat"])), RefusalCode::Malformed),
        (nowhere, RefusalCode::Malformed),
    ] {
        let found = issue(&journal, &config, request.clone(), &[9; 32], 1);
        assert_eq!(found.map(drop).map_err(|refusal| refusal.code), Err(code), "{request:?}");
    }
    assert_eq!(journal.state(|state| state.tokens().len()), 1);
}
