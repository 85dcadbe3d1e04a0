//! Rate limit of a participant.

/// Rate limit of a participant: a bucket of `burst` acts, refilled with `per_minute` acts a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Acts at once; at least 1.
    pub burst: u32,
    /// Acts a minute in the long run; at least 1.
    pub per_minute: u32,
}
