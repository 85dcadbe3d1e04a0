//! Calls whose arguments do not fit the input schema of their tool, at servers with `validate = true`.

use model::{Answer, Outcome, Payload, Refusal, RefusalCode, Request, Target};
use topic::End;
use upstream::Manifest;
use wire::mcp::{result, task::TaskWish};

use crate::call::Call;

/// Why such a call or proposal is refused, in the audit log.
pub(crate) const WORD: &str = "unfit";
const WHY: &str = "the arguments do not fit the input schema of the tool, so it was not called";

/// The end of a call whose arguments do not fit. `request` is the call in JSON, as the server gets it, `own` the server's own name of
/// its tool if the caller spells it otherwise.
///
/// The tool itself answers, with an error that a model can read (MCP 2025-11-25, "Error Handling"); a caller that asked for a task gets
/// none.
pub(crate) fn end(
    call: &Call,
    request: &Request,
    manifest: &Manifest,
    own: Option<&str>,
) -> Option<End<Answer>> {
    let named = request.target.as_ref().map(Target::as_str);
    let why = of(manifest, own.or(named)?, request.payload.body_bytes())?;
    Some(match call.wish {
        TaskWish::Asks => End::Failed(Box::new(Refusal::new(RefusalCode::SchemaViolation, why))),
        TaskWish::None | TaskWish::Declares => {
            let form = call.request.payload.form;
            let payload = Payload::body(form, result::words(&why, true, form));
            End::Answered { outcome: Outcome::Ok, answer: Answer { outcome: Outcome::Ok, payload } }
        }
    })
}

/// What does not fit, in words for the caller: each violation on a line of its own.
pub(crate) fn of(manifest: &Manifest, tool: &str, params: &[u8]) -> Option<String> {
    let violations = manifest.check(tool, json::at(params, &["arguments"])).err()?;
    Some(format!("{WHY}:\n{violations}"))
}
