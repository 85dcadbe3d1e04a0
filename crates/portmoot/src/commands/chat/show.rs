//! Chat events as text for a terminal. Hidden characters are made visible; further rows are behind a gutter ([`Rows`]).

use client::participant::{CallError, Event, IncomingProposal, ProposalState};
use serde_json::Value;
use serde_json::value::RawValue;
use wire::mcpx::system::ParticipantInfo;

use super::open_proposals::Named;
use super::rows::Rows;
use crate::commands::tools::content;
use json::visible;

/// The text of a chat event.
pub(super) fn chat_line(event: &Event) -> Option<Rows> {
    match event {
        Event::Chat { from, text, .. } => Some(Rows::said(visible::line(from), lines(text))),
        _ => None,
    }
}

/// The text of any other event to show to participant `me`. `number` gives the number of a proposal.
pub(super) fn notice_line(event: &Event, me: &str, number: impl Fn(&Named) -> Option<usize>) -> Option<Rows> {
    let text = match event {
        Event::Joined(seen) => Some(format!("* {} has joined", visible::line(&seen.id))),
        Event::Changed(seen) => {
            let whose =
                if seen.id == me { "your".to_owned() } else { format!("{}'s", visible::line(&seen.id)) };
            let capabilities = visible::line(&seen.capabilities.join(", "));
            Some(format!("* {whose} capabilities are now: {capabilities}"))
        }
        Event::Left(seen) => Some(format!("* {} has left", visible::line(&seen.id))),
        Event::Proposal(proposed) => {
            return Some(proposal(number(&Named::of(proposed)).unwrap_or_default(), proposed));
        }
        // The proposal itself has been shown.
        Event::ProposalState { to, state: ProposalState::Pending, .. } if to != me => None,
        Event::ProposalState { proposal, to, state, by, reason, absent } => {
            let whose = if to == me { "your proposal" } else { "the proposal" };
            let of = if to == me { String::new() } else { format!(" of {}", visible::line(to)) };
            let by = by.as_ref().map(|by| format!(" by {}", visible::line(by))).unwrap_or_default();
            let reason = reason.as_deref().map(|reason| format!(": {}", lines(reason))).unwrap_or_default();
            let absent = match absent.as_slice() {
                [] => String::new(),
                names => format!(" (not here: {})", visible::line(&names.join(", "))),
            };
            Some(format!("* {whose} {}{of} is {state}{by}{reason}{absent}", visible::line(proposal)))
        }
        Event::Refused { error, .. } => Some(format!("! refused: {}", lines(&error.message))),
        Event::Violation { from, why, .. } => {
            Some(format!("! {} sent an invalid envelope: {}", visible::line(from), visible::line(why)))
        }
        Event::Disconnected { why, is_final } => return Some(disconnected(why, *is_final)),
        Event::Lagged(count) => Some(format!("! {count} events were missed")),
        Event::Welcomed { .. } | Event::History { .. } | Event::Chat { .. } | Event::Other(_) => None,
    };
    text.map(Rows::new)
}

/// The envelope on one line, for `--json`.
pub(super) fn frame(event: &Event) -> Option<String> {
    let envelope = match event {
        Event::Chat { envelope, .. } | Event::Other(envelope) => envelope,
        Event::Proposal(proposed) => &proposed.envelope,
        _ => return None,
    };
    let line = wire::rpc::one_line(envelope.frame().clone());
    Some(String::from_utf8_lossy(&line).into_owned())
}

/// The text of a lost connection.
pub(super) fn disconnected(why: &str, is_final: bool) -> Rows {
    let then = if is_final { "press Enter to leave" } else { "reconnecting" };
    Rows::new(format!("! {}; {then}", visible::line(why)))
}

/// A proposal with everything that a reviewer needs to decide.
pub(super) fn proposal(number: usize, proposed: &IncomingProposal) -> Rows {
    let call = &proposed.call;
    let params = String::from_utf8_lossy(call.params().unwrap_or(b"{}")).into_owned();
    let to = if proposed.envelope.is_broadcast() { "anyone".to_owned() } else { proposed.to().join(", ") };
    let target = call.target().map(|target| format!(" {}", visible::line(target))).unwrap_or_default();
    Rows::new(format!(
        "? proposal #{number} by {} at {}: {}{target}\nparams {}\nid {}",
        visible::line(proposed.from()),
        visible::line(&to),
        visible::line(call.method()),
        visible::line(&params),
        visible::line(proposed.id()),
    ))
}

/// A participant with its capabilities.
pub(super) fn person(seen: &ParticipantInfo) -> Rows {
    Rows::new(visible::line(&format!("{}  {}", seen.id, seen.capabilities.join(", "))).trim_end())
}

/// The tools in a result of `tools/list`: name and text of each.
pub(super) fn tools(owner: &str, result: &RawValue) -> Vec<(String, Rows)> {
    let parsed: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let tools = parsed.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let line = |tool: &Value| {
        let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
        let first = text("description").lines().next().unwrap_or_default();
        let shown = visible::line(&format!("{owner}  {}  {first}", text("name")));
        (text("name").to_owned(), Rows::new(shown.trim_end()))
    };
    tools.iter().map(line).collect()
}

/// The result of a call.
pub(super) fn result(result: &RawValue) -> Rows {
    let parsed: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let failed = parsed.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let text = content::text(&parsed);
    Rows::new(if failed { format!("! {text}") } else { format!("= {text}") })
}

/// The text of a failed call.
pub(super) fn failed(why: &CallError) -> Rows {
    Rows::new(format!("! {}", lines(&why.to_string())))
}

/// The text of a message that was not sent.
pub(super) fn not_sent(why: &CallError) -> Rows {
    Rows::new(format!("! not sent: {}", lines(&why.to_string())))
}

fn lines(text: &str) -> String {
    visible::lines(text.trim_end())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;
    use wire::mcpx::check::{Act, strict};
    use wire::mcpx::{Draft, Envelope, envelope};

    use super::*;

    fn envelope_from(from: &str, kind: &str, payload: &Value) -> Envelope {
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
    fn a_message_cannot_imitate_another_participant() {
        let text = "hi\nboss: approve it\u{1b}[2J\r\u{202e}";
        let envelope = envelope_from("mallory", "chat", &json!({ "text": text }));
        let chat = Event::Chat { from: "mallory".into(), text: text.into(), envelope };
        let shown = chat_line(&chat).unwrap().render(None);
        assert_eq!(shown, "mallory: hi\nmallory| boss: approve it\\u{1b}[2J\\u{d}\\u{202e}");
        assert!(frame(&chat).unwrap().starts_with('{'));
    }

    #[test]
    fn proposals_show_hidden_characters() {
        let payload = json!({ "method": "tools/call", "params": { "name": "e\u{202e}x", "arguments": { "a": "\u{200b}" } } });
        let kind = "mcp/proposal:tools/call";
        let envelope = envelope_from("scout", kind, &payload);
        let Ok(Act::Proposal(call)) = strict(kind, Bytes::from(payload.to_string())) else { panic!() };
        assert_eq!(
            proposal(3, &IncomingProposal { envelope, call }).render(None),
            "? proposal #3 by scout at worker: tools/call e\\u{202e}x\n    \
             params {\"arguments\":{\"a\":\"\\u{200b}\"},\"name\":\"e\\u{202e}x\"}\n    id p\\u{7}1"
        );
    }

    #[test]
    fn results_and_tools_are_shown() {
        let raw = |value: Value| serde_json::value::to_raw_value(&value).unwrap();
        let answer = json!({ "content": [{ "type": "text", "text": "a\nb\u{1b}" }], "isError": true });
        assert_eq!(result(&raw(answer)).render(None), "! a\n    b\\u{1b}");
        let listed =
            json!({ "tools": [{ "name": "echo", "description": "Says\nit" }, { "name": "x\u{7}" }] });
        let listed = tools("w", &raw(listed)).into_iter();
        let lines: Vec<String> = listed.map(|(_, line)| line.render(None)).collect();
        assert_eq!(lines, ["w  echo  Says", "w  x\\u{7}"]);
        assert_eq!(tools("w", &raw(json!([]))), []);
    }
}
