//! Events of a topic, results and lists as entries. Hidden characters of others' texts are made
//! visible here.

use json::visible;
use participant::{CallError, Event, IncomingProposal, ParticipantInfo, ProposalState};
use serde_json::Value;
use serde_json::value::RawValue;
use wire::mcpx::check::{Act, strict};
use wire::mcpx::{Envelope, Head};
use wire::time::read_rfc3339;

use crate::content;
use crate::entry::{ChatEntry, Tone};
use crate::rows::shortened;

/// Longest params or result of others' calls that a row shows, in characters.
pub const CALL_CHARS: usize = 160;
/// Columns of the id of a proposal that has no number.
const ID_COLUMNS: usize = 18;
/// Methods whose calls are not shown: handshakes, lists, notifications.
const QUIET_METHODS: [&str; 2] = ["initialize", "ping"];

/// Circumstances of an event.
pub(crate) struct EventContext<'k> {
    /// The person's id.
    pub(crate) me: &'k str,
    /// The number of a proposal, by its proposer and the id of its envelope.
    pub(crate) number: &'k dyn Fn(&str, &str) -> Option<usize>,
    /// Whether others' calls are shown.
    pub(crate) calls: bool,
    /// Whether a change of a participant is the end of its pause.
    pub(crate) resumed: bool,
}

/// The entry of an event, if it has one. A proposal has one for those who may not decide about it;
/// see [`proposed`].
pub(crate) fn entry(event: &Event, known: &EventContext<'_>) -> Option<ChatEntry> {
    let entry = match event {
        Event::Chat {
            from,
            text,
            envelope,
        } => said(from, text, envelope, known.me),
        Event::Joined(seen) if seen.id == known.me => return None,
        Event::Joined(seen) => note(format!("* {} has joined", visible::line(&seen.id))),
        Event::Changed(seen) if seen.paused => note(format!(
            "* {} is paused: its calls wait for decisions, and it decides nothing",
            visible::line(&seen.id)
        )),
        Event::Changed(seen) if known.resumed => note(format!(
            "* {} is resumed: its calls run again without decisions, as far as it may make them",
            visible::line(&seen.id)
        )),
        Event::Changed(seen) => {
            let whose = if seen.id == known.me {
                "your".to_owned()
            } else {
                format!("{}'s", visible::line(&seen.id))
            };
            let capabilities = visible::line(&seen.capabilities.join(", "));
            note(format!("* {whose} capabilities are now: {capabilities}"))
        }
        Event::Left(seen) => note(format!("* {} has left", visible::line(&seen.id))),
        // The proposal itself has been shown.
        Event::ProposalState {
            to,
            state: ProposalState::Pending,
            expiring: false,
            ..
        } if to != known.me => return None,
        Event::ProposalState {
            proposal,
            to,
            state,
            by,
            reason,
            edited,
            absent,
            expiring,
            ..
        } => {
            let number = (known.number)(to, proposal);
            let which = number.map_or_else(
                || shortened(&visible::line(proposal), ID_COLUMNS),
                |number| format!("#{number}"),
            );
            let whose = if to == known.me {
                "your proposal"
            } else {
                "the proposal"
            };
            let of = if to == known.me {
                String::new()
            } else {
                format!(" of {}", visible::line(to))
            };
            let by = by
                .as_ref()
                .map(|by| format!(" by {}", visible::line(by)))
                .unwrap_or_default();
            let reason = reason
                .as_deref()
                .map(|reason| format!(": {}", lines(reason)))
                .unwrap_or_default();
            let absent = match absent.as_slice() {
                [] => String::new(),
                names => format!(" (not here: {})", visible::line(&names.join(", "))),
            };
            let edited = if *edited { ", edited" } else { "" };
            let expiring = if *expiring { ", and expires soon" } else { "" };
            note(format!(
                "* {whose} {which}{of} is {state}{by}{edited}{expiring}{reason}{absent}"
            ))
        }
        Event::Refused { error, .. } => trouble(format!("! refused: {}", lines(&error.message))),
        Event::Violation { from, why, .. } => trouble(format!(
            "! {} sent an invalid envelope: {}",
            visible::line(from),
            visible::line(why)
        )),
        Event::Disconnected { why, is_final } => disconnected(why, *is_final),
        Event::Lagged(count) => trouble(format!("! {count} events were missed")),
        Event::Other(envelope) if known.calls => return call(envelope),
        Event::Welcomed { .. } | Event::History { .. } | Event::Proposal(_) | Event::Other(_) => {
            return None;
        }
    };
    Some(entry.of_topic())
}

/// The time that an event of the past claims, in Unix milliseconds.
pub(crate) fn claimed_ms(event: &Event) -> Option<u64> {
    envelope_of(event)
        .and_then(Envelope::ts)
        .and_then(read_rfc3339)
}

/// The envelope on one line, for `--json`.
pub(crate) fn frame(event: &Event) -> Option<String> {
    let line = wire::rpc::one_line(envelope_of(event)?.frame().clone());
    Some(String::from_utf8_lossy(&line).into_owned())
}

fn envelope_of(event: &Event) -> Option<&Envelope> {
    match event {
        Event::Chat { envelope, .. } | Event::Other(envelope) => Some(envelope),
        Event::Proposal(proposed) => Some(&proposed.envelope),
        Event::Welcomed { .. }
        | Event::History { .. }
        | Event::Joined(_)
        | Event::Changed(_)
        | Event::Left(_)
        | Event::ProposalState { .. }
        | Event::Refused { .. }
        | Event::Violation { .. }
        | Event::Disconnected { .. }
        | Event::Lagged(_) => None,
    }
}

fn said(from: &str, text: &str, envelope: &Envelope, me: &str) -> ChatEntry {
    let shown = lines(text);
    if envelope.is_broadcast() {
        let tone = if mentions(text, me) && from != me {
            Tone::Mention
        } else {
            Tone::Said
        };
        let tone = if from == me { Tone::Own } else { tone };
        return ChatEntry::said(tone, visible::line(from), shown);
    }
    let to: Vec<&str> = envelope
        .to()
        .map(|to| if to == me { "you" } else { to })
        .collect();
    ChatEntry::said(
        Tone::Private,
        visible::line(&format!("{from} to {}", to.join(","))),
        shown,
    )
}

/// Whether a text names a participant: its id as a word, with or without `@`, in letters of any
/// case.
pub(crate) fn mentions(text: &str, id: &str) -> bool {
    let text = text.to_lowercase();
    let id = id.to_lowercase();
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    !id.is_empty()
        && text.match_indices(&id).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text
                .get(at + id.len()..)
                .and_then(|after| after.chars().next());
            !before.is_some_and(in_word) && !after.is_some_and(in_word)
        })
}

/// A call between others, or its answer.
fn call(envelope: &Envelope) -> Option<ChatEntry> {
    let kind = model::KindRef::parse(envelope.kind()).ok()?;
    let head = Head::of(kind)?;
    let method = kind.method()?;
    let target = kind.context();
    let quiet = QUIET_METHODS.contains(&method)
        || method.starts_with("notifications/")
        || method.ends_with("/list");
    if quiet {
        return None;
    }
    let what = match target {
        Some(target) => format!("{method} {}", visible::line(target)),
        None => visible::line(method),
    };
    let from = visible::line(envelope.from());
    let to = visible::line(&addressees(envelope));
    let (mark, detail) = match (head, strict(envelope.kind(), envelope.payload_bytes())) {
        (_, Ok(Act::Request(call) | Act::Proposal(call))) => (">", call.params().map(arguments)),
        (_, Ok(Act::Answer(message))) => match message.error_object() {
            Some(_) => ("!", Some("error".to_owned())),
            None => ("<", None),
        },
        (Head::Request | Head::Proposal | Head::Response, Ok(Act::Other) | Err(_)) => {
            ("!", Some("not a valid call".to_owned()))
        }
    };
    let detail = detail
        .filter(|detail| !detail.is_empty())
        .map(|detail| format!(" {detail}"));
    let text = format!(
        "{mark} {from} to {to}: {what}{}",
        detail.unwrap_or_default()
    );
    Some(ChatEntry::new(Tone::Call, text).of_topic())
}

/// The arguments of a call on one line.
fn arguments(params: &[u8]) -> String {
    let params = std::str::from_utf8(params).unwrap_or_default();
    let read: Value = serde_json::from_str(params).unwrap_or_default();
    match read.get("arguments") {
        Some(arguments) => short(&arguments.to_string()),
        None => String::new(),
    }
}

fn short(text: &str) -> String {
    let mut chars = text.chars();
    let begin: String = chars.by_ref().take(CALL_CHARS).collect();
    let left = chars.count();
    let begin = visible::line(&begin);
    if left == 0 {
        begin
    } else {
        format!("{begin}... and {left} characters more")
    }
}

fn addressees(envelope: &Envelope) -> String {
    let to: Vec<&str> = envelope.to().collect();
    if to.is_empty() {
        "all".to_owned()
    } else {
        to.join(", ")
    }
}

/// A proposal for those who cannot decide about it.
pub(crate) fn proposed(proposed: &IncomingProposal) -> ChatEntry {
    let call = &proposed.call;
    let target = call
        .target()
        .map(|target| format!(" {}", visible::line(target)))
        .unwrap_or_default();
    let detail = call.params().map(arguments).unwrap_or_default();
    ChatEntry::new(
        Tone::Proposal,
        format!(
            "? {} proposes to {}: {}{target} {detail}",
            visible::line(proposed.from()),
            visible::line(&addressees(&proposed.envelope)),
            visible::line(call.method()),
        )
        .trim_end(),
    )
    .of_topic()
}

/// A lost connection.
pub(crate) fn disconnected(why: &str, is_final: bool) -> ChatEntry {
    let then = if is_final { "the end" } else { "reconnecting" };
    trouble(format!("! {}; {then}", visible::line(why)))
}

/// The participants of the topic, `you` first.
pub(crate) fn people<'p>(
    you: &'p ParticipantInfo,
    others: impl Iterator<Item = &'p ParticipantInfo>,
) -> Vec<ChatEntry> {
    let person = |seen: &ParticipantInfo| {
        let text = visible::line(&format!("{}  {}", seen.id, seen.capabilities.join(", ")));
        ChatEntry::new(Tone::Outcome, text.trim_end())
    };
    std::iter::once(you).chain(others).map(person).collect()
}

/// Characters of a tool's description in a list of all tools.
const TOOL_CHARS: usize = 80;

/// The tools in a result of `tools/list`: name and text of each, with the beginning of its
/// description.
pub(crate) fn tools(owner: &str, result: &RawValue) -> Vec<(String, String)> {
    let parsed: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let tools = parsed
        .get("tools")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let line = |tool: &Value| {
        let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
        let first = text("description").lines().next().unwrap_or_default();
        let mut short: String = first.chars().take(TOOL_CHARS).collect();
        if short.len() < first.len() {
            short += "...";
        }
        let shown = visible::line(&format!("{owner}  {}  {short}", text("name")));
        (text("name").to_owned(), shown.trim_end().to_owned())
    };
    tools.iter().map(line).collect()
}

/// The result of a call.
pub(crate) fn result(result: &RawValue) -> ChatEntry {
    let parsed: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let failed = parsed
        .get("isError")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let text = content::text(&parsed);
    ChatEntry::new(
        Tone::Outcome,
        if failed {
            format!("! {text}")
        } else {
            format!("= {text}")
        },
    )
}

/// The JSON-RPC answer of a proposal that is over, or its state and the reason for it.
pub(crate) fn outcome(number: usize, over: &review::ProposalDetails) -> ChatEntry {
    #[derive(serde::Deserialize)]
    struct Answer {
        result: Option<Box<RawValue>>,
        error: Option<Value>,
    }
    let answer = over
        .answer
        .as_ref()
        .and_then(|answer| serde_json::from_str::<Answer>(answer.get()).ok());
    match answer {
        Some(Answer {
            result: Some(found),
            ..
        }) => result(&found),
        Some(Answer {
            error: Some(error), ..
        }) => {
            let message = error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            ChatEntry::new(
                Tone::Outcome,
                format!("! answered with an error: {}", lines(message)),
            )
        }
        _ => {
            let reason = over
                .reason
                .as_deref()
                .map(|reason| format!(": {}", lines(reason)));
            let text = format!(
                "! #{number} is {}{}",
                visible::line(&over.state),
                reason.unwrap_or_default()
            );
            ChatEntry::new(Tone::Outcome, text)
        }
    }
}

/// A failed call.
pub(crate) fn failed(why: &CallError) -> ChatEntry {
    ChatEntry::new(Tone::Outcome, format!("! {}", lines(&why.to_string())))
}

/// A message that was not sent.
pub(crate) fn not_sent(why: &CallError) -> ChatEntry {
    trouble(format!("! not sent: {}", lines(&why.to_string())))
}

fn note(text: String) -> ChatEntry {
    ChatEntry::new(Tone::Note, text)
}

fn trouble(text: String) -> ChatEntry {
    ChatEntry::new(Tone::Trouble, text)
}

fn lines(text: &str) -> String {
    visible::lines(text.trim_end())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;
    use wire::mcpx::{Draft, envelope};

    use super::*;

    fn envelope_from(from: &str, to: &[&str], kind: &str, payload: &Value) -> Envelope {
        let payload = payload.to_string();
        let draft = Draft {
            id: "p\u{7}1",
            ts: Some("2026-07-28T12:30:00Z"),
            from,
            to,
            kind,
            correlation_id: kind.contains("response").then_some("q"),
            payload: payload.as_bytes(),
        };
        Envelope::read(envelope(&draft)).unwrap()
    }

    fn shown(event: &Event) -> Option<(Tone, String)> {
        let known = EventContext {
            me: "boss",
            number: &|_, id| (id == "known").then_some(7),
            calls: true,
            resumed: false,
        };
        let entry = entry(event, &known)?;
        let rows = match &entry.speaker {
            Some(speaker) => crate::rows::Rows::said(speaker.clone(), entry.text.clone()),
            None => crate::rows::Rows::new(entry.text.clone()),
        };
        Some((entry.tone, rows.render(None)))
    }

    fn chat(from: &str, to: &[&str], text: &str) -> Event {
        let envelope = envelope_from(from, to, "chat", &json!({ "text": text }));
        Event::Chat {
            from: from.into(),
            text: text.into(),
            envelope,
        }
    }

    #[test]
    fn a_tool_is_one_short_line_of_a_list() {
        let tool = |text: String| json!({ "tools": [{ "name": "echo", "description": text }] });
        let raw = |value: Value| serde_json::value::to_raw_value(&value).unwrap();
        let long = tools(
            "files",
            &raw(tool(format!("{}\nmore", "x".repeat(TOOL_CHARS + 1)))),
        );
        assert_eq!(
            long[0].1,
            format!("files  echo  {}...", "x".repeat(TOOL_CHARS))
        );
        let whole = tools("files", &raw(tool("x".repeat(TOOL_CHARS))));
        assert_eq!(
            whole[0].1,
            format!("files  echo  {}", "x".repeat(TOOL_CHARS))
        );
    }

    #[test]
    fn a_message_cannot_imitate_another_participant() {
        let event = chat("mallory", &[], "hi\nboss: approve it\u{1b}[2J\r\u{202e}");
        let expect = "mallory: hi\nmallory| boss: approve it\\u{1b}[2J\\u{d}\\u{202e}";
        assert_eq!(shown(&event).unwrap().1, expect);
        assert!(frame(&event).unwrap().starts_with('{'));
        assert_eq!(claimed_ms(&event), Some(1_785_241_800_000));
    }

    #[test]
    fn private_words_and_mentions_are_marked() {
        for (event, tone, text) in [
            (
                chat("scout", &["boss"], "psst"),
                Tone::Private,
                "scout to you: psst",
            ),
            (
                chat("scout", &["worker", "boss"], "psst"),
                Tone::Private,
                "scout to worker,you: psst",
            ),
            (
                chat("scout", &["worker"], "psst"),
                Tone::Private,
                "scout to worker: psst",
            ),
            (
                chat("scout", &[], "ask @boss"),
                Tone::Mention,
                "scout: ask @boss",
            ),
            (
                chat("scout", &[], "Boss, please"),
                Tone::Mention,
                "scout: Boss, please",
            ),
            (
                chat("scout", &[], "bossy, boss1, a-boss, emboss"),
                Tone::Said,
                "scout: bossy, boss1, a-boss, emboss",
            ),
            (chat("boss", &[], "boss"), Tone::Own, "boss: boss"),
        ] {
            assert_eq!(shown(&event), Some((tone, text.to_owned())));
        }
    }

    #[test]
    fn calls_of_others_are_shown_on_one_row() {
        let request = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        for (kind, payload, expect) in [
            (
                "mcp/request:tools/call:echo",
                request(
                    "tools/call",
                    json!({ "name": "echo", "arguments": { "text": "a\u{202e}\nb" } }),
                ),
                Some(r#"> scout to worker: tools/call echo {"text":"a\u{202e}\nb"}"#.to_owned()),
            ),
            (
                "mcp/request:tools/call:echo",
                request(
                    "tools/call",
                    json!({ "name": "echo", "arguments": { "text": "x".repeat(200) } }),
                ),
                Some(format!(
                    "> scout to worker: tools/call echo {{\"text\":\"{}... and 51 characters more",
                    "x".repeat(151)
                )),
            ),
            (
                "mcp/response:tools/call:echo",
                json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
                Some("< scout to worker: tools/call echo".to_owned()),
            ),
            (
                "mcp/response:tools/call:echo",
                json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1, "message": "no" } }),
                Some("! scout to worker: tools/call echo error".to_owned()),
            ),
            (
                "mcp/request:tools/call:echo",
                json!({ "method": "x" }),
                Some("! scout to worker: tools/call echo not a valid call".to_owned()),
            ),
            (
                "mcp/request:tools/list",
                request("tools/list", json!({})),
                None,
            ),
            ("mcp/request:ping", request("ping", json!({})), None),
            ("game/move", json!({}), None),
        ] {
            let event = Event::Other(envelope_from("scout", &["worker"], kind, &payload));
            assert_eq!(shown(&event).map(|(_, text)| text), expect, "{kind}");
        }
    }

    #[test]
    fn the_course_of_a_proposal_is_noted() {
        let state = |proposal: &str,
                     to: &str,
                     state,
                     by: Option<&str>,
                     reason: Option<&str>,
                     absent: &[&str]| {
            let absent = absent.iter().map(|one| (*one).to_owned()).collect();
            let by = by.map(str::to_owned);
            let reason = reason.map(str::to_owned);
            let fulfilment = None;
            let edited = state == ProposalState::Completed;
            let proposal = proposal.into();
            let to = to.into();
            Event::ProposalState {
                proposal,
                to,
                state,
                by,
                reason,
                fulfilment,
                edited,
                absent,
                expiring: false,
                claims: Vec::new(),
                notes: Vec::new(),
            }
        };
        for (event, expect) in [
            (
                state("known", "scout", ProposalState::Pending, None, None, &[]),
                None,
            ),
            (
                state(
                    "known",
                    "boss",
                    ProposalState::Pending,
                    None,
                    None,
                    &["a", "b"],
                ),
                Some("* your proposal #7 is pending (not here: a, b)"),
            ),
            (
                state(
                    "known",
                    "scout",
                    ProposalState::Rejected,
                    Some("boss"),
                    Some("no\u{7}\n"),
                    &[],
                ),
                Some("* the proposal #7 of scout is rejected by boss: no\\u{7}"),
            ),
            (
                state(
                    "known",
                    "boss",
                    ProposalState::Completed,
                    Some("boss"),
                    None,
                    &[],
                ),
                Some("* your proposal #7 is completed by boss, edited"),
            ),
            (
                state(
                    "0123456789abcdef0123456789abcdef-1",
                    "scout",
                    ProposalState::Expired,
                    None,
                    None,
                    &[],
                ),
                Some("* the proposal 01234567..abcdef-1 of scout is expired"),
            ),
        ] {
            assert_eq!(shown(&event).map(|(_, text)| text).as_deref(), expect);
        }
    }

    #[test]
    fn proposals_of_others_show_hidden_characters() {
        let payload = json!({ "method": "tools/call", "params": { "name": "e\u{202e}x", "arguments": { "a": "\u{200b}" } } });
        let kind = "mcp/proposal:tools/call";
        let envelope = envelope_from("scout", &["worker"], kind, &payload);
        let Ok(Act::Proposal(call)) = strict(kind, Bytes::from(payload.to_string())) else {
            panic!()
        };
        assert_eq!(
            proposed(&IncomingProposal { envelope, call }).text,
            "? scout proposes to worker: tools/call e\\u{202e}x {\"a\":\"\\u{200b}\"}"
        );
    }

    #[test]
    fn results_and_tools_are_shown() {
        let raw = |value: Value| serde_json::value::to_raw_value(&value).unwrap();
        let answer =
            json!({ "content": [{ "type": "text", "text": "a\nb\u{1b}" }], "isError": true });
        assert_eq!(result(&raw(answer)).text, "! a\nb\\u{1b}");
        let listed = json!({ "tools": [{ "name": "echo", "description": "Says\nit" }, { "name": "x\u{7}" }] });
        let lines: Vec<String> = tools("w", &raw(listed))
            .into_iter()
            .map(|(_, line)| line)
            .collect();
        assert_eq!(lines, ["w  echo  Says", "w  x\\u{7}"]);
        assert_eq!(tools("w", &raw(json!([]))), []);
    }
}
