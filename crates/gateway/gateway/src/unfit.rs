//! Calls whose arguments do not fit their tool: its input schema, at servers with
//! `validate = true`, or its message, at servers of proto-mcp.

use model::{Answer, Coding, Outcome, Payload, Refusal, RefusalCode, Request, Target};
use topic::End;
use upstream::Manifest;
use wire::mcp::{result, task::TaskWish};
use wire::proto::PayloadKind;

use crate::call::Call;

/// Why such a call or proposal is refused, in the audit log.
pub(crate) const WORD: &str = "unfit";

/// The end of a call whose arguments do not fit. `request` is the call as the server gets it, `own`
/// the server's own name of its tool if the caller spells it otherwise.
///
/// The tool itself answers, with an error that a model can read (MCP 2025-11-25, "Error Handling");
/// a caller that asked for a task gets none, unless its call was held: then its proposal is the
/// task, which ends with that answer. Clients of proto-mcp get a refusal from servers of proto-mcp,
/// as do all if the arguments are no message of the tool.
pub(crate) fn end(
    call: &Call,
    request: &Request,
    manifest: &Manifest,
    own: Option<&str>,
) -> Option<End<Answer>> {
    let named = request.target.as_ref().map(Target::as_str);
    let tool = own.or(named)?;
    let refusal = match request.payload.coding {
        Coding::Json => of(manifest, tool, request.payload.body_bytes())?,
        Coding::Proto => {
            let (_, message) = PayloadKind::split(&request.payload.bytes)?;
            manifest
                .check_message(tool, &message, call.checked_by())
                .err()?
        }
    };
    let between_peers = call.link.coding == Coding::Proto && manifest.coding == Coding::Proto;
    if between_peers {
        return Some(End::Failed(Box::new(refusal)));
    }
    Some(refused(call, refusal))
}

/// The end of a call whose arguments are refused for this reason.
pub(crate) fn refused(call: &Call, refusal: Refusal) -> End<Answer> {
    let was_held = call
        .delivered
        .get()
        .is_some_and(|delivered| delivered.proposal.is_some());
    let gets_no_task = call.wish == TaskWish::Asks && !was_held;
    if refusal.code != RefusalCode::SchemaViolation || gets_no_task {
        return End::Failed(Box::new(refusal));
    }
    let form = call.request.payload.form;
    let payload = Payload::body(form, result::words(&refusal.message, true, form));
    End::Answered {
        outcome: Outcome::Ok,
        answer: Answer {
            outcome: Outcome::Ok,
            payload,
        },
    }
}

/// The end of a call that passes an argument which its tool does not take from callers. Clients of
/// proto-mcp get a refusal.
pub(crate) fn passed(call: &Call, refusal: Refusal) -> End<Answer> {
    match call.link.coding {
        Coding::Proto => End::Failed(Box::new(refusal)),
        Coding::Json => refused(call, refusal),
    }
}

/// The refusal of arguments in JSON that do not fit.
pub(crate) fn of(manifest: &Manifest, tool: &str, params: &[u8]) -> Option<Refusal> {
    manifest.check(tool, json::at(params, &["arguments"])).err()
}
