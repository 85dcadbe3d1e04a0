//! Requests that name a tool or a resource: read with their target in place, written for a server
//! that reads protobuf.

use bytes::{BufMut as _, Bytes, BytesMut};
use bytestring::ByteString;
use fields::{Field, Fields};
use model::{Coding, Method, Payload, Range, Request, Target};
use prost::encoding::{encode_varint, encoded_len_varint};

use super::envelope::{PayloadKind, Unreadable, message};

/// Keys of `CallToolRequest.metadata` that carry credentials, in lower case. They are for the
/// gateway and reach no server (proto-mcp v1.0, "Authentication").
const CREDENTIALS: [&str; 4] = ["authorization", "token", "proxy-authorization", "cookie"];

/// The field of the metadata in `CallToolRequest`.
const METADATA: u32 = 3;
/// The field of the name or URI in both messages.
const TARGET: u32 = 1;
/// The fields of the result in `CallToolResponse`.
const SUCCESS: u32 = 1;
const ERROR: u32 = 2;

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtoRequest {
    /// The request, without credentials.
    pub request: Request,
    /// The token in its metadata, under `authorization` (with or without `Bearer`) or `token`.
    pub token: Option<String>,
}

/// Reads the payload field of a `CallToolRequest` or `ReadResourceRequest`. `None` for any other.
///
/// # Errors
/// [`Unreadable`] if it is no such message, or names two targets.
pub fn read(kind: PayloadKind, field: &Bytes) -> Result<Option<ProtoRequest>, Unreadable> {
    let has_target = matches!(
        kind,
        PayloadKind::CallToolRequest | PayloadKind::ReadResourceRequest
    );
    if !has_target {
        return Ok(None);
    }
    let Some(method) = kind.method() else {
        return Ok(None);
    };
    let mut field = field.clone();
    let mut token = None;
    if kind == PayloadKind::CallToolRequest {
        let found = credentials(&field)?;
        token = found.token;
        field = found.rest.unwrap_or(field);
    }
    let message = content(&field)?;
    let mut target = ByteString::new();
    let mut mark = Range::default();
    for part in Fields::of(field.get(message.clone()).unwrap_or_default()) {
        let Field {
            number, at, place, ..
        } = part?;
        if number != TARGET {
            continue;
        }
        // Readers differ on which of two targets is meant.
        if !mark.is_empty() {
            return Err(Unreadable);
        }
        let place = place.ok_or(Unreadable)?;
        let (at, start, end) = (
            message.start + at,
            message.start + place.start,
            message.start + place.end,
        );
        target = ByteString::try_from(field.slice(start..end)).map_err(|_| Unreadable)?;
        mark = Range::new(at, end).ok_or(Unreadable)?;
    }
    let target = match kind {
        PayloadKind::ReadResourceRequest => Target::Uri(target),
        _ => Target::Tool(target),
    };
    let payload = Payload::proto(field, mark);
    let request = Request {
        method: Method::Known(method),
        target: Some(target),
        progress: None,
        payload,
    };
    Ok(Some(ProtoRequest { request, token }))
}

/// Writes a request as an `MCPMessage` of this id, with the server's own name or URI if the caller
/// wrote another. `None` if the payload is JSON, or has no target to replace.
#[must_use]
pub fn write(request: &Request, id: u64, own: Option<&str>) -> Option<Bytes> {
    let Payload {
        coding: Coding::Proto,
        bytes: field,
        marks,
        ..
    } = &request.payload
    else {
        return None;
    };
    let Some(own) = own else {
        return Some(message(id, field));
    };
    let (kind, body) = PayloadKind::split(field)?;
    let offset = field.len() - body.len();
    let place = marks.target.positions();
    let (before, after) = (field.get(offset..place.start)?, field.get(place.end..)?);
    let name = encoded_len_varint(own.len() as u64) + own.len();
    let mut written = BytesMut::with_capacity(field.len() + name + 4);
    kind.begin(before.len() + name + after.len(), &mut written);
    written.put_slice(before);
    encode_varint(own.len() as u64, &mut written);
    written.put_slice(own.as_bytes());
    written.put_slice(after);
    Some(message(id, &written))
}

/// The token that an entry of metadata is: under `authorization`, with or without `Bearer`, or
/// under `token`. `key` is in lower case.
#[must_use]
pub fn token_of<'e>(key: &str, value: &'e str) -> Option<&'e str> {
    matches!(key, "authorization" | "token").then(|| value.strip_prefix("Bearer ").unwrap_or(value))
}

/// Whether the payload field of a `CallToolResponse` says that the call failed: of result and error
/// the last one holds.
#[must_use]
pub fn failed(field: &Bytes) -> bool {
    let Some((PayloadKind::CallToolResponse, response)) = PayloadKind::split(field) else {
        return false;
    };
    let ends = Fields::of(&response).filter_map(|part| part.ok().map(|part| part.number));
    ends.filter(|number| [SUCCESS, ERROR].contains(number))
        .last()
        == Some(ERROR)
}

/// Range of the message in its payload field.
fn content(field: &[u8]) -> Result<std::ops::Range<usize>, Unreadable> {
    Fields::of(field)
        .next()
        .and_then(|read| read.ok()?.place)
        .ok_or(Unreadable)
}

/// The credentials in the metadata of a call.
struct Credentials {
    token: Option<String>,
    /// The payload field without them, if it had some.
    rest: Option<Bytes>,
}

fn credentials(field: &Bytes) -> Result<Credentials, Unreadable> {
    let within = content(field)?;
    let call = field.slice(within);
    let mut token = None;
    let mut kept = BytesMut::new();
    let mut start = 0;
    let mut found = false;
    for part in Fields::of(&call) {
        let Field {
            number,
            content,
            end,
            ..
        } = part?;
        let entry = if number == METADATA { content } else { None };
        match entry
            .map(entry_of)
            .transpose()?
            .filter(|(key, _)| CREDENTIALS.contains(&key.as_str()))
        {
            Some((key, value)) => {
                found = true;
                token = token_of(&key, value).map(str::to_owned).or(token);
            }
            None => kept.put_slice(call.get(start..end).unwrap_or_default()),
        }
        start = end;
    }
    Ok(Credentials {
        token,
        rest: found.then(|| PayloadKind::CallToolRequest.field(&kept)),
    })
}

/// Key, in lower case, and value of a map's entry. The last of two holds.
fn entry_of(entry: &[u8]) -> Result<(String, &str), Unreadable> {
    let (mut key, mut value) = (String::new(), "");
    for part in Fields::of(entry) {
        let Field {
            number, content, ..
        } = part?;
        let text = content.map(std::str::from_utf8).transpose();
        let text = text.map_err(|_| Unreadable)?.unwrap_or_default();
        match number {
            1 => key = text.to_ascii_lowercase(),
            2 => value = text,
            _ => {}
        }
    }
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use prost::Message as _;

    use super::*;
    use crate::proto::contract::{CallToolRequest, ReadResourceRequest};

    fn call(metadata: &[(&str, &str)]) -> CallToolRequest {
        let arguments = Some(prost_types::Any {
            type_url: "type.googleapis.com/a.B".into(),
            value: vec![8, 1],
        });
        let metadata: HashMap<_, _> = metadata
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        CallToolRequest {
            name: "web_search".into(),
            arguments,
            metadata,
        }
    }

    fn read_call(call: &CallToolRequest) -> ProtoRequest {
        read(
            PayloadKind::CallToolRequest,
            &PayloadKind::CallToolRequest.field_of(call),
        )
        .unwrap()
        .unwrap()
    }

    fn sent(message: &Bytes) -> CallToolRequest {
        let Some((_, body)) = PayloadKind::split(&message.slice(2..)) else {
            panic!("no payload")
        };
        CallToolRequest::decode(body).unwrap()
    }

    #[test]
    fn a_call_keeps_its_bytes_and_gets_the_servers_name() {
        let asked = call(&[("trace_id", "t")]);
        let named = read_call(&asked);
        assert_eq!(
            (
                named.request.target.as_ref().map(Target::as_str),
                named.token.as_deref()
            ),
            (Some("web_search"), None)
        );
        let same = write(&named.request, 7, None).unwrap();
        assert_eq!(
            same,
            message(7, &PayloadKind::CallToolRequest.field_of(&asked))
        );
        for own in [
            "s",
            "a name that is longer than the one which the caller wrote",
            &"x".repeat(300),
        ] {
            let expected = CallToolRequest {
                name: own.to_owned(),
                ..asked.clone()
            };
            assert_eq!(
                sent(&write(&named.request, 7, Some(own)).unwrap()),
                expected
            );
        }
    }

    #[test]
    fn credentials_reach_no_server() {
        for key in ["authorization", "Authorization", "token"] {
            let named = read_call(&call(&[
                (key, "Bearer abc"),
                ("trace_id", "t"),
                ("cookie", "c"),
            ]));
            assert_eq!(named.token.as_deref(), Some("abc"), "{key}");
            assert_eq!(
                sent(&write(&named.request, 7, None).unwrap()),
                call(&[("trace_id", "t")])
            );
        }
    }

    #[test]
    fn a_resource_is_named_by_its_uri() {
        let asked = ReadResourceRequest {
            uri: "file:///a".into(),
        };
        let kind = PayloadKind::ReadResourceRequest;
        let named = read(kind, &kind.field_of(&asked)).unwrap().unwrap();
        assert_eq!(named.request.target, Some(Target::Uri("file:///a".into())));
        let written = write(&named.request, 1, Some("file:///b")).unwrap();
        assert_eq!(
            written,
            message(
                1,
                &kind.field_of(&ReadResourceRequest {
                    uri: "file:///b".into()
                })
            )
        );
    }

    #[test]
    fn the_last_result_of_a_call_holds() {
        let of = |message: &[u8]| failed(&PayloadKind::CallToolResponse.field(message));
        let (success, error) = ([0x0A, 0], [0x12, 0]);
        assert!(of(&error) && of(&[success, error].concat()));
        assert!(!of(&[]) && !of(&success) && !of(&[error, success].concat()));
        assert!(!failed(&PayloadKind::ErrorResponse.field(&error)));
    }

    #[test]
    fn a_second_name_and_a_text_that_is_none_are_refused() {
        let twice = [call(&[]).encode_to_vec(), vec![0x0A, 1, b'x']].concat();
        for bad in [&twice[..], &[0x0A, 1, 0xFF], &[0x0A, 9, b'x'], &[0x08, 1]] {
            assert_eq!(
                read(
                    PayloadKind::CallToolRequest,
                    &PayloadKind::CallToolRequest.field(bad)
                ),
                Err(Unreadable),
                "{bad:x?}"
            );
        }
    }
}
