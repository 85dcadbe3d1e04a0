//! Definitions of tools as they were written: one that was read and written again may be another
//! one.

use json::{JsonError, Span};
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::CallError;
use crate::handle::Participant;

/// Pages of a list of tools that are read to find a definition.
pub const LIST_PAGES_MAX: usize = 100;

impl Participant {
    /// The definition of a tool, as the participant that runs it lists it now and as it was written
    /// there; `None` if it lists no such tool. Reads all pages of the list.
    ///
    /// # Errors
    /// [`CallError::BadList`] if the list has more than [`LIST_PAGES_MAX`] pages, has the tool
    /// twice, or cannot be read in one way only; else as [`Participant::request`].
    pub async fn definition(
        &self,
        to: &str,
        tool: &str,
    ) -> Result<Option<Box<RawValue>>, CallError> {
        let mut found = Vec::new();
        let mut params = json!({});
        for _ in 0..LIST_PAGES_MAX {
            let page = self.request(to, "tools/list", &params).await?;
            let ToolPage { tools, next } = ToolPage::of(page.get(), tool).map_err(bad)?;
            found.extend(tools);
            match (next, found.len()) {
                (_, 2..) => return Err(CallError::BadList("it has the tool twice".to_owned())),
                (None, _) => return found.pop().map(read).transpose(),
                (Some(cursor), _) => params = json!({ "cursor": cursor }),
            }
        }
        let why = format!("it has more than {LIST_PAGES_MAX} pages");
        Err(CallError::BadList(why))
    }
}

/// The part of a page of a list that is about one tool.
#[derive(Debug, PartialEq, Eq)]
struct ToolPage {
    /// The definitions of that name, as they were written.
    tools: Vec<String>,
    /// The cursor of the next page.
    next: Option<String>,
}

impl ToolPage {
    fn of(page: &str, tool: &str) -> Result<Self, JsonError> {
        let frame = page.as_bytes();
        let members = json::members(frame, Span::all(frame))?;
        let missing = JsonError::NotAnArray;
        let tools = members.get("tools").ok_or(missing)?.span;
        let mut found = Vec::new();
        for span in json::elements(frame, tools)? {
            let written = span.of(frame);
            let name = json::at(written, &["name"]).and_then(json::text);
            if name.is_some_and(|name| name == tool) {
                found.push(String::from_utf8_lossy(written).into_owned());
            }
        }
        let next = members.get("nextCursor");
        let next = next.filter(|cursor| cursor.raw != b"null");
        Ok(Self {
            tools: found,
            next: next
                .map(|cursor| cursor.text().ok_or(JsonError::NotAnObject))
                .transpose()?
                .map(|cursor| cursor.into_owned()),
        })
    }
}

fn bad(why: JsonError) -> CallError {
    CallError::BadList(json::visible::line(&why.to_string()))
}

fn read(definition: String) -> Result<Box<RawValue>, CallError> {
    RawValue::from_string(definition).map_err(|why| CallError::BadList(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_stays_as_it_was_written() {
        let page =
            r#"{"tools":[{"name":"add"},{"name" : "\u0065cho","x":1.0},7],"nextCursor":"2"}"#;
        let read = ToolPage::of(page, "echo").unwrap();
        assert_eq!(read.tools, [r#"{"name" : "\u0065cho","x":1.0}"#]);
        assert_eq!(read.next.as_deref(), Some("2"));
        let last = ToolPage::of(r#"{"tools":[],"nextCursor":null}"#, "echo").unwrap();
        assert_eq!((last.tools.len(), last.next), (0, None));
    }

    #[test]
    fn a_list_that_readers_read_differently_is_none() {
        for page in [
            "{}",
            "[]",
            r#"{"tools":{}}"#,
            r#"{"tools":[],"tools":[{"name":"echo"}]}"#,
            r#"{"tools":[],"nextCursor":7}"#,
        ] {
            assert!(ToolPage::of(page, "echo").is_err(), "{page}");
        }
    }
}
