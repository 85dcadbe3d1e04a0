//! An agent that may only propose: it proposes one tool call and waits for the outcome.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-participant --example untrusted_agent -- echo-server echo '{"text": "hello"}'
//! ```
//!
//! Its participant needs `mcp/proposal:tools/call`. With `mcp/request:tools/call` the same program
//! makes the call itself.
#![allow(clippy::print_stdout)]

use portmoot_participant::{CallMode, Participant, ParticipantSpec, visible};
use serde_json::json;
use serde_json::value::RawValue;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(target), Some(tool)) = (args.next(), args.next()) else {
        return Err("usage: untrusted_agent TARGET TOOL [ARGUMENTS as JSON]".into());
    };
    let arguments: Box<RawValue> =
        serde_json::from_str(&args.next().unwrap_or_else(|| "{}".into()))?;
    let params = json!({ "name": tool, "arguments": arguments });
    let spec = ParticipantSpec::from_env();
    let proposal_timeout = spec.proposal_timeout;
    let agent = Participant::connect(spec).await?;
    let result = match agent.call_mode(&target, "tools/call", &params)? {
        Some(CallMode::Request) => agent.request(&target, "tools/call", &params).await,
        Some(CallMode::Propose) => {
            let mut proposal = agent.propose(&[&target], "tools/call", &params)?;
            println!("proposed as {}; waiting for a reviewer", proposal.id());
            proposal.outcome(proposal_timeout).await
        }
        None => return Err("the capabilities allow neither a request nor a proposal".into()),
    };
    agent.close().await;
    println!("{}", visible::lines(result?.get()));
    Ok(())
}
