//! Books of the simulated rules: what each may still do, by a few lines of arithmetic.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use rules::RuleDecision;
use wire::time::rfc3339;

pub(super) const HOUR_MS: u64 = 3_600_000;
/// The names that have bearers.
pub(super) const NAMES: [&str; 4] = ["ann", "bob", "scout", "dave"];
/// The authors of rules.
pub(super) const AUTHORS: [&str; 2] = ["ann", "bob"];

/// The rights of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may not be in the topic.
    Unknown,
    Proposes,
    /// It may call another tool.
    CallsOther,
    /// It may call the tool under its public name.
    Calls,
    /// It may request the tool in the room, under its server's name: a rule decides as a client of its
    /// author would, so that it decides nothing, and is not suspended for it.
    Requests,
    CallsAll,
    Approves,
}

impl Standing {
    pub(super) const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Proposes,
        Self::CallsOther,
        Self::Calls,
        Self::Requests,
        Self::CallsAll,
        Self::Approves,
        // Rules are to decide something.
        Self::CallsAll,
        Self::Approves,
    ];

    pub(super) fn capabilities(self) -> Option<[&'static str; 2]> {
        let more = match self {
            Self::Unknown => return None,
            Self::Proposes => "chat",
            Self::CallsOther => "mcp/request:tools/call:echo",
            Self::Calls => "mcp/request:tools/call:bank_add",
            Self::Requests => "mcp/request:tools/call:add",
            Self::CallsAll => "mcp/request:*",
            Self::Approves => "mcp/approve:*",
        };
        Some(["mcp/proposal:*", more])
    }

    fn may_decide(self) -> bool {
        matches!(self, Self::Calls | Self::CallsAll | Self::Approves)
    }

    /// Whether a rule of such an author is suspended with the next call.
    fn suspends(self) -> bool {
        matches!(self, Self::Proposes | Self::CallsOther)
    }
}

/// One version of a rule about `add`.
#[derive(Debug, Clone)]
pub(super) struct BookRule {
    pub(super) id: &'static str,
    pub(super) version: u32,
    pub(super) author: &'static str,
    pub(super) decision: RuleDecision,
    /// Its proposers; all, if there are none.
    pub(super) proposers: &'static [&'static str],
    pub(super) amounts: RangeInclusive<u64>,
    pub(super) uses: u32,
    /// The most calls within an hour.
    pub(super) an_hour: Option<usize>,
    /// The largest sum of amounts within two hours.
    pub(super) sum: Option<u64>,
    /// Whether the amount must have been looked up within the hour.
    pub(super) is_looked_up: bool,
    pub(super) expires_ms: u64,
    pub(super) used: u32,
    pub(super) is_suspended: bool,
    /// Bearers of its names when it came into force.
    pub(super) bearers: BTreeMap<&'static str, u32>,
}

impl BookRule {
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.id, self.version)
    }

    pub(super) fn approves(&self) -> bool {
        self.decision == RuleDecision::Approve
    }

    fn has_proposer(&self, by: &str) -> bool {
        self.proposers.is_empty() || self.proposers.contains(&by)
    }

    /// Its names, of those that have bearers.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.author).chain(self.proposers.iter().copied())
    }

    /// The rule as its file has it, with these digests of the tool.
    pub(super) fn text(&self, digests: &str) -> String {
        let Self {
            id,
            version,
            author,
            decision,
            ..
        } = self;
        let mut text = format!(
            "[[rule]]\nid = \"{id}\"\nversion = {version}\nauthor = \"{author}\"\ndecision = \"{decision}\"\n\
             kind = \"mcp/request:tools/call:add\"\nto = \"bank\"\n",
            decision = decision.as_str()
        );
        let (least, most) = self.amounts.clone().into_inner();
        let when = format!("[rule.when]\n\"/a\" = {{ integer = [{least}, {most}] }}\n");
        if !self.approves() {
            return text + "proposers = [\"*\"]\n" + &when;
        }
        let end = &rfc3339(self.expires_ms)[..19];
        text += &format!(
            "proposers = {:?}\n{digests}\nexpires = \"{end}Z\"\nuses = {}\n",
            self.proposers, self.uses
        );
        if let Some(most) = self.an_hour {
            text += &format!("rate = \"{most}/h\"\n");
        }
        if let Some(most) = self.sum {
            text += &format!("sum = [{{ of = \"/a\", max = {most}, within = \"2h\" }}]\n");
        }
        if self.is_looked_up {
            text += "after = [{ kind = \"mcp/request:tools/call:look_up\", to = \"bank\", \
                     same = { \"/a\" = \"/of\" }, within = \"1h\" }]\n";
        }
        text + &when + "\"/b\" = { equals = 1 }\n"
    }
}

/// A use of a rule, of whatever version.
#[derive(Debug, Clone)]
struct BookUse {
    rule: &'static str,
    at_ms: u64,
    amount: u64,
}

/// An amount that a participant looked up.
#[derive(Debug, Clone)]
pub(super) struct BookAnswer {
    pub(super) by: &'static str,
    pub(super) amount: u64,
    pub(super) at_ms: u64,
}

/// A proposed call.
#[derive(Debug, Clone)]
pub(super) struct BookProposal {
    pub(super) by: &'static str,
    pub(super) amount: u64,
    pub(super) state: BookState,
}

/// The state of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BookState {
    /// It waits for people.
    Waits,
    /// This rule approved it, and it ran.
    Approved(String),
    /// This rule rejected it.
    Rejected(String),
    /// This rule approved it, and it was never run.
    Lost(String),
    /// A person decided, or its proposer is gone.
    Over,
}

/// The books of one topic.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) now_ms: u64,
    pub(super) rules: Vec<BookRule>,
    pub(super) standings: BTreeMap<&'static str, Standing>,
    pub(super) paused: BTreeSet<&'static str>,
    pub(super) bearers: BTreeMap<&'static str, u32>,
    uses: Vec<BookUse>,
    pub(super) answers: Vec<BookAnswer>,
    pub(super) seen: BTreeMap<&'static str, usize>,
}

impl Books {
    pub(super) fn new(now_ms: u64) -> Self {
        let mut standings: BTreeMap<_, _> = NAMES.map(|name| (name, Standing::Proposes)).into();
        standings.extend(AUTHORS.map(|author| (author, Standing::CallsAll)));
        Self {
            now_ms,
            rules: Vec::new(),
            standings,
            paused: BTreeSet::new(),
            bearers: NAMES.map(|name| (name, 0)).into(),
            uses: Vec::new(),
            answers: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    pub(super) fn count(&mut self, name: &'static str) {
        *self.seen.entry(name).or_default() += 1;
    }

    /// The bearers of a rule's names now.
    pub(super) fn bearers_of(&self, rule: &BookRule) -> BTreeMap<&'static str, u32> {
        rule.names()
            .map(|name| (name, self.bearers[name]))
            .collect()
    }

    /// The state of a proposal that waits, after the rules have judged it once.
    pub(super) fn judge(&mut self, proposal: &BookProposal) -> BookState {
        if self.standings[proposal.by] == Standing::Unknown {
            // It ends with its proposer.
            return BookState::Waits;
        }
        self.suspend(proposal);
        let mut order: Vec<usize> = (0..self.rules.len()).collect();
        order.sort_by_key(|at| {
            let rule = &self.rules[*at];
            let ends_ms = if rule.approves() {
                rule.expires_ms
            } else {
                u64::MAX
            };
            (rule.decision, ends_ms, rule.id)
        });
        let first = order.into_iter().find(|at| self.matches(*at, proposal));
        let Some(at) = first else {
            return BookState::Waits;
        };
        if let Some(why) = self.hindrance(&self.rules[at], proposal) {
            self.count(why);
            return BookState::Waits;
        }
        let name = self.rules[at].name();
        match self.rules[at].decision {
            RuleDecision::Ask => {
                self.count("left to people by a rule that asks");
                BookState::Waits
            }
            RuleDecision::Reject => {
                self.count("rejected by a rule");
                BookState::Rejected(name)
            }
            RuleDecision::Approve => {
                self.uses(at, proposal.amount);
                BookState::Approved(name)
            }
        }
    }

    fn uses(&mut self, at: usize, amount: u64) {
        let rule = &mut self.rules[at];
        rule.used += 1;
        assert!(rule.used <= rule.uses && self.now_ms < rule.expires_ms);
        let (author, id, is_looked_up) = (rule.author, rule.id, rule.is_looked_up);
        assert!(self.standings[author].may_decide());
        self.count(if author == "ann" {
            "approved by ann's rule"
        } else {
            "approved by bob's rule"
        });
        if is_looked_up {
            self.count("approved after it was looked up");
        }
        self.uses.push(BookUse {
            rule: id,
            at_ms: self.now_ms,
            amount,
        });
    }

    /// Suspends the approving rules that are about a proposal and come to their ends with it.
    fn suspend(&mut self, proposal: &BookProposal) {
        for at in 0..self.rules.len() {
            let rule = &self.rules[at];
            if !rule.approves() || rule.is_suspended || !rule.has_proposer(proposal.by) {
                continue;
            }
            let standing = self.standings[rule.author];
            let why = if self.bearers_of(rule) != rule.bearers {
                "suspended: a name has another bearer"
            } else if rule.used >= rule.uses {
                "suspended: its budget is spent"
            } else if rule.expires_ms <= self.now_ms {
                "suspended: its end came"
            } else if standing.suspends() {
                "suspended: its author lost the right"
            } else {
                continue;
            };
            self.rules[at].is_suspended = true;
            self.count(why);
        }
    }

    /// Whether a rule that is not suspended is about a proposal.
    fn matches(&mut self, at: usize, proposal: &BookProposal) -> bool {
        let rule = self.rules[at].clone();
        if !rule.has_proposer(proposal.by) || !rule.amounts.contains(&proposal.amount) {
            return false;
        }
        if !rule.approves() {
            return true;
        }
        if rule.is_suspended {
            let may = self.standings[rule.author].may_decide();
            self.count(match (may, rule.used >= rule.uses) {
                (_, true) => "left to people: no use is left",
                (true, false) => "left to people: suspended, though its author may again",
                (false, false) => return false,
            });
            return false;
        }
        let now_ms = self.now_ms;
        let within = |window_ms: u64| {
            let of_rule = self.uses.iter().filter(|one| one.rule == rule.id);
            of_rule.filter(move |one| now_ms - one.at_ms < window_ms)
        };
        let is_fast = rule
            .an_hour
            .is_some_and(|most| within(HOUR_MS).count() >= most);
        let sum = within(2 * HOUR_MS).map(|one| one.amount).sum::<u64>() + proposal.amount;
        let is_much = rule.sum.is_some_and(|most| sum > most);
        let is_guess = rule.is_looked_up && !self.was_looked_up(proposal);
        if is_fast {
            self.count("left to people: over the rate");
        }
        if is_much {
            self.count("left to people: over the sum");
        }
        if is_guess {
            self.count("left to people: not looked up");
        }
        !is_fast && !is_much && !is_guess
    }

    /// Whether the proposer had the answer about its amount within the hour.
    fn was_looked_up(&self, proposal: &BookProposal) -> bool {
        self.answers.iter().any(|one| {
            one.by == proposal.by
                && one.amount == proposal.amount
                && self.now_ms - one.at_ms < HOUR_MS
        })
    }

    /// Why the first rule that matches does not decide.
    fn hindrance(&self, rule: &BookRule, proposal: &BookProposal) -> Option<&'static str> {
        let standing = self.standings[rule.author];
        if rule.decision == RuleDecision::Ask {
            return None;
        }
        if rule.approves() && self.paused.contains(proposal.by) {
            return Some("left to people: the proposer is paused");
        }
        if standing == Standing::Unknown {
            return Some("left to people: the author is not known");
        }
        if self.paused.contains(rule.author) {
            return Some("left to people: the author is paused");
        }
        if rule.author == proposal.by {
            return Some("left to people: the author's own");
        }
        let may = standing.may_decide() && self.bearers_of(rule) == rule.bearers;
        (!may).then_some("left to people: the author may not, and no other rule steps in")
    }
}
