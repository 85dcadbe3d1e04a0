//! Approvals over the API, and the arguments that replace the proposed ones.

use serde_json::Value;

use super::outcome::{decided, ended};
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Approves with the body of an approval, and waits for the outcome if that is wanted.
pub(super) async fn approve(
    remote: &Remote,
    id: &str,
    body: String,
    wait: bool,
    output: Output,
) -> Result<Exit, Failure> {
    let answer = api::post(remote, &["proposals", id, "approve"], &[], body).await?;
    if wait {
        ended(remote, id, answer, output).await
    } else {
        decided(&answer, output)
    }
}

/// The replacement arguments of an option or an editor.
///
/// # Errors
/// When they are no JSON object, or one with duplicate members.
pub(super) fn arguments_given(text: &str) -> Result<String, Failure> {
    let object = serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
        && json::refuse_duplicates(text.as_bytes()).is_ok();
    if object {
        return Ok(text.to_owned());
    }
    let failure = Failure::bad_argument("the arguments must be a JSON object");
    Err(failure.hint(r#"for example '{"path":"/tmp/report"}'"#))
}
