//! Example envelopes of both documents, read and written as printed.

use bytes::Bytes;
use model::Capabilities;

use crate::mcpx::system::{
    ErrorDraft, ParticipantInfo, PersonView, Presence, PresenceChange, Stamp, System, error,
    presence, welcome,
};
use crate::mcpx::{Chat, Draft, Envelope, Format, envelope};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../tests-data/mcpx/", $name, ".json"))
    };
}

/// File, id, from, to, kind, correlation id, and the beginning of the payload.
type Row = (
    &'static str,
    [&'static str; 2],
    &'static [&'static str],
    &'static str,
    Option<&'static str>,
);

const CALL: &str = "mcp/request:tools/call:dangerous_operation";
const ANSWER: &str = "mcp/response:tools/call:dangerous_operation";
const ROWS: [Row; 11] = [
    (
        example!("3-envelope"),
        ["2f6b6e70-7b36-4b8b-9ad8-7c4f7d0e2d0b", "robot-alpha"],
        &["coordinator"],
        "mcp/request:tools/call",
        Some("env-1"),
    ),
    (
        example!("3.1.1-request"),
        ["env-call-1", "trusted-agent"],
        &["target-agent"],
        CALL,
        None,
    ),
    (
        example!("3.1.2-response"),
        ["env-resp-1", "target-agent"],
        &["trusted-agent"],
        ANSWER,
        Some("env-call-1"),
    ),
    (
        example!("3.2-proposal"),
        ["env-req-1", "untrusted-agent"],
        &["target-agent"],
        "mcp/proposal:tools/call:dangerous_operation",
        None,
    ),
    (
        example!("3.2.1-fulfilment"),
        ["env-fulfill-1", "human-user"],
        &["target-agent"],
        CALL,
        Some("env-req-1"),
    ),
    (
        example!("3.2.1-outcome"),
        ["env-fulfill-resp-1", "target-agent"],
        &["human-user", "untrusted-agent"],
        ANSWER,
        Some("env-fulfill-1"),
    ),
    (
        example!("3.3-chat"),
        ["env-chat-1", "user-alice"],
        &[],
        "chat",
        None,
    ),
    (
        example!("3.4-presence"),
        ["env-presence-1", "system:gateway"],
        &[],
        "system/presence",
        None,
    ),
    (
        example!("3.5.1-welcome"),
        ["env-welcome-1", "system:gateway"],
        &["new-participant"],
        "system/welcome",
        None,
    ),
    (
        example!("3.5.2-violation"),
        ["env-violation-1", "system:gateway"],
        &["violator"],
        "system/error",
        Some("env-bad-call"),
    ),
    (
        example!("decision-002"),
        ["env-resp-1", "target-agent"],
        &["requester"],
        "mcp/response:tools/call:read_file",
        Some("env-call-1"),
    ),
];

fn read(text: &str) -> Envelope {
    Envelope::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

/// The same text without the white space between tokens.
fn dense(text: &str) -> String {
    let (mut inside, mut out) = (false, String::new());
    for letter in text.chars() {
        inside ^= letter == '"';
        if inside || !letter.is_ascii_whitespace() {
            out.push(letter);
        }
    }
    assert!(!text.contains('\\'));
    out
}

#[test]
fn every_example_is_read_as_printed() {
    for (text, [id, from], to, kind, correlation_id) in ROWS {
        let envelope = read(text);
        assert_eq!(envelope.frame(), text.as_bytes());
        assert_eq!(
            [envelope.id(), envelope.from(), envelope.kind()],
            [id, from, kind]
        );
        assert_eq!(envelope.to().collect::<Vec<_>>(), to);
        assert_eq!(envelope.correlation_id(), correlation_id);
        assert!(envelope.payload().starts_with(b"{") && envelope.payload().ends_with(b"}"));
        assert_eq!(
            envelope.ts(),
            (from == "robot-alpha").then_some("2025-08-26T14:00:00Z")
        );
    }
}

#[test]
fn every_example_is_written_as_printed() {
    for (text, [id, from], to, kind, correlation_id) in ROWS {
        let there = read(text);
        let draft = Draft {
            id,
            ts: there.ts(),
            from,
            to,
            kind,
            correlation_id,
            payload: there.payload(),
        };
        let written = envelope(&draft);
        assert_eq!(dense(std::str::from_utf8(&written).unwrap()), dense(text));
    }
}

fn able(texts: &[&str]) -> Capabilities {
    Capabilities::parse(texts.iter().copied()).unwrap()
}

fn seen(id: &str, capabilities: &[&str]) -> ParticipantInfo {
    let capabilities = capabilities.iter().map(|text| (*text).to_owned()).collect();
    ParticipantInfo {
        id: id.to_owned(),
        capabilities,
        ..ParticipantInfo::default()
    }
}

const PROPOSER: [&str; 2] = ["mcp/proposal:*", "chat"];

#[test]
fn messages_of_the_gateway_are_written_as_printed() {
    let proposer = able(&PROPOSER);
    let full = able(&["mcp/*", "chat"]);
    let answering = able(&["mcp/response:*", "chat"]);
    let person = |id, capabilities| PersonView {
        id,
        capabilities,
        paused: false,
    };
    let stamp = |id| Stamp { id, ts: None };
    let others = [person("agent-1", &full), person("agent-2", &answering)];
    let join = Presence::Join(person("new-agent", &proposer));
    let notice = ErrorDraft {
        error: "capability_violation",
        message: "You lack capability for 'mcp/request:tools/call'",
        correlation_id: Some("env-bad-call"),
        attempted_kind: Some("mcp/request:tools/call"),
        your_capabilities: Some(&proposer),
        retry_after_ms: None,
        scope: None,
    };
    for (written, printed) in [
        (
            welcome(
                stamp("env-welcome-1"),
                person("new-participant", &proposer),
                others,
                None,
            ),
            example!("3.5.1-welcome"),
        ),
        (
            presence(stamp("env-presence-1"), join),
            example!("3.4-presence"),
        ),
        (
            error(stamp("env-violation-1"), "violator", &notice),
            example!("3.5.2-violation"),
        ),
    ] {
        assert_eq!(std::str::from_utf8(&written).unwrap(), dense(printed));
    }
}

#[test]
fn addressees_of_a_capability_are_written_and_read() {
    let narrowed = |kind: &str, to: &[&str]| {
        model::Capability::parse(kind)
            .unwrap()
            .to(to.iter().copied())
            .unwrap()
    };
    let held: Capabilities = able(&["chat", "mcp/request:tools/list"])
        .iter()
        .cloned()
        .chain([
            narrowed("mcp/request:tools/call:se*", &["search", "w*"]),
            narrowed("mcp/request:tools/list", &["search"]),
        ])
        .collect();
    let who = PersonView {
        id: "a",
        capabilities: &held,
        paused: true,
    };
    let written = json::object(|object| super::super::system::write_person(object, who));
    let written = String::from_utf8(written).unwrap();
    let kinds = r#"["chat","mcp/request:tools/list","mcp/request:tools/call:se*","mcp/request:tools/list"]"#;
    let reach = r#"[{"kind":"mcp/request:tools/call:se*","to":["search","w*"]}]"#;
    assert_eq!(
        written,
        format!(r#"{{"id":"a","capabilities":{kinds},"narrowed":{reach},"paused":true}}"#)
    );
    let read: ParticipantInfo = serde_json::from_str(&written).unwrap();
    assert!(read.paused);
    for (kind, to, allowed) in [
        ("chat", "anybody", true),
        ("mcp/request:tools/list", "anybody", true),
        ("mcp/request:tools/call:seek", "search", true),
        ("mcp/request:tools/call:seek", "web", true),
        ("mcp/request:tools/call:seek", "anybody", false),
    ] {
        let kind = model::KindRef::parse(kind).unwrap();
        assert_eq!(
            (held.admits(kind, &[to]), read.allowed().admits(kind, &[to])),
            (allowed, allowed),
            "{to}"
        );
    }
    // An entry that is no name matches no addressee.
    let broken = r#"{"id":"a","capabilities":["chat"],"narrowed":[{"kind":"chat","to":[]}]}"#;
    let read: ParticipantInfo = serde_json::from_str(broken).unwrap();
    let chat = model::KindRef::parse("chat").unwrap();
    assert!(!read.allowed().admits(chat, &[]) && !read.allowed().admits(chat, &["b"]));
}

#[test]
fn messages_of_the_gateway_are_read() {
    let system = |text: &str| System::read(&read(text)).unwrap().unwrap();
    let System::Welcome(welcome) = system(example!("3.5.1-welcome")) else {
        panic!("a welcome")
    };
    assert_eq!(welcome.you, seen("new-participant", &PROPOSER));
    let others = [
        seen("agent-1", &["mcp/*", "chat"]),
        seen("agent-2", &["mcp/response:*", "chat"]),
    ];
    assert_eq!(welcome.participants, others);
    let join = System::Presence(PresenceChange::Join(seen("new-agent", &PROPOSER)));
    assert_eq!(system(example!("3.4-presence")), join);
    let left = presence(Stamp { id: "p", ts: None }, Presence::Leave("x"));
    assert_eq!(
        System::read(&Envelope::read(left).unwrap()),
        Some(Ok(System::Presence(PresenceChange::Leave(seen("x", &[])))))
    );
    let System::Error(error) = system(example!("3.5.2-violation")) else {
        panic!("an error")
    };
    assert_eq!(
        (error.error.as_str(), error.retry_after_ms),
        ("capability_violation", None)
    );
    assert_eq!(
        error.attempted_kind.as_deref(),
        Some("mcp/request:tools/call")
    );
    assert_eq!(System::read(&read(example!("3.3-chat"))), None);
}

#[test]
fn chat_is_read_and_written_as_printed() {
    let there = read(example!("3.3-chat"));
    let chat = Chat::read(there.payload()).unwrap();
    assert_eq!(
        chat,
        Chat {
            text: "Hello everyone!".into(),
            format: Format::Plain
        }
    );
    let payload = String::from_utf8(chat.payload()).unwrap();
    assert_eq!(
        payload,
        dense(std::str::from_utf8(there.payload()).unwrap())
    );
    let format = |payload: &'static str| Chat::read(payload.as_bytes()).map(|chat| chat.format);
    assert_eq!(format(r#"{"text":"a"}"#), Ok(Format::Plain));
    assert_eq!(
        format(r#"{"text":"a","format":"markdown"}"#),
        Ok(Format::Markdown)
    );
    for bad in ["{}", r#"{"text":1}"#, r#"{"text":"a","text":"b"}"#, "[]"] {
        assert!(Chat::read(bad.as_bytes()).is_err(), "{bad}");
    }
}
