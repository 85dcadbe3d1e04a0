//! Records: verdicts of the topic as entries of the audit log.

use model::{OperationId, PROPOSAL, ParticipantId, ProposalState, REQUEST, RULES, Request};
use store::audit::{AuditEntry, CallLink, EntryKind, EntryOrigin, RecordedVerdict as Word};
use topic::{Cause, CountedDecision, HeldFor, PlanPlace, RequestWay, Verdict};
use wire::mcpx::Envelope;

use crate::by_rule::decided_by::{
    AuthoredRule, RuleWords, code_of, decider, rule_of, words_of_approvals,
};
use crate::proposals::kept::OpenedProposal;
use crate::violations::Violation;
use crate::{
    call::Call,
    dispatch::Dispatch,
    link::{Link, Requester},
    live::{Live, ProposalView},
    proposals::content::{Proposed, Ruling},
    results::asked::recorded,
    traces::context_of,
};
use store::recorder::{RecordPermit, entry};
use wire::time::rfc3339;

/// The kind of a message that is no envelope.
const MALFORMED: &str = "portmoot/malformed";

/// Writes entries about one topic.
#[derive(Clone, Copy)]
pub(crate) struct Record<'d>(pub(crate) &'d Dispatch);

impl<'d> Record<'d> {
    pub(crate) fn entry<'e>(
        self,
        from: &'e str,
        kind: impl Into<EntryKind<'e>>,
        verdict: Word,
    ) -> AuditEntry<'e>
    where
        'd: 'e,
    {
        entry(Some(self.0.name().as_str()), from, kind, verdict)
    }

    /// A refusal costs its sender little: of a flood only the first entries are written, then a
    /// count.
    pub(crate) fn write(self, permit: RecordPermit, entry: &AuditEntry<'_>) {
        if entry.verdict == Word::Refused {
            self.0.audit.write_counted(permit, entry);
        } else {
            permit.write(entry);
        }
    }

    fn write_now(self, entry: &AuditEntry<'_>) {
        self.write(self.0.audit.reserve_or_count(), entry);
    }

    /// The verdict about a client's request. `rule` says which one has taken something of it, unless
    /// its caller could not make it anyway, or which ones in shadow would have.
    pub(crate) fn request(
        self,
        permit: RecordPermit,
        call: &Call,
        verdict: &Verdict,
        rule: Option<&RuleWords>,
    ) {
        if !permit.keeps() {
            return;
        }
        let by_rule = why_of(verdict, rule);
        let (word, to, own, why) = match verdict {
            Verdict::Admitted { to, own, by } => {
                (Word::Admitted, to.as_ref(), own.as_deref(), by.as_str())
            }
            Verdict::Held { to, own, why } => {
                let why = (*why == HeldFor::Pause).then_some(Cause::Paused.as_str());
                (Word::Held, Some(to), own.as_deref(), why)
            }
            Verdict::Refused(cause) => (Word::Refused, None, None, Some(cause.as_str())),
        };
        let why = by_rule.as_deref().or(why);
        let to = to.map(ParticipantId::as_str);
        let shown = permit.keeps_payloads().then(|| call.shown().ok()).flatten();
        let body = shown
            .map(|request| request.payload.body_bytes())
            .filter(|body| !body.is_empty());
        let span = call.span.get().and_then(|span| span.sampled());
        let trace = span.map(|context| context.trace.to_string());
        let client = call.link.words_of(call.client());
        let entry = AuditEntry {
            origin: EntryOrigin {
                address: call.address,
                client: client.as_deref(),
            },
            own,
            to: to.as_slice(),
            why,
            operation: Some(call.id),
            trace: trace.as_deref(),
            payload: body,
            ..self.entry(
                call.link.participant.id.as_str(),
                what_of(&call.request),
                word,
            )
        };
        self.write(permit, &entry);
    }

    /// Capabilities in shadow would have decided a client's request to this server otherwise.
    pub(crate) fn request_in_shadow(
        self,
        call: &Call,
        to: &ParticipantId,
        was: RequestWay,
        why: &str,
    ) {
        let by = call.link.participant.id.as_str();
        let entry = AuditEntry {
            to: &[to.as_str()],
            why: Some(why),
            operation: Some(call.id),
            ..self.entry(by, what_of(&call.request), Word::Shadow)
        };
        self.in_shadow(was, &entry);
    }

    /// Capabilities in shadow would have decided an envelope otherwise.
    pub(crate) fn envelope_in_shadow(
        self,
        envelope: &Envelope,
        to: &[&str],
        was: RequestWay,
        why: &str,
    ) {
        let entry = AuditEntry {
            to,
            why: Some(why),
            ..self.entry(envelope.from(), envelope.kind(), Word::Shadow)
        };
        self.in_shadow(was, &entry);
    }

    /// Capabilities in shadow would not have been enough for a decision.
    pub(crate) fn decision_in_shadow(
        self,
        id: OperationId,
        opened: &OpenedProposal,
        by: &ParticipantId,
        why: &str,
    ) {
        let permit = self.0.audit.reserve_or_count();
        let entry = AuditEntry {
            why: Some(why),
            ..self.entry(by.as_str(), PROPOSAL, Word::Shadow)
        };
        self.proposal(permit, id, opened, entry);
    }

    /// An entry about what would have been decided. That of a refused act costs its sender little, as
    /// that itself.
    fn in_shadow(self, was: RequestWay, entry: &AuditEntry<'_>) {
        let permit = self.0.audit.reserve_or_count();
        if was == RequestWay::Refused {
            self.0.audit.write_counted(permit, entry);
        } else {
            permit.write(entry);
        }
    }

    /// A call that was admitted, and is refused since.
    pub(crate) fn ended(self, call: &Call, cause: Cause) {
        let to = call
            .delivered
            .get()
            .map(|delivered| delivered.server.as_str());
        self.refused(call, to, cause.as_str());
    }

    /// A call that was admitted or held, and whose arguments do not fit the input schema of its
    /// tool.
    pub(crate) fn unfit(self, call: &Call, server: &ParticipantId) {
        self.refused(call, Some(server.as_str()), crate::unfit::WORD);
    }

    fn refused(self, call: &Call, to: Option<&str>, why: &str) {
        let client = call.link.words_of(call.client());
        let entry = AuditEntry {
            origin: EntryOrigin {
                address: call.address,
                client: client.as_deref(),
            },
            to: to.as_slice(),
            why: Some(why),
            operation: Some(call.id),
            ..self.entry(
                call.link.participant.id.as_str(),
                what_of(&call.request),
                Word::Refused,
            )
        };
        self.write_now(&entry);
    }

    /// The verdict about an envelope. `why` is the rule that admits it, or why it is refused.
    pub(crate) fn envelope(
        self,
        permit: RecordPermit,
        (envelope, by): (&Envelope, Requester<'_>),
        admitted: bool,
        why: Option<&str>,
    ) {
        if !permit.keeps() {
            return;
        }
        let to: Vec<&str> = envelope.to().collect();
        let word = if admitted {
            Word::Admitted
        } else {
            Word::Refused
        };
        let payload = Some(envelope.payload());
        let from = by.link.participant.id.as_str();
        self.write(
            permit,
            &AuditEntry {
                origin: EntryOrigin {
                    address: by.address,
                    client: None,
                },
                to: &to,
                why,
                payload,
                ..self.entry(from, envelope.kind(), word)
            },
        );
    }

    /// A participant was paused or resumed (`kind`) by another one.
    pub(crate) fn brake(
        self,
        permit: RecordPermit,
        by: &ParticipantId,
        participant: &ParticipantId,
        kind: &str,
        reason: Option<&str>,
    ) {
        permit.write(&AuditEntry {
            to: &[participant.as_str()],
            why: reason,
            ..self.entry(by.as_str(), kind, Word::Admitted)
        });
    }

    /// A participant was not paused or resumed.
    pub(crate) fn not_braked(
        self,
        permit: RecordPermit,
        by: &ParticipantId,
        participant: &ParticipantId,
        kind: &str,
        why: &str,
    ) {
        let entry = AuditEntry {
            to: &[participant.as_str()],
            why: Some(why),
            ..self.entry(by.as_str(), kind, Word::Refused)
        };
        self.write(permit, &entry);
    }

    /// An envelope of a server in the room.
    pub(crate) fn server_envelope(self, from: &str, to: &[&str], kind: &str, payload: &[u8]) {
        let permit = self.0.audit.reserve_or_count();
        permit.write(&AuditEntry {
            to,
            payload: Some(payload),
            ..self.entry(from, kind, Word::Admitted)
        });
    }

    /// A message that is no envelope.
    pub(crate) fn malformed(self, link: &Link, why: &str) {
        self.0.violations.count(Violation::Malformed);
        let from = link.participant.id.as_str();
        let permit = self.0.audit.reserve_or_count();
        let entry = AuditEntry {
            why: Some(why),
            ..self.entry(from, MALFORMED, Word::Refused)
        };
        self.write(permit.from_address(link.address()), &entry);
    }

    /// An envelope on which these receivers do not act.
    pub(crate) fn ignored(self, envelope: &Envelope, by: &[&str], why: &str) {
        let from = envelope.from();
        let kind = envelope.kind();
        let payload = Some(envelope.payload());
        self.write_now(&AuditEntry {
            to: by,
            why: Some(why),
            payload,
            ..self.entry(from, kind, Word::Refused)
        });
    }

    /// An envelope whose kind and payload differ, or an answer that does not count, on which these
    /// receivers do not act.
    pub(crate) fn mismatched(self, envelope: &Envelope, by: &[&str], why: &str) {
        self.0.violations.count(Violation::Mismatch);
        self.ignored(envelope, by, &format!("mismatch: {why}"));
    }

    /// A proposal is open to decisions.
    pub(crate) fn proposed(self, proposal: &ProposalView, call: Option<OperationId>) {
        let Some(permit) = proposal.content.opening_permit() else {
            return;
        };
        let opened = &proposal.content.opened;
        let of_plan = proposal.plan.as_ref().map(step_words);
        let why = call.map(|call| CallLink::For(call).to_string()).or(of_plan);
        let trace = context_of(self.0, proposal).map(|context| context.trace.to_string());
        let payload = opened.params.as_deref().map(str::as_bytes);
        let entry = self.entry(&opened.by, PROPOSAL, Word::Held);
        self.proposal(
            permit,
            proposal.id,
            opened,
            AuditEntry {
                why: why.as_deref(),
                trace: trace.as_deref(),
                payload,
                ..entry
            },
        );
    }

    /// A call repeats a proposal, and opens no second one. `wanted` is what it would have opened.
    pub(crate) fn repeated(self, proposal: &ProposalView, wanted: &Proposed, call: OperationId) {
        let Some(permit) = wanted.opening_permit() else {
            return;
        };
        let opened = &proposal.content.opened;
        let why = CallLink::Repeated(call).to_string();
        let entry = self.entry(&opened.by, PROPOSAL, Word::Held);
        let why = Some(why.as_str());
        self.proposal(permit, proposal.id, opened, AuditEntry { why, ..entry });
    }

    /// A proposal was not taken.
    pub(crate) fn not_proposed(self, id: OperationId, content: &Proposed, cause: Cause) {
        let Some(permit) = content.opening_permit() else {
            return;
        };
        let why = Some(cause.as_str());
        let entry = self.entry(&content.opened.by, PROPOSAL, Word::Refused);
        self.proposal(permit, id, &content.opened, AuditEntry { why, ..entry });
    }

    /// A participant approved a proposal that others must approve too.
    pub(crate) fn counted(self, counted: &CountedDecision<Live>) {
        let CountedDecision {
            proposal,
            by,
            is_amended,
            ruling,
        } = counted;
        let rule = ruling.rule.as_ref().map(|rule| AuthoredRule {
            rule: &rule.name,
            author: by,
        });
        let words = approval_words(proposal, *is_amended, rule);
        let approval = RecordedApproval {
            by: rule.map_or(by.as_str(), |_| RULES),
            permit: ruling.permit(),
            why: format!(
                "{words}; {}{}",
                words_of_approvals(proposal),
                note_words(ruling)
            ),
            params: proposal.content.opened.params.as_deref(),
        };
        self.approval(proposal, approval);
    }

    /// A participant gave more time to decide about a proposal.
    pub(crate) fn extended(self, proposal: &ProposalView, by: &ParticipantId, ruling: &Ruling) {
        let permit = ruling.permit();
        let permit = permit.unwrap_or_else(|| self.0.audit.reserve_or_count());
        let opened = &proposal.content.opened;
        let until = rfc3339(proposal.expires_wall_ms);
        let why = format!("until {until}, proposed by {}", opened.by);
        let entry = self.entry(by.as_str(), PROPOSAL, Word::Extended);
        self.proposal(
            permit,
            proposal.id,
            opened,
            AuditEntry {
                why: Some(&why),
                ..entry
            },
        );
    }

    /// The proposer of a proposal replaced its arguments.
    pub(crate) fn amended(self, proposal: &ProposalView, ruling: &Ruling) {
        let permit = ruling.permit();
        let permit = permit.unwrap_or_else(|| self.0.audit.reserve_or_count());
        let opened = &proposal.content.opened;
        let why = format!("version {}", proposal.amendments + 1);
        let entry = self.entry(&opened.by, PROPOSAL, Word::Amended);
        self.proposal(
            permit,
            proposal.id,
            opened,
            AuditEntry {
                why: Some(&why),
                payload: opened.params.as_deref().map(str::as_bytes),
                ..entry
            },
        );
    }

    /// A proposal was approved.
    pub(crate) fn approved(self, proposal: &ProposalView, params: Option<&str>) {
        let ruling = proposal.ruling.as_ref();
        let is_amended = ruling.is_some_and(|ruling| ruling.params.is_some());
        let mut why = approval_words(proposal, is_amended, rule_of(proposal));
        if !proposal.approved_by.is_empty() {
            let before = words_of_approvals(proposal);
            why.push_str(&format!("; before: {before}"));
        }
        why.push_str(&ruling.map_or_else(String::new, |ruling| note_words(ruling)));
        why.push_str(&self.shadow_words(proposal));
        let approval = RecordedApproval {
            by: decider(proposal).unwrap_or_default(),
            permit: ruling.and_then(|ruling| ruling.permit()),
            why,
            params,
        };
        self.approval(proposal, approval);
    }

    /// What rules in shadow would have decided about a proposal, as the end of a text.
    fn shadow_words(self, proposal: &ProposalView) -> String {
        let would = self.0.would_have(proposal);
        would
            .iter()
            .map(|one| format!("; {}", one.words()))
            .collect()
    }

    fn approval(self, proposal: &ProposalView, approval: RecordedApproval<'_>) {
        let permit = approval.permit;
        let permit = permit.unwrap_or_else(|| self.0.audit.reserve_or_count());
        let entry = self.entry(approval.by, PROPOSAL, Word::Approved);
        self.proposal(
            permit,
            proposal.id,
            &proposal.content.opened,
            AuditEntry {
                why: Some(&approval.why),
                payload: approval.params.map(str::as_bytes),
                ..entry
            },
        );
    }

    /// A proposal is over.
    pub(crate) fn concluded(self, proposal: &ProposalView, answer: Option<&[u8]>) {
        let verdict = match proposal.state {
            ProposalState::Completed => Word::Completed,
            ProposalState::Rejected => Word::Rejected,
            ProposalState::Withdrawn => Word::Withdrawn,
            ProposalState::Expired => Word::Expired,
            ProposalState::Failed | ProposalState::Pending | ProposalState::Running => Word::Failed,
        };
        let decided = matches!(
            proposal.state,
            ProposalState::Rejected | ProposalState::Withdrawn
        );
        let ruling = proposal.ruling.as_ref().filter(|_| decided);
        let permit = ruling
            .and_then(|ruling| ruling.permit())
            .or_else(|| proposal.content.ending_permit());
        let permit = permit.unwrap_or_else(|| self.0.audit.reserve_or_count());
        let by = decider(proposal)
            .filter(|_| decided)
            .unwrap_or(proposal.by.as_str());
        let rule = rule_of(proposal).filter(|_| decided);
        let reason = proposal.reason.as_deref();
        let by_rule = rule.map(|rule| format!("by {rule}: {}", reason.unwrap_or_default()));
        let coded = code_of(proposal)
            .filter(|_| decided)
            .map(|code| match reason {
                Some(reason) => format!("{code}: {reason}"),
                None => code.to_owned(),
            });
        let why = by_rule.as_deref().or(coded.as_deref()).or(reason);
        // Of one that was approved the approval says so.
        let is_first = decided || proposal.state == ProposalState::Expired;
        let shadow = is_first.then(|| self.shadow_words(proposal));
        let shadow = shadow.filter(|words| !words.is_empty());
        let beside = shadow.map(|words| match why {
            Some(why) => format!("{why}{words}"),
            None => words.trim_start_matches("; ").to_owned(),
        });
        let why = beside.as_deref().or(why);
        let payload = answer.filter(|_| !decided);
        let entry = self.entry(by, PROPOSAL, verdict);
        self.proposal(
            permit,
            proposal.id,
            &proposal.content.opened,
            AuditEntry {
                why,
                payload,
                ..entry
            },
        );
    }

    /// A decision that does not count.
    pub(crate) fn not_decided(
        self,
        id: OperationId,
        content: Option<&Proposed>,
        by: &str,
        why: &str,
        permit: Option<RecordPermit>,
    ) {
        let permit = permit.unwrap_or_else(|| self.0.audit.reserve_or_count());
        let entry = AuditEntry {
            why: Some(why),
            ..self.entry(by, PROPOSAL, Word::Refused)
        };
        match content {
            Some(content) => self.proposal(permit, id, &content.opened, entry),
            None => self.write(
                permit,
                &AuditEntry {
                    operation: Some(id),
                    ..entry
                },
            ),
        }
    }

    /// Writes what happened to a proposal.
    fn proposal(
        self,
        permit: RecordPermit,
        id: OperationId,
        opened: &OpenedProposal,
        entry: AuditEntry<'_>,
    ) {
        let to: Vec<&str> = opened.to.iter().map(String::as_str).collect();
        let kind = what(PROPOSAL, &opened.method, opened.context.as_deref());
        let operation = Some(id);
        let digest = Some(opened.digest.as_str());
        self.write(
            permit,
            &AuditEntry {
                to: &to,
                kind,
                operation,
                digest,
                ..entry
            },
        );
    }

    /// A request that cannot be proposed.
    pub(crate) fn unproposable(
        self,
        by: &ParticipantId,
        to: &[ParticipantId],
        (method, context): (&str, Option<&str>),
        why: &str,
    ) {
        let to: Vec<&str> = to.iter().map(ParticipantId::as_str).collect();
        let kind = what(PROPOSAL, method, context);
        self.write_now(&AuditEntry {
            to: &to,
            why: Some(why),
            ..self.entry(by.as_str(), kind, Word::Refused)
        });
    }
}

impl Dispatch {
    /// Records that a listener's connection was opened (admitted), that the topic rejected it
    /// (refused), or that it has ended: in order (completed), or because of what the client sent
    /// (refused).
    pub fn record_connection(&self, link: &Link, verdict: Word, why: &str) {
        let topic = Some(self.name().as_str());
        let participant = link.participant.id.as_str();
        let origin = EntryOrigin {
            address: link.address(),
            client: None,
        };
        self.audit
            .write_connection(topic, (participant, origin), verdict, why);
    }
}

/// An approval as the audit log has it.
struct RecordedApproval<'a> {
    /// The participant that approved, or `rules`.
    by: &'a str,
    /// The place that was reserved for it.
    permit: Option<RecordPermit>,
    why: String,
    /// The params that were approved.
    params: Option<&'a str>,
}

/// An approval in words: "by rule r1.2 of ann, proposed by scout, arguments edited".
fn approval_words(
    proposal: &ProposalView,
    is_amended: bool,
    rule: Option<AuthoredRule<'_>>,
) -> String {
    let by_rule = rule.map_or_else(String::new, |rule| format!("by {rule}, "));
    let edited = if is_amended { ", arguments edited" } else { "" };
    let step = proposal
        .plan
        .as_ref()
        .map(|place| format!("; {}", step_words(place)));
    format!(
        "{by_rule}proposed by {}{edited}{}",
        proposal.content.opened.by,
        step.unwrap_or_default()
    )
}

/// The place of a proposal in a plan, in words.
fn step_words(place: &PlanPlace) -> String {
    let (number, of, plan) = (place.number(), place.of(), place.plan);
    format!("step {number} of {of} of the plan {plan}")
}

/// Why a rule has taken something of a request or envelope, or would have; `None` if none has.
pub(crate) fn why_of(verdict: &Verdict, rule: Option<&RuleWords>) -> Option<String> {
    let rule = match rule? {
        RuleWords::Takes(rule) => rule,
        RuleWords::Would(words) => {
            let Verdict::Admitted { by, .. } = verdict else {
                return None;
            };
            let capability = by.as_str().map(|capability| format!("{capability}; "));
            return Some(format!("{}{words}", capability.unwrap_or_default()));
        }
    };
    match verdict {
        Verdict::Held {
            why: HeldFor::Rule, ..
        } => Some(format!("by {rule}")),
        Verdict::Refused(cause @ (Cause::RuleAsks | Cause::RuleRejects)) => {
            Some(format!("{}: by {rule}", cause.as_str()))
        }
        Verdict::Held { .. } | Verdict::Admitted { .. } | Verdict::Refused(_) => None,
    }
}

/// The note of a reviewer with an approval, as the end of a text.
fn note_words(ruling: &Ruling) -> String {
    let note = ruling.note.as_deref();
    note.map(|note| format!("; note: {note}"))
        .unwrap_or_default()
}

/// The kind of a client's request, as it was asked for.
fn what_of(request: &Request) -> EntryKind<'_> {
    EntryKind {
        head: REQUEST,
        method: Some(request.method.as_str()),
        context: recorded(request),
    }
}

/// The kind as it was asked for, well formed or not.
fn what<'w>(head: &'w str, method: &'w str, context: Option<&'w str>) -> EntryKind<'w> {
    EntryKind {
        head,
        method: Some(method),
        context,
    }
}
