//! How envelopes leave for a participant that serves. Must not know what they ask.

use model::LinkId;

/// How an envelope reaches one link.
pub trait Mail: Send + Sync {
    /// Id and time of an envelope of ours.
    fn stamp(&self) -> (String, String);
    /// Says an envelope to one link alone.
    fn whisper(&self, link: LinkId, envelope: &[u8]);
}
