use model::Request;

use super::*;

fn request(method: &'static str, params: &str) -> Request {
    let raw = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    let message = Message::read(Bytes::from(raw)).unwrap();
    relay::decode_request(&Params::read(&message).unwrap(), Form::Legacy)
}

fn text(raw: impl AsRef<[u8]>) -> String {
    String::from_utf8(raw.as_ref().to_vec()).unwrap()
}

#[test]
fn a_question_keeps_all_but_the_members_of_its_era() {
    for (method, params, expected) in [
        (
            "elicitation/create",
            r#"{"message":"a\u0062", "requestedSchema":{"type":"object","x":1.0},"task":{"ttl":1}}"#,
            r#"{"method":"elicitation/create","params":{"message":"a\u0062", "requestedSchema":{"type":"object","x":1.0}}}"#,
        ),
        (
            "elicitation/create",
            r#"{"mode":"url","url":"https://a","elicitationId":"e","_meta":{"progressToken":1,"vendor":2}}"#,
            r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://a","_meta":{"vendor":2}}}"#,
        ),
        (
            "roots/list",
            r#"{"_meta":{"progressToken":1}}"#,
            r#"{"method":"roots/list","params":{}}"#,
        ),
    ] {
        assert_eq!(
            text(question(&request(method, params), &|_| None).unwrap()),
            expected
        );
    }
    let bare = Request {
        payload: Payload::body(Form::Legacy, ""),
        ..request("roots/list", "{}")
    };
    assert_eq!(
        text(question(&bare, &|_| None).unwrap()),
        r#"{"method":"roots/list"}"#
    );
}

#[test]
fn questions_and_state_are_one_result() {
    let asked = required(
        &[("7".into(), b"{\"method\":\"roots/list\"}".to_vec())],
        "s",
    );
    let expected = r#"{"resultType":"input_required","inputRequests":{"7":{"method":"roots/list"}},"requestState":"s"}"#;
    assert_eq!(text(asked), expected);
    assert_eq!(
        text(required(&[], "s")),
        r#"{"resultType":"input_required","requestState":"s"}"#
    );
}

#[test]
fn answers_are_objects_under_their_keys() {
    let read = |params: &str| {
        let all = responses(&request("tools/call", params))?;
        Some(
            all.into_iter()
                .map(|(key, answer)| (key, text(answer.payload.bytes)))
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(read(r#"{"name":"a"}"#), Some(Vec::new()));
    let answer = r#"{"action":"accept", "content":{"n":1.0}}"#;
    let given = read(&format!(
        r#"{{"name":"a","inputResponses":{{"7":{answer}}}}}"#
    ));
    assert_eq!(given, Some(vec![("7".to_owned(), answer.to_owned())]));
    for wrong in ["[]", "1", r#"{"7":1}"#, r#"{"7":{},"7":{}}"#] {
        assert_eq!(
            read(&format!(r#"{{"name":"a","inputResponses":{wrong}}}"#)),
            None,
            "{wrong}"
        );
    }
}

#[test]
fn a_state_is_bound_to_method_and_params() {
    let of = |method, params: &str| binding(&request(method, params)).unwrap();
    let first = of(
        "tools/call",
        r#"{"name":"a","arguments":{"x":1,"y":2},"_meta":{"progressToken":1}}"#,
    );
    for same in [
        r#"{"name":"a","arguments":{"y":2, "x":1},"inputResponses":{"7":{}},"requestState":"s"}"#,
        r#"{"arguments":{"x":1,"y":2},"name":"\u0061","_meta":{"io.modelcontextprotocol/logLevel":"info"}}"#,
    ] {
        assert_eq!(of("tools/call", same), first, "{same}");
    }
    for other in [
        r#"{"name":"b","arguments":{"x":1,"y":2}}"#,
        r#"{"name":"a","arguments":{"x":1.0,"y":2}}"#,
    ] {
        assert_ne!(of("tools/call", other), first, "{other}");
    }
    assert_ne!(
        of("prompts/get", r#"{"name":"a","arguments":{"x":1,"y":2}}"#),
        first
    );
    let bare = |params: &'static str| {
        let payload = Payload::body(Form::Modern, params);
        binding(&Request {
            payload,
            ..request("roots/list", "{}")
        })
    };
    assert_eq!(bare(""), bare("{}"), "absent params are empty ones");
}

#[test]
fn an_error_that_asks_for_urls_becomes_questions() {
    let answer = |error: &str| {
        let raw = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#);
        relay::decode_answer(&Message::read(Bytes::from(raw)).unwrap(), Form::Legacy)
    };
    let asked = of_url_error(&answer(
        r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://a","message":"x","elicitationId":"e"}]}}"#,
    ));
    let expected = r#"{"resultType":"input_required","inputRequests":{"0":{"method":"elicitation/create","params":{"mode":"url","url":"https://a","message":"x"}}}}"#;
    assert_eq!(text(asked.unwrap().payload.bytes), expected);
    for other in [
        r#"{"code":-32042,"message":"m"}"#,
        r#"{"code":-32042,"message":"m","data":{"elicitations":[]}}"#,
        r#"{"code":-32041,"message":"m","data":{"elicitations":[{}]}}"#,
    ] {
        assert_eq!(of_url_error(&answer(other)), None, "{other}");
    }
}

fn result(body: &str) -> Answer {
    let raw = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{body}}}"#);
    relay::decode_answer(&Message::read(Bytes::from(raw)).unwrap(), Form::Modern)
}

#[test]
fn a_result_that_asks_becomes_legacy_questions() {
    let asked = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url","url":"https://a"}}},"requestState":"s\u0041"}"#;
    let Required { questions, state } = read_required(&result(asked), || "e1".into())
        .unwrap()
        .unwrap();
    let shown = |(key, one): &(String, Request)| {
        format!(
            "{key} {} {}",
            one.method.as_str(),
            text(one.payload.body_bytes())
        )
    };
    let expected = [
        "a roots/list {}",
        r#"b elicitation/create {"mode":"url","url":"https://a","elicitationId":"e1"}"#,
    ];
    assert_eq!(questions.iter().map(shown).collect::<Vec<_>>(), expected);
    assert_eq!(text(state.unwrap()), r#""s\u0041""#);
    let alone = read_required(
        &result(r#"{"resultType":"input_required","requestState":"s"}"#),
        String::new,
    );
    assert!(alone.unwrap().unwrap().questions.is_empty());
    for other in [
        r#"{"resultType":"complete","content":[{"type":"text","text":"input_required"}]}"#,
        r#"{"content":[]}"#,
    ] {
        assert!(
            read_required(&result(other), String::new)
                .unwrap()
                .is_none(),
            "{other}"
        );
    }
    for unreadable in [
        r#"{"a":{}}"#,
        r#"{"a":{"method":"roots/list"},"b":[]}"#,
        "[]",
        "null",
    ] {
        let asks = format!(r#"{{"resultType":"input_required","inputRequests":{unreadable}}}"#);
        assert_eq!(
            read_required(&result(&asks), String::new).unwrap_err(),
            Unreadable,
            "{asks}"
        );
    }
}

#[test]
fn a_question_of_a_modern_task_is_one_of_2025_inside_the_task() {
    let task = br#"{"taskId":"t","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","url":"u","_meta":{"a":1}}}}}"#;
    let questions = of_task(task, "t", || "id".to_owned()).unwrap();
    let [(key, question)] = questions.as_slice() else {
        panic!("{questions:?}")
    };
    assert_eq!(
        (key.as_str(), question.method.as_str()),
        ("k", "elicitation/create")
    );
    let expected = r#"{"mode":"url","url":"u","_meta":{"a":1,"io.modelcontextprotocol/related-task":{"taskId":"t"}},"elicitationId":"id"}"#;
    assert_eq!(question.payload.body_bytes(), expected.as_bytes());
    assert_eq!(
        crate::mcp::task::related_to(&question.payload).unwrap().id,
        "t"
    );
    assert!(of_task(b"{}", "t", String::new).unwrap().is_empty());
    for wrong in [
        r#"{"inputRequests":[]}"#,
        r#"{"inputRequests":{"k":{}}}"#,
        r#"{"inputRequests":{"k":7}}"#,
    ] {
        assert!(
            of_task(wrong.as_bytes(), "t", String::new).is_none(),
            "{wrong}"
        );
    }
}

#[test]
fn a_retry_is_the_request_with_answers_and_state() {
    let sent = Bytes::from_static(
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"x":1.0},"_meta":{"progressToken":7}}}"#,
    );
    let answers = [(
        "k".to_owned(),
        Bytes::from_static(br#"{"action":"decline"}"#),
    )];
    let expected = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"a","arguments":{"x":1.0},"_meta":{"progressToken":8},"inputResponses":{"k":{"action":"decline"}},"requestState":"s"}}"#;
    assert_eq!(
        text(retry(&sent, 8, &answers, Some(br#""s""#)).unwrap()),
        expected
    );
    let bare = text(retry(&sent, 8, &[], None).unwrap());
    assert!(
        !bare.contains("inputResponses") && !bare.contains("requestState"),
        "{bare}"
    );
}

#[test]
fn only_what_a_client_declares_is_asked() {
    let modern = |legacy: &str| text(capabilities(legacy.as_bytes()));
    let all = r#"{"sampling":{"tools":{}},"elicitation":{"url":{}},"roots":{"listChanged":true},"tasks":{},"experimental":{}}"#;
    assert_eq!(
        modern(all),
        r#"{"sampling":{"tools":{}},"elicitation":{"url":{}},"roots":{}}"#
    );
    assert_eq!(modern("{}"), "{}");
    for (declared, method, params, may) in [
        (
            r#"{"elicitation":{}}"#,
            "elicitation/create",
            r#"{"message":"m"}"#,
            true,
        ),
        (
            r#"{"elicitation":{}}"#,
            "elicitation/create",
            r#"{"mode":"url"}"#,
            false,
        ),
        (
            r#"{"elicitation":{"url":{}}}"#,
            "elicitation/create",
            r#"{"mode":"url"}"#,
            true,
        ),
        (
            r#"{"elicitation":{"url":{}}}"#,
            "elicitation/create",
            r#"{"mode":"form"}"#,
            false,
        ),
        (
            r#"{"elicitation":{"form":{},"url":{}}}"#,
            "elicitation/create",
            r#"{"mode":"form"}"#,
            true,
        ),
        (r#"{"sampling":{}}"#, "sampling/createMessage", "{}", true),
        (r#"{"sampling":{}}"#, "roots/list", "{}", false),
        (r#"{"roots":{}}"#, "roots/list", "{}", true),
        (
            r#"{"roots":{},"tasks":{}}"#,
            "tasks/get",
            r#"{"taskId":"t"}"#,
            false,
        ),
    ] {
        assert_eq!(
            is_declared(declared.as_bytes(), &request(method, params)),
            may,
            "{declared} {method}"
        );
    }
}

#[test]
fn a_url_is_asked_for_as_each_era_has_it() {
    let asked = url_question("https://gw/connect/1", "open \"it\"");
    let expected = r#"{"method":"elicitation/create","params":{"mode":"url","message":"open \"it\"","url":"https://gw/connect/1"}}"#;
    assert_eq!(text(asked), expected);
    let error = url_error("1", "https://gw/connect/1", "open it");
    let expected = r#"{"code":-32042,"message":"open it","data":{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://gw/connect/1","message":"open it"}]}}"#;
    assert_eq!(
        (error.outcome, text(error.payload.body_bytes())),
        (Outcome::Error, expected.to_owned())
    );
    let done = url_completed("1");
    assert_eq!(
        (done.method.as_str(), text(done.payload.body_bytes())),
        (
            "notifications/elicitation/complete",
            r#"{"elicitationId":"1"}"#.to_owned()
        )
    );
}

#[test]
fn a_request_that_comes_back_can_be_made_as_it_was_first() {
    let first = request("tools/call", r#"{"name":"a","arguments":{"x":1.0}}"#);
    let again = request(
        "tools/call",
        r#"{"name":"a","inputResponses":{"c":{"action":"accept"}},"arguments":{"x":1.0},"requestState":"s"}"#,
    );
    assert_eq!(
        binding(&again).map(|digest| digest.to_string()),
        binding(&first).map(|digest| digest.to_string())
    );
    let anew = without_retry(&again).unwrap();
    let body = text(anew.payload.body_bytes());
    assert_eq!(body, r#"{"name":"a","arguments":{"x":1.0}}"#);
    assert_eq!((anew.target, anew.method), (first.target, first.method));
    for (answers, declined) in [
        (r#"{"c":{"action":"accept"}}"#, false),
        (r#"{"c":{"action":"decline"}}"#, true),
        (r#"{"c":{"action":"cancel"}}"#, true),
        (r#"{"c":{}}"#, false),
        ("{}", false),
    ] {
        let given = request(
            "tools/call",
            &format!(r#"{{"name":"a","inputResponses":{answers}}}"#),
        );
        assert_eq!(declines(&responses(&given).unwrap()), declined, "{answers}");
    }
}
