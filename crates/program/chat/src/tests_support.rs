//! Proposals, events and a stage for tests.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use participant::{Envelope, Event as TopicEvent, ParticipantInfo};
use serde_json::{Value, json};
use wire::mcpx::{Draft, envelope};

use crate::clock::Zone;
use crate::state::{Action, ChatEvent, ChatState, ScreenMode};
use crate::update::update;
use review::ProposalDetails;

/// 12:31 on 2026-07-28.
pub(crate) const NOW_MS: u64 = 1_785_241_860_000;

/// A pending proposal of `scout` for the tool `echo` of `worker`, made at 12:30, with other members
/// in place of these.
pub(crate) fn proposal(id: &str, more: &Value) -> ProposalDetails {
    let mut all = json!({
        "id": id, "topic": "main", "state": "pending", "by": "scout", "to": ["worker"], "method": "tools/call",
        "context": "echo", "envelope": format!("e-{id}"),
        "params": { "name": "echo", "arguments": { "text": "please" } },
        "tool": null, "digest": format!("{id}{id}"), "held": false, "at": "2026-07-28T12:30:00.000Z",
        "expires": "2026-07-28T12:35:00.000Z", "decided_by": null, "edited": null, "reason": null, "answer": null,
    });
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    serde_json::from_str(&all.to_string()).unwrap()
}

/// A participant.
pub(crate) fn seen(id: &str) -> ParticipantInfo {
    ParticipantInfo {
        id: id.into(),
        capabilities: vec!["chat".into()],
        ..ParticipantInfo::default()
    }
}

/// A message.
pub(crate) fn chat(from: &str, to: &[&str], text: &str) -> TopicEvent {
    let payload = json!({ "text": text }).to_string();
    let ts = Some("2026-07-28T12:29:00Z");
    let payload = payload.as_bytes();
    let draft = Draft {
        id: "c1",
        ts,
        from,
        to,
        kind: "chat",
        correlation_id: None,
        payload,
    };
    let envelope = Envelope::read(envelope(&draft)).unwrap();
    TopicEvent::Chat {
        from: from.into(),
        text: text.into(),
        envelope,
    }
}

/// A chat of `boss` with `scout` and `worker`.
pub(crate) struct Stage {
    pub(crate) state: ChatState,
    pub(crate) now_ms: u64,
}

impl Stage {
    pub(crate) fn new(mode: ScreenMode) -> Self {
        let mut stage = Self {
            state: ChatState::new(mode, "main", Zone::utc()),
            now_ms: NOW_MS,
        };
        let others = vec![seen("scout"), seen("worker")];
        let asked = stage.topic(TopicEvent::Welcomed {
            you: seen("boss"),
            others,
        });
        assert!(
            matches!(
                asked.as_slice(),
                [Action::Refresh, Action::ReadRules { asked: false }]
            ),
            "{asked:?}"
        );
        stage.take(ChatEvent::Inbox(Ok(Vec::new())));
        stage
    }

    pub(crate) fn screen(columns: u16, rows: u16) -> Self {
        let mut stage = Self::new(ScreenMode::Screen);
        stage.take(ChatEvent::Resize { columns, rows });
        stage
    }

    pub(crate) fn take(&mut self, event: ChatEvent) -> Vec<Action> {
        update(&mut self.state, self.now_ms, event)
    }

    pub(crate) fn topic(&mut self, event: TopicEvent) -> Vec<Action> {
        self.take(ChatEvent::Topic(Box::new(event)))
    }

    /// These proposals are pending, and the reviewer has had time to look.
    pub(crate) fn pending(&mut self, proposals: &[ProposalDetails]) -> Vec<Action> {
        let actions = self.take(ChatEvent::Inbox(Ok(proposals.to_vec())));
        self.now_ms += crate::inbox::SETTLE_MS;
        actions
    }

    /// Presses keys by the names of the table; any other word is typed.
    pub(crate) fn press(&mut self, keys: &[&str]) -> Vec<Action> {
        keys.iter()
            .flat_map(|key| events(key))
            .flat_map(|event| self.take(event))
            .collect()
    }

    /// The texts of all entries.
    pub(crate) fn entries(&self) -> Vec<String> {
        self.state
            .talk
            .since(0)
            .map(|entry| entry.text.clone())
            .collect()
    }

    /// The text of the last entry.
    pub(crate) fn last(&self) -> String {
        self.entries().pop().unwrap_or_default()
    }
}

fn events(key: &str) -> Vec<ChatEvent> {
    match pressed(key) {
        Some(event) => vec![ChatEvent::Key(event)],
        None => key
            .chars()
            .map(|c| ChatEvent::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)))
            .collect(),
    }
}

/// The event of a key by its name in the table; `None` if the name is none.
pub(crate) fn pressed(name: &str) -> Option<KeyEvent> {
    let (modifiers, plain) = match name.strip_prefix("Ctrl-") {
        Some(plain) => (KeyModifiers::CONTROL, plain),
        None => (KeyModifiers::NONE, name),
    };
    let code = match plain {
        "Enter" => KeyCode::Enter,
        "Tab" => KeyCode::Tab,
        "Esc" => KeyCode::Esc,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        "Backspace" => KeyCode::Backspace,
        "Delete" => KeyCode::Delete,
        "Space" => KeyCode::Char(' '),
        "F1" => KeyCode::F(1),
        "F2" => KeyCode::F(2),
        "F3" => KeyCode::F(3),
        one if one.chars().count() == 1 => {
            let c = one.chars().next()?;
            KeyCode::Char(if modifiers.is_empty() {
                c
            } else {
                c.to_ascii_lowercase()
            })
        }
        _ => return None,
    };
    Some(KeyEvent::new(code, modifiers))
}
