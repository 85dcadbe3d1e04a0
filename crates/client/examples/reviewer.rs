//! A person reviews proposals at the terminal: each is shown, `y` makes the call, anything else says no.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-client --example reviewer
//! ```
//!
//! Its participant needs `mcp/request:*`, or as much of it as it shall be able to approve. What is shown comes from a
//! stranger: control characters and marks that turn the direction of writing are made visible.
#![allow(clippy::print_stdout)]

use std::io::{BufRead, Write, stdin, stdout};

use client::participant::{CallError, Event, Mode, Proposed};
use client::{Participant, ParticipantSpec, visible};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = ParticipantSpec::from_env().hearing(Mode::DirectedAndProposals);
    let reviewer = Participant::connect(spec).await?;
    println!("reviewing as {}", reviewer.you().id);
    let mut events = reviewer.events();
    while let Some(event) = events.next().await {
        match event {
            Event::Proposal(proposed) => {
                println!("{}", shown(&proposed));
                let said = tokio::task::spawn_blocking(|| ask("Make this call? [y/N]")).await??;
                let Some(said) = said else { break };
                let outcome = match said.as_str() {
                    "y" | "yes" => reviewer.fulfil(&proposed, None).await,
                    _ => reviewer.reject(proposed.id(), "the reviewer said no").await,
                };
                println!("{}", told(outcome.map(|result| result.get().to_owned())));
            }
            Event::Missed(count) => println!("{count} events were missed"),
            Event::Away { why, is_final: true } => return Err(why.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Everything that a decision is about.
fn shown(proposed: &Proposed) -> String {
    let params = String::from_utf8_lossy(proposed.call.params().unwrap_or(b"{}"));
    format!(
        "\nproposal {}\n  by      {}\n  at      {}\n  method  {}\n  target  {}\n  params  {}",
        visible::line(proposed.id()),
        visible::line(proposed.from()),
        visible::line(&proposed.to().join(", ")),
        visible::line(proposed.call.method()),
        visible::line(proposed.call.target().unwrap_or("-")),
        visible::line(&params),
    )
}

fn told(outcome: Result<String, CallError>) -> String {
    match outcome {
        Ok(result) => visible::lines(&result),
        Err(why) => visible::lines(&why.to_string()),
    }
}

/// One line of the terminal; `None` at its end.
fn ask(question: &str) -> std::io::Result<Option<String>> {
    print!("{question} ");
    stdout().flush()?;
    let mut line = String::new();
    let read = stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_lowercase()))
}
