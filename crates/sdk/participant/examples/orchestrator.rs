//! An orchestrator: fulfils the proposals that its rules approve, rejects those that they reject, and
//! leaves all others to people, with the reason why no rule decided.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-participant --features rules --example orchestrator -- rules.toml
//! ```
//!
//! `docs/rules.md` has the language of the file, which is for one topic. Its participant needs
//! capabilities for the calls that its rules approve and for `mcp/request:tools/list` of those who
//! run them; the gateway enforces them.
#![allow(clippy::print_stdout)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use portmoot_participant::rules::{
    CallStage, RuleDecision, RuleSet, RuledCall, definition_digest, participant_digest, succeeded,
};
use portmoot_participant::{
    CallError, Event, IncomingProposal, Mode, Participant, ParticipantSpec, visible,
};

/// A participant that decides by rules. Clones are the same one.
#[derive(Clone)]
struct Orchestrator {
    me: Participant,
    rules: Arc<Mutex<RuleSet>>,
}

impl Orchestrator {
    fn rules(&self) -> MutexGuard<'_, RuleSet> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a proposal; returns what it did, in words.
    async fn decide(&self, proposal: &IncomingProposal) -> String {
        let Some(mut call) = self.rules().call(proposal, now_ms()) else {
            return "left to people: it is not for one participant".to_owned();
        };
        call.server = Some(participant_digest(&call.to));
        let tool = proposal.call.target();
        let tool = tool.filter(|_| proposal.call.method() == "tools/call");
        if let Some(tool) = tool {
            match self.me.definition(&call.to, tool).await {
                Ok(Some(written)) => call.definition = definition_digest(written.get()),
                Ok(None) => {}
                Err(why) => return format!("left to people: {why}"),
            }
        }
        // The server may have taken its time.
        call.at_ms = now_ms();
        for would in self.rules().would_decide(&call, CallStage::Proposed) {
            let decision = would.decision.as_str();
            println!(
                "{}: {} in shadow would {decision}",
                title(proposal),
                would.rule
            );
        }
        match self.rule_for(&call) {
            Some((name, RuleDecision::Approve)) => {
                format!("by {name}: {}", self.fulfil(proposal, call).await)
            }
            Some((name, RuleDecision::Reject)) => {
                let outcome = self.me.reject(proposal.id(), "by a rule").await;
                format!("by {name}: {}", said("rejected", outcome.err()))
            }
            Some((_, RuleDecision::Ask)) | None => self.left_to_people(&call),
        }
    }

    /// The rule that decides a call. A use of it counts before the call runs, so that two at once
    /// cannot both have the last one.
    fn rule_for(&self, call: &RuledCall) -> Option<(String, RuleDecision)> {
        let mut rules = self.rules();
        let answer = rules.decide(call, CallStage::Proposed)?;
        let (name, decision) = (answer.name().clone(), answer.decision());
        if decision == RuleDecision::Approve {
            rules.charge(call, Some(&name));
        }
        Some((name.to_string(), decision))
    }

    async fn fulfil(&self, proposal: &IncomingProposal, mut call: RuledCall) -> String {
        match self.me.fulfil(proposal, None).await {
            Ok(result) => {
                if succeeded(result.get()) {
                    call.at_ms = now_ms();
                    self.rules().answered(&call);
                }
                "done".to_owned()
            }
            // Nothing ran, also where someone else decided first.
            Err(
                why @ (CallError::Refused(_)
                | CallError::NotConnected
                | CallError::Busy
                | CallError::Invalid(_)),
            ) => {
                self.rules().returned(&call);
                format!("left as it is: {why}")
            }
            Err(why) => why.to_string(),
        }
    }

    /// What a rule for the call would name, and what kept each rule from deciding.
    fn left_to_people(&self, call: &RuledCall) -> String {
        let mut lines = vec!["left to people".to_owned()];
        let digests = [("definition", call.definition), ("server", call.server)];
        for (key, digest) in digests {
            lines.push(match digest {
                Some(digest) => format!("{key} = \"{digest}\""),
                None => format!("{key} is not known: no rule approves it"),
            });
        }
        let rules = self.rules();
        let explained = rules.explain(call);
        lines.extend(explained.iter().map(ToString::to_string));
        lines.join("\n")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("usage: orchestrator RULES.toml")?;
    let rules = RuleSet::parse(&std::fs::read_to_string(file)?)?;
    let count = rules.rules().len();
    let spec = ParticipantSpec::from_env().receiving(Mode::DirectedAndProposals);
    let me = Participant::connect(spec).await?;
    println!("{count} rules, as {}", me.you().id);
    let mut events = me.events();
    let rules = Arc::new(Mutex::new(rules));
    let orchestrator = Orchestrator { me, rules };
    while let Some(event) = events.next().await {
        match event {
            Event::Proposal(proposal) => {
                let orchestrator = orchestrator.clone();
                tokio::spawn(async move {
                    let outcome = orchestrator.decide(&proposal).await;
                    println!("{}: {}", title(&proposal), visible::lines(&outcome));
                });
            }
            Event::Lagged(count) => {
                println!("{count} events were dropped; proposals among them are left to people")
            }
            Event::Disconnected {
                why,
                is_final: true,
            } => return Err(why.into()),
            _ => {}
        }
    }
    Ok(())
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

fn said(done: &str, why: Option<CallError>) -> String {
    why.map_or_else(|| done.to_owned(), |why| format!("left as it is: {why}"))
}

fn title(proposal: &IncomingProposal) -> String {
    let kind = proposal
        .request_kind()
        .unwrap_or_else(|_| proposal.call.method().to_owned());
    visible::line(&format!("{} by {}", kind, proposal.from()))
}
