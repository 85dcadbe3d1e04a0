use crate::rpc::Message;
use bytes::Bytes;
use json::strategies::value;
use proptest::prelude::*;

use super::*;

fn map(uri: &str) -> Option<String> {
    uri.starts_with("file:")
        .then(|| format!("portmoot+b:{uri}"))
}

/// The message with all its URIs mapped.
fn rewrite(
    message: &Message,
    method: &str,
    map: &dyn Fn(&str) -> Option<String>,
) -> Result<Bytes, JsonError> {
    let mut splice = Splice::new();
    map_uris(
        (message.frame(), message.body_span().unwrap()),
        method,
        map,
        &mut splice,
    )?;
    Ok(message.edited(&splice))
}

fn rewritten(method: &str, frame: &str) -> String {
    let message = Message::read(Bytes::copy_from_slice(frame.as_bytes())).unwrap();
    String::from_utf8(rewrite(&message, method, &map).unwrap().to_vec()).unwrap()
}

fn check(method: &str, result: &str, expect: &str) {
    let frame = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    assert_eq!(rewritten(method, &frame(result)), frame(expect));
}

#[test]
fn uris_are_found_where_the_protocol_puts_them() {
    check(
        "resources/read",
        r#"{"contents":[{"uri":"file:a","n":-0.0},{"\u0075ri":"file:b"},{"uri":"http:c"}]}"#,
        r#"{"contents":[{"uri":"portmoot+b:file:a","n":-0.0},{"\u0075ri":"portmoot+b:file:b"},{"uri":"http:c"}]}"#,
    );
    check(
        "tools/call",
        r#"{"content":[{"type":"resource_link","uri":"file:a"},{"type":"resource","resource":{"uri":"file:b"}},{"type":"text","text":"\"uri\":\"file:c\"","uri":"file:d"}],"structuredContent":{"uri":"file:e"},"_meta":{"ui":{"resourceUri":"file:f"},"uri":"file:g"}}"#,
        r#"{"content":[{"type":"resource_link","uri":"portmoot+b:file:a"},{"type":"resource","resource":{"uri":"portmoot+b:file:b"}},{"type":"text","text":"\"uri\":\"file:c\"","uri":"file:d"}],"structuredContent":{"uri":"file:e"},"_meta":{"ui":{"resourceUri":"portmoot+b:file:f"},"uri":"file:g"}}"#,
    );
    check(
        "prompts/get",
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"file:a"}}}]}"#,
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"portmoot+b:file:a"}}}]}"#,
    );
}

#[test]
fn uris_of_skills_and_directories_are_found() {
    check(
        "skills/get",
        r#"{"skill":{"uri":"file:a/SKILL.md","frontmatter":{"uri":"file:x"},"resources":[{"uri":"file:a/SKILL.md","size":1},{"uri":"http:c"}]}}"#,
        r#"{"skill":{"uri":"portmoot+b:file:a/SKILL.md","frontmatter":{"uri":"file:x"},"resources":[{"uri":"portmoot+b:file:a/SKILL.md","size":1},{"uri":"http:c"}]}}"#,
    );
    check(
        "skills/get",
        r#"{"skill":{"uri":"file:a","resources":"dynamic"}}"#,
        r#"{"skill":{"uri":"portmoot+b:file:a","resources":"dynamic"}}"#,
    );
    check(
        "resources/directory/read",
        r#"{"resources":[{"uri":"file:a","mimeType":"inode/directory"}],"nextCursor":"file:n"}"#,
        r#"{"resources":[{"uri":"portmoot+b:file:a","mimeType":"inode/directory"}],"nextCursor":"file:n"}"#,
    );
    // The URI of a listed skill is its key, which the renderer of the list spells.
    let item =
        Bytes::from_static(br#"{"uri":"file:a","frontmatter":{},"resources":[{"uri":"file:a"}]}"#);
    let rewritten = rewrite_item(ListKind::Skills, &item, &map).unwrap();
    assert_eq!(
        rewritten,
        r#"{"uri":"file:a","frontmatter":{},"resources":[{"uri":"portmoot+b:file:a"}]}"#
    );
}

#[test]
fn server_messages_and_items() {
    let updated =
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:a"}}"#;
    assert_eq!(
        rewritten("notifications/resources/updated", updated),
        updated.replace("file:", "portmoot+b:file:")
    );
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[{"content":[{"type":"tool_result","content":[{"type":"resource_link","uri":"file:a"}]}]}]}}"#;
    assert_eq!(
        rewritten("sampling/createMessage", ask),
        ask.replace("file:", "portmoot+b:file:")
    );
    let tool =
        Bytes::from_static(br#"{"name":"t","_meta":{"ui/resourceUri":"file:a"},"uri":"file:b"}"#);
    let out = rewrite_item(ListKind::Tools, &tool, &map).unwrap();
    assert_eq!(
        out,
        r#"{"name":"t","_meta":{"ui/resourceUri":"portmoot+b:file:a"},"uri":"file:b"}"#
    );
}

#[test]
fn nothing_changes_without_a_copy() {
    let frame =
        Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"http:c"}]}}"#);
    let message = Message::read(frame.clone()).unwrap();
    assert_eq!(
        rewrite(&message, "resources/read", &map).unwrap().as_ptr(),
        frame.as_ptr()
    );
}

#[test]
fn a_uri_given_twice_is_refused() {
    let frame =
        r#"{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"file:a","uri":"file:b"}]}}"#;
    let message = Message::read(Bytes::from(frame)).unwrap();
    assert_eq!(
        rewrite(&message, "resources/read", &map),
        Err(JsonError::Duplicate("uri".into()))
    );
}

proptest! {
    #[test]
    fn all_else_survives(x in value(), y in value()) {
        let result = format!(r#"{{"a":{x},"content":[{{"type":"resource_link","uri":"file:a","b":{y}}},{x}],"structuredContent":{y}}}"#);
        check("tools/call", &result, &result.replace("file:a", "portmoot+b:file:a"));
    }

    #[test]
    fn never_panics(result in "[\\[\\]{}\":,contentyuri_]{0,60}", method in "(tools/call|prompts/get|resources/read)") {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        if let Ok(message) = Message::read(Bytes::from(frame)) {
            let _ = rewrite(&message, &method, &map);
        }
    }
}
