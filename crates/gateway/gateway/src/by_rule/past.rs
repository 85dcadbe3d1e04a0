//! The past of a topic as its records have it, also while another process owns them: decisions about
//! proposals in the journal, direct calls in the audit log.

use std::path::Path;
use std::sync::Arc;

use model::{OperationId, ParticipantId};
use rules::{Arguments, PastCall, PastVerdict, Pointer, RuleEvidence, RuledTool};
use serde::Deserialize;
use serde_json::value::RawValue;
use store::audit::Redaction;
use store::{PeekedJournal, StoreError};

use super::evidence::KeptArguments;
use super::facts::parts_of;
use super::kept::KeptRules;

/// The decisions about proposals of a topic that the journal of a data directory keeps, in their
/// order.
///
/// # Errors
/// As [`PeekedJournal::read`] and [`PeekedJournal::fold`].
pub fn recorded_decisions(dir: &Path, topic: &str) -> Result<Vec<Arc<RuleEvidence>>, StoreError> {
    let kept: KeptRules = PeekedJournal::read(dir)?.fold()?;
    Ok(kept.decisions_of(topic))
}

/// A call that was made without a proposal, as the audit log has it.
#[derive(Debug)]
pub struct DirectEntry<'e> {
    /// The number of its entry.
    pub seq: u64,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// The caller.
    pub from: &'e str,
    /// The participant that ran it.
    pub to: &'e str,
    /// The method.
    pub method: &'e str,
    /// The target, by its server's own name.
    pub target: &'e str,
    /// The params, or the envelope's payload that has them; `None` where the log does not have them.
    pub payload: Option<&'e RawValue>,
}

/// A call that was made without a proposal, for rules.
#[derive(Debug, Clone)]
pub struct PastDirect {
    /// The call. Of one whose arguments the log does not have, it has none.
    pub call: PastCall,
    /// Members whose values the log does not have.
    pub redacted: Vec<Pointer>,
    /// Whether the log has its arguments.
    pub is_whole: bool,
}

/// The payload of a request in a room.
#[derive(Deserialize)]
struct RoomPayload<'p> {
    /// Only a message of JSON-RPC has it.
    #[serde(rename = "method")]
    _method: &'p str,
    #[serde(borrow)]
    params: Option<&'p RawValue>,
}

/// The value that the audit log writes in place of one that it does not keep.
const NOT_KEPT: &[u8] = br#""[redacted]""#;

impl PastDirect {
    /// The call of an entry; `None` if its names are none that rules know.
    #[must_use]
    pub fn read(entry: &DirectEntry<'_>, redaction: &Redaction) -> Option<Self> {
        let (arguments, beside) = match entry.payload {
            Some(payload) => parts_of(entry.method, Some(params_of(payload.get()))),
            None => (Arguments::read(b"{}"), Vec::new()),
        };
        let kept = arguments.map(|arguments| KeptArguments::of(arguments, redaction));
        let (arguments, redacted) = match kept {
            Ok(Some(kept)) => {
                let redacted = not_kept(&kept.arguments);
                (Ok(kept.arguments), redacted)
            }
            Ok(None) => return None,
            Err(error) => (Err(error), Vec::new()),
        };
        let call = PastCall {
            // Envelopes have no operation.
            operation: OperationId(entry.seq.into()),
            at_ms: entry.at_ms,
            tool: RuledTool {
                to: ParticipantId::new(entry.to).ok()?,
                method: entry.method.into(),
                target: entry.target.into(),
            },
            definition: None,
            server: None,
            proposer: ParticipantId::new(entry.from).ok()?,
            arguments,
            has_more: !beside.is_empty(),
            verdict: PastVerdict::Direct,
            // What became of it is not on record.
            succeeded: false,
        };
        Some(Self {
            call,
            redacted,
            is_whole: entry.payload.is_some(),
        })
    }
}

/// The members whose values the audit log does not keep, or does not keep any more.
fn not_kept(arguments: &Arguments) -> Vec<Pointer> {
    let leaves = arguments.leaves().filter(|(_, value)| *value == NOT_KEPT);
    leaves.map(|(pointer, _)| pointer.clone()).collect()
}

/// The params of a recorded payload: those of an MCP client's request are recorded alone, an envelope
/// has them in a message of JSON-RPC.
fn params_of(payload: &str) -> &str {
    match serde_json::from_str::<RoomPayload<'_>>(payload) {
        Ok(message) => message.params.map_or("{}", RawValue::get),
        Err(_) => payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: Option<&str>) -> PastDirect {
        let payload: Option<&RawValue> = payload.map(|text| serde_json::from_str(text).unwrap());
        let entry = DirectEntry {
            seq: 7,
            at_ms: 1_795_780_800_000,
            from: "payer",
            to: "bank",
            method: "tools/call",
            target: "pay",
            payload,
        };
        PastDirect::read(&entry, &Redaction::new(&["token"])).unwrap()
    }

    #[test]
    fn a_direct_call_is_read_as_a_client_or_a_room_recorded_it() {
        let params = r#"{"name":"bank_pay","arguments":{"amount":5}}"#;
        let room = format!(r#"{{"method":"tools/call","params":{params}}}"#);
        for payload in [params, &room] {
            let direct = read(Some(payload));
            let arguments = direct.call.arguments.unwrap();
            assert_eq!(arguments.text(), r#"{"amount":5}"#, "{payload}");
            assert!(direct.is_whole && direct.redacted.is_empty() && !direct.call.has_more);
        }
        let redacted = read(Some(
            r#"{"name":"bank_pay","arguments":{"amount":5,"token":"[redacted]"}}"#,
        ));
        assert_eq!(redacted.redacted.len(), 1, "{redacted:?}");
        let twice = read(Some(
            r#"{"name":"bank_pay","arguments":{"amount":5,"amount":6}}"#,
        ));
        assert!(twice.call.arguments.is_err() && twice.is_whole);
        assert!(!read(None).is_whole);
    }
}
