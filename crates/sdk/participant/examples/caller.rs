//! Calls the tool `add` of `echo-server`, by a request or, where its capabilities allow no more, by
//! a proposal; prints the result.
//!
//! ```text
//! PORTMOOT_TOKEN=... cargo run -p portmoot-participant --example caller
//! ```
#![allow(clippy::print_stdout)]

use portmoot_participant::serde_json::json;
use portmoot_participant::{Participant, ParticipantSpec, visible};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let me = Participant::connect(ParticipantSpec::from_env()).await?;
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    let result = me.call("echo-server", "tools/call", &params).await?;
    println!("{}", visible::lines(result.get()));
    me.close().await;
    Ok(())
}
