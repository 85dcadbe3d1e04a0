//! Session ids: what a legacy client declared in `initialize`, sealed, so that a session outlasts a
//! restart.

use auth::Sealer;
use bytes::Bytes;
use model::TopicName;
use platform::{random, unix_ms};
use serde::Deserialize;
use upstream::ClientProfile;
use wire::mcp::Version;

/// Time that a session id is valid, in seconds.
pub(crate) const SESSION_ID_SECS: u64 = 7 * 24 * 3600;
/// The longest declaration that a session id carries, in bytes. A session with a longer one ends
/// with the process.
const RESUMABLE_BYTES_MAX: usize = 2048;
const PURPOSE: &str = "session";

#[derive(Deserialize)]
struct Declared {
    topic: String,
    version: String,
    capabilities: String,
    client_info: Option<String>,
}

/// The beginning of a session id, which is random: it identifies the session and opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Mark([u8; MARK_BYTES]);

const MARK_BYTES: usize = 32;

impl Mark {
    /// The mark of a session id.
    pub(crate) fn of(id: &str) -> Self {
        let mut mark = [0; MARK_BYTES];
        mark.iter_mut()
            .zip(id.bytes())
            .for_each(|(place, byte)| *place = byte);
        Self(mark)
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// A new session id for this participant.
pub(crate) fn seal(
    sealer: &Sealer,
    participant: &str,
    topic: &TopicName,
    client: &ClientProfile,
) -> String {
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    let mut state = json::object(|state| {
        state
            .text("topic", topic.as_str())
            .text("version", client.version.as_str());
        state.text("capabilities", &text(&client.capabilities));
        state.optional_text(
            "client_info",
            client.client_info.as_deref().map(text).as_deref(),
        );
    });
    if state.len() > RESUMABLE_BYTES_MAX {
        state.clear();
    }
    sealer.seal(
        PURPOSE,
        participant,
        unix_ms() + SESSION_ID_SECS * 1000,
        random(),
        &state,
    )
}

/// Declaration of the session's client, if the id is this participant's and of this topic.
pub(crate) fn open(
    sealer: &Sealer,
    participant: &str,
    topic: &TopicName,
    id: &str,
) -> Option<ClientProfile> {
    let state = sealer.open(PURPOSE, participant, unix_ms(), id).ok()?;
    let declared: Declared = serde_json::from_slice(&state).ok()?;
    let version = Version::parse(&declared.version)?;
    (declared.topic == topic.as_str()).then(|| ClientProfile {
        capabilities: declared.capabilities.into(),
        client_info: declared.client_info.map(Bytes::from),
        version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_carries_what_its_client_declared() {
        let sealer = Sealer::new(&[7; 32], None);
        let main = TopicName::new("main").unwrap();
        let side = TopicName::new("side").unwrap();
        let client = ClientProfile {
            capabilities: Bytes::from_static(br#"{"sampling":{}}"#),
            client_info: Some(Bytes::from_static(br#"{"name":"x \"y\""}"#)),
            version: Version::V2025_06_18,
        };
        let id = seal(&sealer, "ada", &main, &client);
        let opened = open(&sealer, "ada", &main, &id).unwrap();
        assert_eq!(
            (opened.capabilities, opened.client_info),
            (client.capabilities.clone(), client.client_info)
        );
        assert_eq!(opened.version, Version::V2025_06_18);
        assert!(
            open(&sealer, "bob", &main, &id).is_none()
                && open(&sealer, "ada", &side, &id).is_none()
        );
        assert_ne!(
            Mark::of(&id),
            Mark::of(&seal(&sealer, "ada", &main, &opened_plain()))
        );
        let long = ClientProfile {
            client_info: Some(Bytes::from(vec![b'x'; RESUMABLE_BYTES_MAX])),
            ..opened_plain()
        };
        assert!(open(&sealer, "ada", &main, &seal(&sealer, "ada", &main, &long)).is_none());
    }

    fn opened_plain() -> ClientProfile {
        gateway::plain_client()
    }
}
