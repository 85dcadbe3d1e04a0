//! An agent that may only propose: proposes one tool call, and waits for what somebody else makes of it.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-client --example untrusted_agent -- echo-server echo '{"text": "hello"}'
//! ```
//!
//! Its participant needs `mcp/proposal:tools/call`. With more trust (`mcp/request:tools/call`) the same program simply calls.
#![allow(clippy::print_stdout)]

use client::participant::Way;
use client::{Participant, ParticipantSpec, visible};
use serde_json::json;
use serde_json::value::RawValue;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(target), Some(tool)) = (arguments.next(), arguments.next()) else {
        return Err("say whom to ask and for what: TARGET TOOL [ARGUMENTS as JSON]".into());
    };
    let given: Box<RawValue> = serde_json::from_str(&arguments.next().unwrap_or_else(|| "{}".into()))?;
    let params = json!({ "name": tool, "arguments": given });
    let spec = ParticipantSpec::from_env();
    let patience = spec.proposal_timeout;
    let agent = Participant::connect(spec).await?;
    let result = match agent.way(&target, "tools/call", &params)? {
        Some(Way::Request) => agent.request(&target, "tools/call", &params).await,
        Some(Way::Propose) => {
            let mut proposal = agent.propose(&[&target], "tools/call", &params)?;
            println!("proposed as {}; waiting for somebody to decide", proposal.id());
            proposal.outcome(patience).await
        }
        None => return Err("the capabilities allow neither a request nor a proposal".into()),
    };
    agent.close().await;
    println!("{}", visible::lines(result?.get()));
    Ok(())
}
