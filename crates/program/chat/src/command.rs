//! Chat commands: parser and help text.

use serde_json::value::RawValue;

/// Help text.
pub(crate) const HELP: &str = "\
/msg WHO TEXT                 send a message to one participant; those who watch the whole topic see it too
/tools [WHO]                  list the tools of all participants, or of one
/call WHO TOOL [{arguments}]  call a tool, or propose the call if you may only propose
/proposals                    list the proposals that wait for a decision
/rules                        list the rules that decide here: uses, ends, spot checks, and why one decides nothing
/show ID                      show one of them in full; ID may be its number, or the beginning of its id
/approve ID [NOTE]            approve a proposal: it runs once, on your authority; the note is for its proposer
/reject ID [REASON]           reject a proposal
/edit ID [{arguments}]        approve a proposal with other arguments, or amend your own; without them, in your editor
/allow ID 15m|1h|8h           approve a proposal, and allow its proposer all calls of the tool for a time
/claim ID                     show others for five minutes that you look at a proposal
/extend ID                    give ten minutes more to decide about a proposal
/withdraw ID [REASON]         withdraw a proposal of your own
/yes                          confirm the approval that was asked about; any other line drops it
/calls                        show the calls of others, or stop showing them
/pause WHO [REASON]           pause a participant: its calls wait for decisions, and it decides nothing
/resume WHO                   resume it
/who                          list the participants
/quit                         leave
Any other line is sent to all participants; //text sends /text.";

/// A typed line.
#[derive(Debug)]
pub(crate) enum ChatCommand<'l> {
    /// A text to send.
    Send(&'l str),
    /// `/msg WHO TEXT`
    Message {
        /// The addressee.
        to: &'l str,
        /// The text.
        text: &'l str,
    },
    /// `/tools [WHO]`
    Tools(Option<&'l str>),
    /// `/call WHO TOOL [{arguments}]`
    Call {
        /// The participant to call.
        target: &'l str,
        /// The tool's own name.
        name: &'l str,
        /// An object, as it was typed.
        arguments: Box<RawValue>,
    },
    /// `/proposals`
    Proposals,
    /// `/rules`
    Rules,
    /// `/show ID`
    Show(&'l str),
    /// `/approve ID [NOTE]`
    Approve {
        /// The proposal.
        which: &'l str,
        /// The note for its proposer, may be empty.
        note: &'l str,
    },
    /// `/claim ID`
    Claim(&'l str),
    /// `/extend ID`
    Extend(&'l str),
    /// `/reject ID [REASON]` or `/withdraw ID [REASON]`
    End {
        /// The proposal's number, or the beginning of its id.
        which: &'l str,
        /// Whether it is withdrawn.
        withdraw: bool,
        /// The reason, may be empty.
        reason: &'l str,
    },
    /// `/edit ID [{arguments}]`
    Edit {
        /// The proposal.
        which: &'l str,
        /// An object, as it was typed.
        arguments: Option<Box<RawValue>>,
    },
    /// `/allow ID TIME`
    Allow {
        /// The proposal.
        which: &'l str,
        /// The time, in seconds.
        seconds: u64,
    },
    /// `/pause WHO [REASON]` or `/resume WHO`
    Brake {
        /// The participant.
        participant: &'l str,
        /// Whether it is resumed.
        resumes: bool,
        /// The reason, may be empty.
        reason: &'l str,
    },
    /// `/yes`
    Yes,
    /// `/calls`
    Calls,
    /// `/who`
    Who,
    /// `/help`
    Help,
    /// `/quit`
    Quit,
    /// An empty line.
    Empty,
    /// An invalid command, with a message.
    Invalid(&'static str),
}

/// The times for which a call can be allowed: the key that chooses it, how it is typed, its
/// seconds.
pub(crate) const TIMES: [(char, &str, u64); 3] =
    [('1', "15m", 900), ('2', "1h", 3_600), ('3', "8h", 28_800)];

/// Parses a line.
pub(crate) fn read(line: &str) -> ChatCommand<'_> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return if line.is_empty() {
            ChatCommand::Empty
        } else {
            ChatCommand::Send(line)
        };
    };
    if command.starts_with('/') {
        return ChatCommand::Send(command);
    }
    let (word, rest) = split(command);
    let (first, further) = split(rest);
    match (word, first) {
        ("tools", "") => ChatCommand::Tools(None),
        ("tools", target) => ChatCommand::Tools(Some(target)),
        ("call", target) => call(target, further),
        ("msg", "") => ChatCommand::Invalid(NO_MESSAGE),
        ("msg", to) => match further {
            "" => ChatCommand::Invalid(NO_MESSAGE),
            text => ChatCommand::Message { to, text },
        },
        ("proposals", _) => ChatCommand::Proposals,
        ("rules", _) => ChatCommand::Rules,
        (
            "approve" | "reject" | "show" | "edit" | "allow" | "claim" | "extend" | "withdraw",
            "",
        ) => ChatCommand::Invalid("Name a proposal: its number or its id."),
        ("claim", which) => ChatCommand::Claim(which),
        ("extend", which) => ChatCommand::Extend(which),
        ("show", which) => ChatCommand::Show(which),
        ("approve", which) => ChatCommand::Approve {
            which,
            note: further,
        },
        ("reject", which) => ChatCommand::End {
            which,
            withdraw: false,
            reason: further,
        },
        ("withdraw", which) => ChatCommand::End {
            which,
            withdraw: true,
            reason: further,
        },
        ("edit", which) if further.is_empty() => ChatCommand::Edit {
            which,
            arguments: None,
        },
        ("edit", which) => match object(further) {
            Some(arguments) => ChatCommand::Edit {
                which,
                arguments: Some(arguments),
            },
            None => ChatCommand::Invalid(NO_OBJECT),
        },
        ("allow", which) => match TIMES.iter().find(|(_, typed, _)| *typed == further) {
            Some((_, _, seconds)) => ChatCommand::Allow {
                which,
                seconds: *seconds,
            },
            None => ChatCommand::Invalid("Name a time: /allow ID 15m, 1h or 8h"),
        },
        ("pause" | "resume", "") => ChatCommand::Invalid("Name a participant: /pause WHO"),
        ("pause", participant) => ChatCommand::Brake {
            participant,
            resumes: false,
            reason: further,
        },
        ("resume", participant) => ChatCommand::Brake {
            participant,
            resumes: true,
            reason: further,
        },
        ("yes" | "y", "") => ChatCommand::Yes,
        ("calls", _) => ChatCommand::Calls,
        ("who", _) => ChatCommand::Who,
        ("help" | "?", _) => ChatCommand::Help,
        ("quit" | "exit" | "q", _) => ChatCommand::Quit,
        _ => ChatCommand::Invalid("Unknown command; /help lists the commands."),
    }
}

fn call<'l>(target: &'l str, rest: &'l str) -> ChatCommand<'l> {
    let (name, arguments) = split(rest);
    if name.is_empty() {
        return ChatCommand::Invalid("Name a participant and a tool: /call WHO TOOL {arguments}");
    }
    let arguments = if arguments.is_empty() {
        "{}"
    } else {
        arguments
    };
    match object(arguments) {
        Some(arguments) => ChatCommand::Call {
            target,
            name,
            arguments,
        },
        None => ChatCommand::Invalid(NO_OBJECT),
    }
}

const NO_OBJECT: &str = "The arguments must be one JSON object, for example {\"text\": \"hello\"}";
const NO_MESSAGE: &str = "Name a participant and a text: /msg WHO TEXT";

/// A JSON object without duplicate members, as it was typed.
pub(crate) fn object(text: &str) -> Option<Box<RawValue>> {
    let raw = RawValue::from_string(text.trim().to_owned()).ok()?;
    (raw.get().starts_with('{') && json::refuse_duplicates(raw.get().as_bytes()).is_ok())
        .then_some(raw)
}

/// Splits off the first word.
fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        for (line, expect) in [
            ("", "Empty"),
            ("  hello / there ", r#"Send("hello / there")"#),
            ("//call me", r#"Send("/call me")"#),
            ("/tools", "Tools(None)"),
            ("/tools worker", r#"Tools(Some("worker"))"#),
            (
                r#"/call worker  echo  {"text": "a b"}"#,
                r#"Call { target: "worker", name: "echo", arguments: RawValue({"text": "a b"}) }"#,
            ),
            (
                "/call w t",
                r#"Call { target: "w", name: "t", arguments: RawValue({}) }"#,
            ),
            ("/proposals", "Proposals"),
            ("/rules", "Rules"),
            ("/approve 1", r#"Approve { which: "1", note: "" }"#),
            (
                "/approve 1 only  today",
                r#"Approve { which: "1", note: "only  today" }"#,
            ),
            (
                "/reject 1 too  bold",
                r#"End { which: "1", withdraw: false, reason: "too  bold" }"#,
            ),
            (
                "/reject 1",
                r#"End { which: "1", withdraw: false, reason: "" }"#,
            ),
            (
                "/withdraw 1",
                r#"End { which: "1", withdraw: true, reason: "" }"#,
            ),
            ("/msg boss  a b", r#"Message { to: "boss", text: "a b" }"#),
            ("/show 1", r#"Show("1")"#),
            ("/claim 1", r#"Claim("1")"#),
            ("/extend 1", r#"Extend("1")"#),
            ("/edit 1", r#"Edit { which: "1", arguments: None }"#),
            (
                r#"/edit 1 {"a": 1}"#,
                r#"Edit { which: "1", arguments: Some(RawValue({"a": 1})) }"#,
            ),
            ("/allow 1 8h", r#"Allow { which: "1", seconds: 28800 }"#),
            (
                "/pause scout too fast",
                r#"Brake { participant: "scout", resumes: false, reason: "too fast" }"#,
            ),
            (
                "/resume scout",
                r#"Brake { participant: "scout", resumes: true, reason: "" }"#,
            ),
            ("/yes", "Yes"),
            ("/calls", "Calls"),
            ("/who", "Who"),
            ("/quit", "Quit"),
        ] {
            assert_eq!(format!("{:?}", read(line)), expect, "{line}");
        }
        for line in [
            "/call",
            "/call w",
            "/call w t [1]",
            "/call w t {",
            "/approve",
            "/reject",
            "/nothing",
            "/",
            "/msg",
            "/msg w",
            "/allow 1",
            "/allow 1 2h",
            "/edit 1 x",
            r#"/edit 1 {"a":1,"a":2}"#,
            "/show",
            "/pause",
            "/resume",
            "/yes 1",
        ] {
            assert!(matches!(read(line), ChatCommand::Invalid(_)), "{line}");
        }
    }
}
