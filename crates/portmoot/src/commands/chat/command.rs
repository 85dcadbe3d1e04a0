//! What a typed line means. Must not know how it is done.

use serde_json::value::RawValue;

/// What there is.
pub(super) const HELP: &str = "\
/tools [WHO]                  list tools, of everybody or of one
/call WHO TOOL [{arguments}]  call a tool; proposed instead where you may only propose
/proposals                    list the open proposals
/approve ID                   make a proposed call; ID may be its number
/reject ID [REASON]           say no to a proposal
/who                          list who is here
/quit                         leave
Anything else is said to everybody; //text says /text.";

/// A line that was typed.
#[derive(Debug)]
pub(super) enum Typed<'l> {
    /// To be said.
    Say(&'l str),
    /// `/tools [WHO]`
    Tools(Option<&'l str>),
    /// `/call WHO TOOL [{arguments}]`
    Call {
        /// Whom to ask.
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
        /// Why.
        reason: &'l str,
    },
    /// `/who`
    Who,
    /// `/help`
    Help,
    /// `/quit`
    Quit,
    /// An empty line.
    Nothing,
    /// Not understood, and why.
    Wrong(&'static str),
}

/// Reads a line.
pub(super) fn read(line: &str) -> Typed<'_> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return if line.is_empty() { Typed::Nothing } else { Typed::Say(line) };
    };
    if command.starts_with('/') {
        return Typed::Say(command);
    }
    let (word, rest) = split(command);
    let (first, further) = split(rest);
    match (word, first) {
        ("tools", "") => Typed::Tools(None),
        ("tools", target) => Typed::Tools(Some(target)),
        ("call", target) => call(target, further),
        ("proposals", _) => Typed::Proposals,
        ("approve" | "reject", "") => Typed::Wrong("Say which proposal: its number or its id."),
        ("approve", which) => Typed::Approve(which),
        ("reject", which) => Typed::Reject { which, reason: further },
        ("who", _) => Typed::Who,
        ("help" | "?", _) => Typed::Help,
        ("quit" | "exit" | "q", _) => Typed::Quit,
        _ => Typed::Wrong("There is no such command: /help lists them."),
    }
}

fn call<'l>(target: &'l str, rest: &'l str) -> Typed<'l> {
    let (name, arguments) = split(rest);
    if name.is_empty() {
        return Typed::Wrong("Say whom to ask and for which tool: /call WHO TOOL {arguments}");
    }
    let arguments = if arguments.is_empty() { "{}" } else { arguments };
    match RawValue::from_string(arguments.to_owned()) {
        Ok(raw) if raw.get().starts_with('{') => Typed::Call { target, name, arguments: raw },
        Ok(_) | Err(_) => {
            Typed::Wrong("The arguments must be one JSON object, such as {\"text\": \"hello\"}")
        }
    }
}

/// The first word, and what follows it.
fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_what_they_mean() {
        for (line, expect) in [
            ("", "Nothing"),
            ("  hello / there ", r#"Say("hello / there")"#),
            ("//call me", r#"Say("/call me")"#),
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
            assert!(matches!(read(line), Typed::Wrong(_)), "{line}");
        }
    }
}
