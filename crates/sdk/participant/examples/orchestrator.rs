//! An orchestrator: fulfils the proposals that its rules cover, and leaves all others to people.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-participant --example orchestrator -- rules.json
//! ```
//!
//! A rule has the kind of the call, its proposers and its targets. `*` stands for any characters,
//! as in capabilities:
//!
//! ```json
//! [{ "kind": "mcp/request:tools/call:echo", "from": ["untrusted-*"], "to": ["echo-server"] }]
//! ```
//!
//! Its participant needs capabilities for the calls that its rules cover; the gateway enforces
//! them.
#![allow(clippy::print_stdout)]

use portmoot_participant::{
    Capability, Event, IncomingProposal, KindRef, Mode, Participant, ParticipantSpec, visible,
};
use serde::Deserialize;

/// A rule in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleSpec {
    kind: String,
    from: Vec<String>,
    to: Vec<String>,
}

/// A rule, compiled to the matcher of capabilities.
struct Rule {
    call: Capability,
    proposer: Capability,
}

/// A kind for the capability whose addressees are the proposers; any word will do.
const BY: &str = "by";

impl Rule {
    fn compile(spec: &RuleSpec) -> Result<Self, Box<dyn std::error::Error>> {
        let call = Capability::parse(&spec.kind)?.to(spec.to.iter().map(String::as_str))?;
        let proposer = Capability::parse(BY)?.to(spec.from.iter().map(String::as_str))?;
        Ok(Self { call, proposer })
    }

    fn covers(&self, proposal: &IncomingProposal) -> bool {
        let (Ok(kind), Ok(by)) = (proposal.request_kind(), KindRef::parse(BY)) else {
            return false;
        };
        KindRef::parse(&kind).is_ok_and(|kind| self.call.admits_to(kind, &proposal.to()))
            && self.proposer.admits_to(by, &[proposal.from()])
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("usage: orchestrator RULES.json")?;
    let specs: Vec<RuleSpec> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let rules = specs
        .iter()
        .map(Rule::compile)
        .collect::<Result<Vec<_>, _>>()?;
    let spec = ParticipantSpec::from_env().receiving(Mode::DirectedAndProposals);
    let orchestrator = Participant::connect(spec).await?;
    println!("{} rules, as {}", rules.len(), orchestrator.you().id);
    let mut events = orchestrator.events();
    while let Some(event) = events.next().await {
        match event {
            Event::Proposal(proposal) => match rules.iter().position(|rule| rule.covers(&proposal))
            {
                Some(number) => {
                    println!("rule {}: {}", number + 1, title(&proposal));
                    let orchestrator = orchestrator.clone();
                    tokio::spawn(async move { approve(&orchestrator, &proposal).await });
                }
                None => println!("for a person: {}", title(&proposal)),
            },
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

async fn approve(orchestrator: &Participant, proposal: &IncomingProposal) {
    let outcome = match orchestrator.fulfil(proposal, None).await {
        Ok(_) => "done".to_owned(),
        Err(why) => why.to_string(),
    };
    println!("{}: {}", title(proposal), visible::line(&outcome));
}

fn title(proposal: &IncomingProposal) -> String {
    let kind = proposal
        .request_kind()
        .unwrap_or_else(|_| proposal.call.method().to_owned());
    visible::line(&format!("{} by {}", kind, proposal.from()))
}
