//! Locks that a call acquires, counted.

use std::path::Path;

use upstream::config::{
    EraChoice, Placement, SecretText, ServerConfig, SessionSharing, StdioConfig, Timeouts,
    Transport,
};

use super::*;

/// The most locks of a plain call over HTTP to a server on a pipe, its answer included.
const LOCKS_MAX: f64 = 14.0;
const CALLS: u32 = 64;

/// A server on a pipe with the tool `echo`.
fn echo() -> ServerConfig {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers/upstream/src/tests/echo.py");
    let args = vec![
        SecretText::new(script.to_str().unwrap()),
        SecretText::new("legacy"),
    ];
    ServerConfig {
        name: ParticipantId::new("echo").unwrap(),
        transport: Transport::Stdio(StdioConfig {
            command: "python3".to_owned(),
            args,
            env: Vec::new(),
            cwd: None,
            confinement: Default::default(),
        }),
        prefix: "echo".into(),
        era: EraChoice::Legacy,
        sessions: SessionSharing::Auto,
        placement: Placement::default(),
        timeouts: Timeouts::default(),
        capabilities: Arc::new(Capabilities::upstream()),
        enabled: true,
        validate: false,
        pins: Default::default(),
        start: upstream::config::Start::Always,
        idle_stop: upstream::config::IDLE_STOP,
        curation: None,
    }
}

#[tokio::test]
async fn a_plain_call_takes_few_locks() {
    let mut config = config(GatewayLimits::default());
    Arc::make_mut(&mut config.identity).topics[0].servers = vec![echo().name];
    config.servers = vec![echo()];
    let user = identity::identities::local_user(&config.identity);
    let gateway = Gateway::of(registry_for(config, Identities::local(user)));
    for upstream in gateway.registry.upstreams() {
        upstream.settled().await;
    }
    let mut client = gateway.connect();
    let id = client
        .post(&[], LEGACY)
        .await
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let session = [("mcp-session-id", id.as_str())];
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo_echo","arguments":{"text":"x"}}}"#;
    // The first calls also open what later ones find.
    for _ in 0..4 {
        let answer = client.post(&session, call).await;
        assert!(
            answer.status() == 200 && answer.body.contains("x-number"),
            "{}",
            answer.body
        );
    }
    let before = platform::locks();
    for _ in 0..CALLS {
        client.post(&session, call).await;
    }
    let each = (platform::locks() - before) as f64 / f64::from(CALLS);
    assert!(
        each <= LOCKS_MAX,
        "{each} locks for each call; `bench/instructions --locks --functions 9` names who takes them"
    );
    assert!(each >= 1.0, "locks are not counted");
}
