//! Results of tools that the gateway itself writes.

use json::Object;
use model::Form;

/// The result of a tool in words.
#[must_use]
pub fn words(text: &str, is_error: bool, form: Form) -> Vec<u8> {
    tool_result(text, is_error, form, |_| {})
}

/// The result of a tool as a text, with more members.
pub fn tool_result(
    text: &str,
    is_error: bool,
    form: Form,
    more: impl FnOnce(&mut Object<'_>),
) -> Vec<u8> {
    json::object(|result| {
        result.array("content", |content| {
            content.object(|block| {
                block.text("type", "text").text("text", text);
            });
        });
        end(result, is_error, form);
        more(result);
    })
}

/// Writes the members that every result has.
pub(super) fn end(result: &mut Object<'_>, is_error: bool, form: Form) {
    result.bool("isError", is_error);
    match form {
        Form::Legacy => {}
        Form::Modern => {
            result.text("resultType", "complete");
        }
    }
}
