//! Records of the journal: the facts that outlive a restart, and how each is written as JSON.

mod login;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

pub use login::{Consent, Family, RenewedFamily};

/// A fact that the gateway needs after a restart. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The operator or a participant issued a token. The record holds its hash, never the token.
    TokenIssued(IssuedToken),
    /// The operator or a participant revoked every token of a participant.
    TokenRevoked {
        /// The participant.
        name: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// A new sealing key. The newest one seals; the one before it still opens.
    SealingKey(SealingKey),
    /// The key of the audit log's chain. A data directory has one for its whole life: the first one
    /// counts.
    AuditKey(SealingKey),
    /// A participant opened a proposal.
    ProposalOpened(OpenedProposal),
    /// A reviewer approved or rejected a proposal, or its proposer withdrew it.
    ProposalDecided(DecidedProposal),
    /// A proposal expired, or its operation completed or failed.
    ProposalEnded(EndedProposal),
    /// Ended proposals of which the journal keeps digests only.
    ProposalsClosed(ClosedProposals),
    /// The operator or a participant granted or revoked capabilities of a participant.
    GrantChanged(GrantChange),
    /// Every grant and revocation of a participant ended, cleared or with its tokens: its
    /// configured capabilities apply again.
    GrantsCleared {
        /// The participant.
        participant: String,
        /// Limits the removal to one topic; `None` is all topics.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<String>,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// The clock has passed the ends of tokens, grants or sign-ins: what had ended by this time
    /// stays ended, wherever the clock is set.
    Expired {
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// Sessions that no client can resume.
    SessionsEnded(EndedSessions),
    /// A call became a task of a server that outlives this gateway.
    TaskCreated(CreatedTask),
    /// The operator or a participant signed in at a server, or the tokens of that sign-in were
    /// renewed.
    UpstreamAccount(UpstreamAccount),
    /// A sign-in at a server ended.
    UpstreamAccountEnded {
        /// The server.
        server: String,
        /// The participant; `None` is the account that all callers share.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        participant: Option<String>,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// The gateway registered itself at the authorization server of a server.
    UpstreamClient(UpstreamClient),
    /// A definition of a server is trusted, in place of the one before.
    Pin(PinnedDefinition),
    /// The pinned definitions of a server are forgotten.
    PinsReset {
        /// The server.
        server: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// The key of the gateway's own authorization server. A data directory has one for its whole
    /// life: the first one counts.
    LoginKey(SealingKey),
    /// A client got the first refresh token of a family.
    FamilyBegun(Family),
    /// A client got the next refresh token of a family.
    FamilyRenewed(RenewedFamily),
    /// A family ended before its time: revoked, or one of its tokens was used twice.
    FamilyEnded {
        /// Id of the family.
        id: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
    /// A participant consented that a client acts as the participant.
    ConsentGiven(Consent),
    /// All consents of a participant to one client ended.
    ConsentWithdrawn {
        /// The participant.
        participant: String,
        /// SHA-256 of the client's id, 64 hexadecimal digits.
        client: String,
        /// Time in Unix milliseconds.
        at_ms: u64,
    },
}

/// An account at a server. Its tokens are sealed with a key that is not in the data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamAccount {
    /// The server.
    pub server: String,
    /// The issuer of the tokens.
    pub issuer: String,
    /// The participant; `None` is the account that all callers share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant: Option<String>,
    /// The tokens and what they were issued for, sealed.
    pub sealed: String,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// A client that the gateway is at an authorization server. Its secret is sealed as tokens are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamClient {
    /// The server.
    pub server: String,
    /// The issuer that registered it.
    pub issuer: String,
    /// `web` or `native`.
    pub usage: String,
    /// Id and secret, sealed; empty when the authorization server does not know it any more.
    pub sealed: String,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// A token that was issued with `portmoot token new` or the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedToken {
    /// The participant that the token authenticates.
    pub name: String,
    /// SHA-256 of the token, 64 hexadecimal digits.
    pub sha256: String,
    /// Capabilities as its issuer wrote them; `None` means those of the configuration, or those of
    /// a new participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// Topics that it may enter; `None` means those of the configuration, or `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<String>>,
    /// Time of issue in Unix milliseconds.
    pub created_ms: u64,
    /// Time of expiry in Unix milliseconds; `None` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Whether it has expired, on record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// Incarnation of the bearer's name: made with the first token, kept by those that replace it,
    /// another one after a revocation. Tokens of older journals have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
}

/// A key for sealed states or for the chain of the audit log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingKey {
    /// 32 bytes, as 64 hexadecimal digits.
    pub key: String,
    /// Time of creation in Unix milliseconds.
    pub created_ms: u64,
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealingKey")
            .field("created_ms", &self.created_ms)
            .finish_non_exhaustive()
    }
}

/// A change of the capabilities of a participant, in addition to its configured ones.
/// Source: MCPx v0.1 section 4.4, `POST /admin/participants/{id}/capabilities`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantChange {
    /// The participant.
    pub participant: String,
    /// The topic; `None` is all topics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Granted capabilities, as their author wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Revoked capabilities, as their author wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The participant that changed them.
    pub by: String,
    /// Reason that this participant gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
    /// Time of expiry in Unix milliseconds, after which the change before applies again; `None` is
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Whether the participant was a configured one, and not one that had a token only. `None` in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<bool>,
}

/// Sessions that no client can resume, also after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSessions {
    /// One unique text for each session id, in the format of the gateway.
    pub marks: Vec<String>,
    /// The participant whose sessions these were. Older journals do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Time of the record in Unix milliseconds.
    pub at_ms: u64,
    /// Time at which the last of these ids expires, in Unix milliseconds.
    pub until_ms: u64,
}

/// A task of a server that outlives this gateway. All else about it is in its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedTask {
    /// Its id as the participant knows it, sealed.
    pub id: String,
    /// Topic of the call that became the task.
    pub topic: String,
    /// The participant that made the call.
    pub by: String,
    /// Time of creation in Unix milliseconds.
    pub created_ms: u64,
    /// Time from which on no participant can ask for it, in Unix milliseconds.
    pub until_ms: u64,
}

/// A definition of a server that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedDefinition {
    /// The configured name of the server.
    pub server: String,
    /// SHA-256 of the traits by which the server differs from another one of its name, 64
    /// hexadecimal digits.
    pub identity: String,
    /// Kind of the definition: `tool`, `prompt`, `instructions`.
    pub part: String,
    /// The server's own name of it.
    pub name: String,
    /// SHA-256 of identity and definition, 64 hexadecimal digits.
    pub digest: String,
    /// The definition, as canonical JSON.
    pub definition: String,
    /// The participant that approved it; `None` at first sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// A proposal, with all that a reviewer needs to decide and the gateway needs to run it after a
/// restart. Source: MCPx v0.1 section 3.2; MCP calls that are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedProposal {
    /// Operation id, 32 hexadecimal digits.
    pub id: String,
    /// Topic of the proposal.
    pub topic: String,
    /// The proposer.
    pub by: String,
    /// Recipients of its envelope; empty means every participant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// The proposed method, such as `tools/call`.
    pub method: String,
    /// Target of the method, such as the name of a tool at its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Id of its envelope; a request that fulfils the proposal has it as `correlation_id`.
    pub envelope: String,
    /// Era in which `params` are written, under the name that the gateway uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// Params as JSON text, byte for byte as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// Definition of the tool as the reviewer sees it, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Digest of the content that the reviewer sees, 64 hexadecimal digits. A decision is bound to
    /// it.
    pub digest: String,
    /// Whether the gateway holds a call that runs after approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// State that the proposer's door needs to run it after a restart, in the format of that door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// Time of opening in Unix milliseconds.
    pub at_ms: u64,
    /// Time of expiry in Unix milliseconds.
    pub expires_ms: u64,
}

/// Decision about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// A reviewer approved it: it runs once, and ends with its outcome.
    Approved,
    /// A reviewer rejected it, which ends it.
    Rejected,
    /// Its proposer withdrew it, which ends it.
    Withdrawn,
}

/// A decision about a proposal. The first one counts; later ones have no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedProposal {
    /// Id of the proposal.
    pub id: String,
    /// The reviewer, or the proposer that withdrew it.
    pub by: String,
    /// The decision.
    pub decision: Decision,
    /// Reason for the proposer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Digest of the content that the reviewer saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The params that run, as JSON text, if the reviewer edited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// Id of the request envelope that fulfils it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// The end of a proposal: expired, completed or failed. The first end counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedProposal {
    /// Id of the proposal.
    pub id: String,
    /// Final state, under the name that the gateway uses: `completed`, `failed`, `expired`, ...
    pub state: String,
    /// Reason for the proposer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Answer as JSON text, for a proposer that asks later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
}

/// Digests of ended proposals, oldest first. One record holds many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedProposals {
    /// For each proposal the time until which the journal keeps the digest, in Unix milliseconds,
    /// and the digest ([`crate::closed_digest`]), 32 hexadecimal digits on disk.
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub digests: Vec<(u64, u128)>,
}

fn write<S: Serializer>(digests: &[(u64, u128)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        digests
            .iter()
            .map(|(until_ms, digest)| (until_ms, format!("{digest:032x}"))),
    )
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u64, u128)>, D::Error> {
    let texts = Vec::<(u64, String)>::deserialize(deserializer)?;
    let parse = |(until_ms, text): (u64, String)| {
        let is_digest = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digest = is_digest
            .then(|| u128::from_str_radix(&text, 16).ok())
            .flatten();
        digest
            .map(|digest| (until_ms, digest))
            .ok_or_else(|| D::Error::custom("a digest has 32 hexadecimal digits"))
    };
    texts.into_iter().map(parse).collect()
}
