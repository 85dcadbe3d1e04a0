//! A reviewer at the terminal: shows each proposal; `y` makes the call, any other answer rejects
//! the proposal.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-participant --example reviewer
//! ```
//!
//! Its participant needs `mcp/request:*`, or the part of it that it reviews. Proposals are
//! untrusted text: control characters and marks that turn the direction of writing are escaped.
#![allow(clippy::print_stdout)]

use std::io::{BufRead, Write, stdin, stdout};

use portmoot_participant::{
    CallError, Event, IncomingProposal, Mode, Participant, ParticipantSpec, visible,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = ParticipantSpec::from_env().receiving(Mode::DirectedAndProposals);
    let reviewer = Participant::connect(spec).await?;
    println!("reviewing as {}", reviewer.you().id);
    let mut events = reviewer.events();
    while let Some(event) = events.next().await {
        match event {
            Event::Proposal(proposal) => {
                println!("{}", describe(&proposal));
                let answer = tokio::task::spawn_blocking(|| ask("Make this call? [y/N]")).await??;
                let Some(answer) = answer else { break };
                let outcome = match answer.as_str() {
                    "y" | "yes" => reviewer.fulfil(&proposal, None).await,
                    _ => reviewer.reject(proposal.id(), "the reviewer said no").await,
                };
                println!(
                    "{}",
                    printable(outcome.map(|result| result.get().to_owned()))
                );
            }
            Event::Lagged(count) => println!("{count} events were dropped"),
            Event::Disconnected {
                why,
                is_final: true,
            } => return Err(why.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Everything that the decision is about.
fn describe(proposal: &IncomingProposal) -> String {
    let params = String::from_utf8_lossy(proposal.call.params().unwrap_or(b"{}"));
    format!(
        "\nproposal {}\n  by      {}\n  at      {}\n  method  {}\n  target  {}\n  params  {}",
        visible::line(proposal.id()),
        visible::line(proposal.from()),
        visible::line(&proposal.to().join(", ")),
        visible::line(proposal.call.method()),
        visible::line(proposal.call.target().unwrap_or("-")),
        visible::line(&params),
    )
}

fn printable(outcome: Result<String, CallError>) -> String {
    match outcome {
        Ok(result) => visible::lines(&result),
        Err(why) => visible::lines(&why.to_string()),
    }
}

/// Reads one line of the terminal; `None` at its end.
fn ask(question: &str) -> std::io::Result<Option<String>> {
    print!("{question} ");
    stdout().flush()?;
    let mut line = String::new();
    let read = stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_lowercase()))
}
