//! Rules before one call: what keeps each of them from deciding, and which one decides.

use std::sync::Arc;

use model::{Capabilities, KindRef, ParticipantId};
use rules::{
    CallRule, CallStage, ExplainedCheck, Fit, RuleDecision, RuleName, RuleSet, RuledCall,
    SpentEvent, Surrounding, SuspendCause, suspends,
};

use super::desk::{DeskState, RuleStanding};
use super::facts::CallFacts;
use super::kept::RuleRecord;
use super::shadow;
use crate::dispatch::Dispatch;
use crate::live::Topic;

/// An author of rules, with what it may do if it is not in the topic.
pub(crate) struct RuleAuthor {
    pub(crate) id: ParticipantId,
    pub(crate) outside: Option<Arc<Capabilities>>,
}

/// The authors of the rules of a set for this kind of call, with what each may do at this moment.
pub(crate) fn authors_of(
    dispatch: &Arc<Dispatch>,
    kind: KindRef<'_>,
    set: impl FnOnce(&DeskState) -> &RuleSet,
) -> Vec<RuleAuthor> {
    let mut names: Vec<ParticipantId> = {
        let state = dispatch.rules.lock();
        let rules = set(&state).of_kind(kind);
        rules.map(|rule| rule.author.clone()).collect()
    };
    names.sort_unstable();
    names.dedup();
    let author = |id: ParticipantId| {
        // One in the topic is judged by what the topic gives it.
        dispatch.refresh(&id);
        let outside = (dispatch.standing)(&id);
        RuleAuthor { id, outside }
    };
    names.into_iter().map(author).collect()
}

/// The authors of rules, while topic and desk are locked.
#[derive(Clone, Copy)]
pub(crate) struct LockedAuthors<'a> {
    pub(crate) dispatch: &'a Dispatch,
    pub(crate) topic: &'a Topic,
    /// The ones that were read before.
    pub(crate) read: &'a [RuleAuthor],
}

/// A proposed call before the rules of its topic, while topic and desk are locked.
pub(crate) struct LockedCase<'a> {
    pub(crate) facts: &'a CallFacts<'a>,
    pub(crate) call: &'a RuledCall<'a>,
    pub(crate) authors: LockedAuthors<'a>,
}

/// A cause by which a rule does not decide a call, whatever its own checks say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// The proposal is decided, or over.
    Closed,
    /// The rule did not come into force.
    Refused(String),
    /// It is suspended, or this call suspends it.
    Suspended(SuspendCause),
    /// Its author is not known now.
    AuthorUnknown,
    /// Its author may not decide this call.
    AuthorMayNot,
    /// Its author is paused.
    AuthorPaused,
    /// The proposer is paused, and the rule would approve.
    ProposerPaused,
    /// A name of it has another bearer than when it came into force, or none.
    Replaced(Box<str>),
}

/// The choice of the rules about a call.
#[derive(Debug)]
pub(crate) enum RuleChoice {
    /// One decides it.
    Decide(Box<ChosenRule>),
    /// This one would approve it, and leaves it to people as a spot check.
    Leave(RuleName),
    /// None is about it, or may decide it.
    Nothing,
}

/// The rule that decides a call.
#[derive(Debug)]
pub(crate) struct ChosenRule {
    pub(crate) rule: CallRule,
    pub(crate) verdict: RuleVerdict,
}

/// The decision of a rule about a call, without the one to ask people.
#[derive(Debug)]
pub(crate) enum RuleVerdict {
    /// The call runs, and the rule counts it.
    Approve { charges: Vec<RuleRecord> },
    /// It never runs.
    Reject,
}

impl RuleVerdict {
    /// The charges of an approval.
    pub(crate) fn charges(&self) -> &[RuleRecord] {
        match self {
            Self::Approve { charges } => charges,
            Self::Reject => &[],
        }
    }

    /// The charges of an approval, to be written with it.
    pub(crate) fn into_charges(self) -> Vec<RuleRecord> {
        match self {
            Self::Approve { charges } => charges,
            Self::Reject => Vec::new(),
        }
    }
}

impl LockedAuthors<'_> {
    /// Whether the author of a rule was read.
    pub(crate) fn knows(&self, rule: &CallRule) -> bool {
        self.read.iter().any(|author| author.id == rule.author)
    }

    /// The cause by which a rule may not decide a call, of which `could_decide` says whether a
    /// participant with these capabilities could.
    pub(crate) fn hindrance(
        &self,
        state: &DeskState,
        rule: &CallRule,
        could_decide: impl FnOnce(&Capabilities) -> bool,
    ) -> Option<Hindrance> {
        let Some(may) = self.granted_to(&rule.author) else {
            return Some(Hindrance::AuthorUnknown);
        };
        if self.topic.is_braked(&rule.author) {
            return Some(Hindrance::AuthorPaused);
        }
        if !could_decide(may) {
            return Some(Hindrance::AuthorMayNot);
        }
        // One that rejects or asks is not suspended for it.
        self.replaced(state, rule).map(Hindrance::Replaced)
    }

    fn replaced(&self, state: &DeskState, rule: &CallRule) -> Option<Box<str>> {
        state.replaced(rule, self.dispatch.context.sealer.incarnations())
    }

    /// The capabilities of an author of rules at this moment, if it is known.
    fn granted_to(&self, author: &ParticipantId) -> Option<&Arc<Capabilities>> {
        let outside = || {
            let mut authors = self.read.iter();
            authors.find(|one| one.id == *author)?.outside.as_ref()
        };
        self.topic.capabilities(author).or_else(outside)
    }
}

impl LockedCase<'_> {
    /// Whether all authors of the rules for this kind of call were read.
    pub(crate) fn knows_all_authors(&self, state: &DeskState) -> bool {
        let mut rules = state.set.of_kind(self.call.kind);
        rules.all(|rule| self.authors.knows(rule))
    }

    /// The approving rules that this call suspends, with the causes.
    pub(crate) fn suspensions(&self, state: &DeskState) -> Vec<(RuleName, SuspendCause)> {
        // Many rules have one author, which is looked at once.
        let authors = self.authors.read.iter().map(|author| &author.id);
        let able: Vec<&ParticipantId> = authors.filter(|id| self.could_decide(id)).collect();
        let rules = state.set.of_kind(self.call.kind);
        rules
            .filter_map(|rule| {
                let cause = self.cause(state, rule, able.contains(&&rule.author))?;
                Some((rule.name.clone(), cause))
            })
            .collect()
    }

    /// Whether an author of rules could decide the call under its public name. One that is not known
    /// now may be known again: its rules only do not decide.
    fn could_decide(&self, author: &ParticipantId) -> bool {
        let operation = self.call.operation;
        let may = self.authors.granted_to(author);
        may.is_none_or(|may| self.authors.topic.could_decide(operation, author, may))
    }

    /// The choice of the rules about the call. The first one that matches is the only one that may decide it:
    /// where it cannot, people do, and no rule behind it. What was left to people as a spot check is
    /// theirs, whatever rules come; if its proposer amends it, a rule may reject it still.
    pub(crate) fn choose(&self, state: &DeskState) -> RuleChoice {
        let spent = &state.book.spent;
        let is_left = spent.is_left(self.call.operation);
        if is_left && !self.facts.is_amended {
            return RuleChoice::Nothing;
        }
        let answer = state.set.decide(self.call, spent, CallStage::Proposed);
        let fit = answer.filter(|answer| self.hindrance(state, answer.rule).is_none());
        let Some(answer) = fit else {
            return RuleChoice::Nothing;
        };
        let verdict = match answer.decision() {
            RuleDecision::Ask => return RuleChoice::Nothing,
            RuleDecision::Reject => RuleVerdict::Reject,
            RuleDecision::Approve if is_left => return RuleChoice::Nothing,
            RuleDecision::Approve if state.book.leaves_next(&answer.name().id) => {
                return RuleChoice::Leave(answer.name().clone());
            }
            RuleDecision::Approve => {
                let mut charges = state.set.charges(self.call, spent, Some(answer.name()));
                let of = self.call.operation;
                charges.extend(shadow::charges_of_run(&state.set, self.call, spent, of));
                let topic = self.authors.dispatch.name().as_str();
                let charged = charges.into_iter().map(SpentEvent::Charged);
                RuleVerdict::Approve {
                    charges: charged
                        .map(|charge| RuleRecord::of_spent(topic, charge))
                        .collect(),
                }
            }
        };
        RuleChoice::Decide(Box::new(ChosenRule {
            rule: answer.rule.clone(),
            verdict,
        }))
    }

    /// The cause by which a rule of the call's kind does not decide it, whatever its checks say.
    pub(crate) fn hindrance(&self, state: &DeskState, rule: &CallRule) -> Option<Hindrance> {
        let operation = self.call.operation;
        let topic = self.authors.topic;
        // A rule approves for its author, who counts once.
        let has_approved = topic.has_approved(operation, &rule.author);
        if has_approved || !topic.is_undecided(operation, |_| true) {
            return Some(Hindrance::Closed);
        }
        // What a paused participant does is for people to decide.
        let is_approval = rule.decision == RuleDecision::Approve;
        if is_approval && topic.is_braked(&self.facts.proposer) {
            return Some(Hindrance::ProposerPaused);
        }
        let suspended = || {
            let cause = self.cause(state, rule, self.could_decide(&rule.author));
            cause.map(Hindrance::Suspended)
        };
        let standing = Hindrance::of_standing(state, rule).or_else(suspended);
        standing.or_else(|| {
            self.authors.hindrance(state, rule, |may| {
                topic.could_decide(operation, &rule.author, may)
            })
        })
    }

    /// The cause by which this call suspends a rule of its kind, if there is one, whose author could
    /// decide the call or not.
    fn cause(
        &self,
        state: &DeskState,
        rule: &CallRule,
        author_could_decide: bool,
    ) -> Option<SuspendCause> {
        // Without it another one would approve what it is there to keep back.
        if rule.decision.tightens() {
            return None;
        }
        let facts = self.facts;
        // What is said here of tool and author is said of this call alone, and a participant that
        // the rule is not about has no say in it.
        let is_other = rule.scope.to.as_ref().is_some_and(|to| *to != facts.to)
            || !rule.scope.has_proposer(&facts.proposer);
        if is_other || rule.author == facts.proposer {
            return None;
        }
        let may = self.authors.granted_to(&rule.author);
        let around = Surrounding {
            now_ms: self.call.at_ms,
            since_ms: state.since_ms(rule),
            definition: facts.definition,
            server: facts.server,
            // Under the public name, or by what the rule says, which takes longer to find out.
            author_may: author_could_decide || may.is_some_and(|may| rule.is_within(may)),
            replaced: self.authors.replaced(state, rule),
            traits: facts.traits,
        };
        suspends(rule, &state.book.spent, &around)
    }
}

impl Hindrance {
    /// The cause by which a rule does not decide that is not in force.
    pub(crate) fn of_standing(state: &DeskState, rule: &CallRule) -> Option<Self> {
        match state.standing(rule) {
            RuleStanding::Refused(why) => Some(Self::Refused(why)),
            RuleStanding::Suspended { cause, .. } => Some(Self::Suspended(cause)),
            RuleStanding::InForce => None,
        }
    }

    /// It as a check of the rule that fails.
    pub(crate) fn check(self, rule: &CallRule) -> ExplainedCheck {
        let author = &rule.author;
        let is_not = || "it is not".to_owned();
        let is_not_so = || "it is".to_owned();
        let (asked, found) = match self {
            Self::Closed => (
                "the proposal waits for a decision".to_owned(),
                "it does not".to_owned(),
            ),
            Self::Refused(why) => ("the rule is in force".to_owned(), why),
            Self::Suspended(cause) => ("nothing suspends the rule".to_owned(), cause.words()),
            Self::AuthorUnknown => (format!("{author}, the author, is known"), is_not()),
            Self::AuthorMayNot => (
                format!("{author}, the author, may decide the proposal"),
                "it may not".to_owned(),
            ),
            Self::AuthorPaused => (format!("{author}, the author, is not paused"), is_not_so()),
            Self::ProposerPaused => ("the proposer is not paused".to_owned(), is_not_so()),
            Self::Replaced(name) => (
                "its names are those of the same participants".to_owned(),
                SuspendCause::BearerReplaced(name).words(),
            ),
        };
        ExplainedCheck {
            asked,
            found,
            fit: Fit::Failed,
            is_guard: false,
        }
    }
}
