//! Owns the verdict on one act: whether capabilities admit it.
//! Must not know where it goes or what follows.

use model::{Capabilities, GATEWAY, KindRef};

use crate::{builtin::BuiltinTool, effect::Cause};

/// What is decided about an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may go on.
    Admit,
    /// It may not.
    Refuse(Cause),
}

/// Judges a request `METHOD[:CONTEXT]` to one upstream. Allocates nothing.
pub(crate) fn judge(
    capabilities: &Capabilities,
    method: &str,
    context: Option<&str>,
    upstream: &str,
) -> Verdict {
    let Ok(kind) = KindRef::request(method, context) else { return Verdict::Refuse(Cause::Malformed) };
    if let Some(tool) = built_in(method, context, upstream) {
        let may = tool.is_for(capabilities);
        return if may { Verdict::Admit } else { Verdict::Refuse(Cause::NotAdmitted) };
    }
    let may = |method: &str| {
        KindRef::request(method, context).is_ok_and(|kind| capabilities.admits(kind, &[upstream]))
    };
    // A completion tells that a prompt or template exists: whoever may not use it hears nothing of it.
    if method == "completion/complete" && !may("prompts/get") && !may("resources/read") {
        return Verdict::Refuse(Cause::NotAdmitted);
    }
    if needs_no_capability(method, context) || capabilities.admits(kind, &[upstream]) {
        return Verdict::Admit;
    }
    // Whoever may subscribe may also stop.
    if method == "resources/unsubscribe" && may("resources/subscribe") {
        return Verdict::Admit;
    }
    Verdict::Refuse(Cause::NotAdmitted)
}

/// Whether what is not admitted may be proposed instead: the calls that an answer can wait for.
pub(crate) fn proposes(
    capabilities: &Capabilities,
    method: &str,
    context: Option<&str>,
    upstream: &str,
) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
        && KindRef::proposal(method, context).is_ok_and(|kind| capabilities.admits(kind, &[upstream]))
}

/// A tool of the gateway's own: it is judged by what it reaches.
fn built_in(method: &str, context: Option<&str>, upstream: &str) -> Option<BuiltinTool> {
    if upstream == GATEWAY && method == "tools/call" { BuiltinTool::of(context?) } else { None }
}

/// Handshake, ping and lists (which are filtered), and what serves one's own operations.
/// None of these names anything, so with a context they are judged like all others.
fn needs_no_capability(method: &str, context: Option<&str>) -> bool {
    context.is_none()
        && match method {
            "initialize" | "ping" | "server/discover" | "subscriptions/listen" => true,
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => true,
            _ => method.starts_with("tasks/"),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let granted = Capabilities::parse([
            "mcp/request:tools/call:a*",
            "mcp/request:resources/subscribe:x:*",
            "mcp/request:completion/complete",
            "mcp/request:prompts/get:p*",
            "mcp/request:resources/read:r:*",
        ])
        .unwrap();
        let check = |method: &str, context: Option<&str>, expected: Verdict| {
            assert_eq!(judge(&granted, method, context, "up"), expected, "{method} {context:?}");
        };
        let no = Verdict::Refuse(Cause::NotAdmitted);
        check("tools/call", Some("ab"), Verdict::Admit);
        check("tools/call", Some("b"), no);
        check("tools/call", None, no);
        check("tools/call", Some(""), Verdict::Refuse(Cause::Malformed));
        check("tools/call:ab", None, Verdict::Refuse(Cause::Malformed));
        check("tools/list", None, Verdict::Admit);
        check("tools/list", Some("x"), no);
        check("ping", None, Verdict::Admit);
        check("tasks/get", None, Verdict::Admit);
        check("logging/setLevel", None, no);
        check("resources/unsubscribe", Some("x:y"), Verdict::Admit);
        check("resources/unsubscribe", Some("y"), no);
        check("completion/complete", Some("plan"), Verdict::Admit);
        check("completion/complete", Some("r:{x}"), Verdict::Admit);
        check("completion/complete", Some("hidden"), no);
    }

    #[test]
    fn tools_of_the_gateway_are_judged_by_what_they_reach() {
        let check = |text: &str, upstream: &str, expected: Verdict| {
            let granted = Capabilities::parse([text]).unwrap();
            let verdict = judge(&granted, "tools/call", Some("approve_proposal"), upstream);
            assert_eq!(verdict, expected, "{text} {upstream}");
        };
        let no = Verdict::Refuse(Cause::NotAdmitted);
        check("mcp/request:tools/call:add", GATEWAY, Verdict::Admit);
        check("mcp/request:tools/call:add", "up", no);
        check("mcp/proposal:*", GATEWAY, no);
    }
}
