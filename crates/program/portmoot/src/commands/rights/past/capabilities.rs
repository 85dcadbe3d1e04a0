//! Capabilities that change, tried on what a participant asked for and decided.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Capabilities, GATEWAY, KindRef, PROPOSAL, REQUEST, TopicName};
use store::audit::RecordedEntry;
use topic::RequestWay;

use super::findings::{Findings, OtherAct, PolicyPart, counted, that_were};
use super::policy::Policy;

/// The cause of a refusal for which capabilities are the reason.
const NOT_ADMITTED: &str = "not_admitted";
/// Why a refused request of an MCP client cannot be judged.
pub(super) const NO_SERVER: &str = "the audit log names no server of a refused request";
/// A decision that the participant made, and one that it could not make.
const DECIDED: &str = "decided";
const REFUSED: &str = "refused";

/// What a participant may do in a topic, in force and tried.
type Rights = [Option<Arc<Capabilities>>; 2];

/// Capabilities of a participant that change, and the acts on which they were tried.
pub(super) struct TriedCapabilities<'p> {
    before: &'p Policy,
    after: &'p Policy,
    /// By topic, as far as they were looked up.
    rights: BTreeMap<Option<String>, Rights>,
    /// Its requests.
    pub(super) requests: usize,
    /// Its decisions about proposals of others.
    pub(super) decisions: usize,
}

impl<'p> TriedCapabilities<'p> {
    /// The capabilities of two policies.
    pub(super) fn new(before: &'p Policy, after: &'p Policy) -> Self {
        Self {
            before,
            after,
            rights: BTreeMap::new(),
            requests: 0,
            decisions: 0,
        }
    }

    /// Takes an act of the participant.
    pub(super) fn take(&mut self, entry: &RecordedEntry<'_>, findings: &mut Findings) {
        let to = entry.to.join(",");
        // Names of the gateway's own tools need no capability.
        if to == GATEWAY {
            return;
        }
        let Ok(kind) = KindRef::parse(&entry.kind) else {
            return;
        };
        let Some(outcome) = self.outcome(entry, kind, findings) else {
            return;
        };
        let (was, would_be) = outcome;
        findings.note(OtherAct {
            by: PolicyPart::Capabilities,
            kind: entry.kind.to_string(),
            to,
            was,
            would_be,
        });
    }

    /// What became of an act, and what would have, if that is something else.
    fn outcome(
        &mut self,
        entry: &RecordedEntry<'_>,
        kind: KindRef<'_>,
        findings: &mut Findings,
    ) -> Option<(&'static str, &'static str)> {
        match (kind.head(), &*entry.verdict) {
            // The approval or rejection of another participant's proposal.
            (PROPOSAL, "approved" | "rejected") => {
                self.decisions += 1;
                let [before, after] = self.rights_of(entry.topic.as_ref());
                let could = may_decide(entry, kind, before.as_deref()?);
                let may = may_decide(entry, kind, after.as_deref()?);
                (could && !may).then_some((DECIDED, REFUSED))
            }
            // The entry of a held call has its proposal's beside it, which names the call.
            (PROPOSAL, "held") if entry.why.is_none() => self.way(entry, kind, RequestWay::Held),
            (REQUEST, "admitted") => self.way(entry, kind, RequestWay::Made),
            (REQUEST, "held") => self.way(entry, kind, RequestWay::Held),
            (REQUEST, "refused") if is_not_admitted(entry) && entry.to.is_empty() => {
                findings.not_tried(PolicyPart::Capabilities, NO_SERVER);
                None
            }
            (REQUEST, "refused") if is_not_admitted(entry) => {
                self.way(entry, kind, RequestWay::Refused)
            }
            _ => None,
        }
    }

    /// The way of a request, and the other one that it would go.
    fn way(
        &mut self,
        entry: &RecordedEntry<'_>,
        kind: KindRef<'_>,
        was: RequestWay,
    ) -> Option<(&'static str, &'static str)> {
        self.requests += 1;
        let [before, after] = self.rights_of(entry.topic.as_ref());
        let now = way_of(entry, kind, before.as_deref()?)?;
        let way = way_of(entry, kind, after.as_deref()?)?;
        // A rule or a pause held what its sender could make: that is no matter of capabilities.
        let stays =
            way == was || was == RequestWay::Held && way == RequestWay::Made && is_by_rule(entry);
        (way != now && !stays).then_some((was.into(), way.into()))
    }

    fn rights_of(&mut self, topic: Option<&Cow<'_, str>>) -> Rights {
        let name = topic.map(|topic| topic.to_string());
        let rights = self.rights.entry(name.clone()).or_insert_with(|| {
            let topic = name.and_then(|name| TopicName::new(&name).ok());
            [self.before, self.after].map(|policy| policy.capabilities(topic.as_ref()))
        });
        rights.clone()
    }
}

/// The result in words: `would have held 2 requests that were made`.
pub(super) fn words(findings: &Findings) -> String {
    let outcomes = findings.outcomes(PolicyPart::Capabilities);
    let words = outcomes.iter().map(|((was, would_be), times)| match *was {
        DECIDED => format!(
            "would not have been enough for {}",
            counted(*times, "decision")
        ),
        _ => format!(
            "would have {would_be} {}",
            that_were(*times, "request", was)
        ),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The way of a recorded request by capabilities alone.
fn way_of(
    entry: &RecordedEntry<'_>,
    kind: KindRef<'_>,
    capabilities: &Capabilities,
) -> Option<RequestWay> {
    let method = kind.method().unwrap_or_default();
    let ways = entry.to.iter();
    // An envelope for several goes the way of the worst: it is admitted as a whole.
    ways.map(|to| RequestWay::of(capabilities, method, kind.context(), to))
        .max()
}

fn is_not_admitted(entry: &RecordedEntry<'_>) -> bool {
    let cause = entry.why.as_deref().and_then(|why| why.split(':').next());
    cause == Some(NOT_ADMITTED)
}

fn is_by_rule(entry: &RecordedEntry<'_>) -> bool {
    let why = entry.why.as_deref();
    why.is_some_and(|why| why.starts_with("by rule ") || why == "paused")
}

/// Whether capabilities are enough to decide about a proposal, at all that it is to. Which name they mean
/// depends on the wire, so either does.
fn may_decide(entry: &RecordedEntry<'_>, kind: KindRef<'_>, capabilities: &Capabilities) -> bool {
    let names = [kind.context(), entry.own.as_deref()];
    let method = kind.method().unwrap_or_default();
    let is_admitted = |to: &[&str]| {
        let mut names = names.into_iter().flatten();
        names.any(|name| capabilities.admits_deciding(method, Some(name), to))
    };
    // One to no participant in particular is judged as such.
    if entry.to.is_empty() {
        return is_admitted(&[]);
    }
    entry.to.iter().all(|to| is_admitted(&[to]))
}
