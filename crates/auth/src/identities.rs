//! Identities in force: tokens and their participants, or the local user on loopback alone.

use std::{collections::HashMap, net::SocketAddr, sync::Arc};

use model::{Capabilities, DeliveryMode, ParticipantId, RateLimit, Refusal, RefusalCode, TopicName};

use crate::token::TokenHash;

/// Name of the local user.
pub const LOCAL_USER: &str = "local";

/// A token of a participant: its hash and its expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Hash of the token.
    pub hash: TokenHash,
    /// Time of expiry in Unix milliseconds; `None` is never.
    pub expires_ms: Option<u64>,
}

/// All identities that a gateway accepts. Immutable: a reload or an issued token makes a new value.
#[derive(Debug, Clone)]
pub struct Identities {
    by_prefix: HashMap<u64, Vec<Entry>>,
    local: Option<Arc<Participant>>,
    /// The operator on the gateway's machine, who has the operator key.
    operator: Option<Arc<Entry>>,
}

#[derive(Debug, Clone)]
struct Entry {
    credential: Credential,
    participant: Arc<Participant>,
}

impl Entry {
    fn is_valid(&self, now_ms: u64) -> bool {
        self.credential.expires_ms.is_none_or(|end| now_ms < end)
    }
}

impl Identities {
    /// Identities without tokens: every client is this local user (on loopback only, see [`crate::check_listen_address`]).
    #[must_use]
    pub fn local(user: Arc<Participant>) -> Identities {
        Identities { by_prefix: HashMap::new(), local: Some(user), operator: None }
    }

    /// Identities with tokens: every client needs one of these, also on loopback.
    pub fn tokens(known: impl IntoIterator<Item = (Credential, Arc<Participant>)>) -> Identities {
        let mut by_prefix: HashMap<u64, Vec<Entry>> = HashMap::new();
        for (credential, participant) in known {
            by_prefix.entry(credential.hash.prefix()).or_default().push(Entry { credential, participant });
        }
        Identities { by_prefix, local: None, operator: None }
    }

    /// The same, with the local user for the bearer of the operator key. It is no participant that lists show.
    #[must_use]
    pub fn with_operator(self, key: TokenHash, user: Arc<Participant>) -> Identities {
        let credential = Credential { hash: key, expires_ms: None };
        Identities { operator: Some(Arc::new(Entry { credential, participant: user })), ..self }
    }

    /// Whether clients need a token.
    #[must_use]
    pub fn requires_token(&self) -> bool {
        self.local.is_none()
    }

    /// The participant with this id at `now_ms` (Unix milliseconds); `None` when it is unknown or none of its tokens is valid.
    #[must_use]
    pub fn participant(&self, id: &ParticipantId, now_ms: u64) -> Option<Arc<Participant>> {
        let operator = self.operator.as_ref().map(|entry| &entry.participant);
        self.valid(now_ms).chain(operator).find(|participant| participant.id == *id).cloned()
    }

    /// All participants with a token that is valid at `now_ms` (Unix milliseconds), or the local user; by name, each once.
    #[must_use]
    pub fn participants(&self, now_ms: u64) -> Vec<Arc<Participant>> {
        let mut all: Vec<_> = self.valid(now_ms).cloned().collect();
        all.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
        all.dedup_by(|one, other| one.id == other.id);
        all
    }

    fn valid(&self, now_ms: u64) -> impl Iterator<Item = &Arc<Participant>> {
        let known = self.by_prefix.values().flatten().filter(move |entry| entry.is_valid(now_ms));
        known.map(|entry| &entry.participant).chain(&self.local)
    }

    /// Time of the next expiry of a token after `now_ms`, both in Unix milliseconds; `None` when no token expires.
    #[must_use]
    pub fn next_expiry(&self, now_ms: u64) -> Option<u64> {
        let ends = self.by_prefix.values().flatten().filter_map(|entry| entry.credential.expires_ms);
        ends.filter(|end| *end > now_ms).min()
    }

    /// The participant of this token (without `Bearer `) at `now_ms` (Unix milliseconds).
    ///
    /// The prefix of the token's hash selects candidates, and the full hashes are compared in constant time: the cost does not
    /// grow with the number of participants, and timing reveals at most the prefix of a hash. With [`Identities::local`] the
    /// token is ignored.
    ///
    /// # Errors
    /// [`RefusalCode::Unauthenticated`], with the same text for every invalid token.
    pub fn identify(&self, bearer: Option<&str>, now_ms: u64) -> Result<Arc<Participant>, Refusal> {
        if let Some(user) = &self.local {
            return Ok(Arc::clone(user));
        }
        let bearer = bearer.ok_or_else(|| {
            let refusal = Refusal::new(RefusalCode::Unauthenticated, "a token is needed");
            refusal.hint(
                "send `Authorization: Bearer TOKEN`; the operator issues one with: portmoot token new NAME",
            )
        })?;
        let hash = TokenHash::of(bearer);
        let candidates = self.by_prefix.get(&hash.prefix()).map(Vec::as_slice).unwrap_or_default();
        let entry =
            candidates.iter().chain(self.operator.as_deref()).find(|entry| entry.credential.hash == hash);
        let valid = entry.filter(|entry| entry.is_valid(now_ms));
        valid.map(|entry| Arc::clone(&entry.participant)).ok_or_else(|| {
            let refusal = Refusal::new(RefusalCode::Unauthenticated, "this token is not valid");
            refusal.hint("it may have expired or been revoked: ask the operator for a new one")
        })
    }
}

/// An authenticated participant with its rights. All of its links share it.
#[derive(Debug, Clone, PartialEq)]
pub struct Participant {
    /// Id.
    pub id: ParticipantId,
    /// Capabilities. Every wire checks these and no others.
    pub capabilities: Arc<Capabilities>,
    /// Topics that it may enter. The first one is its default.
    pub topics: Vec<TopicName>,
    /// Message rate of all its links together; `None` is no limit.
    pub rate: Option<RateLimit>,
    /// What its WebSocket receives unless the address of the connection sets it.
    pub mode: DeliveryMode,
    /// The wires on which it may come in.
    pub wires: Wires,
    /// When the token that it came with expires, in Unix milliseconds; `None` is never.
    pub expires_ms: Option<u64>,
}

/// A wire on which participants come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// MCP over HTTP or a pipe.
    Mcp,
    /// MCPx over WebSocket.
    Ws,
}

/// A set of wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wires {
    /// MCP over HTTP or a pipe.
    pub mcp: bool,
    /// MCPx over WebSocket.
    pub ws: bool,
}

impl Wires {
    /// All wires.
    pub const ALL: Wires = Wires { mcp: true, ws: true };

    /// Whether a wire is among them.
    #[must_use]
    pub fn contains(self, wire: Wire) -> bool {
        match wire {
            Wire::Mcp => self.mcp,
            Wire::Ws => self.ws,
        }
    }

    /// Whether all these others are among them.
    #[must_use]
    pub fn includes(self, others: Wires) -> bool {
        (self.mcp || !others.mcp) && (self.ws || !others.ws)
    }
}

impl Participant {
    /// A participant of these topics: on all wires, with the rate of its topic, and as long as its token.
    #[must_use]
    pub fn new(id: ParticipantId, capabilities: Arc<Capabilities>, topics: Vec<TopicName>) -> Self {
        let (rate, mode, wires, expires_ms) = (None, DeliveryMode::default(), Wires::ALL, None);
        Self { id, capabilities, topics, rate, mode, wires, expires_ms }
    }

    /// Whether it may enter a topic.
    #[must_use]
    pub fn may_enter(&self, topic: &TopicName) -> bool {
        self.topics.contains(topic)
    }
}

/// Rejects an address beyond loopback for a gateway whose clients do not authenticate.
///
/// # Errors
/// [`RefusalCode::Forbidden`] with a hint for the operator.
pub fn check_listen_address(listen: SocketAddr, tokens_configured: bool) -> Result<(), Refusal> {
    if tokens_configured || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let message =
        format!("listening on {listen} would give every client full access: no participant has a token");
    let hint = "listen on 127.0.0.1, or issue a token first: portmoot token new NAME";
    Err(Refusal::new(RefusalCode::Forbidden, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn participant(name: &str) -> Arc<Participant> {
        let (id, rights) = (ParticipantId::new(name).unwrap(), Arc::new(Capabilities::newcomer()));
        Arc::new(Participant::new(id, rights, vec![TopicName::new("main").unwrap()]))
    }

    fn credential(token: &str, expires_ms: Option<u64>) -> Credential {
        Credential { hash: TokenHash::of(token), expires_ms }
    }

    #[test]
    fn a_token_identifies_its_participant_until_it_expires() {
        let scout = participant("scout");
        let known = Identities::tokens([
            (credential("pm_a", None), Arc::clone(&scout)),
            (credential("pm_b", Some(100)), Arc::clone(&scout)),
            (credential("pm_c", None), participant("ci")),
        ]);
        assert!(known.requires_token());
        assert_eq!((known.next_expiry(99), known.next_expiry(100)), (Some(100), None));
        for (bearer, now, expect) in [
            (Some("pm_a"), 1, Some("scout")),
            (Some("pm_b"), 99, Some("scout")),
            (Some("pm_b"), 100, None),
            (Some("pm_c"), 1, Some("ci")),
            (Some("pm_d"), 1, None),
            (Some(""), 1, None),
            (None, 1, None),
        ] {
            let found = known.identify(bearer, now);
            match (found, expect) {
                (Ok(found), Some(name)) => assert_eq!(found.id.as_str(), name),
                (Err(refusal), None) => assert_eq!(refusal.code, RefusalCode::Unauthenticated),
                (found, expect) => panic!("{bearer:?}: {found:?}, not {expect:?}"),
            }
        }
    }

    #[test]
    fn without_a_valid_token_every_client_is_rejected() {
        assert!(Identities::tokens([]).identify(Some("pm_a"), 0).is_err());
    }

    #[test]
    fn without_tokens_every_client_is_the_local_user() {
        let known = Identities::local(participant("local"));
        assert!(!known.requires_token());
        assert_eq!(known.identify(None, 0).unwrap().id.as_str(), "local");
        assert_eq!(known.identify(Some("x"), 0).unwrap().id.as_str(), "local");
    }

    #[test]
    fn only_loopback_is_allowed_without_tokens() {
        for (listen, tokens, allowed) in [
            ("127.0.0.1:7070", false, true),
            ("127.8.9.1:7070", false, true),
            ("[::1]:7070", false, true),
            ("[::ffff:127.0.0.1]:7070", false, true),
            ("0.0.0.0:7070", false, false),
            ("[::]:7070", false, false),
            ("192.168.1.7:7070", false, false),
            ("[::ffff:192.168.1.7]:7070", false, false),
            ("0.0.0.0:7070", true, true),
        ] {
            assert_eq!(
                check_listen_address(listen.parse().unwrap(), tokens).is_ok(),
                allowed,
                "{listen} {tokens}"
            );
        }
    }
}
