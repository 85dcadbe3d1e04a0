//! Errors of servers as JSON-RPC errors and failed results (proto-mcp v1.0, "Error Handling").

use std::collections::HashMap;

use serde_json::{Map, Value as Json};
use wire::proto::code;
use wire::proto::contract::{Error, ErrorResponse};
use wire::rpc;

use super::value::of_struct;

/// An error of a server, before or while the tool ran.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerError {
    /// Its code; that of an internal error if the server gave none.
    pub code: i64,
    /// Its words.
    pub message: String,
    /// Its data.
    pub data: Option<Json>,
}

impl From<ErrorResponse> for ServerError {
    fn from(error: ErrorResponse) -> Self {
        let data = error
            .data
            .filter(|data| !data.fields.is_empty())
            .map(|data| Json::Object(of_struct(data)));
        Self {
            code: known(error.code),
            message: error.message,
            data,
        }
    }
}

impl From<Error> for ServerError {
    fn from(error: Error) -> Self {
        let data = Some(error.data)
            .filter(|data| !data.is_empty())
            .map(of_texts);
        Self {
            code: known(error.code),
            message: error.message,
            data,
        }
    }
}

impl ServerError {
    /// The error as a member `error` of JSON-RPC.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.code.into());
        error.insert("message".to_owned(), self.message.clone().into());
        error.extend(self.data.clone().map(|data| ("data".to_owned(), data)));
        Json::Object(error)
    }

    /// Whether the tool ran and failed: the caller's model may read why. Anything else the caller's
    /// program is to blame for.
    pub(super) fn is_of_tool(&self) -> bool {
        matches!(self.code, rpc::code::INTERNAL_ERROR | code::TIMEOUT)
    }
}

/// The default value of the field is no code.
fn known(code: i32) -> i64 {
    if code == 0 {
        rpc::code::INTERNAL_ERROR
    } else {
        code.into()
    }
}

/// Texts by key; what is JSON but no text was encoded.
pub(super) fn of_texts(texts: HashMap<String, String>) -> Json {
    Json::Object(
        texts
            .into_iter()
            .map(|(key, text)| (key, of_text(text)))
            .collect(),
    )
}

fn of_text(text: String) -> Json {
    match serde_json::from_str(&text) {
        Ok(json @ (Json::Object(_) | Json::Array(_))) => json,
        _ => Json::String(text),
    }
}
