//! Commands `rules like` and `add`: rules that their authors put in force by hand.

use serde_json::{Value, json};

use super::offers::print_rule;
use super::words::text;
use crate::commands::proposals::whole_id;
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{ProcessTerminal, Terminal, confirm};

/// The like of a call that waits, as it is to be approved.
pub(super) struct Like {
    pub(super) for_seconds: u64,
    pub(super) uses: u32,
    /// Conditions in place of the values of the call, as TOML.
    pub(super) when: String,
    /// The tool's name, as the author typed it.
    pub(super) tool: Option<String>,
}

/// Shows the rule that approves the like of a call, and puts it in force if the author says so.
pub(super) async fn like(
    remote: &Remote,
    proposal: &str,
    like: Like,
    yes: bool,
    output: Output,
) -> Result<(), Failure> {
    let id = whole_id(remote, proposal).await?;
    let body = json!({
        "for_seconds": like.for_seconds,
        "uses": like.uses,
        "when": like.when,
        "tool": like.tool,
    });
    let path = ["proposals", &id, "like"];
    let drafted = api::post(remote, &path, &[], body.to_string()).await?;
    let drafted: Value = drafted.read()?;
    if !yes {
        output.message(&text(&drafted, "sentence").unwrap_or_default());
        consent()?;
    }
    let of = |key: &str| drafted.get(key).and_then(Value::as_str).unwrap_or_default();
    add(
        remote,
        of("topic"),
        of("text"),
        like.tool.as_deref(),
        output,
    )
    .await
}

/// Asks the author whether to put the rule in force that was shown.
fn consent() -> Result<(), Failure> {
    const NONE: &str = "no rule was added";
    let mut terminal = ProcessTerminal;
    if !terminal.is_interactive() {
        let message = format!("{NONE}: it needs your consent");
        let failure = Failure::new(Exit::Refused, "consent_needed", message);
        return Err(failure.hint("consent with --yes"));
    }
    if confirm(&mut terminal, "Put this rule in force?") {
        Ok(())
    } else {
        Err(Failure::new(Exit::Refused, "consent_refused", NONE))
    }
}

/// Puts the rule of this text in force.
pub(super) async fn add(
    remote: &Remote,
    topic: &str,
    rule: &str,
    tool: Option<&str>,
    output: Output,
) -> Result<(), Failure> {
    let body = json!({ "rule": rule, "tool": tool });
    let path = ["topics", topic, "rules"];
    print_rule(
        &api::post(remote, &path, &[], body.to_string()).await?,
        output,
    )
}
