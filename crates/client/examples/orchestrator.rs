//! An orchestrator: makes those proposed calls that its rules cover, and leaves all others to people.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-client --example orchestrator -- rules.json
//! ```
//!
//! A rule says which call, whose proposal, at whom; `*` stands for any run of characters, as in capabilities:
//!
//! ```json
//! [{ "kind": "mcp/request:tools/call:echo", "from": ["untrusted-*"], "to": ["echo-server"] }]
//! ```
//!
//! Its participant needs a capability for what its rules cover; the gateway holds it to that, whatever the rules say.
#![allow(clippy::print_stdout)]

use client::participant::{Event, Mode, Proposed};
use client::{Participant, ParticipantSpec, visible};
use model::{Capability, KindRef};
use serde::Deserialize;

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: String,
    from: Vec<String>,
    to: Vec<String>,
}

/// A rule, compiled: the matcher is the one that decides about capabilities.
struct Rule {
    call: Capability,
    proposer: Capability,
}

/// Any word does: only its addressees are compared, and they stand for the proposer.
const BY: &str = "by";

impl Rule {
    fn read(written: &Written) -> Result<Self, Box<dyn std::error::Error>> {
        let call = Capability::parse(&written.kind)?.to(written.to.iter().map(String::as_str))?;
        let proposer = Capability::parse(BY)?.to(written.from.iter().map(String::as_str))?;
        Ok(Self { call, proposer })
    }

    fn covers(&self, proposed: &Proposed) -> bool {
        let (Ok(kind), Ok(by)) = (proposed.request_kind(), KindRef::parse(BY)) else { return false };
        KindRef::parse(&kind).is_ok_and(|kind| self.call.admits_to(kind, &proposed.to()))
            && self.proposer.admits_to(by, &[proposed.from()])
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("say where the rules are: RULES.json")?;
    let written: Vec<Written> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let rules = written.iter().map(Rule::read).collect::<Result<Vec<_>, _>>()?;
    let spec = ParticipantSpec::from_env().hearing(Mode::DirectedAndProposals);
    let orchestrator = Participant::connect(spec).await?;
    println!("{} rules, as {}", rules.len(), orchestrator.you().id);
    let mut events = orchestrator.events();
    while let Some(event) = events.next().await {
        match event {
            Event::Proposal(proposed) => match rules.iter().position(|rule| rule.covers(&proposed)) {
                Some(number) => {
                    println!("rule {}: {}", number + 1, title(&proposed));
                    let orchestrator = orchestrator.clone();
                    tokio::spawn(async move { approve(&orchestrator, &proposed).await });
                }
                None => println!("for a person: {}", title(&proposed)),
            },
            Event::Missed(count) => {
                println!("{count} events were missed; proposals among them wait for people")
            }
            Event::Away { why, is_final: true } => return Err(why.into()),
            _ => {}
        }
    }
    Ok(())
}

async fn approve(orchestrator: &Participant, proposed: &Proposed) {
    let outcome = match orchestrator.fulfil(proposed, None).await {
        Ok(_) => "done".to_owned(),
        Err(why) => why.to_string(),
    };
    println!("{}: {}", title(proposed), visible::line(&outcome));
}

fn title(proposed: &Proposed) -> String {
    let kind = proposed.request_kind().unwrap_or_else(|_| proposed.call.method().to_owned());
    visible::line(&format!("{} by {}", kind, proposed.from()))
}
