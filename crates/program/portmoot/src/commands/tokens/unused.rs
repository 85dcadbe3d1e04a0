//! Command `tokens --unused`: tools that were not called for some time, what they cost a model, and
//! the commands that hide them.

use std::collections::BTreeMap;

use json::visible;
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use super::count::{counter, definitions};
use crate::cli::TokensArgs;
use crate::commands::target::running_endpoint;
use crate::commands::view::cell;
use crate::process::program_name;
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Days without a call after which a tool counts as unused, unless `--days` says otherwise.
const DAYS: u64 = 30;
const COLUMNS: [&str; 4] = ["TOOL", "SERVER", "LAST CALL", "TOKENS"];

/// A tool whose calls are counted.
struct Counted {
    name: String,
    server: String,
    own_name: String,
    counted_since: String,
    last_call: Option<String>,
    idle_days: u64,
    tokens: usize,
}

impl Counted {
    /// A tool of the API's list; `None` if its calls are not counted.
    fn read(tool: &Value, bpe: &CoreBPE) -> Option<Self> {
        let uses = tool.get("uses")?;
        let text = |key| Some(uses.get(key)?.as_str()?.to_owned());
        let definition = definitions(&[tool.to_string().as_bytes()]);
        Some(Self {
            name: cell(tool, "name"),
            server: cell(tool, "server"),
            own_name: text("own_name")?,
            counted_since: text("counted_since")?,
            last_call: text("last_call"),
            idle_days: uses.get("idle_days")?.as_u64()?,
            tokens: bpe.encode_ordinary(&definition).len(),
        })
    }

    fn row(&self) -> Vec<String> {
        let last = match &self.last_call {
            Some(day) => day.clone(),
            None => format!("none since {}", self.counted_since),
        };
        vec![
            visible::line(&self.name),
            visible::line(&self.server),
            last,
            self.tokens.to_string(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "server": self.server,
            "own_name": self.own_name,
            "counted_since": self.counted_since,
            "last_call": self.last_call,
            "idle_days": self.idle_days,
            "tokens": self.tokens,
        })
    }
}

pub(super) async fn run(args: &TokensArgs, output: Output) -> Result<Exit, Failure> {
    let days = args.days.unwrap_or(DAYS);
    let endpoint = running_endpoint(&args.gateway.running, output)?;
    // The refusal for callers who may not see servers, and so not what others call.
    let _: Value = api::get(&endpoint, &["servers"], &[]).await?.read()?;
    let answer: Value = api::get(&endpoint, &["tools"], &[("topic", &args.topic)])
        .await?
        .read()?;
    let bpe = counter()?;
    let listed = answer
        .get("tools")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let all: Vec<Counted> = listed
        .iter()
        .filter_map(|tool| Counted::read(tool, &bpe))
        .collect();
    let (unused, used): (Vec<_>, Vec<_>) = all.iter().partition(|tool| tool.idle_days >= days);
    let undecided: Vec<&Counted> = used
        .into_iter()
        .filter(|tool| tool.last_call.is_none())
        .collect();
    let commands = commands(&unused);
    if output.json {
        let rows = |tools: &[&Counted]| tools.iter().map(|tool| tool.json()).collect::<Vec<_>>();
        output.result_json(&json!({
            "days": days,
            "tools": all.len(),
            "unused": rows(&unused),
            "undecided": rows(&undecided),
            "commands": commands,
        }));
        return Ok(Exit::Ok);
    }
    if !unused.is_empty() {
        output.table(&COLUMNS, unused.iter().map(|tool| tool.row()));
    }
    output.result(&verdict((days, all.len()), &unused, &undecided, &commands));
    Ok(Exit::Ok)
}

/// Explanation of the rows, and the commands that hide the tools in them.
fn verdict(
    (days, tools): (u64, usize),
    unused: &[&Counted],
    undecided: &[&Counted],
    commands: &[String],
) -> String {
    let mut lines = Vec::new();
    let in_time = if days == 1 {
        "the last day".to_owned()
    } else {
        format!("the last {days} days")
    };
    if unused.is_empty() {
        lines.push(format!(
            "None of {tools} tools is known to be unused in {in_time}."
        ));
    } else {
        let tokens: usize = unused.iter().map(|tool| tool.tokens).sum();
        lines.push(format!(
            "\n{} of {tools} tools were not called in {in_time}: {tokens} tokens of each model that reads all definitions.",
            unused.len()
        ));
        lines.push("To hide them, in the configuration file of the gateway:".to_owned());
        lines.extend(commands.iter().map(|command| format!("  {command}")));
    }
    if let (Some(first), Some(least)) = (
        undecided.iter().map(|tool| &tool.counted_since).min(),
        undecided.iter().map(|tool| tool.idle_days).min(),
    ) {
        lines.push(format!(
            "{} were not called either, but are counted for less time, at most since {first}: they may be used.",
            undecided.len()
        ));
        if least > 0 {
            lines.push(format!(
                "For what is known of them: {} tokens --unused --days {least}",
                program_name()
            ));
        }
    }
    lines.join("\n")
}

/// The commands that hide these tools, one for each server. A name with `*` or a character that is
/// not shown is left out: as a pattern it would hide more, or something else.
fn commands(unused: &[&Counted]) -> Vec<String> {
    let mut by_server: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tool in unused {
        if !tool.own_name.contains('*') && visible::line(&tool.own_name) == tool.own_name {
            by_server
                .entry(&tool.server)
                .or_default()
                .push(&tool.own_name);
        }
    }
    let command = |(server, tools): (&str, Vec<&str>)| {
        let options_end = if tools.iter().any(|tool| tool.starts_with('-')) {
            "-- "
        } else {
            ""
        };
        let words: Vec<String> = [server].into_iter().chain(tools).map(shell_word).collect();
        format!(
            "{} tools disable {options_end}{}",
            program_name(),
            words.join(" ")
        )
    };
    by_server.into_iter().map(command).collect()
}

/// A text as one word of a shell. A server's name of a tool may be anything.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(own_name: &str, last_call: Option<&str>, idle_days: u64) -> Counted {
        Counted {
            name: format!("files_{own_name}"),
            server: "files".to_owned(),
            own_name: own_name.to_owned(),
            counted_since: "2026-11-01".to_owned(),
            last_call: last_call.map(str::to_owned),
            idle_days,
            tokens: 10,
        }
    }

    #[test]
    fn commands_survive_a_shell() {
        let of = |names: &[&str]| {
            let tools: Vec<Counted> = names.iter().map(|name| tool(name, None, 40)).collect();
            commands(&tools.iter().collect::<Vec<_>>())
        };
        let ends = |names: &[&str], end: &str| {
            let commands = of(names);
            assert!(
                matches!(commands.as_slice(), [one] if one.ends_with(end)),
                "{commands:?}"
            );
        };
        ends(
            &["read", "it's; rm"],
            r" tools disable files read 'it'\''s; rm'",
        );
        ends(&["read", "-x"], " tools disable -- files read -x");
        ends(&["read", "re*", "a\u{202e}b"], " tools disable files read");
    }

    #[test]
    fn a_short_count_hides_nothing() {
        let read = tool("read", Some("2026-11-02"), 5);
        let write = tool("write", None, 2);
        let said = verdict((30, 2), &[], &[&write], &[]);
        assert!(
            said.starts_with("None of 2 tools is known to be unused in the last 30 days."),
            "{said}"
        );
        assert!(
            said.contains("1 were not called either") && said.contains("since 2026-11-01"),
            "{said}"
        );
        assert!(
            said.ends_with("tokens --unused --days 2") && !said.contains("disable"),
            "{said}"
        );
        assert_eq!(
            (read.row()[2].as_str(), write.row()[2].as_str()),
            ("2026-11-02", "none since 2026-11-01")
        );
    }
}
