//! Commands `rules ...`, with a running gateway.

mod adding;
mod offers;
mod words;

use std::path::Path;

use json::visible;
use serde_json::{Value, json};
use wire::time::rfc3339;

use self::words::{items, shown, text};
use super::proposals::whole_id;
use crate::cli::RulesCommand;
use crate::commands::target::running_endpoint;
use crate::commands::view::cell;
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::{duration_of, time_of};

/// The most proposals that are named of those about which a rule would have decided otherwise.
const CONTRADICTED_SHOWN_MAX: usize = 5;

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
            let rules: Vec<String> = items(&answer, "rules").iter().map(shown).collect();
            if rules.is_empty() {
                output.message(
                    "there are no rules that you may see: a topic names its file with rules = \"rules.toml\", and `portmoot rules offers` shows what was learned",
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
        RulesCommand::Like {
            proposal,
            term,
            uses,
            when,
            tool,
            yes,
            gateway,
        } => {
            let like = adding::Like {
                for_seconds: duration_of("--for", &term)?.as_secs(),
                uses,
                when: when.join("\n"),
                tool,
            };
            let remote = running_endpoint(&gateway, output)?;
            adding::like(&remote, &proposal, like, yes, output).await?;
        }
        RulesCommand::Add {
            file,
            topic,
            tool,
            gateway,
        } => {
            let text = rules_of(&file)?;
            let remote = running_endpoint(&gateway, output)?;
            adding::add(&remote, &topic, &text, tool.as_deref(), output).await?;
        }
        RulesCommand::Offers { topic, gateway } => {
            offers::list(&running_endpoint(&gateway, output)?, &topic, output).await?;
        }
        RulesCommand::Accept {
            digest,
            topic,
            gateway,
        } => {
            offers::accept(
                &running_endpoint(&gateway, output)?,
                &topic,
                &digest,
                output,
            )
            .await?;
        }
        RulesCommand::Dismiss {
            digest,
            topic,
            gateway,
        } => {
            offers::dismiss(
                &running_endpoint(&gateway, output)?,
                &topic,
                &digest,
                output,
            )
            .await?;
        }
        RulesCommand::End {
            rule,
            topic,
            gateway,
        } => {
            offers::end(&running_endpoint(&gateway, output)?, &topic, &rule, output).await?;
        }
        RulesCommand::Replay {
            file,
            topic,
            since,
            gateway,
        } => {
            let body = to_try(&file, since.as_deref())?;
            let remote = running_endpoint(&gateway, output)?;
            let path = ["topics", &topic, "rules", "replay"];
            let answer = api::post(&remote, &path, &[], body).await?;
            if output.json {
                output.result_json_text(&answer.text);
            } else {
                output.result(&tried(&answer.read()?));
            }
        }
    }
    Ok(Exit::Ok)
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
    let rules = items(answer, "rules");
    if rules.is_empty() {
        parts.push("no rule that you may see is about this tool".to_owned());
    }
    for rule in rules {
        let decision = text(rule, "decision").unwrap_or_default();
        let is = |key: &str| rule.get(key).and_then(Value::as_bool) == Some(true);
        let verdict = if is("shadow") && is("would_decide") {
            format!("is in shadow, and would decide it: {decision}")
        } else if is("shadow") {
            format!("is in shadow, and would not decide it (it would {decision})")
        } else if is("decides") {
            format!("decides it: {decision}")
        } else {
            format!("does not decide it (it would {decision})")
        };
        let learned = match text(rule, "accepted") {
            Some(accepted) => format!(" (learned, accepted {accepted})"),
            None => String::new(),
        };
        let mut lines = vec![format!("{}{learned} {verdict}", cell(rule, "rule"))];
        for check in items(rule, "checks") {
            let [asked, found, holds] =
                ["asked", "found", "holds"].map(|key| text(check, key).unwrap_or_default());
            lines.push(format!("  {holds:<7}  {asked}: {found}"));
        }
        parts.push(lines.join("\n"));
    }
    parts.join("\n\n")
}

/// The request that has the rules of a file tried.
fn to_try(file: &Path, since: Option<&str>) -> Result<String, Failure> {
    let rules = rules_of(file)?;
    let since = since.map(|text| time_of("--since", text)).transpose()?;
    Ok(json!({ "rules": rules, "since": since.map(rfc3339) }).to_string())
}

/// The text of a file of rules, once it is checked.
fn rules_of(file: &Path) -> Result<String, Failure> {
    config::checked_rules(file).map_err(|problems| Failure {
        problems,
        ..Failure::new(Exit::Usage, "config_rules", "the rules are not valid")
    })
}

/// Rules with what they would have decided, and all of them together.
fn tried(answer: &Value) -> String {
    let mut lines = Vec::new();
    let words = |value: &Value| text(value, "words").unwrap_or_default();
    for rule in items(answer, "rules") {
        lines.push(format!("{}  {}", cell(rule, "rule"), words(rule)));
        lines.extend(otherwise(items(rule, "contradicted")));
    }
    lines.push(format!("in all  {}", words(answer)));
    match answer.get("left_out").and_then(Value::as_u64) {
        None | Some(0) => {}
        Some(left_out) => lines.push(format!(
            "not tried on {left_out}: a rule names a member whose value is not kept"
        )),
    }
    lines.join("\n")
}

/// The line about the latest proposals of which a rule would have decided otherwise.
fn otherwise(contradicted: &[Value]) -> Option<String> {
    let latest = contradicted.iter().rev().take(CONTRADICTED_SHOWN_MAX);
    let ids: Vec<String> = latest
        .filter_map(Value::as_str)
        .map(visible::line)
        .collect();
    if ids.is_empty() {
        return None;
    }
    let more = match contradicted.len() - ids.len() {
        0 => String::new(),
        more => format!(", and {more} before"),
    };
    Some(format!("  decided otherwise: {}{more}", ids.join(", ")))
}
