//! Commands `rules ls` and `rules explain`, with a running gateway.

use json::visible;
use serde_json::Value;

use super::proposals::whole_id;
use crate::cli::RulesCommand;
use crate::commands::target::running_endpoint;
use crate::commands::view::cell;
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

pub(crate) async fn run(command: RulesCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        RulesCommand::Ls { topic, gateway } => {
            let remote = running_endpoint(&gateway, output)?;
            let answer = api::get(&remote, &["topics", &topic, "rules"], &[]).await?;
            if output.json {
                output.result_json_text(&answer.text);
                return Ok(Exit::Ok);
            }
            let answer: Value = answer.read()?;
            let rules: Vec<String> = list(&answer, "rules").iter().map(shown).collect();
            if rules.is_empty() {
                output.message(
                    "there are no rules that you may see: a topic names its file with rules = \"rules.toml\"",
                );
            } else {
                output.result(&rules.join("\n\n"));
            }
        }
        RulesCommand::Explain { proposal, gateway } => {
            let remote = running_endpoint(&gateway, output)?;
            let id = whole_id(&remote, &proposal).await?;
            let answer = api::get(&remote, &["proposals", &id, "rules"], &[]).await?;
            if output.json {
                output.result_json_text(&answer.text);
            } else {
                output.result(&explained(&answer.read()?));
            }
        }
    }
    Ok(Exit::Ok)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A text of the gateway's answer, if it is there.
fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    Some(visible::line(text))
}

/// A rule: its name and state, and below what it says.
fn shown(rule: &Value) -> String {
    let mut head = format!("{}  {}", cell(rule, "rule"), cell(rule, "state"));
    if let Some(since) = text(rule, "suspended") {
        head += &format!(" since {since}");
    }
    if let Some(why) = text(rule, "why") {
        head += &format!(": {why}");
    }
    if let Some(left) = rule.get("left").and_then(Value::as_u64) {
        head += &format!(", {} used, {left} left", cell(rule, "used"));
    }
    if let Some(expires) = text(rule, "expires") {
        head += &format!(", ends {expires}");
    }
    let sentence = text(rule, "sentence").unwrap_or_default();
    format!("{head}\n  {sentence}")
}

/// The digests of a proposed call, and each rule with its checks.
fn explained(answer: &Value) -> String {
    if answer.get("judged") == Some(&Value::Bool(false)) {
        return "it is for several servers, or for none in particular: people decide it".to_owned();
    }
    let mut parts = Vec::new();
    let digest = |key: &str| {
        let known = text(answer, key).map(|digest| format!("{key} = \"{digest}\""));
        known.unwrap_or_else(|| format!("{key} is not known: no rule approves it"))
    };
    parts.push(format!("{}\n{}", digest("definition"), digest("server")));
    let rules = list(answer, "rules");
    if rules.is_empty() {
        parts.push("no rule that you may see is about this tool".to_owned());
    }
    for rule in rules {
        let decision = text(rule, "decision").unwrap_or_default();
        let verdict = match rule.get("decides").and_then(Value::as_bool) {
            Some(true) => format!("decides it: {decision}"),
            _ => format!("does not decide it (it would {decision})"),
        };
        let mut lines = vec![format!("{} {verdict}", cell(rule, "rule"))];
        for check in list(rule, "checks") {
            let [asked, found, holds] =
                ["asked", "found", "holds"].map(|key| text(check, key).unwrap_or_default());
            lines.push(format!("  {holds:<7}  {asked}: {found}"));
        }
        parts.push(lines.join("\n"));
    }
    parts.join("\n\n")
}
