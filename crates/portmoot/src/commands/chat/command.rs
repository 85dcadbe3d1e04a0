//! Chat commands: parser and help text.

use serde_json::value::RawValue;

/// Help text.
pub(super) const HELP: &str = "\
/tools [WHO]                  list the tools of all participants, or of one
/call WHO TOOL [{arguments}]  call a tool, or propose the call if you may only propose
/proposals                    list the open proposals
/approve ID                   approve a proposal and run it; ID may be its number
/reject ID [REASON]           reject a proposal
/who                          list the participants
/quit                         leave
Any other line is sent to all participants; //text sends /text.";

/// A typed line.
#[derive(Debug)]
pub(super) enum ChatCommand<'l> {
    /// A text to send.
    Send(&'l str),
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
    /// `/approve ID`
    Approve(&'l str),
    /// `/reject ID [REASON]`
    Reject {
        /// The proposal's id or number.
        which: &'l str,
        /// The reason, may be empty.
        reason: &'l str,
    },
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

/// Parses a line.
pub(super) fn read(line: &str) -> ChatCommand<'_> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return if line.is_empty() { ChatCommand::Empty } else { ChatCommand::Send(line) };
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
        ("proposals", _) => ChatCommand::Proposals,
        ("approve" | "reject", "") => ChatCommand::Invalid("Name a proposal: its number or its id."),
        ("approve", which) => ChatCommand::Approve(which),
        ("reject", which) => ChatCommand::Reject { which, reason: further },
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
    let arguments = if arguments.is_empty() { "{}" } else { arguments };
    match RawValue::from_string(arguments.to_owned()) {
        Ok(raw) if raw.get().starts_with('{') => ChatCommand::Call { target, name, arguments: raw },
        Ok(_) | Err(_) => {
            ChatCommand::Invalid("The arguments must be one JSON object, for example {\"text\": \"hello\"}")
        }
    }
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
            ("/call w t", r#"Call { target: "w", name: "t", arguments: RawValue({}) }"#),
            ("/proposals", "Proposals"),
            ("/approve 1", r#"Approve("1")"#),
            ("/reject 1 too  bold", r#"Reject { which: "1", reason: "too  bold" }"#),
            ("/reject 1", r#"Reject { which: "1", reason: "" }"#),
            ("/who", "Who"),
            ("/quit", "Quit"),
        ] {
            assert_eq!(format!("{:?}", read(line)), expect, "{line}");
        }
        for line in
            ["/call", "/call w", "/call w t [1]", "/call w t {", "/approve", "/reject", "/nothing", "/"]
        {
            assert!(matches!(read(line), ChatCommand::Invalid(_)), "{line}");
        }
    }
}
