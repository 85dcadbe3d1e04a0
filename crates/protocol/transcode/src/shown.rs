//! Requests and answers of proto-mcp in JSON, for reviewers, the audit log, watchers and servers
//! that read JSON.
//!
//! Between a client and a server that both write protobuf the bytes pass as they are: nothing is
//! converted before one of these needs it.

use std::sync::OnceLock;

use model::{Answer, Coding, Form, Outcome, Payload, Refusal, RefusalCode, Request};
use schema::ToolSchema;
use wire::proto::PayloadKind;

use crate::{client, server};

/// View of a call of proto-mcp in JSON.
#[derive(Debug)]
pub struct JsonView {
    /// The messages of the tool that it calls.
    schema: Option<Box<ToolSchema>>,
    request: OnceLock<Result<Request, Refusal>>,
}

impl JsonView {
    /// `None` for a request that is JSON.
    #[must_use]
    pub fn of(request: &Request, schema: Option<Box<ToolSchema>>) -> Option<Box<Self>> {
        (request.payload.coding == Coding::Proto).then(|| {
            Box::new(Self {
                schema,
                request: OnceLock::new(),
            })
        })
    }

    /// The schema by which its client's door has checked the arguments.
    #[must_use]
    pub fn schema(&self) -> Option<&ToolSchema> {
        self.schema.as_deref()
    }

    /// The request with params in JSON.
    ///
    /// # Errors
    /// JSON has no such value.
    pub fn request(&self, request: &Request) -> Result<&Request, &Refusal> {
        self.request
            .get_or_init(|| to_json(request, self.schema.as_deref()))
            .as_ref()
    }

    /// An answer with its result or error in JSON; the same if that cannot be made.
    #[must_use]
    pub fn answer(&self, answer: &Answer) -> Answer {
        let shown = match answer.payload.coding {
            Coding::Proto => server::answer(&answer.payload.bytes, self.schema.as_deref()),
            Coding::Json => None,
        };
        let Some(shown) = shown else {
            return answer.clone();
        };
        let (outcome, body) = match shown {
            Ok(result) => (Outcome::Ok, result),
            Err(error) => (Outcome::Error, error.to_json()),
        };
        Answer {
            outcome,
            payload: Payload::body(Form::Legacy, body.to_string()),
        }
    }
}

fn to_json(request: &Request, schema: Option<&ToolSchema>) -> Result<Request, Refusal> {
    let none = || Refusal::new(RefusalCode::Malformed, "the message cannot be read");
    let (kind, message) = PayloadKind::split(&request.payload.bytes).ok_or_else(none)?;
    let params = match (kind, schema) {
        (PayloadKind::CallToolRequest, Some(schema)) => client::call_params(&message, schema)?,
        (PayloadKind::CallToolRequest, None) => client::open_params(&message)?,
        _ => client::read_params(&message)?,
    };
    Ok(Request {
        payload: Payload::body(Form::Legacy, params),
        ..request.clone()
    })
}
