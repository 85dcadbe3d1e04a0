//! Mirrored calls of MCP clients without their payloads: consistent with their kinds, and not
//! executable.

use bytes::Bytes;
use json::Object;

use crate::mcp::method::{TargetKind, lookup};
use crate::rpc::{self, Id};

/// The key of `_meta` with the verdict on a call whose payload is not shown.
pub(crate) const VERDICT: &str = "portmoot/verdict";
/// The error code in place of one that is not shown (JSON-RPC: reserved for servers).
const NOT_SHOWN: i64 = -32000;
/// The text in place of a required one that is not shown.
const HIDDEN: &str = "not shown";

/// A request without its params, except the target, which its kind names anyway. It has no id, so
/// that no participant can answer it, and names method and target, so that a receiver that compares
/// them with the kind finds them equal (MCPx v0.1, 4.3).
#[must_use]
pub fn request(method: &str, target: Option<&str>, verdict: &str) -> Bytes {
    let params = json::object(|params| {
        write_target(params, method, target.unwrap_or(HIDDEN));
        params.object("_meta", |keys| {
            keys.text(VERDICT, verdict);
        });
    });
    rpc::notification(method, Some(&params))
}

/// An answer without its result or error.
#[must_use]
pub fn response(is_result: bool, verdict: &str) -> Bytes {
    let id = Id::number(1);
    let body = json::object(|body| {
        body.object("_meta", |keys| {
            keys.text(VERDICT, verdict);
        });
    });
    if is_result {
        rpc::result(&id, &body)
    } else {
        rpc::error(Some(&id), NOT_SHOWN, HIDDEN, Some(&body))
    }
}

/// Adds the member of the params that names the target of this method.
fn write_target(params: &mut Object<'_>, method: &str, target: &str) {
    let Some(method) = lookup(method) else { return };
    if let Some(key) = method.target.key() {
        params.text(key, target);
    } else if method.target == TargetKind::Ref {
        // The kind does not tell prompts from templates either.
        params.object("ref", |place| {
            place.text("type", "ref/prompt").text("name", target);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcpx::check::{Act, strict};
    use crate::mcpx::{Head, kind_of};

    #[test]
    fn a_mirrored_call_agrees_with_its_kind_and_expects_no_answer() {
        for (method, target) in [
            ("tools/call", Some("e\"cho")),
            ("prompts/get", Some("greet")),
            ("resources/read", Some("file:///a b")),
            ("resources/subscribe", Some("file:///a")),
            ("completion/complete", Some("greet")),
            ("skills/get", Some("skill://x")),
            ("tasks/get", None),
            ("tools/call", None),
            ("resources/read", None),
            ("completion/complete", None),
            ("vendor/thing", None),
        ] {
            let kind = kind_of(Head::Request, method, target).unwrap();
            let shown = request(method, target, "admitted");
            let Ok(Act::Request(call)) = strict(&kind, shown.clone()) else {
                panic!("{kind}: {shown:?}")
            };
            assert!(call.is_notification(), "{shown:?}");
            assert_eq!(call.method(), method, "{shown:?}");
            assert!(target.is_none() || call.target() == target, "{shown:?}");
            let kind = kind_of(Head::Response, method, target).unwrap();
            for is_result in [true, false] {
                let shown = response(is_result, "ok");
                let Ok(Act::Answer(message)) = strict(&kind, shown) else {
                    panic!("{kind}")
                };
                assert_eq!(message.error_object().is_none(), is_result);
            }
        }
    }

    #[test]
    fn a_mirrored_call_contains_only_target_and_verdict() {
        let shown = request("tools/call", Some("echo"), "admitted");
        let expected = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","_meta":{"portmoot/verdict":"admitted"}}}"#;
        assert_eq!(shown, expected);
        let shown = response(true, "ok");
        assert_eq!(
            shown,
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"portmoot/verdict":"ok"}}}"#
        );
        let shown = response(false, "refused");
        let expected = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not shown","data":{"_meta":{"portmoot/verdict":"refused"}}}}"#;
        assert_eq!(shown, expected);
    }
}
