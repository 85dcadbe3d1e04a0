//! Bodies and messages: one conversion for both, and bytes that are shared where nothing changes.

use bytes::Bytes;
use model::{Answer, Coding, Form, Outcome, Payload, Range, Request, Target};

use super::*;
use crate::rpc::{Id, Message};

const RESULT: &str = r#"{"content":[{"type":"resource_link","uri":"a:b","name":"n"}],"z":1.50}"#;
const ERROR: &str = r#"{"code":-32002,"message":"m","data":{"uri":"a:b"}}"#;

/// The message of a server with this result or error.
fn message(outcome: Outcome, body: &str) -> Message {
    let key = match outcome {
        Outcome::Ok => "result",
        Outcome::Error | Outcome::Refused | Outcome::Cancelled => "error",
    };
    let text = format!(r#"{{"jsonrpc":"2.0","id":"s-1","{key}":{body},"more":[1]}}"#);
    Message::read(text.into_bytes().into()).unwrap()
}

fn public(uri: &str) -> Option<String> {
    (uri == "a:b").then(|| "pub:a:b".to_owned())
}

/// The result or error of an answer as a caller gets it in an envelope.
fn enveloped(answer: &Answer, to: Form) -> (Vec<u8>, Option<i64>) {
    let encoded = encode_answer(answer, "tools/call", to, &Id::number(7), &public);
    let read = Message::read(encoded.frame).unwrap();
    assert_eq!(read.id(), Some(&Id::number(7)));
    let body = read.result().or(read.error()).unwrap();
    (body.to_vec(), encoded.error)
}

#[test]
fn a_converted_body_is_the_one_in_the_encoded_answer() {
    for (outcome, body) in [(Outcome::Ok, RESULT), (Outcome::Error, ERROR)] {
        for from in Form::ALL {
            let of_message = decode_answer(&message(outcome, body), *from);
            let payload = Payload::relayed(*from, body.to_owned());
            for answer in [of_message, Answer { outcome, payload }] {
                for to in Form::ALL {
                    let converted = convert_answer(&answer, "tools/call", *to, &public);
                    let (expected, code) = enveloped(&answer, *to);
                    assert_eq!(converted.payload.body_bytes(), expected, "{from:?} {to:?}");
                    assert_eq!((converted.outcome, converted.payload.form), (outcome, *to));
                    assert_eq!(code.is_some(), outcome == Outcome::Error);
                    // It is for its reader: nothing converts it once more.
                    assert_eq!(enveloped(&converted, *to).0, expected);
                }
            }
        }
    }
}

#[test]
fn what_the_gateway_wrote_for_its_reader_gets_an_envelope_and_no_more() {
    for form in Form::ALL {
        let answer = Answer {
            outcome: Outcome::Ok,
            payload: Payload::body(*form, RESULT),
        };
        for to in Form::ALL {
            assert_eq!(enveloped(&answer, *to).0, RESULT.as_bytes());
        }
    }
}

#[test]
fn a_body_that_stays_as_it_is_is_not_copied() {
    let message = message(Outcome::Ok, r#"{"content":[]}"#);
    let answer = decode_answer(&message, Form::Modern);
    let body = convert_answer(&answer, "tools/call", Form::Modern, &|_| None).payload;
    let place = message.body_span().unwrap();
    assert_eq!(body.bytes.as_ptr(), place.of(message.frame()).as_ptr());
}

#[test]
fn a_result_without_a_form_is_an_error_in_body_and_envelope() {
    let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
    let answer = decode_answer(&message(Outcome::Ok, asks), Form::Modern);
    let converted = convert_answer(&answer, "tools/call", Form::Legacy, &|_| None);
    assert_eq!(converted.outcome, Outcome::Error);
    let (enveloped, code) = enveloped(&answer, Form::Legacy);
    assert_eq!(
        (converted.payload.body_bytes(), code),
        (&*enveloped, Some(-32603))
    );
}

#[test]
fn an_error_without_an_id_gets_one() {
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#;
    let answer = decode_answer(&Message::read(text.into()).unwrap(), Form::Legacy);
    let (error, code) = enveloped(&answer, Form::Legacy);
    assert_eq!(
        (&*error, code),
        (&br#"{"code":-32700,"message":"m"}"#[..], Some(-32700))
    );
}

fn params(text: &str) -> Request {
    let text = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{text}}}"#);
    let message = Message::read(text.into_bytes().into()).unwrap();
    decode_request(&Params::read(&message).unwrap(), Form::Modern)
}

fn outgoing(form: Form, own: Option<&str>) -> OutgoingChanges<'_> {
    OutgoingChanges {
        form,
        number: 9,
        own,
        client_info: None,
        capabilities: b"{}",
        log_level: None,
        related_task: Some("t"),
        tasks: false,
        trace: None,
    }
}

#[test]
fn a_traced_request_has_the_given_context_and_no_baggage() {
    let traced = |request: &Request, traceparent, tracestate| {
        let out = OutgoingChanges {
            related_task: None,
            trace: Some(OutgoingTrace {
                traceparent,
                tracestate,
            }),
            ..outgoing(request.payload.form, None)
        };
        let encoded = encode_request(request, Coding::Json, &out).unwrap();
        String::from_utf8(encoded.frame.to_vec()).unwrap()
    };
    let written = params(
        r#"{"name":"a","_meta":{"traceparent":"old","tracestate":"s=1","baggage":"user=ann","own":1.50}}"#,
    );
    let meta = r#"{"traceparent":"new","tracestate":"s=2","own":1.50}"#;
    assert!(traced(&written, Some("new"), Some("s=2")).contains(meta));
    // The state of another trace is none of this one.
    let meta = r#"{"traceparent":"new","own":1.50}"#;
    assert!(traced(&written, Some("new"), None).contains(meta));
    let kept = r#"{"traceparent":"old","tracestate":"s=1","own":1.50}"#;
    assert!(traced(&written, None, None).contains(kept));
    let without = params(r#"{"name":"a"}"#);
    let added = r#""_meta":{"traceparent":"new"}"#;
    assert!(traced(&without, Some("new"), None).contains(added));
    assert!(!traced(&without, None, None).contains("_meta"));
    let both = r#""_meta":{"traceparent":"new","tracestate":"s=2"}"#;
    assert!(traced(&without, Some("new"), Some("s=2")).contains(both));
    let made = request_of("tools/call", Some(br#"{"name":"a"}"#), Form::Modern).unwrap();
    assert!(traced(&made, Some("new"), None).contains(added));
}

#[test]
fn a_request_made_of_params_is_the_one_that_a_message_gives() {
    for text in [
        r#"{"name":"a\u0062","arguments":{"n":1.50},"_meta":{"progressToken":"p"},"task":{}}"#,
        r#"{"name":"a"}"#,
    ] {
        let (read, made) = (
            params(text),
            request_of("tools/call", Some(text.as_bytes()), Form::Modern).unwrap(),
        );
        assert_eq!(
            (&made.target, &made.progress),
            (&read.target, &read.progress)
        );
        assert_eq!(made.payload.body_bytes(), read.payload.body_bytes());
        for to in Form::ALL {
            let encode =
                |request| encode_request(request, Coding::Json, &outgoing(*to, Some("own")));
            assert_eq!(encode(&made), encode(&read), "{to:?}");
        }
        assert_eq!(
            legacy_params(&made, Some("own")),
            legacy_params(&read, Some("own"))
        );
    }
    let none = request_of("ping", None, Form::Legacy).unwrap();
    assert_eq!((none.target, none.progress), (None, None));
    let by_uri = request_of("resources/read", Some(br#"{"uri":"a:b"}"#), Form::Legacy).unwrap();
    assert_eq!(by_uri.target, Some(Target::Uri("a:b".into())));
    assert!(request_of("tools/call", Some(b"{}"), Form::Legacy).is_err());
}

#[test]
fn an_encoded_request_says_its_coding() {
    let json = params(r#"{"name":"a"}"#);
    let out = outgoing(Form::Legacy, None);
    for server in [Coding::Json, Coding::Proto] {
        let encoded = encode_request(&json, server, &out).unwrap();
        assert_eq!(encoded.coding, Coding::Json, "{server:?}");
    }
    let field = Bytes::from_static(&[0x32, 3, 0x0A, 1, b'a']);
    let proto = Request {
        payload: Payload::proto(field, Range::new(3, 5).unwrap()),
        ..json
    };
    let encoded = encode_request(&proto, Coding::Proto, &out).unwrap();
    assert_eq!(
        (encoded.coding, &encoded.frame[..2]),
        (Coding::Proto, &[8, 9][..])
    );
    assert!(encode_request(&proto, Coding::Json, &out).is_err());
}

#[test]
fn a_request_marks_its_meta_also_if_the_key_is_escaped() {
    let marked = |text: &str| {
        let payload = params(text).payload;
        let meta = payload.marked_meta();
        meta.map(|meta| String::from_utf8(meta.to_vec()).unwrap())
    };
    let meta = r#"{"traceparent":"00-1"}"#;
    for key in ["_meta", r"\u005fmeta"] {
        let named = format!(r#"{{"name":"a","{key}":{meta}}}"#);
        assert_eq!(marked(&named).as_deref(), Some(meta), "{key}");
    }
    assert_eq!(marked(r#"{"name":"a","arguments":{"_meta":{}}}"#), None);
    assert_eq!(marked(r#"{"name":"a","_meta":null}"#), None);
}
