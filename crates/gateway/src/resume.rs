//! Session ids that carry their session: what a legacy client said in `initialize`, sealed.
//!
//! So a session outlives a restart of the gateway. Must not know which sessions are open.

use auth::Sealer;
use bytes::Bytes;
use model::TopicName;
use serde::{Deserialize, Serialize};
use wire::mcp::Version;

use platform::{random, unix_ms};
use upstream::ClientProfile;

/// How long a session id may be used, in seconds.
pub const SESSION_ID_SECS: u64 = 7 * 24 * 3600;
/// What a client said of itself fits in its session id up to this many bytes. A session of a longer one ends with the process.
pub const RESUMABLE_BYTES_MAX: usize = 2048;
const PURPOSE: &str = "session";

#[derive(Serialize, Deserialize)]
struct Said {
    topic: String,
    version: String,
    capabilities: String,
    client_info: Option<String>,
}

/// What tells one session id from all others and opens none: how it begins, which is random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark([u8; MARK_BYTES]);

const MARK_BYTES: usize = 32;

impl Mark {
    /// The mark of a session id; of one that is not ours, nobody's.
    pub fn of(id: &str) -> Self {
        let mut mark = [0; MARK_BYTES];
        mark.iter_mut().zip(id.bytes()).for_each(|(place, byte)| *place = byte);
        Self(mark)
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// A new session id for this participant.
pub fn seal(sealer: &Sealer, participant: &str, topic: &TopicName, hello: &ClientProfile) -> String {
    let text = |raw: &Bytes| String::from_utf8_lossy(raw).into_owned();
    let said = Said {
        topic: topic.to_string(),
        version: hello.version.to_string(),
        capabilities: text(&hello.capabilities),
        client_info: hello.client_info.as_ref().map(text),
    };
    let state = serde_json::to_vec(&said).unwrap_or_default();
    let state = if state.len() <= RESUMABLE_BYTES_MAX { state } else { Vec::new() };
    sealer.seal(PURPOSE, participant, unix_ms() + SESSION_ID_SECS * 1000, random(), &state)
}

/// What the client said that was given this session id, if it is this participant's and of this topic.
pub fn open(sealer: &Sealer, participant: &str, topic: &TopicName, id: &str) -> Option<ClientProfile> {
    let state = sealer.open(PURPOSE, participant, unix_ms(), id).ok()?;
    let said: Said = serde_json::from_slice(&state).ok()?;
    let version = Version::parse(&said.version)?;
    (said.topic == topic.as_str()).then(|| ClientProfile {
        capabilities: said.capabilities.into(),
        client_info: said.client_info.map(Bytes::from),
        version,
    })
}
