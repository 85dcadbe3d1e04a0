//! A proposed call as rules see it.

use std::sync::Arc;

use model::{Digest, KindRef, OperationId, ParticipantId};
use rules::{Arguments, ArgumentsError, RuledCall, ToolTraits};
use wire::digest::CallParts;

use super::tool_facts::{
    canonical_tool, is_harmless, rules_of, server_digest, sha256, upstream_of,
};
use crate::dispatch::Dispatch;
use crate::live::Topic;
use crate::proposals::kept::OpenedProposal;
use crate::proposals::open::definition;
use upstream::Upstream;

/// A proposed call of one addressee, with what its server says now.
#[derive(Debug)]
pub(crate) struct CallFacts<'o> {
    pub(crate) kind: KindRef<'o>,
    pub(crate) proposer: ParticipantId,
    pub(crate) to: ParticipantId,
    pub(crate) arguments: Result<Arguments, ArgumentsError>,
    /// Members of the params beside target and arguments.
    beside: Vec<String>,
    /// Digest of the tool's definition as its server lists it to the proposer now.
    pub(crate) definition: Option<Digest>,
    /// Digest of the server's configured command or URL.
    pub(crate) server: Option<Digest>,
    /// Traits that the tool says of itself, which only tighten, and the operator's setting.
    pub(crate) traits: ToolTraits,
    /// Whether its proposer has amended it.
    pub(crate) is_amended: bool,
    /// The server of which this was read.
    upstream: Option<Arc<Upstream>>,
}

impl<'o> CallFacts<'o> {
    /// The facts of a proposal. `None` if it names no addressee, or several: then people decide.
    pub(crate) fn of(dispatch: &Dispatch, opened: &'o OpenedProposal) -> Option<Self> {
        let [to] = opened.to.as_slice() else {
            return None;
        };
        let to = ParticipantId::new(to).ok()?;
        let proposer = ParticipantId::new(&opened.by).ok()?;
        let context = opened.context.as_deref();
        let kind = KindRef::request(&opened.method, context).ok()?;
        let (arguments, beside) = parts_of(&opened.method, opened.params.as_deref());
        let addressee = std::slice::from_ref(&to);
        let tool = definition(dispatch, &proposer, addressee, &opened.method, context);
        let canonical = tool.as_deref().and_then(canonical_tool);
        let upstream = dispatch.with(|topic| upstream_of(topic, &to));
        Some(Self {
            kind,
            arguments,
            beside,
            definition: canonical.as_deref().map(sha256),
            server: upstream.as_deref().and_then(server_digest),
            traits: ToolTraits {
                // One that is not known suspends nothing, and no rule approves its calls.
                harmless: canonical.as_deref().is_none_or(is_harmless),
                rules: rules_of(upstream.as_deref(), context),
                ..ToolTraits::default()
            },
            proposer,
            to,
            is_amended: opened.amendments > 0,
            upstream,
        })
    }

    /// Whether the topic still has the server of which this was read.
    pub(crate) fn is_of_server_in(&self, topic: &Topic) -> bool {
        let now = upstream_of(topic, &self.to);
        now.as_ref().map(Arc::as_ptr) == self.upstream.as_ref().map(Arc::as_ptr)
    }

    /// Names of members that the call has beside target and arguments.
    pub(crate) fn beside_names(&self) -> Vec<&str> {
        self.beside.iter().map(String::as_str).collect()
    }

    /// The call, for rules. `beside` are [`CallFacts::beside_names`].
    pub(crate) fn call<'a>(
        &'a self,
        operation: OperationId,
        beside: &'a [&'a str],
        at_ms: u64,
    ) -> RuledCall<'a> {
        RuledCall {
            operation,
            proposer: &self.proposer,
            to: &self.to,
            kind: self.kind,
            arguments: self.arguments.as_ref(),
            beside,
            definition: self.definition,
            server: self.server,
            at_ms,
        }
    }
}

/// The arguments of a call, and the names of what its params have beside them. Read from the
/// canonical bytes that a proposal's digest covers.
pub(crate) fn parts_of(
    method: &str,
    params: Option<&str>,
) -> (Result<Arguments, ArgumentsError>, Vec<String>) {
    match CallParts::of(method, params.unwrap_or("{}").as_bytes()) {
        Ok(parts) => (Arguments::of_canonical(&parts.arguments), parts.beside),
        Err(error) => (Err(error.into()), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::by_rule::tool_facts::definition_digest;

    /// The vectors that other implementations share.
    #[test]
    fn calls_and_definitions_read_as_the_vectors_say() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../core/rules/vectors/call.json"
        );
        let text = std::fs::read_to_string(file).unwrap();
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(cases.len() >= 5);
        for case in &cases {
            assert_eq!(follows(case), case["expect"], "{}", case["name"]);
        }
    }

    fn follows(case: &Value) -> Value {
        if let Some(definition) = case["definition"].as_str() {
            return json!(definition_digest(definition).map(|digest| digest.to_string()));
        }
        let method = case["method"].as_str().unwrap();
        let (arguments, beside) = parts_of(method, case["params"].as_str());
        let arguments = arguments.ok().map(|read| read.text().to_owned());
        json!({ "arguments": arguments, "beside": beside })
    }

    fn parts(method: &str, params: &str) -> (Result<String, ArgumentsError>, Vec<String>) {
        let (arguments, beside) = parts_of(method, Some(params));
        (arguments.map(|read| read.text().to_owned()), beside)
    }

    #[test]
    fn all_that_runs_is_an_argument_or_beside() {
        let (arguments, beside) = parts(
            "tools/call",
            r#"{"name":"create_issue","_meta":{"progressToken":1,"own":2},"arguments":{"b":1,"a":"x"},"more":{}}"#,
        );
        assert_eq!(arguments.as_deref(), Ok(r#"{"a":"x","b":1}"#));
        assert_eq!(beside, ["_meta", "more"]);
        let (arguments, beside) = parts("tools/call", r#"{"name":"create_issue","task":{}}"#);
        assert_eq!((arguments.as_deref(), beside), (Ok("{}"), Vec::new()));
        let (arguments, _) = parts("tools/call", r#"{"arguments":{"a":1,"a":2}}"#);
        assert!(arguments.is_err());
        let (arguments, beside) = parts("resources/read", r#"{"uri":"file:///x","name":"y"}"#);
        assert_eq!(
            (arguments.as_deref(), beside.as_slice()),
            (Ok("{}"), &["name".to_owned()][..])
        );
    }
}
