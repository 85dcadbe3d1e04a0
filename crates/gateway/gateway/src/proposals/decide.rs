//! Decisions about proposals: through the API, by built-in tools, and by envelopes that fulfil.

use std::net::IpAddr;
use std::sync::Arc;

use model::{
    Capabilities, Digest, Narrowing, OperationId, ParticipantId, ProposalState, RULES, Refusal,
    RefusalCode,
};
use rules::{Deliberation, RejectReason};
use serde::Deserialize;
use topic::{Decision, RefusedDecision};
use upstream::curation::Author;
use wire::mcpx::{Envelope, check};
use wire::{digest::call_params, mcp::relay};

use super::amendments;
use super::approvals;
use super::content::{Proposed, Ruling};
use super::describe;
use super::open::{check_edit, current_digest};
use super::plans;
use super::showings::ShownText;
use crate::by_rule::decided_by::AuthoredRule;
use crate::by_rule::judge;
use crate::live::{Event, Live, ProposalView, Topic};
use crate::proposals::kept::OpenedProposal;
use crate::{curation, dispatch::Dispatch, link::Link, record::Record, written_act};

/// The key of `_meta` with the note of a reviewer, in the params of a request that fulfils a
/// proposal.
pub const NOTE_KEY: &str = "portmoot/note";

/// A participant's decision.
#[derive(Debug, Clone)]
pub enum Choice {
    /// The proposed request may run, once.
    Approve {
        /// The digest of what the reviewer was shown.
        digest: Digest,
        /// Other arguments than those that were proposed: a JSON object.
        arguments: Option<String>,
        /// A note for the proposer.
        note: Option<String>,
    },
    /// It never runs.
    Reject {
        /// Why, in words for the proposer.
        reason: Option<String>,
        /// Why, from a list.
        code: RejectReason,
    },
    /// It may be decided about for ten minutes more.
    Extend,
    /// Its proposer replaces its arguments.
    Amend {
        /// The arguments that it has from now on: a JSON object.
        arguments: String,
    },
    /// Its proposer withdraws it.
    Withdraw {
        /// Why, for the record.
        reason: Option<String>,
    },
}

/// The most bytes of the words for the proposer that go with a decision: the reason of a rejection or
/// withdrawal, the note with an approval.
pub const DECISION_WORDS_BYTES_MAX: usize = 4096;

impl Choice {
    /// Checks the words that go with it.
    ///
    /// # Errors
    /// If they are too long.
    fn check_words(&self) -> Result<(), Refusal> {
        match self {
            Self::Approve { note, .. } => check_words("a note", note.as_deref()),
            Self::Reject { reason, .. } | Self::Withdraw { reason } => {
                check_words("a reason", reason.as_deref())
            }
            Self::Extend | Self::Amend { .. } => Ok(()),
        }
    }
}

/// Checks the words (`what`) that go with a decision.
fn check_words(what: &str, words: Option<&str>) -> Result<(), Refusal> {
    if words.is_some_and(|words| words.len() > DECISION_WORDS_BYTES_MAX) {
        let why = format!("{what} has at most {DECISION_WORDS_BYTES_MAX} bytes");
        return Err(Refusal::new(RefusalCode::TooLarge, why));
    }
    Ok(())
}

/// A note, unless it says nothing.
fn said(note: Option<String>) -> Option<String> {
    note.filter(|note| !note.trim().is_empty())
}

/// The participant that decides.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    /// Its id.
    pub id: &'a ParticipantId,
    /// Its capabilities, if it need not be in the topic.
    pub outside: Option<&'a Arc<Capabilities>>,
    /// The narrowing of its capabilities by its access token.
    pub narrowing: Option<&'a Narrowing>,
    /// The address from which it decides, if it decides from one.
    pub address: Option<IpAddr>,
    /// Whether a person decides, as far as the gateway knows: through the API, as the command line
    /// and the chat do, or with a sign-in. It takes a program with a person's token for the person.
    pub by_person: bool,
}

impl Decider<'_> {
    /// Whether it may see a proposal that is on disk.
    fn may_see(self, topic: &Topic, proposal: OperationId) -> bool {
        let granted = topic.granted_to(self.id, self.outside, self.narrowing);
        topic.may_see_proposal(proposal, self.id, &granted)
    }
}

impl Dispatch {
    /// Decides about a proposal, and waits until the decision is on disk.
    ///
    /// # Errors
    /// Why the decision does not count. A proposal that the participant may not see with its access
    /// token does not exist for it.
    pub async fn decide(
        self: &Arc<Self>,
        proposal: OperationId,
        by: Decider<'_>,
        choice: Choice,
    ) -> Result<(), Refusal> {
        let Decider {
            id,
            outside,
            narrowing,
            address,
            by_person,
        } = by;
        let (content, is_visible) = self.look_up(proposal, by);
        let not_decided = |refusal: &Refusal| {
            let why = refusal.code.as_str();
            let permit = self.audit.reserve_or_count().from_address(address);
            Record(self).not_decided(proposal, content.as_deref(), id.as_str(), why, Some(permit));
        };
        let Some(content) = content.as_ref().filter(|_| is_visible) else {
            let refusal = unknown_proposal();
            not_decided(&refusal);
            return Err(refusal);
        };
        choice.check_words().inspect_err(not_decided)?;
        let mut params = written_params(self, &content.opened, &choice).inspect_err(not_decided)?;
        let is_about_params = matches!(choice, Choice::Approve { .. } | Choice::Amend { .. });
        let mut content = Arc::clone(content);
        if is_about_params {
            // After a restart servers list their tools a little later.
            self.wait_for_servers().await;
            self.refresh_proposer(&content.opened);
            content = describe::one(self, proposal, &content);
        }
        let amended = match &choice {
            Choice::Amend { .. } => {
                let params = params.take().unwrap_or_default();
                Some(amendments::version(self, &content, &params).inspect_err(not_decided)?)
            }
            _ => approvals::amended(&content, params.as_deref()).inspect_err(not_decided)?,
        };
        if matches!(choice, Choice::Approve { .. }) {
            params = approvals::running_params(&content, params);
        }
        // Before the decision: one that cannot be recorded does not count.
        let permit = self.audit.reserve_of(id).inspect_err(not_decided)?;
        let permit = permit.from_address(address);
        let mut fulfilment = None;
        let decision = match &choice {
            Choice::Approve { digest, .. } => {
                // The id of the request that the room is shown in place of an envelope of the
                // reviewer.
                fulfilment = Some(self.context.operation().to_string());
                Decision::Approve {
                    shown: *digest,
                    current: plans::current_digest(self, &content),
                }
            }
            Choice::Reject { reason, .. } => Decision::Reject {
                reason: reason.as_deref(),
            },
            Choice::Extend => Decision::Extend,
            Choice::Amend { .. } => Decision::Amend,
            Choice::Withdraw { reason } => Decision::Withdraw {
                reason: reason.as_deref(),
            },
        };
        let measures = self.measured(id, proposal, &content, &choice);
        let mut ruling = Ruling::new(params, permit).measured(by_person, measures);
        match choice.clone() {
            Choice::Approve { note, .. } => ruling.note = said(note),
            Choice::Reject { code, .. } => {
                ruling.code = code;
                ruling.rejects = Some(content.opened.digest.clone());
            }
            Choice::Extend | Choice::Amend { .. } | Choice::Withdraw { .. } => {}
        }
        let end = ruling.reply();
        self.take(Event::Decide {
            proposal,
            by: id,
            outside,
            narrowing,
            decision,
            fulfilment: fulfilment.as_deref(),
            amended,
            ruling: Arc::new(ruling),
        });
        end.await
            .unwrap_or_else(|_| Err(Refusal::new(RefusalCode::Internal, "the decision was lost")))
    }

    /// Notes that a participant is shown these proposals now, with their arguments. Only those count
    /// that it could decide about with these capabilities.
    pub fn note_shown(
        &self,
        participant: &ParticipantId,
        capabilities: &Capabilities,
        shown: &[&ProposalView],
    ) {
        let could_decide: Vec<ShownText> = self.with(|topic| {
            let decidable = shown.iter().filter(|view| {
                view.state == ProposalState::Pending
                    && topic.could_decide(view.id, participant, capabilities)
            });
            decidable.filter_map(|view| ShownText::of(view)).collect()
        });
        let now_ms = self.context.now_ms();
        self.showings.note(participant, could_decide, now_ms);
    }

    /// Measures of a decision that a participant makes now.
    fn measured(
        &self,
        by: &ParticipantId,
        proposal: OperationId,
        content: &Proposed,
        choice: &Choice,
    ) -> Deliberation {
        let digest = match choice {
            Choice::Approve { digest, .. } => Some(*digest),
            Choice::Reject { .. } => content.opened.digest.parse().ok(),
            Choice::Extend | Choice::Amend { .. } | Choice::Withdraw { .. } => None,
        };
        digest.map_or_else(Deliberation::default, |digest| {
            let decided = ShownText { proposal, digest };
            self.showings.measure(by, decided, self.context.now_ms())
        })
    }

    /// The content of a proposal, and whether this participant may see it.
    pub(super) fn look_up(
        &self,
        proposal: OperationId,
        by: Decider<'_>,
    ) -> (Option<Arc<Proposed>>, bool) {
        self.with(|topic| {
            let Some((content, is_open)) = topic.proposed(proposal) else {
                return (None, false);
            };
            // A decision about a proposal that is not on disk yet waits in the topic, which judges
            // it then.
            let is_visible = !is_open || by.may_see(topic, proposal);
            (Some(Arc::clone(content)), is_visible)
        })
    }

    /// Has the topic judge a proposer by what it may do now: a proposal ends that its proposer may
    /// not make any more. The same of those that have approved it before others do.
    pub(crate) fn refresh_proposer(self: &Arc<Self>, opened: &OpenedProposal) {
        if let Ok(proposal) = opened.id.parse() {
            approvals::refresh(self, proposal);
        }
        if let Ok(proposer) = ParticipantId::new(&opened.by) {
            self.refresh(&proposer);
        }
    }
}

/// Digest of a proposal under what its server lists now, and the ruling on it, of an envelope that
/// may fulfil the proposal; no digest if the proposal cannot be shown any more.
pub(crate) type Fulfilling = (Option<Digest>, Arc<Ruling>);

/// Digest and ruling of an envelope that may fulfil a proposal of another participant, the digest
/// under what its server lists now. `None` if the envelope names no such proposal.
///
/// # Errors
/// If the decision cannot be recorded.
pub(crate) fn ruling_of(
    dispatch: &Arc<Dispatch>,
    link: &Arc<Link>,
    envelope: &Arc<Envelope>,
    call: &check::EnvelopeCall,
) -> Result<Option<Fulfilling>, Refusal> {
    let named = envelope.correlation_id();
    let content = named.and_then(|named| {
        dispatch.with(|topic| {
            topic
                .proposed_by(named)
                .map(|(id, content)| (id, Arc::clone(content)))
        })
    });
    let others = |(_, content): &(OperationId, Arc<Proposed>)| {
        content.opened.by != link.participant.id.as_str()
    };
    let Some((proposal, content)) = content.filter(others) else {
        return Ok(None);
    };
    let content = describe::one(dispatch, proposal, &content);
    let opened = &content.opened;
    dispatch.refresh_proposer(opened);
    let params = call
        .params()
        .map(|params| String::from_utf8_lossy(params).into_owned());
    let (params, note) = params.map(split_note).transpose()?.unzip();
    let note = note.flatten();
    check_words("a note", note.as_deref())?;
    let params = params
        .map(|params| completed(dispatch, opened, params, Author::Reviewer))
        .transpose()?;
    let edited = is_edited(opened, params.as_deref());
    if edited && opened.amendments > 0 {
        let why = "its proposer has amended it: this is not what is proposed now";
        let refusal = Refusal::new(RefusalCode::Conflict, why);
        return Err(refusal.hint(
            "look at it again, and send what is proposed; or approve with other arguments by the API or the tool",
        ));
    }
    if edited && opened.needs_several() {
        let why = "this is not what was proposed, and others must approve the same";
        let refusal = Refusal::new(RefusalCode::Conflict, why);
        return Err(refusal.hint(
            "send what was proposed, or approve with other arguments by the API or the tool",
        ));
    }
    let params = approvals::running_params(&content, params.filter(|_| edited));
    let permit = dispatch.audit.reserve_on(link.audit())?;
    let permit = permit.from_address(link.address());
    // The envelope that proposed is no showing: what its receiver does with it is not known.
    let ruling = Ruling::new(params, permit);
    let is_signed_in = link.participant.is_signed_in();
    let mut ruling = ruling
        .measured(is_signed_in, Deliberation::default())
        .noted(said(note));
    ruling.envelope = Some(envelope.id().to_owned());
    ruling.sender = Some((Arc::clone(link), Arc::clone(envelope)));
    Ok(Some((current_digest(dispatch, opened), Arc::new(ruling))))
}

/// A rejection of another participant's proposal, of an envelope that names the proposal. The topic
/// refuses one without a ruling.
///
/// # Errors
/// If the payload cannot be read, or the decision cannot be recorded.
pub(crate) fn rejection_of(
    dispatch: &Arc<Dispatch>,
    link: &Arc<Link>,
    envelope: &Arc<Envelope>,
) -> Result<RoomRejection, Refusal> {
    let WrittenRejection { code, reason } = written_act::read(
        envelope.payload(),
        "an object with `code` and `reason`, both texts",
    )?;
    let reason = reason.filter(|reason: &String| !reason.is_empty());
    check_words("a reason", reason.as_deref())?;
    let code = chosen_reason(code.as_deref())?;
    let named = envelope.correlation_id();
    let is_known =
        named.is_some_and(|named| dispatch.with(|topic| topic.proposed_by(named).is_some()));
    let mut ruling = None;
    if is_known {
        let permit = dispatch.audit.reserve_on(link.audit())?;
        let permit = permit.from_address(link.address());
        let is_signed_in = link.participant.is_signed_in();
        let mut rejects = Ruling::new(None, permit).measured(is_signed_in, Deliberation::default());
        rejects.code = code;
        rejects.sender = Some((Arc::clone(link), Arc::clone(envelope)));
        ruling = Some(Arc::new(rejects));
    }
    Ok(RoomRejection { reason, ruling })
}

/// A rejection by an envelope.
pub(crate) struct RoomRejection {
    /// Why, in words for the proposer.
    pub(crate) reason: Option<String>,
    /// The ruling; `None` if the envelope names no proposal.
    pub(crate) ruling: Option<Arc<Ruling>>,
}

/// The payload of an envelope that rejects.
#[derive(Deserialize)]
struct WrittenRejection {
    code: Option<String>,
    reason: Option<String>,
}

/// The reason of a list that a reviewer chose by its code.
///
/// # Errors
/// If there is no such code.
pub fn chosen_reason(code: Option<&str>) -> Result<RejectReason, Refusal> {
    let Some(code) = code else {
        return Ok(RejectReason::Unsaid);
    };
    RejectReason::of_code(code).ok_or_else(|| {
        let known = RejectReason::CODES.map(|code| format!("`{code}`"));
        let why = format!(
            "there is no such code of a rejection: it is {}",
            known.join(" or ")
        );
        Refusal::new(RefusalCode::Malformed, why).hint("leave it out, and say why in `reason`")
    })
}

/// Records a decision that does not count, and tells the participant.
pub(crate) fn refused(dispatch: &Arc<Dispatch>, refused: RefusedDecision<Live>) {
    let RefusedDecision {
        proposal,
        content,
        by,
        ruling,
        answered,
        refusal,
        cause,
    } = refused;
    let permit = ruling.permit();
    let (from, why) = match &ruling.rule {
        None => (by.as_str(), cause.as_str().to_owned()),
        Some(rule) => {
            // It came too late, or was not durable.
            judge::write(dispatch, vec![dispatch.rules.give_back(proposal)]);
            let decided_by = AuthoredRule {
                rule: &rule.name,
                author: &by,
            };
            let why = format!("{}: by {decided_by}", cause.as_str());
            (RULES, why)
        }
    };
    Record(dispatch).not_decided(proposal, content.as_deref(), from, &why, permit);
    if let Some((link, envelope)) = ruling.sender.as_ref().filter(|_| !answered) {
        dispatch.tell_refused(link.id, &link.participant.id, envelope, &refusal);
    }
    ruling.finish(Err(*refusal));
}

/// The refusal of a proposal that does not exist, or not for this participant.
pub fn unknown_proposal() -> Refusal {
    Refusal::new(RefusalCode::UnknownTarget, "there is no such proposal")
        .hint("`portmoot proposals ls` shows those that you may see")
}

/// Reads the digest that an approval names.
///
/// # Errors
/// If it is misspelled.
pub fn digest(text: &str) -> Result<Digest, Refusal> {
    text.parse()
        .map_err(|_| Refusal::new(RefusalCode::Malformed, "a digest has 64 hexadecimal digits"))
}

/// Whether a call with these params is another one than the proposed call. Another spelling, or
/// another progress token, is no edit.
fn is_edited(opened: &OpenedProposal, params: Option<&str>) -> bool {
    canonical(params) != canonical(opened.params.as_deref())
}

fn canonical(params: Option<&str>) -> Option<Vec<u8>> {
    call_params(params.unwrap_or("{}").as_bytes()).ok()
}

/// Splits the note of a reviewer off the params of the request that fulfils.
///
/// # Errors
/// If the note is no text.
fn split_note(params: String) -> Result<(String, Option<String>), Refusal> {
    let Some(raw) = json::at(params.as_bytes(), &["_meta", NOTE_KEY]) else {
        return Ok((params, None));
    };
    let wrong = || {
        Refusal::new(
            RefusalCode::Malformed,
            format!("`{NOTE_KEY}` in `_meta` is a text"),
        )
    };
    let note = json::text(raw).ok_or_else(wrong)?.into_owned();
    let without = relay::without_meta(&params, NOTE_KEY).ok_or_else(wrong)?;
    Ok((without, Some(note)))
}

/// The params that go with a choice: of an approval, if they are other ones than those that were
/// proposed; of an amendment.
///
/// # Errors
/// If the arguments are no JSON object, or cannot be those of the tool.
fn written_params(
    dispatch: &Dispatch,
    opened: &OpenedProposal,
    choice: &Choice,
) -> Result<Option<String>, Refusal> {
    let before = opened.params.as_deref();
    if let Choice::Approve {
        arguments: Some(_), ..
    }
    | Choice::Amend { .. } = choice
    {
        plans::check_single(opened, "runs with the arguments that it was proposed with")?;
    }
    match choice {
        Choice::Approve {
            arguments: Some(arguments),
            ..
        } => {
            let written = edit(before, arguments)?;
            let written = completed(dispatch, opened, written, Author::Reviewer)?;
            if !is_edited(opened, Some(&written)) {
                return Ok(None);
            }
            check_edit(dispatch, opened, &written)?;
            Ok(Some(written))
        }
        Choice::Amend { arguments } => {
            let written = edit(before, arguments)?;
            completed(dispatch, opened, written, Author::Caller).map(Some)
        }
        Choice::Approve {
            arguments: None, ..
        }
        | Choice::Reject { .. }
        | Choice::Extend
        | Choice::Withdraw { .. } => Ok(None),
    }
}

/// Params that a participant wrote, with the presets that the proposal has been shown with.
fn completed(
    dispatch: &Dispatch,
    opened: &OpenedProposal,
    params: String,
    author: Author,
) -> Result<String, Refusal> {
    let to: Vec<ParticipantId> = opened
        .to
        .iter()
        .filter_map(|to| ParticipantId::new(to).ok())
        .collect();
    let act = (opened.method.as_str(), opened.context.as_deref());
    let whole = curation::completed_params(dispatch, &to, act, Some(&params), author)?;
    Ok(whole.unwrap_or(params))
}

/// Params with other arguments.
fn edit(params: Option<&str>, arguments: &str) -> Result<String, Refusal> {
    let wrong = |why: String| Refusal::new(RefusalCode::Malformed, why);
    json::refuse_duplicates(arguments.as_bytes())
        .map_err(|error| wrong(format!("the arguments are no JSON: {error}")))?;
    if !json::is_object(arguments.as_bytes()) {
        return Err(wrong("the arguments must be a JSON object".to_owned()));
    }
    relay::set_arguments(params.unwrap_or("{}"), arguments)
        .ok_or_else(|| wrong("the arguments cannot be edited".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_edited_and_everything_else_stays() {
        let edited = |params, arguments| {
            edit(params, arguments).map_err(|refusal| refusal.message.into_owned())
        };
        let params = Some(r#"{"name":"echo", "arguments":{"text":"a"},"_meta":{}}"#);
        let expected = r#"{"name":"echo", "arguments":{"text":"b"},"_meta":{}}"#;
        assert_eq!(edited(params, r#"{"text":"b"}"#).as_deref(), Ok(expected));
        assert_eq!(edited(None, "{}").as_deref(), Ok(r#"{"arguments":{}}"#));
        for (wrong, why) in [
            ("[]", "the arguments must be a JSON object"),
            ("1", "the arguments must be a JSON object"),
            ("{", "the arguments are no JSON"),
            (r#"{"a":1,"\u0061":2}"#, "the arguments are no JSON"),
        ] {
            let refused = edited(params, wrong).unwrap_err();
            assert!(refused.starts_with(why), "{wrong}: {refused}");
        }
    }

    #[test]
    fn only_what_a_call_does_counts_as_an_edit() {
        let same = [
            Some(r#"{"name":"echo","arguments":{"a":1,"b":2}}"#),
            Some(
                r#"{ "arguments": {"b":2,"a":1}, "name": "echo", "_meta": {"progressToken": 5} }"#,
            ),
        ];
        assert_eq!(canonical(same[0]), canonical(same[1]));
        assert_ne!(
            canonical(same[0]),
            canonical(Some(r#"{"name":"echo","arguments":{"a":1,"b":3}}"#))
        );
        assert_eq!(canonical(None), canonical(Some("{}")));
    }

    #[test]
    fn a_digest_is_read_or_refused() {
        assert_eq!(digest(&"0a".repeat(32)), Ok(Digest([10; 32])));
        assert_eq!(
            digest("0a").map_err(|refusal| refusal.code),
            Err(RefusalCode::Malformed)
        );
    }
}
