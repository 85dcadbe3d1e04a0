//! A proposal as the API returns it, read by those that show it to a person.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use wire::time::read_rfc3339;

/// A proposal as `GET proposals/{id}` returns it. Params, tool and answer keep their spelling.
#[derive(Debug, Clone, Deserialize)]
pub struct ProposalDetails {
    /// The id that the gateway gave it.
    pub id: String,
    /// Its topic.
    pub topic: String,
    /// `pending`, `running`, `completed`, `failed`, `rejected`, `withdrawn` or `expired`.
    pub state: String,
    /// The proposer.
    pub by: String,
    /// The participants that are to carry it out; empty means every one.
    pub to: Vec<String>,
    /// The proposed method.
    pub method: String,
    /// The target of the method, such as the name of a tool at its server.
    pub context: Option<String>,
    /// The id of the envelope that proposed it.
    pub envelope: String,
    /// The params, as the proposer wrote them.
    pub params: Option<Box<RawValue>>,
    /// The tool's definition, as its server lists it.
    pub tool: Option<Box<RawValue>>,
    /// Whether every part is here. A list leaves out long ones.
    #[serde(default = "is_in_full")]
    pub in_full: bool,
    /// The digest that an approval names.
    pub digest: String,
    /// Whether it is a call that the gateway holds until the decision.
    pub held: bool,
    /// Whether the caller of that call waits for it now.
    #[serde(default)]
    pub waited_for: bool,
    /// When it was made, RFC 3339.
    pub at: String,
    /// When it expires without a decision, RFC 3339.
    pub expires: String,
    /// The number of times that its expiry was moved.
    #[serde(default)]
    pub extensions: usize,
    /// The participants that look at it.
    #[serde(default)]
    pub claims: Vec<ClaimDetails>,
    /// The number of times that its proposer replaced its arguments.
    #[serde(default)]
    pub amendments: usize,
    /// Whether a reviewer has changed the params, which others are to approve.
    #[serde(default)]
    pub amended: bool,
    /// The number of participants that must approve it.
    #[serde(default)]
    pub approvals: usize,
    /// The participants whose approvals count so far.
    #[serde(default)]
    pub approved_by: Vec<String>,
    /// The participant that decided, or `rules`.
    pub decided_by: Option<String>,
    /// The rule that decided, with its version.
    #[serde(default)]
    pub rule: Option<String>,
    /// The author of the rule.
    #[serde(default)]
    pub rule_author: Option<String>,
    /// What rules in shadow would have decided.
    #[serde(default)]
    pub would: Vec<WouldDetails>,
    /// The params that ran, if the reviewer edited them.
    pub edited: Option<Box<RawValue>>,
    /// The reason for its state.
    pub reason: Option<String>,
    /// Notes of reviewers, given with their approvals.
    #[serde(default)]
    pub notes: Vec<NoteDetails>,
    /// The JSON-RPC answer to the request that ran.
    pub answer: Option<Box<RawValue>>,
    /// Whether it ran without success: also one that is `completed`, with an error that the tool
    /// returned.
    #[serde(default)]
    pub failed: bool,
    /// Its place in a plan, if it is a step of one.
    #[serde(default)]
    pub plan: Option<PlanDetails>,
    /// Of the first step of a plan, all its steps in their order: a decision is about all of them.
    #[serde(default)]
    pub steps: Vec<StepDetails>,
}

/// Gateways of before leave out nothing, and do not say so.
fn is_in_full() -> bool {
    true
}

/// The place of a proposal in a plan.
#[derive(Debug, Clone, Deserialize)]
pub struct PlanDetails {
    /// The plan: the id of its first step.
    pub id: String,
    /// The number of the step; the first is 1.
    pub step: usize,
    /// The number of steps.
    pub of: usize,
}

/// A step of a plan. Params and tool keep their spelling.
#[derive(Debug, Clone, Deserialize)]
pub struct StepDetails {
    /// The id of its proposal.
    pub id: String,
    /// Its state, if it is known.
    pub state: Option<String>,
    /// Whether it has ended without success.
    #[serde(default)]
    pub failed: bool,
    /// The server that carries it out.
    pub to: Vec<String>,
    /// The method.
    pub method: String,
    /// The name of the tool at its server.
    pub context: Option<String>,
    /// The params.
    pub params: Option<Box<RawValue>>,
    /// The tool's definition, as its server lists it.
    pub tool: Option<Box<RawValue>>,
}

/// A participant that looks at a proposal.
#[derive(Debug, Clone, Deserialize)]
pub struct ClaimDetails {
    /// The participant.
    pub by: String,
    /// Since when, RFC 3339.
    pub since: String,
}

/// A decision that a rule in shadow would have made.
#[derive(Debug, Clone, Deserialize)]
pub struct WouldDetails {
    /// It in words.
    pub words: String,
}

/// The note of a reviewer with an approval.
#[derive(Debug, Clone, Deserialize)]
pub struct NoteDetails {
    /// The reviewer.
    pub by: String,
    /// The note.
    pub note: String,
}

/// Word with which the reason begins of a proposal that ran when the gateway ended.
const OUTCOME_UNKNOWN: &str = "outcome_unknown";

/// The params of `tools/call`, as far as they are split.
#[derive(Deserialize)]
struct CallParams {
    arguments: Option<Box<RawValue>>,
}

impl ProposalDetails {
    /// When it was made, in Unix milliseconds; 0 if the gateway's text is no time.
    #[must_use]
    pub fn at_ms(&self) -> u64 {
        read_rfc3339(&self.at).unwrap_or_default()
    }

    /// When it expires, in Unix milliseconds.
    #[must_use]
    pub fn expires_ms(&self) -> u64 {
        read_rfc3339(&self.expires).unwrap_or_default()
    }

    /// Whether it ran to its end, and its tool returned an error.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        self.state == "completed" && self.failed
    }

    /// Its state as people read it: `outcome_unknown` of one that failed so.
    #[must_use]
    pub fn shown_state(&self) -> &str {
        let reason = self.reason.as_deref().unwrap_or_default();
        if self.state == "failed" && reason.starts_with(OUTCOME_UNKNOWN) {
            OUTCOME_UNKNOWN
        } else {
            &self.state
        }
    }

    /// Whether it waits for a decision. A later step of a plan never does: it waits for its turn.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.state == "pending" && !self.is_later_step()
    }

    /// Whether it is a step of a plan after the first, which is decided about.
    #[must_use]
    pub fn is_later_step(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.step > 1)
    }

    /// The steps of a plan as proposals of one call each; none of another proposal.
    #[must_use]
    pub fn single_steps(&self) -> Vec<Self> {
        self.steps.iter().map(|step| self.single(step)).collect()
    }

    /// A step as a proposal of one call. What the plan has in full is not copied.
    fn single(&self, step: &StepDetails) -> Self {
        Self {
            to: step.to.clone(),
            method: step.method.clone(),
            context: step.context.clone(),
            params: step.params.clone(),
            tool: step.tool.clone(),
            edited: None,
            answer: None,
            steps: Vec::new(),
            id: self.id.clone(),
            topic: self.topic.clone(),
            state: self.state.clone(),
            by: self.by.clone(),
            envelope: self.envelope.clone(),
            in_full: self.in_full,
            digest: self.digest.clone(),
            held: self.held,
            waited_for: self.waited_for,
            failed: false,
            at: self.at.clone(),
            expires: self.expires.clone(),
            extensions: self.extensions,
            claims: self.claims.clone(),
            amendments: self.amendments,
            amended: self.amended,
            approvals: self.approvals,
            approved_by: self.approved_by.clone(),
            decided_by: self.decided_by.clone(),
            rule: self.rule.clone(),
            rule_author: self.rule_author.clone(),
            would: self.would.clone(),
            reason: self.reason.clone(),
            notes: self.notes.clone(),
            plan: self.plan.clone(),
        }
    }

    /// Whether nothing more happens to it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self.state.as_str(), "pending" | "running")
    }

    /// Target of the request, or its method if it has none.
    #[must_use]
    pub fn what(&self) -> &str {
        self.context.as_deref().unwrap_or(&self.method)
    }

    /// The proposed arguments, for tool calls.
    #[must_use]
    pub fn arguments(&self) -> Option<Box<RawValue>> {
        if self.method != "tools/call" {
            return None;
        }
        let params = self.params.as_ref()?;
        serde_json::from_str::<CallParams>(params.get())
            .ok()?
            .arguments
    }

    /// The arguments of a tool's call, and the members of its params besides them and the name, which
    /// the card has already. Of any other proposal all params. Values keep their spelling.
    #[must_use]
    pub fn split_params(&self) -> (Option<Box<RawValue>>, Option<String>) {
        let whole = self.params.as_ref().map(|params| params.get().to_owned());
        let read = whole.as_deref().and_then(|params| {
            serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(params).ok()
        });
        let (Some(arguments), Some(mut members)) = (self.arguments(), read) else {
            return (None, whole);
        };
        let named = members
            .get("name")
            .and_then(|name| serde_json::from_str::<String>(name.get()).ok());
        if named.as_deref() != self.context.as_deref() {
            return (None, whole);
        }
        members.remove("name");
        members.remove("arguments");
        let rest = (!members.is_empty()).then(|| written(&members));
        (Some(arguments), rest)
    }
}

/// Members of params that lie beside the arguments: those that a decision is about, and those of the
/// transport.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RestOfParams {
    /// A JSON object, if there are any.
    pub decided: Option<String>,
    /// A JSON object, if there are any: no digest covers them.
    pub of_travel: Option<String>,
}

impl RestOfParams {
    /// Splits the rest of [`ProposalDetails::split_params`].
    #[must_use]
    pub fn of(rest: Option<&str>) -> Self {
        let Some(rest) = rest else {
            return Self::default();
        };
        let whole = || Self {
            decided: Some(rest.to_owned()),
            of_travel: None,
        };
        let Ok(mut members) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(rest) else {
            return whole();
        };
        let Some(meta) = members.remove("_meta") else {
            return whole();
        };
        let Ok(keys) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(meta.get()) else {
            return whole();
        };
        let (of_travel, decided): (BTreeMap<_, _>, BTreeMap<_, _>) = keys
            .into_iter()
            .partition(|(key, _)| wire::digest::is_of_travel(key));
        if !decided.is_empty()
            && let Ok(meta) = RawValue::from_string(written(&decided))
        {
            members.insert("_meta".to_owned(), meta);
        }
        let some = |members: &BTreeMap<String, Box<RawValue>>| {
            (!members.is_empty()).then(|| written(members))
        };
        Self {
            decided: some(&members),
            of_travel: some(&of_travel),
        }
    }
}

/// Members as one object. Values keep their spelling.
fn written(members: &BTreeMap<String, Box<RawValue>>) -> String {
    let object = json::object(|object| {
        for (key, value) in members {
            object.raw(key, value.get().as_bytes());
        }
    });
    String::from_utf8_lossy(&object).into_owned()
}

/// The body of `POST proposals/{id}/approve`: the digest of what was shown, and if there are such,
/// other arguments, as they are spelled, and a note for the proposer.
#[must_use]
pub fn approval_body(digest: &str, arguments: Option<&str>, note: Option<&str>) -> String {
    let mut body = format!("{{\"digest\":{}", json!(digest));
    if let Some(arguments) = arguments {
        body += &format!(",\"arguments\":{arguments}");
    }
    if let Some(note) = note.filter(|note| !note.is_empty()) {
        body += &format!(",\"note\":{}", json!(note));
    }
    body.push('}');
    body
}

#[cfg(test)]
pub(crate) mod tests_support {
    use serde_json::{Value, json};

    use super::ProposalDetails;

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
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::tests_support::proposal;
    use super::*;

    #[test]
    fn members_of_the_transport_are_apart_from_what_is_decided_about() {
        let rest = |params: serde_json::Value| {
            let details = proposal("1", &json!({ "params": params }));
            RestOfParams::of(details.split_params().1.as_deref())
        };
        let of = |decided: Option<&str>, of_travel: Option<&str>| RestOfParams {
            decided: decided.map(str::to_owned),
            of_travel: of_travel.map(str::to_owned),
        };
        let params =
            |meta: serde_json::Value| json!({ "name": "echo", "arguments": {}, "_meta": meta });
        assert_eq!(
            rest(json!({ "name": "echo", "arguments": {} })),
            of(None, None)
        );
        assert_eq!(
            rest(params(json!({ "progressToken": 1 }))),
            of(None, Some(r#"{"progressToken":1}"#))
        );
        assert_eq!(
            rest(params(json!({ "progressToken": 1, "own/key": "x" }))),
            of(
                Some(r#"{"_meta":{"own/key":"x"}}"#),
                Some(r#"{"progressToken":1}"#)
            )
        );
        // Of another type it is shown as it is.
        assert_eq!(rest(params(json!(7))), of(Some(r#"{"_meta":7}"#), None));
        assert_eq!(
            RestOfParams::of(Some(r#"{"_meta":{"a":1,"a":2}"#)).of_travel,
            None
        );
    }

    #[test]
    fn a_completed_call_may_have_failed_at_its_tool() {
        let of = |state: &str, failed: bool| {
            proposal("1", &json!({ "state": state, "failed": failed })).is_tool_error()
        };
        assert!(of("completed", true));
        assert!(!of("completed", false) && !of("failed", true));
    }
}
