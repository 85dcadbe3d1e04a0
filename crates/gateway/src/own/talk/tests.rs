use super::*;

fn said(from: &str, to: &[&str], kind: &str, payload: &str) -> Bytes {
    let (id, ts, correlation_id) = ("1", None, None);
    mcpx::envelope(&Draft { id, ts, from, to, kind, correlation_id, payload: payload.as_bytes() })
}

fn since(envelopes: Vec<Bytes>) -> RecentPage {
    let except = ParticipantId::new("cyd").ok();
    let kept = |envelope| RecentMessage { envelope, except: except.clone() };
    let messages = envelopes.into_iter().map(kept).collect();
    RecentPage { first: Cursor { epoch: 7, offset: 3 }, gap: false, messages }
}

fn hear(me: &str, pattern: Option<&str>, limit: usize, envelopes: Vec<Bytes>) -> (Vec<String>, u64, bool) {
    let pattern = pattern.map(|pattern| Capability::parse(pattern).unwrap());
    let hearer = Hearer { me, pattern: pattern.as_ref(), limit };
    let (heard, next, more) = hearer.hear(&since(envelopes));
    let texts = heard.into_iter().map(|one| match (one.payload, one.cut) {
        (Some(payload), None) => payload.get().to_owned(),
        (None, Some(cut)) => format!("{} of {}", cut.begins.len(), cut.bytes),
        other => panic!("{:?}", other.0),
    });
    (texts.collect(), next.offset, more)
}

#[test]
fn everybody_reads_its_part() {
    let all = || {
        vec![
            said("ann", &[], "chat", "{\"n\":1}"),
            said("ann", &["bob"], "chat", "{\"n\":2}"),
            said("bob", &["cid", "ann"], "acme/x", "{\"n\":3}"),
            said("cid", &["cid"], "mcp/proposal:tools/call:x", "{\"n\":4}"),
        ]
    };
    let texts = |numbers: &[u8]| numbers.iter().map(|n| format!("{{\"n\":{n}}}")).collect::<Vec<_>>();
    assert_eq!(hear("ann", None, 9, all()), (texts(&[1, 2, 3]), 7, false));
    assert_eq!(hear("bob", None, 9, all()), (texts(&[1, 2, 3]), 7, false));
    assert_eq!(hear("cid", None, 9, all()), (texts(&[1, 3, 4]), 7, false));
    assert_eq!(hear("dan", None, 9, all()), (texts(&[1]), 7, false));
    assert_eq!(hear("cyd", None, 9, all()), (vec![], 7, false), "it is asked another way");
    assert_eq!(hear("cid", Some("acme/*"), 9, all()), (texts(&[3]), 7, false));
    // The place is behind the last that was looked at, heard or not.
    assert_eq!(hear("ann", None, 1, all()), (texts(&[1]), 4, true));
    assert_eq!(hear("dan", None, 1, all()), (texts(&[1]), 7, false));
}

#[test]
fn an_answer_is_bounded() {
    let long = |len: usize| said("ann", &[], "chat", &format!("{{\"t\":\"{}\"}}", "x".repeat(len - 8)));
    let (texts, next, more) =
        hear("bob", None, 9, vec![long(PAYLOAD_BYTES_MAX), long(PAYLOAD_BYTES_MAX + 1)]);
    assert_eq!((texts[0].len(), next, more), (PAYLOAD_BYTES_MAX, 5, false));
    assert_eq!(texts[1], format!("{PAYLOAD_BYTES_MAX} of {}", PAYLOAD_BYTES_MAX + 1));
    let fits = ANSWER_BYTES_MAX / PAYLOAD_BYTES_MAX;
    let many = vec![long(PAYLOAD_BYTES_MAX); fits + 1];
    let (texts, next, more) = hear("bob", None, 9, many);
    assert_eq!((texts.len(), next, more), (fits, 3 + fits as u64, true));
}

#[test]
fn nothing_in_a_message_is_hidden() {
    let (texts, ..) = hear("bob", None, 9, vec![said("ann", &[], "chat", r#"{"t":"a\u202eb"}"#)]);
    assert_eq!(texts, [r#"{"t":"a\\u{202e}b"}"#]);
}
