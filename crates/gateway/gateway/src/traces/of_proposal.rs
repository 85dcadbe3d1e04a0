//! The span of a proposal that waits for a decision.

use telemetry::trace::{
    OperationDigits, SpanAttributes, SpanKind, SpanName, SpanPlace, SpanRecord, TraceContext,
    span_of,
};

use super::of_call::cut;
use crate::by_rule::decided_by::rule_of;
use crate::dispatch::Dispatch;
use crate::live::ProposalView;
use crate::proposals::content::HeldCall;
use crate::span::context_in;

/// The context of a proposal's span, in the trace of the call behind it or in one of its own; `None`
/// if it is not traced.
pub(crate) fn context_of(dispatch: &Dispatch, proposal: &ProposalView) -> Option<TraceContext> {
    match proposal.content.call {
        Some(HeldCall { trace, .. }) => Some(TraceContext {
            span: span_of(proposal.id.0, SpanPlace::Proposal),
            ..trace?
        }),
        None => dispatch.context.traces.root_of(proposal.id),
    }
}

/// The context of the call behind a proposal, if it is recorded.
fn call_of(proposal: &ProposalView) -> Option<TraceContext> {
    proposal.content.call?.trace
}

/// The context that an envelope names whose proposal no call is behind: of a trace of its own.
fn named_by(proposal: &ProposalView) -> Option<TraceContext> {
    let params = proposal.content.opened.params.as_deref();
    match proposal.content.call {
        Some(_) => None,
        None => context_in(params?.as_bytes()),
    }
}

/// The end of a wait, in words.
pub(crate) struct WaitEnd {
    /// What was decided.
    pub(crate) decision: &'static str,
    /// What decided it.
    pub(crate) by: &'static str,
    /// For how long it waited.
    pub(crate) waited_ms: u64,
}

/// Records the span of a proposal that has waited.
pub(crate) fn waited(dispatch: &Dispatch, proposal: &ProposalView, end: &WaitEnd) {
    let Some(context) = context_of(dispatch, proposal) else {
        return;
    };
    let opened = &proposal.content.opened;
    let target = opened.context.as_deref().unwrap_or(&opened.method);
    let operation = OperationDigits::of(proposal.id.0);
    let rule = rule_of(proposal).map(|rule| rule.rule.to_string());
    let ruling = proposal.ruling.as_ref();
    let mut attributes = SpanAttributes::default();
    attributes.text("mcp.method.name", opened.method.as_str());
    attributes.text("portmoot.topic", dispatch.name().as_str());
    attributes.text("portmoot.operation", operation.as_str());
    attributes.text("portmoot.decision", end.decision);
    attributes.text("portmoot.decided_by", end.by);
    if let Some(rule) = &rule {
        attributes.text("portmoot.rule", rule);
    }
    let is_edited = ruling.is_some_and(|ruling| ruling.params.is_some());
    attributes.flag("portmoot.edited", is_edited);
    dispatch.context.traces.spans.push(&SpanRecord {
        context,
        parent: call_of(proposal).map(|call| call.span),
        link: named_by(proposal),
        name: SpanName {
            action: "proposal",
            target: Some(cut(target)),
        },
        kind: SpanKind::Internal,
        start_us: opened.at_ms.saturating_mul(1_000),
        duration_us: end.waited_ms.saturating_mul(1_000),
        attributes: attributes.as_slice(),
        is_error: false,
    });
}
