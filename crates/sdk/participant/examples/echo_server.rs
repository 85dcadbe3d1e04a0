//! An MCP server that dials out: it serves the tools `echo` and `add` to its topic until it is
//! stopped.
//!
//! ```text
//! PORTMOOT_URL=http://127.0.0.1:7070 PORTMOOT_TOKEN=... cargo run -p portmoot-participant --example echo_server
//! ```
//!
//! Its participant needs the capability `mcp/response:*`. Callers need
//! `mcp/request:tools/call:echo`.
#![allow(clippy::print_stdout)]

use portmoot_participant::{Event, Mode, Participant, ParticipantSpec, Tools, visible};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let number = json!({ "type": "number" });
    let two = json!({ "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"] });
    let tools = Tools::new("echo-server", env!("CARGO_PKG_VERSION"))
        .tool("echo", "Returns a text", text, |arguments| async move {
            echo(&arguments)
        })
        .tool("add", "Adds two numbers", two, |arguments| async move {
            add(&arguments)
        });
    let spec = ParticipantSpec::from_env()
        .serving(tools)
        .receiving(Mode::Directed);
    let participant = Participant::connect(spec).await?;
    println!("serving as {}", participant.you().id);
    let mut events = participant.events();
    while let Some(event) = events.next().await {
        match event {
            Event::Violation { from, why, .. } => {
                println!(
                    "ignored an envelope of {}: {}",
                    visible::line(&from),
                    visible::line(&why)
                );
            }
            Event::Refused { error, .. } => {
                println!(
                    "the gateway refused an envelope: {}",
                    visible::line(&error.message)
                )
            }
            Event::Disconnected {
                why,
                is_final: true,
            } => return Err(why.into()),
            Event::Disconnected {
                why,
                is_final: false,
            } => println!("disconnected: {why}"),
            _ => {}
        }
    }
    Ok(())
}

fn echo(arguments: &Value) -> Result<Value, String> {
    arguments
        .get("text")
        .filter(|text| text.is_string())
        .cloned()
        .ok_or_else(|| "`text` must be a string".into())
}

fn add(arguments: &Value) -> Result<Value, String> {
    let number = |name: &str| {
        arguments
            .get(name)
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("`{name}` must be a number"))
    };
    Ok(json!({ "sum": number("a")? + number("b")? }))
}
