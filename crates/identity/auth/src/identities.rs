//! Identities in force: tokens, client certificates and their participants, or the local user on
//! loopback alone.

use std::{collections::HashMap, sync::Arc};

use model::{
    Capabilities, DeliveryMode, Digest, Narrowing, ParticipantId, RateLimit, Refusal, RefusalCode,
    TopicName,
};

use crate::certificate::{CertificateId, Presented};
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
    by_certificate: HashMap<CertificateId, Arc<Participant>>,
    local: Option<Arc<Participant>>,
    /// The operator on the gateway's machine, who has the operator key.
    operator: Option<Arc<Entry>>,
    /// Incarnations of issued names.
    incarnations: HashMap<String, String>,
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
    /// Identities without tokens: every client is this local user (on loopback only, see
    /// [`crate::check_listen_address`]).
    #[must_use]
    pub fn local(user: Arc<Participant>) -> Identities {
        Identities {
            by_prefix: HashMap::new(),
            by_certificate: HashMap::new(),
            local: Some(user),
            operator: None,
            incarnations: HashMap::new(),
        }
    }

    /// Identities with tokens: every client needs one of these, also on loopback.
    pub fn tokens(known: impl IntoIterator<Item = (Credential, Arc<Participant>)>) -> Identities {
        let mut by_prefix: HashMap<u64, Vec<Entry>> = HashMap::new();
        for (credential, participant) in known {
            by_prefix
                .entry(credential.hash.prefix())
                .or_default()
                .push(Entry {
                    credential,
                    participant,
                });
        }
        let (by_certificate, incarnations) = <_>::default();
        Identities {
            by_prefix,
            by_certificate,
            local: None,
            operator: None,
            incarnations,
        }
    }

    /// The identities, with these incarnations of their names.
    #[must_use]
    pub fn with_incarnations(self, incarnations: HashMap<String, String>) -> Identities {
        Identities {
            incarnations,
            ..self
        }
    }

    /// Incarnations of issued names: a name that was revoked and issued again has another.
    #[must_use]
    pub fn incarnations(&self) -> &HashMap<String, String> {
        &self.incarnations
    }

    /// The identities, with these participants for the holders of these client certificates.
    #[must_use]
    pub fn with_certificates(
        self,
        known: impl IntoIterator<Item = (CertificateId, Arc<Participant>)>,
    ) -> Identities {
        Identities {
            by_certificate: known.into_iter().collect(),
            ..self
        }
    }

    /// The identities, with the local user for the bearer of the operator key. It is no participant
    /// that lists show.
    #[must_use]
    pub fn with_operator(self, key: TokenHash, user: Arc<Participant>) -> Identities {
        let credential = Credential {
            hash: key,
            expires_ms: None,
        };
        Identities {
            operator: Some(Arc::new(Entry {
                credential,
                participant: user,
            })),
            ..self
        }
    }

    /// Whether clients need a token, or a certificate.
    #[must_use]
    pub fn requires_token(&self) -> bool {
        self.local.is_none()
    }

    /// The participant with this id at `now_ms` (Unix milliseconds); `None` when it is unknown, or
    /// has no certificate and none of its tokens is valid.
    #[must_use]
    pub fn participant(&self, id: &ParticipantId, now_ms: u64) -> Option<Arc<Participant>> {
        let operator = self.operator.as_ref().map(|entry| &entry.participant);
        self.valid(now_ms)
            .chain(operator)
            .find(|participant| participant.id == *id)
            .cloned()
    }

    /// All participants with a certificate, or a token that is valid at `now_ms` (Unix
    /// milliseconds), or the local user; by name, each once.
    #[must_use]
    pub fn participants(&self, now_ms: u64) -> Vec<Arc<Participant>> {
        let mut all: Vec<_> = self.valid(now_ms).cloned().collect();
        all.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
        all.dedup_by(|one, other| one.id == other.id);
        all
    }

    fn valid(&self, now_ms: u64) -> impl Iterator<Item = &Arc<Participant>> {
        let known = self
            .by_prefix
            .values()
            .flatten()
            .filter(move |entry| entry.is_valid(now_ms));
        known
            .map(|entry| &entry.participant)
            .chain(self.by_certificate.values())
            .chain(&self.local)
    }

    /// Time of the next expiry of a token after `now_ms`, both in Unix milliseconds; `None` when no
    /// token expires.
    #[must_use]
    pub fn next_expiry(&self, now_ms: u64) -> Option<u64> {
        let ends = self
            .by_prefix
            .values()
            .flatten()
            .filter_map(|entry| entry.credential.expires_ms);
        ends.filter(|end| *end > now_ms).min()
    }

    /// The participant of what a client presents at `now_ms` (Unix milliseconds): its token, or
    /// without one its certificate. A token that is not valid is refused, whatever the certificate.
    ///
    /// The prefix of the token's hash selects candidates, and the full hashes are compared in
    /// constant time: the cost does not grow with the number of participants, and timing reveals at
    /// most the prefix of a hash. With [`Identities::local`] both are ignored.
    ///
    /// # Errors
    /// [`RefusalCode::Unauthenticated`], with the same text for every invalid token.
    pub fn identify<'c>(
        &self,
        presented: impl Into<Presented<'c>>,
        now_ms: u64,
    ) -> Result<Arc<Participant>, Refusal> {
        if let Some(user) = &self.local {
            return Ok(Arc::clone(user));
        }
        let presented = presented.into();
        let Some(bearer) = presented.bearer else {
            return self.identify_certificate(presented);
        };
        let valid = self
            .entry(&TokenHash::of(bearer))
            .filter(|entry| entry.is_valid(now_ms));
        valid
            .map(|entry| Arc::clone(&entry.participant))
            .ok_or_else(|| {
                let refusal = Refusal::new(RefusalCode::Unauthenticated, "this token is not valid");
                refusal.hint("it may have expired or been revoked: ask the operator for a new one")
            })
    }

    /// Whether this is a token of one of them, valid or not: no one else is asked about it.
    #[must_use]
    pub fn knows(&self, bearer: &str) -> bool {
        self.entry(&TokenHash::of(bearer)).is_some()
    }

    fn entry(&self, hash: &TokenHash) -> Option<&Entry> {
        let candidates = self
            .by_prefix
            .get(&hash.prefix())
            .map(Vec::as_slice)
            .unwrap_or_default();
        candidates
            .iter()
            .chain(self.operator.as_deref())
            .find(|entry| entry.credential.hash == *hash)
    }

    fn identify_certificate(&self, presented: Presented<'_>) -> Result<Arc<Participant>, Refusal> {
        let Some(certificate) = presented.certificate else {
            return Err(Refusal::new(RefusalCode::Unauthenticated, "a token is needed").hint(
                "send `Authorization: Bearer TOKEN`; the operator issues one with: portmoot token new NAME",
            ));
        };
        certificate
            .ids()
            .find_map(|id| self.by_certificate.get(&id))
            .cloned()
            .ok_or_else(|| {
                let sha256 = model::Digest(certificate.sha256);
                Refusal::new(
                    RefusalCode::Unauthenticated,
                    "your certificate belongs to no participant, and you sent no token",
                )
                .hint(format!(
                    "the operator names it: [participants.NAME] client_cert_sha256 = \"{sha256}\""
                ))
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
    /// Messages that its WebSocket receives unless the address of the connection sets it.
    pub mode: DeliveryMode,
    /// The wires on which it may come in.
    pub wires: Wires,
    /// When the token that it came with expires, in Unix milliseconds; `None` is never.
    pub expires_ms: Option<u64>,
    /// Bearer of its access token, if it came with one of an issuer.
    pub bearer: Option<Arc<Bearer>>,
}

/// Content of an issuer's access token beside its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// Its SHA-256, if a server's authorization server may see the token in exchange for one of its
    /// own: it is an issuer's.
    pub token: Option<Digest>,
    /// Narrowing of the participant's capabilities; `None` leaves them.
    pub narrowing: Option<Narrowing>,
    /// End of what was opened with it, in Unix milliseconds: its expiry, and the time by which
    /// clocks may differ.
    pub ends_ms: u64,
    /// Until when requests need not have it checked again, in Unix milliseconds: its end at the
    /// latest.
    pub checked_until_ms: u64,
    /// Audience for which it is good.
    pub audience: TokenAudience,
}

/// The topics at whose endpoints an access token is good. Its bearer may enter, see and act in no
/// others, on whatever way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenAudience {
    /// All: it names the gateway as a whole.
    Every,
    /// These.
    Only(Box<[TopicName]>),
}

impl TokenAudience {
    /// Whether a topic is among them.
    #[must_use]
    pub fn includes(&self, topic: &TopicName) -> bool {
        match self {
            Self::Every => true,
            Self::Only(topics) => topics.contains(topic),
        }
    }
}

/// A wire on which participants come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// MCP over HTTP or a pipe.
    Mcp,
    /// MCPx over WebSocket.
    Ws,
    /// proto-mcp: framed protobuf, over WebSocket or gRPC.
    Proto,
}

impl Wire {
    /// Every wire, with the word by which the configuration knows it.
    pub const ALL: [(&'static str, Wire); 3] =
        [("mcp", Wire::Mcp), ("ws", Wire::Ws), ("proto", Wire::Proto)];
}

/// A set of wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wires {
    /// MCP over HTTP or a pipe.
    pub mcp: bool,
    /// MCPx over WebSocket.
    pub ws: bool,
    /// proto-mcp: framed protobuf, over WebSocket or gRPC.
    pub proto: bool,
}

impl Wires {
    /// All wires.
    pub const ALL: Wires = Wires {
        mcp: true,
        ws: true,
        proto: true,
    };

    /// Whether a wire is among them.
    #[must_use]
    pub fn contains(self, wire: Wire) -> bool {
        match wire {
            Wire::Mcp => self.mcp,
            Wire::Ws => self.ws,
            Wire::Proto => self.proto,
        }
    }

    /// Whether all these others are among them.
    #[must_use]
    pub fn includes(self, others: Wires) -> bool {
        Wire::ALL
            .iter()
            .all(|(_, wire)| self.contains(*wire) || !others.contains(*wire))
    }
}

impl Participant {
    /// A participant of these topics: on all wires, with the rate of its topic, and as long as its
    /// token.
    #[must_use]
    pub fn new(id: ParticipantId, capabilities: Arc<Capabilities>, topics: Vec<TopicName>) -> Self {
        let rate = None;
        let mode = DeliveryMode::default();
        let wires = Wires::ALL;
        Self {
            id,
            capabilities,
            topics,
            rate,
            mode,
            wires,
            expires_ms: None,
            bearer: None,
        }
    }

    /// Narrowing of its capabilities by its access token.
    #[must_use]
    pub fn narrowing(&self) -> Option<&Narrowing> {
        self.bearer.as_ref()?.narrowing.as_ref()
    }

    /// Whether it came with an access token, of the gateway's own sign-in or of an issuer.
    #[must_use]
    pub fn is_signed_in(&self) -> bool {
        self.bearer.is_some()
    }

    /// The SHA-256 of the access token of an issuer that it came with.
    #[must_use]
    pub fn token(&self) -> Option<Digest> {
        self.bearer.as_ref()?.token
    }

    /// Whether it came with an access token that has to be checked again before the next request.
    /// `now_ms` gives Unix milliseconds, and is called for access tokens alone.
    #[must_use]
    pub fn is_to_be_checked(&self, now_ms: impl FnOnce() -> u64) -> bool {
        self.bearer
            .as_ref()
            .is_some_and(|bearer| bearer.checked_until_ms <= now_ms())
    }

    /// These capabilities, as far as its access token is good for them.
    #[must_use]
    pub fn narrow(&self, capabilities: Arc<Capabilities>) -> Arc<Capabilities> {
        match self.narrowing() {
            Some(narrowing) => Arc::new(capabilities.within(&narrowing.to)),
            None => capabilities,
        }
    }

    /// Whether what it came with is good in a topic: everything is but an access token for others.
    #[must_use]
    pub fn is_for(&self, topic: &TopicName) -> bool {
        self.bearer
            .as_ref()
            .is_none_or(|bearer| bearer.audience.includes(topic))
    }

    /// Whether it may enter a topic that is not open to all.
    #[must_use]
    pub fn may_enter(&self, topic: &TopicName) -> bool {
        self.topics.contains(topic) && self.is_for(topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::ClientCertificate;

    fn participant(name: &str) -> Arc<Participant> {
        let id = ParticipantId::new(name).unwrap();
        let rights = Arc::new(Capabilities::newcomer());
        Arc::new(Participant::new(
            id,
            rights,
            vec![TopicName::new("main").unwrap()],
        ))
    }

    fn credential(token: &str, expires_ms: Option<u64>) -> Credential {
        Credential {
            hash: TokenHash::of(token),
            expires_ms,
        }
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
        assert_eq!(
            (known.next_expiry(99), known.next_expiry(100)),
            (Some(100), None)
        );
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
    fn a_certificate_identifies_its_participant_unless_a_token_names_another() {
        let scout = participant("scout");
        let ci = participant("ci");
        let known = Identities::tokens([(credential("pm_a", None), participant("boss"))])
            .with_certificates([
                (CertificateId::Sha256([1; 32]), Arc::clone(&scout)),
                (CertificateId::Name("ci.example".into()), Arc::clone(&ci)),
            ]);
        let certificate = |first: u8, name: &str| ClientCertificate {
            sha256: [first; 32],
            names: vec!["other.example".to_owned(), name.to_owned()],
        };
        let one = certificate(1, "ci.example");
        let two = certificate(2, "ci.example");
        let stranger = certificate(3, "*.example");
        for (bearer, certificate, expect) in [
            (None, Some(&one), Some("scout")),
            (None, Some(&two), Some("ci")),
            (None, Some(&stranger), None),
            (None, None, None),
            (Some("pm_a"), Some(&two), Some("boss")),
            (Some("pm_b"), Some(&two), None),
        ] {
            let found = known.identify(
                Presented {
                    certificate,
                    ..Presented::from(bearer)
                },
                0,
            );
            assert_eq!(
                found.as_ref().ok().map(|found| found.id.as_str()),
                expect,
                "{bearer:?} {certificate:?}"
            );
        }
        assert_eq!(known.participants(0).len(), 3);
        assert_eq!(known.participant(&ci.id, 0), Some(ci));
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
}
