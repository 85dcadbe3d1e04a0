//! Requests that their senders may make without an approval, before the rules that reject or ask.
//!
//! They are judged under the lock of the step that admits them, by arguments that were read before it:
//! what changes between is read anew. Where a rule cannot be asked, people are. Rules count a request
//! before that step, so that of two at once the second is judged with the first.
//!
//! A rule *takes* something of a request if it rejects it or has people asked about it.

mod asked;
pub(crate) mod counted;
pub(super) mod params;
mod readings;
mod sent;

use std::sync::Arc;

use model::{KindRef, ParticipantId, Refusal, RefusalCode, Target};
use platform::MutexGuard;
use rules::{CallRule, CallStage, RuleDecision, RuleSet, RuledCall};
use topic::{Intent, RequestDestination, Requested, Tightening, Verdict};
use wire::mcpx::Envelope;

use self::asked::Asked;
use self::counted::CountedRequest;
use self::params::kind_of;
use self::readings::{ReadRequest, Readings};
use self::sent::Sent;
use super::decided_by::{AuthoredRule, RuleWords};
use super::desk::DeskState;
use super::locked_case::{Hindrance, LockedAuthors, authors_of};
use super::shadow::WouldHave;
use crate::call::Call;
use crate::dispatch::{Dispatch, Refused, Step};
use crate::live::{Event, Live, Topic};

/// The most looks at a request. If something came between each time, people decide.
const LOOKS_MAX: usize = 8;

/// Steps the topic with the request of a call. Returns what records say of rules before it.
pub(crate) fn step_request<'d>(
    dispatch: &'d Arc<Dispatch>,
    call: &Call,
    mut event: Event<'_>,
) -> (Step<'d>, Option<RuleWords>) {
    let mut topic = dispatch.lock_for((&event).into());
    if dispatch.branch_knowledge.tighten()
        && let Event::Request(request) = &mut event
    {
        // The home has the rules: a branch leaves the request to it.
        request.tightening = Some(Tightening::Ask);
    }
    if dispatch.rules.looks_at_direct()
        && let Event::Request(request) = &mut event
    {
        let asked = Asked::Call {
            call,
            link: request.link,
            method: &request.method,
            target: request.target,
        };
        let judged;
        (topic, judged) = judge(dispatch, &asked, topic);
        request.tightening = judged.tightening();
        return step_judged(dispatch, topic, event, Refused::ByEffect, judged);
    }
    (dispatch.step_locked(topic, event, Refused::ByEffect), None)
}

/// Steps the topic with an envelope, as [`step_request`] does with a request.
pub(crate) fn step_envelope<'d>(
    dispatch: &'d Arc<Dispatch>,
    by: &ParticipantId,
    envelope: &Envelope,
    mut event: Event<'_>,
    refused: Refused,
) -> (Step<'d>, Option<RuleWords>) {
    let mut topic = dispatch.lock_for((&event).into());
    // Under the lock: rules come into force under it.
    if dispatch.rules.looks_at_direct()
        && let Event::Say(say) = &mut event
    {
        // An envelope is not read under the lock. One that requests nothing is none for rules.
        drop(topic);
        let sent = Sent::read(envelope, by, say.to);
        topic = dispatch.lock_again();
        if let Some(sent) = sent {
            let mut judged;
            (topic, judged) = judge(dispatch, &Asked::Envelope(&sent), topic);
            let fulfils = |requested: &Requested<Live>| requested.ruling.is_some();
            if matches!(&say.intent, Intent::Request(requested) if fulfils(requested)) {
                judged.leave_uncounted();
            }
            say.tightening = judged.tightening();
            return step_judged(dispatch, topic, event, refused, judged);
        }
    }
    (dispatch.step_locked(topic, event, refused), None)
}

/// Steps the topic with a request that was judged, and has rules count it if it is admitted.
fn step_judged<'d>(
    dispatch: &'d Arc<Dispatch>,
    topic: MutexGuard<'d, Topic>,
    event: Event<'_>,
    refused: Refused,
    judged: Judged,
) -> (Step<'d>, Option<RuleWords>) {
    match judged {
        Judged::Taken(taken) => {
            let step = dispatch.step_locked(topic, event, refused);
            (step, Some(RuleWords::Takes(taken.by)))
        }
        Judged::Left(counted) => {
            counted.begin(dispatch);
            let step = dispatch.step_locked(topic, event, refused);
            let is_admitted = matches!(step.verdict, Some(Verdict::Admitted { .. }));
            let words = counted.end(dispatch, is_admitted && !step.requests.are_turned_away());
            (step, words.map(RuleWords::Would))
        }
    }
}

/// Checks that a call which runs without an approval is of the target of which rules were asked. Where
/// each caller has an account, its session may have that under another name than the topic knew.
///
/// # Errors
/// It is of another one: its caller has the lists of the session now, and can call again.
pub(crate) fn check_name(
    dispatch: &Dispatch,
    call: &Call,
    judged_name: Option<&str>,
    sent_name: Option<&str>,
) -> Result<(), Refusal> {
    let public = call.request.target.as_ref().map(Target::as_str);
    let is_as_judged = judged_name.or(public) == sent_name.or(public);
    if is_as_judged || call.is_reviewed() || !dispatch.rules.tightens() {
        return Ok(());
    }
    let why = "its server lists this name to you otherwise than was known";
    Err(Refusal::new(RefusalCode::Conflict, why).hint("list what there is, and call again"))
}

/// The decision of a rule about a request, and the rule in the words of records.
struct Taken {
    tightening: Tightening,
    by: String,
}

impl Taken {
    fn ask(rule: &CallRule) -> Self {
        Self {
            tightening: Tightening::Ask,
            by: authored(rule).to_string(),
        }
    }

    fn reject(rule: &CallRule) -> Self {
        let by = authored(rule);
        Self {
            tightening: Tightening::Reject {
                by: format!("{by}: {}", rule.sentence()).into(),
            },
            by: by.to_string(),
        }
    }

    /// Of a request that no rule could be asked about.
    fn unread() -> Self {
        Self {
            tightening: Tightening::Ask,
            by: "rules that could not read it".to_owned(),
        }
    }

    fn rejects(&self) -> bool {
        self.tightening != Tightening::Ask
    }

    /// The decision about a request for several destinations, with that for one more.
    fn or(whole: Option<Self>, more: Option<Self>) -> Option<Self> {
        match (whole, more) {
            (Some(_), Some(more)) if more.rejects() => Some(more),
            (whole, more) => whole.or(more),
        }
    }
}

fn authored(rule: &CallRule) -> AuthoredRule<'_> {
    AuthoredRule {
        rule: &rule.name,
        author: &rule.author,
    }
}

/// The decision of rules about a request.
enum Judged {
    /// A rule takes something of it.
    Taken(Taken),
    /// None does; these count it if it is admitted.
    Left(CountedRequest),
}

impl Judged {
    /// Has no rule count a request that fulfils a proposal: the approval of that is counted.
    fn leave_uncounted(&mut self) {
        if let Self::Left(counted) = self {
            *counted = CountedRequest::default();
        }
    }

    fn tightening(&self) -> Option<Tightening> {
        match self {
            Self::Taken(taken) => Some(taken.tightening.clone()),
            Self::Left(_) => None,
        }
    }
}

/// The result of a look at a request.
enum Look {
    Judged(Judged),
    /// It must be read for these destinations.
    Unread(Vec<RequestDestination>),
    /// The authors of the rules for its target, as a receiver has it, must be read.
    AuthorsUnread(Option<Arc<str>>),
}

/// Has the rules judge a request. Returns the topic, locked.
fn judge<'d>(
    dispatch: &'d Arc<Dispatch>,
    asked: &Asked<'_>,
    mut topic: MutexGuard<'d, Topic>,
) -> (MutexGuard<'d, Topic>, Judged) {
    let mut readings = Readings::default();
    for at in 1..=LOOKS_MAX {
        // The last one leaves out rules in shadow: they decide nothing, and so they delay nothing.
        match look(dispatch, &topic, asked, &readings, at < LOOKS_MAX) {
            Look::Judged(judged) => return (topic, judged),
            Look::Unread(destinations) => {
                drop(topic);
                readings.requests = asked.read(dispatch, destinations);
            }
            Look::AuthorsUnread(own) => {
                drop(topic);
                if let Some(kind) = kind_of(asked.method(), own.as_deref()) {
                    readings.authors = authors_of(dispatch, kind, |state| &state.set);
                }
            }
        }
        topic = dispatch.lock_again();
    }
    (topic, Judged::Taken(Taken::unread()))
}

/// The rules that a request is looked at for.
struct Judging<'s> {
    /// Sets of those that may take something of it.
    sets: &'s [&'s RuleSet],
    /// The set of those in shadow, if they look too.
    shadows: Option<&'s RuleSet>,
}

impl Judging<'_> {
    /// The destinations of a request about which there are rules.
    ///
    /// # Errors
    /// The judgement of one of which it cannot be said what it names.
    fn destinations(
        &self,
        asked: &Asked<'_>,
        topic: &Topic,
    ) -> Result<Vec<RequestDestination>, Judged> {
        let mut destinations = asked.destinations(topic, self.sets);
        let is_of = |at: &RequestDestination, is_meant: &dyn Fn(KindRef<'_>) -> bool| {
            kind_of(asked.method(), at.own.as_deref()).is_some_and(is_meant)
        };
        if asked.is_of_unknown_target() {
            let tightens = |at: &RequestDestination| is_of(at, &|kind| self.tightens(kind));
            return Err(if destinations.iter().any(tightens) {
                Judged::Taken(Taken::unread())
            } else {
                Judged::Left(CountedRequest::default())
            });
        }
        let is_meant = |kind: KindRef<'_>| self.tightens(kind) || self.shadows(kind);
        destinations.retain(|at| is_of(at, &is_meant));
        Ok(destinations)
    }

    fn tightens(&self, kind: KindRef<'_>) -> bool {
        self.sets.iter().any(|set| set.tightens_kind(kind))
    }

    fn shadows(&self, kind: KindRef<'_>) -> bool {
        self.shadows.is_some_and(|set| set.shadows_direct(kind))
    }
}

/// Looks at a request, while topic and desk are locked.
fn look(
    dispatch: &Dispatch,
    topic: &Topic,
    asked: &Asked<'_>,
    readings: &Readings,
    with_shadows: bool,
) -> Look {
    let state = dispatch.rules.lock();
    let is_paused = dispatch.rules.is_paused();
    let sets: &[&RuleSet] = if is_paused {
        &[&state.set, &state.coming]
    } else {
        &[&state.set]
    };
    let judging = Judging {
        sets,
        shadows: (with_shadows && !is_paused).then_some(&state.set),
    };
    let destinations = match judging.destinations(asked, topic) {
        Ok(destinations) => destinations,
        Err(judged) => return Look::Judged(judged),
    };
    // What may only be proposed is for the rules that decide proposals.
    if !destinations.is_empty() && !asked.needs_no_approval(topic) {
        return Look::Judged(Judged::Left(CountedRequest::default()));
    }
    let case = DirectCase {
        asked,
        state: &state,
        authors: LockedAuthors {
            dispatch,
            topic,
            read: &readings.authors,
        },
    };
    let mut whole = None;
    let mut counted = CountedRequest::default();
    for at in &destinations {
        let Some(request) = readings.of(topic, at) else {
            return Look::Unread(destinations);
        };
        let case = RequestCase {
            direct: &case,
            judging: &judging,
            request,
            is_paused,
        };
        match case.judge(dispatch, &mut counted) {
            Ok(taken) => whole = Taken::or(whole, taken),
            Err(AuthorUnread) => return Look::AuthorsUnread(at.own.clone()),
        }
    }
    Look::Judged(whole.map_or(Judged::Left(counted), Judged::Taken))
}

/// A request for one destination before the rules.
struct RequestCase<'a> {
    direct: &'a DirectCase<'a>,
    judging: &'a Judging<'a>,
    request: &'a ReadRequest,
    /// Whether rules are paused: then each that could act asks.
    is_paused: bool,
}

impl RequestCase<'_> {
    /// The decision about the request for its destination. What no rule takes is counted.
    fn judge(
        &self,
        dispatch: &Dispatch,
        counted: &mut CountedRequest,
    ) -> Result<Option<Taken>, AuthorUnread> {
        let direct = self.direct;
        let state = direct.state;
        let spent = &state.book.spent;
        let beside = self.request.beside_names();
        let Some(call) = direct.asked.ruled(self.request, &beside, spent) else {
            return Ok(None);
        };
        let taken = if self.is_paused {
            direct.first_match(self.judging.sets, &call).map(Taken::ask)
        } else {
            direct.taken(&call, self.request)?
        };
        if taken.is_some() {
            return Ok(taken);
        }
        let charges = state.set.charges(&call, spent, None);
        // A rule that would count the request twice, for two of its destinations, asks.
        let counted_twice = counted.add(dispatch, charges, state);
        if let Some(rule) = counted_twice {
            return Ok(Some(Taken::ask(rule)));
        }
        if self.judging.shadows.is_some() {
            let looks = direct.shadows(&call, self.request)?;
            counted.add_shadows(dispatch, looks, &call, state);
        }
        Ok(None)
    }
}

/// The author of a rule that rejects a request was not read yet.
struct AuthorUnread;

/// A request before the rules of its topic, while topic and desk are locked.
struct DirectCase<'a> {
    asked: &'a Asked<'a>,
    state: &'a DeskState,
    authors: LockedAuthors<'a>,
}

impl<'a> DirectCase<'a> {
    /// The first rule of these sets that rejects the request for a destination or asks.
    fn first_match(&self, sets: &[&'a RuleSet], call: &RuledCall<'_>) -> Option<&'a CallRule> {
        sets.iter().find_map(|set| {
            let answer = set.decide(call, &self.state.book.spent, CallStage::Direct)?;
            Some(answer.rule)
        })
    }

    /// The decision about the request for a destination: a rule that may not reject it leaves it to
    /// people.
    fn taken(
        &self,
        call: &RuledCall<'_>,
        request: &ReadRequest,
    ) -> Result<Option<Taken>, AuthorUnread> {
        let Some(rule) = self.first_match(&[&self.state.set], call) else {
            return Ok(None);
        };
        // Nor does a rule decide a proposal to no participant in particular.
        if rule.decision == RuleDecision::Ask || self.asked.is_for_all() {
            return Ok(Some(Taken::ask(rule)));
        }
        if !self.authors.knows(rule) {
            return Err(AuthorUnread);
        }
        Ok(Some(if self.may_reject(rule, request) {
            Taken::reject(rule)
        } else {
            Taken::ask(rule)
        }))
    }

    /// The rules in shadow that would take something of the request for a destination.
    fn shadows(
        &self,
        call: &RuledCall<'_>,
        request: &ReadRequest,
    ) -> Result<Vec<WouldHave>, AuthorUnread> {
        let spent = &self.state.book.spent;
        let mut would = Vec::new();
        let looks = self.state.set.shadows(call, spent, CallStage::Direct);
        for look in looks.iter().filter(|look| look.decides) {
            let rule = look.rule;
            let is_ask = rule.decision == RuleDecision::Ask || self.asked.is_for_all();
            if !is_ask && !self.authors.knows(rule) {
                return Err(AuthorUnread);
            }
            let decision = if is_ask || !self.may_reject(rule, request) {
                RuleDecision::Ask
            } else {
                RuleDecision::Reject
            };
            would.push(WouldHave {
                rule: rule.clone(),
                decision,
            });
        }
        Ok(would)
    }

    fn may_reject(&self, rule: &CallRule, request: &ReadRequest) -> bool {
        let LockedAuthors { topic, .. } = self.authors;
        let is_in_force = Hindrance::of_standing(self.state, rule).is_none();
        let hindrance = self.authors.hindrance(self.state, rule, |may| {
            let method = self.asked.method().as_str();
            rule.author != *self.asked.by()
                && topic.could_request(may, method, &request.destination)
        });
        is_in_force && hindrance.is_none()
    }
}

#[cfg(test)]
mod tests;
