//! Refusals in proto-mcp: code, message, data, and the status of gRPC.

use bytes::Bytes;
use model::{Form, Refusal, Violation};
use prost::Message as _;
use prost_types::{Any, ListValue, Struct, Value, value};

use super::contract::ErrorResponse;
use super::{PayloadKind, code};
use crate::mcp::refusal;

/// A refusal as proto-mcp spells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spelled {
    /// The message.
    pub error: ErrorResponse,
    /// The status of gRPC.
    pub status: u8,
}

impl Spelled {
    /// The payload field of an `MCPMessage` with it.
    #[must_use]
    pub fn field(&self) -> Bytes {
        PayloadKind::ErrorResponse.field_of(&self.error)
    }

    /// A `google.rpc.Status` with it: the trailer `grpc-status-details-bin` of gRPC.
    #[must_use]
    pub fn details(&self) -> Bytes {
        let type_url = "type.googleapis.com/buf.mcp.v1.ErrorResponse".to_owned();
        let detail = Any {
            type_url,
            value: self.error.encode_to_vec(),
        };
        let (code, message) = (i32::from(self.status), self.error.message.clone());
        RpcStatus {
            code,
            message,
            details: vec![detail],
        }
        .encode_to_vec()
        .into()
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RpcStatus {
    /// The code.
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    /// Why, for people.
    #[prost(string, tag = "2")]
    pub(super) message: String,
    /// Why, for programs.
    #[prost(message, repeated, tag = "3")]
    pub(super) details: Vec<Any>,
}

/// Spells the refusal of a request of this method. Codes are MCP's, but for those that proto-mcp
/// defines (proto-mcp v1.0, "Error Codes").
#[must_use]
pub fn spell(refused: &Refusal, method: &str) -> Spelled {
    let number = code::own(refused.code)
        .unwrap_or_else(|| refusal::encode(refused, Form::Legacy, method, None).code);
    let mut data = vec![("code", text(refused.code.as_str()))];
    data.extend(refused.hint.as_deref().map(|hint| ("hint", text(hint))));
    #[allow(clippy::cast_precision_loss, reason = "a wait of some seconds")]
    data.extend(refused.retry_after_ms.map(|wait| {
        (
            "retryAfterMs",
            Value {
                kind: Some(value::Kind::NumberValue(wait as f64)),
            },
        )
    }));
    data.extend(refused.scope.as_deref().map(|scope| ("scope", text(scope))));
    if !refused.violations.is_empty() {
        let values = refused.violations.iter().map(violation).collect();
        data.push((
            "violations",
            Value {
                kind: Some(value::Kind::ListValue(ListValue { values })),
            },
        ));
    }
    let error = ErrorResponse {
        code: i32::try_from(number).unwrap_or(-32603),
        message: refused.to_string(),
        data: Some(object(data)),
    };
    Spelled {
        error,
        status: code::grpc_status(refused.code),
    }
}

fn violation(violation: &Violation) -> Value {
    let Violation {
        field,
        rule,
        message,
    } = violation;
    let fields = [
        ("field", text(field)),
        ("rule", text(rule)),
        ("message", text(message)),
    ];
    Value {
        kind: Some(value::Kind::StructValue(object(fields))),
    }
}

fn object(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Struct {
    Struct {
        fields: fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    }
}

fn text(text: &str) -> Value {
    Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use model::RefusalCode;

    use super::*;

    #[test]
    fn codes_and_statuses() {
        for (refused, code, status) in [
            (RefusalCode::UnknownTarget, -32602, 5),
            (RefusalCode::Malformed, -32602, 3),
            (RefusalCode::SchemaUnresolved, -33000, 9),
            (RefusalCode::SchemaViolation, -33001, 3),
            (RefusalCode::UnsupportedProtocol, -33002, 9),
            (RefusalCode::UpstreamTimeout, -33003, 4),
            (RefusalCode::TooLarge, -32600, 8),
            (RefusalCode::Forbidden, -31009, 7),
            (RefusalCode::Unauthenticated, -31008, 16),
            (RefusalCode::Internal, -32603, 13),
        ] {
            let spelled = spell(&Refusal::new(refused, "m"), "tools/call");
            assert_eq!(
                (spelled.error.code, spelled.status),
                (code, status),
                "{refused}"
            );
        }
    }

    #[test]
    fn violations_are_data() {
        let violations = vec![Violation {
            field: "q".into(),
            rule: "string.min_len".into(),
            message: "too short".into(),
        }];
        let refused = Refusal::new(RefusalCode::SchemaViolation, "the arguments break a rule")
            .violations(violations);
        let data = spell(&refused, "tools/call").error.data.unwrap();
        let Some(value::Kind::ListValue(list)) = &data.fields["violations"].kind else {
            panic!("{data:?}")
        };
        let Some(value::Kind::StructValue(one)) = &list.values[0].kind else {
            panic!("{data:?}")
        };
        assert_eq!(one.fields["rule"], text("string.min_len"));
    }
}
