//! How the room looks on a terminal. Whatever a stranger wrote is made visible, and what it said cannot pass for another's
//! line: further lines of a text are set in.

use client::participant::{CallError, Event, IncomingProposal};
use serde_json::Value;
use serde_json::value::RawValue;
use wire::mcpx::system::Seen;

use crate::commands::tools::content;
use crate::visible;

/// What somebody said, if that is what happened.
pub(super) fn said(event: &Event) -> Option<String> {
    match event {
        Event::Chat { from, text, .. } => Some(format!("{}: {}", visible::line(from), set_in(text))),
        _ => None,
    }
}

/// Anything else that is worth a line. `number` knows proposals.
pub(super) fn noticed(event: &Event, number: impl Fn(&str) -> Option<usize>) -> Option<String> {
    match event {
        Event::Joined(seen) => Some(format!("* {} is here", visible::line(&seen.id))),
        Event::Left(seen) => Some(format!("* {} has left", visible::line(&seen.id))),
        Event::Proposal(proposed) => Some(proposal(number(proposed.id()).unwrap_or_default(), proposed)),
        Event::ProposalState { proposal, state, reason } => {
            let reason = reason.as_deref().map(|reason| format!(": {}", set_in(reason))).unwrap_or_default();
            Some(format!("* your proposal {} is {state}{reason}", visible::line(proposal)))
        }
        Event::Refused { error, .. } => Some(format!("! refused: {}", set_in(&error.message))),
        Event::Violation { from, why, .. } => {
            Some(format!("! {} sent something false: {}", visible::line(from), visible::line(why)))
        }
        Event::Disconnected { why, is_final } => Some(away(why, *is_final)),
        Event::Lagged(count) => Some(format!("! {count} events were missed")),
        Event::Welcomed { .. } | Event::Chat { .. } | Event::Other(_) => None,
    }
}

/// The envelope itself on one line, for `--json`.
pub(super) fn frame(event: &Event) -> Option<String> {
    let envelope = match event {
        Event::Chat { envelope, .. } | Event::Other(envelope) => envelope,
        Event::Proposal(proposed) => &proposed.envelope,
        _ => return None,
    };
    let line = wire::rpc::one_line(envelope.frame().clone());
    Some(String::from_utf8_lossy(&line).into_owned())
}

/// The connection is gone.
pub(super) fn away(why: &str, is_final: bool) -> String {
    let then = if is_final { "press Enter to leave" } else { "trying again" };
    format!("! {}; {then}", visible::line(why))
}

/// Everything that a decision about a proposal is about.
pub(super) fn proposal(number: usize, proposed: &IncomingProposal) -> String {
    let call = &proposed.call;
    let params = String::from_utf8_lossy(call.params().unwrap_or(b"{}")).into_owned();
    let to = if proposed.envelope.is_broadcast() { "anybody".to_owned() } else { proposed.to().join(", ") };
    let target = call.target().map(|target| format!(" {}", visible::line(target))).unwrap_or_default();
    format!(
        "? proposal #{number} by {} at {}: {}{target}\n    params {}\n    id {}",
        visible::line(proposed.from()),
        visible::line(&to),
        visible::line(call.method()),
        visible::line(&params),
        visible::line(proposed.id()),
    )
}

/// Somebody, and what they may do.
pub(super) fn person(seen: &Seen) -> String {
    visible::line(&format!("{}  {}", seen.id, seen.capabilities.join(", "))).trim_end().to_owned()
}

/// The tools in an answer to `tools/list`: name and line of each.
pub(super) fn tools(owner: &str, result: &RawValue) -> Vec<(String, String)> {
    let parsed: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let tools = parsed.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let line = |tool: &Value| {
        let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
        let first = text("description").lines().next().unwrap_or_default();
        let shown = visible::line(&format!("{owner}  {}  {first}", text("name"))).trim_end().to_owned();
        (text("name").to_owned(), shown)
    };
    tools.iter().map(line).collect()
}

/// The result of a call.
pub(super) fn result(result: &RawValue) -> String {
    let parsed: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let failed = parsed.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let text = content::text(&parsed).replace('\n', "\n    ");
    if failed { format!("! {text}") } else { format!("= {text}") }
}

/// Why a call came to nothing.
pub(super) fn failed(why: &CallError) -> String {
    format!("! {}", set_in(&why.to_string()))
}

/// Why something was not sent.
pub(super) fn not_sent(why: &CallError) -> String {
    format!("! not sent: {}", set_in(&why.to_string()))
}

fn set_in(text: &str) -> String {
    visible::lines(text.trim_end()).replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;
    use wire::mcpx::check::{Act, strict};
    use wire::mcpx::{Draft, Envelope, envelope};

    use super::*;

    fn heard(from: &str, kind: &str, payload: &Value) -> Envelope {
        let payload = payload.to_string();
        let to = &["worker"];
        let draft = Draft {
            id: "p\u{7}1",
            ts: None,
            from,
            to,
            kind,
            correlation_id: None,
            payload: payload.as_bytes(),
        };
        Envelope::read(envelope(&draft)).unwrap()
    }

    #[test]
    fn nobody_speaks_with_anothers_voice() {
        let text = "hi\nboss: approve it\u{1b}[2J\r\u{202e}";
        let envelope = heard("mallory", "chat", &json!({ "text": text }));
        let chat = Event::Chat { from: "mallory".into(), text: text.into(), envelope };
        assert_eq!(said(&chat).unwrap(), "mallory: hi\n    boss: approve it\\u{1b}[2J\\u{d}\\u{202e}");
        assert!(frame(&chat).unwrap().starts_with('{'));
    }

    #[test]
    fn a_proposal_hides_nothing() {
        let payload = json!({ "method": "tools/call", "params": { "name": "e\u{202e}x", "arguments": { "a": "\u{200b}" } } });
        let kind = "mcp/proposal:tools/call";
        let envelope = heard("scout", kind, &payload);
        let Ok(Act::Proposal(call)) = strict(kind, Bytes::from(payload.to_string())) else { panic!() };
        assert_eq!(
            proposal(3, &IncomingProposal { envelope, call }),
            "? proposal #3 by scout at worker: tools/call e\\u{202e}x\n    \
             params {\"arguments\":{\"a\":\"\\u{200b}\"},\"name\":\"e\\u{202e}x\"}\n    id p\\u{7}1"
        );
    }

    #[test]
    fn results_and_tools() {
        let raw = |value: Value| serde_json::value::to_raw_value(&value).unwrap();
        let answer = json!({ "content": [{ "type": "text", "text": "a\nb\u{1b}" }], "isError": true });
        assert_eq!(result(&raw(answer)), "! a\n    b\\u{1b}");
        let listed =
            json!({ "tools": [{ "name": "echo", "description": "Says\nit" }, { "name": "x\u{7}" }] });
        let lines: Vec<String> = tools("w", &raw(listed)).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, ["w  echo  Says", "w  x\\u{7}"]);
        assert_eq!(tools("w", &raw(json!([]))), []);
    }
}
