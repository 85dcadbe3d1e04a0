//! Tests of the proxy tool on bytes.

use model::{Answer, Form, ListKind, Outcome, Payload};

use super::answer::called;
use super::query::tags_of;
use super::*;

fn ask(arguments: &str) -> ProxyRequest {
    ProxyRequest::read(arguments.as_bytes()).unwrap_or_else(|why| panic!("{arguments}: {why}"))
}

fn call(subject: ProxySubject, path: &str, args: Option<&str>) -> ProxyCall {
    ProxyCall {
        subject,
        path: path.to_owned(),
        args: args.map(Into::into),
    }
}

#[test]
fn arguments_are_an_object_or_a_string_of_one() {
    let check = |args: &str, expected: Option<&str>| {
        let asked = ask(&format!(
            r#"{{"action":"call","type":"tool","path":"a\u005fb","args":{args}}}"#
        ));
        assert_eq!(
            asked,
            ProxyRequest::Call(call(ProxySubject::Tool, "a_b", expected)),
            "{args}"
        );
    };
    check(
        r#"{ "n": 1.0, "z": "\u00fc" }"#,
        Some(r#"{ "n": 1.0, "z": "\u00fc" }"#),
    );
    check(r#""{\"n\": 1e3}""#, Some(r#"{"n": 1e3}"#));
    check("{}", Some("{}"));
    check("null", None);
    assert_eq!(
        ask(r#"{"action":"info","type":"prompt","path":"p","args":{ },"limit":null}"#),
        ProxyRequest::Look(ReadOperation::Info {
            subject: ProxySubject::Prompt,
            path: "p".to_owned()
        })
    );
}

#[test]
fn lists_have_pages_and_filters() {
    let page = |offset, limit| ProxyPage { offset, limit };
    let list = |filter, page| {
        ProxyRequest::Look(ReadOperation::List(ProxyList {
            subject: ProxySubject::Resource,
            filter,
            page,
        }))
    };
    assert_eq!(
        ask(r#"{"action":"list","type":"resource"}"#),
        list(Filter::default(), page(0, LIST_MAX))
    );
    let filter = Filter {
        server: Some("up".to_owned()),
        prefix: Some("calc".to_owned()),
        tags: vec!["a".to_owned(), "b".to_owned()],
    };
    assert_eq!(
        ask(
            r#"{"action":"list","type":"resource","limit":1000,"offset":7,"filter_server":"up",
            "filter":{"prefix":"calc","tags":["a","b"]}}"#
        ),
        list(filter, page(7, 1000))
    );
}

/// Section 2.3 and 5.1.
#[test]
fn wrong_parameters_are_refused_in_clear_words() {
    let check = |arguments: &str, parts: &[&str]| {
        let why = ProxyRequest::read(arguments.as_bytes()).unwrap_err();
        assert!(
            parts.iter().all(|part| why.contains(part)),
            "{arguments}: {why}"
        );
    };
    let invalid = "validation error for call[_proxy_tool]\n";
    check(
        "{}",
        &[
            "2 validation errors for call[_proxy_tool]\naction\n",
            "\ntype\n  Missing required argument",
        ],
    );
    check(
        r#"{"action":"run","type":"tool"}"#,
        &[
            "1 ",
            invalid,
            "action\n  Input should be 'list', 'info', 'call'",
        ],
    );
    check(
        r#"{"action":"list","type":"tools"}"#,
        &[
            invalid,
            "type\n  Input should be 'tool', 'resource', 'prompt'",
        ],
    );
    check(
        r#"{"action":"list","a_type":"tool","type":"tool"}"#,
        &[invalid, "a_type\n  Unexpected keyword argument"],
    );
    check(
        r#"{"action":"list","type":"tool","limit":0}"#,
        &[invalid, "limit\n", "at least 1 and at most 1000"],
    );
    check(
        r#"{"action":"list","type":"tool","limit":1001}"#,
        &[invalid, "limit\n"],
    );
    check(
        r#"{"action":"list","type":"tool","offset":-1}"#,
        &[invalid, "offset\n", "at least 0"],
    );
    check(
        r#"{"action":"call","type":"tool","path":"a","args":"x"}"#,
        &[invalid, "args\n  Input should be an object"],
    );
    check(
        r#"{"action":"call","type":"tool","path":"a","args":"[]"}"#,
        &[invalid, "args\n"],
    );
    check(
        r#"{"action":"call","type":"tool","path":"a","args":[]}"#,
        &[invalid, "args\n"],
    );
    check(
        r#"{"action":"call","type":"tool","path":1}"#,
        &[invalid, "path\n  Input should be a valid string"],
    );
    check(
        r#"{"action":"list","type":"tool","filter":{"tag":["a"]}}"#,
        &[invalid, "filter.tag\n"],
    );
    check(
        r#"{"action":"list","type":"tool","filter":{"tags":"a"}}"#,
        &[invalid, "filter.tags\n"],
    );
    check("[]", &[invalid, "arguments\n"]);
    let wrong = "Error calling tool 'proxy': ";
    for action in ["info", "call"] {
        let path = format!("Parameter 'path' is required for action '{action}'");
        check(
            &format!(r#"{{"action":"{action}","type":"tool"}}"#),
            &[wrong, &path],
        );
    }
    let path = "Parameter 'path' should not be provided for action 'list'";
    check(
        r#"{"action":"list","type":"tool","path":"a"}"#,
        &[wrong, path],
    );
    let args = "Parameter 'args' should not be provided for ";
    check(
        r#"{"action":"list","type":"tool","args":{"a":1}}"#,
        &[wrong, args, "action 'list'"],
    );
    check(
        r#"{"action":"info","type":"tool","path":"a","args":{"a":1}}"#,
        &[wrong, args, "action 'info'"],
    );
    check(
        r#"{"action":"call","type":"resource","path":"a:b","args":{"a":1}}"#,
        &[wrong, args, "type 'resource'"],
    );
    let list =
        "Parameters 'limit', 'offset', and 'filter_server' are only allowed for 'list' action";
    for more in [
        r#""limit":1"#,
        r#""offset":0"#,
        r#""filter_server":"a""#,
        r#""filter":{"prefix":"a"}"#,
    ] {
        check(
            &format!(r#"{{"action":"info","type":"tool","path":"a",{more}}}"#),
            &[wrong, list],
        );
    }
    check(
        r#"{"action":"batch"}"#,
        &[
            wrong,
            "Parameter 'operations' is required for action 'batch'",
        ],
    );
    check(
        r#"{"action":"list","type":"tool","operations":[{}]}"#,
        &[wrong, "only allowed for 'batch'"],
    );
    check(
        r#"{"action":"batch","path":"a","operations":[{}]}"#,
        &[wrong, "should not be provided"],
    );
}

#[test]
fn a_batch_has_a_bounded_number_of_operations() {
    let of = |count: usize| {
        format!(
            r#"{{"action":"batch","operations":[{}]}}"#,
            vec!["{ }"; count].join(",")
        )
    };
    assert_eq!(
        ask(&of(BATCH_MAX)),
        ProxyRequest::Batch(vec![b"{ }".to_vec(); BATCH_MAX])
    );
    for count in [0, BATCH_MAX + 1] {
        assert!(
            ProxyRequest::read(of(count).as_bytes())
                .unwrap_err()
                .contains("a list of 1 to 50 operations"),
            "{count}"
        );
    }
}

#[test]
fn a_call_keeps_all_that_its_caller_added() {
    let params = r#"{ "name":"proxy" , "arguments":{"action":"call"},"_meta":{"progressToken":7,"x":1.0},"task":{"ttl":1},"requestState":"s"}"#;
    let check = |subject, args: Option<&str>, expected: &str| {
        let made = params_of(&call(subject, "a:\"b\"", args), params.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(made).unwrap(), expected);
    };
    check(
        ProxySubject::Tool,
        Some(r#"{ "n": 1.0 }"#),
        r#"{ "name":"a:\"b\"" , "arguments":{ "n": 1.0 },"_meta":{"progressToken":7,"x":1.0},"task":{"ttl":1},"requestState":"s"}"#,
    );
    check(
        ProxySubject::Prompt,
        None,
        r#"{ "name":"a:\"b\"","_meta":{"progressToken":7,"x":1.0},"requestState":"s"}"#,
    );
    check(
        ProxySubject::Resource,
        None,
        r#"{ "_meta":{"progressToken":7,"x":1.0},"requestState":"s","uri":"a:\"b\""}"#,
    );
}

fn made(subject: ProxySubject, path: &str, result: &str, form: Form) -> String {
    String::from_utf8(called(subject, path, result.as_bytes(), form).unwrap()).unwrap()
}

/// Section 3.2.1.
#[test]
fn items_of_a_tool_gain_annotations_and_lose_nothing() {
    let notes = r#""proxyType":"tool","proxyAction":"call","proxyPath":"up_a""#;
    let check = |result: &str, expected: &str| {
        let made = made(ProxySubject::Tool, "up_a", result, Form::Legacy);
        assert_eq!(made, expected.replace("NOTES", notes));
    };
    check(
        r#"{"content":[{"type":"text","text":"\u00fc 1.0"}, {"x":1e400, "annotations":{"priority":0.10}}],"structuredContent":{"n":1.0},"_meta":{"k":1},"isError":true}"#,
        r#"{"content":[{"type":"text","text":"\u00fc 1.0","annotations":{NOTES}}, {"x":1e400, "annotations":{"priority":0.10,NOTES}}],"structuredContent":{"n":1.0},"_meta":{"k":1},"isError":true}"#,
    );
    check(r#"{ "content" : [ ] }"#, r#"{ "content" : [ ] }"#);
    check(
        r#"{"content":[{"annotations":null},7]}"#,
        r#"{"content":[{"annotations":{NOTES}},7]}"#,
    );
    // The proxy of an upstream has annotated it already.
    check(
        r#"{"content":[{"annotations":{"proxyPath":"a","pythonType":"Tool","many":true,"proxyAction":"list"}}]}"#,
        r#"{"content":[{"annotations":{"proxyPath":"up_a","pythonType":"Tool","many":true,"proxyAction":"call","proxyType":"tool"}}]}"#,
    );
}

/// Section 3.2.2.
#[test]
fn resources_that_are_json_lose_white_space_only() {
    let check = |content: &str, expected: &str| {
        let made = made(
            ProxySubject::Resource,
            "mem://a",
            &format!(r#"{{"contents":[{content}]}}"#),
            Form::Legacy,
        );
        let item = format!(
            r#"{{"content":[{{"type":"resource","resource":{expected},"annotations":{{"proxyType":"resource","proxyAction":"call","proxyPath":"mem://a"}}}}],"isError":false}}"#
        );
        assert_eq!(made, item);
    };
    check(
        r#"{"uri":"mem://a","mimeType":"text/plain","text":"{ \"b\": 1.0,\n \"a\": \"\\u00fc\" }","_meta":{}}"#,
        r#"{"uri":"mem://a","mimeType":"application/json","text":"{\"b\":1.0,\"a\":\"\\u00fc\"}","_meta":{},"contentType":"text/plain"}"#,
    );
    check(
        r#"{"uri":"a:b","text":" 1e5 "}"#,
        r#"{"uri":"a:b","text":"1e5","mimeType":"application/json"}"#,
    );
    for same in [
        r#"{"uri":"a:b","mimeType":"application/json","text":"{ \"a\": 1 }"}"#,
        r#"{"uri":"a:b","mimeType":"Application/JSON; charset=utf-8","text":"{ }"}"#,
        r#"{"uri":"a:b","mimeType":"text/plain","text":"plain { text"}"#,
        r#"{"uri":"a:b","mimeType":"image/png","blob":"AAAA"}"#,
    ] {
        check(same, same);
    }
}

#[test]
fn a_resource_has_one_item_for_each_content() {
    let result = r#"{"x":[1.0],"contents":[{"uri":"a:1","blob":""}, {"uri":"a:2","text":"x"}],"_meta":{"k":1.0},"ttlMs":5}"#;
    let notes = r#""annotations":{"proxyType":"resource","proxyAction":"call","proxyPath":"a:*"}"#;
    let item = |content: &str| format!(r#"{{"type":"resource","resource":{content},{notes}}}"#);
    let items = [
        item(r#"{"uri":"a:1","blob":""}"#),
        item(r#"{"uri":"a:2","text":"x"}"#),
    ]
    .join(", ");
    let kept = r#""_meta":{"k":1.0},"ttlMs":5"#;
    assert_eq!(
        made(ProxySubject::Resource, "a:*", result, Form::Modern),
        format!(
            r#"{{"x":[1.0],"content":[{items}],{kept},"isError":false,"resultType":"complete"}}"#
        )
    );
    let other = r#"{"content":[],"isError":true,"contents":[{"uri":"a:1","blob":""}]}"#;
    let items = item(r#"{"uri":"a:1","blob":""}"#);
    assert_eq!(
        made(ProxySubject::Resource, "a:*", other, Form::Legacy),
        format!(r#"{{"isError":false,"content":[{items}]}}"#),
        "members that a resource's result does not have are the tool's"
    );
}

/// Section 3.2.3.
#[test]
fn a_prompt_is_one_resource() {
    let made = made(
        ProxySubject::Prompt,
        "greet",
        r#"{"messages":[{"n":1.0}]}"#,
        Form::Legacy,
    );
    assert_eq!(
        made,
        r#"{"content":[{"type":"resource","resource":{"uri":"proxy:greet","mimeType":"application/json","text":"{\"messages\":[{\"n\":1.0}]}"},"annotations":{"proxyType":"prompt","proxyAction":"call","proxyPath":"greet","pythonType":"GetPromptResult","dataType":"GetPromptResult","isArray":false}}],"isError":false}"#
    );
}

#[test]
fn tasks_and_questions_pass_as_they_are() {
    for result in [
        r#"{"task":{"taskId":"t"}}"#,
        r#"{"resultType":"task","taskId":"t"}"#,
        r#"{"resultType":"input_required","inputRequests":{},"content":[]}"#,
        r#"{"resultType":7,"content":[]}"#,
        "[]",
    ] {
        assert_eq!(
            called(ProxySubject::Tool, "a", result.as_bytes(), Form::Modern),
            None,
            "{result}"
        );
    }
    let complete = r#"{"resultType":"complete","content":[]}"#;
    assert_eq!(
        made(ProxySubject::Tool, "a", complete, Form::Modern),
        complete
    );
}

#[test]
fn errors_are_results_unless_the_client_can_do_something() {
    let error = |code: i64| {
        let raw = format!(r#"{{"code":{code},"message":"it \u0062roke","data":{{"inner":1}}}}"#);
        let answer = Answer {
            outcome: Outcome::Error,
            payload: Payload::body(Form::Legacy, raw),
        };
        let made = answered(
            ProxySubject::Tool,
            "a",
            &answer,
            "tools/call",
            Form::Legacy,
            &|_| None,
        );
        made.map(|made| String::from_utf8(made).unwrap())
    };
    let text = r#"{"content":[{"type":"text","text":"it broke"}],"isError":true}"#;
    for code in [-32602, -32603, -32002, 1] {
        assert_eq!(error(code).as_deref(), Some(text), "{code}");
    }
    for code in [-32042, -32021] {
        assert_eq!(error(code), None, "{code}");
    }
}

/// Section 3.1.
#[test]
fn queries_are_one_resource_with_annotations() {
    let entry = |list, raw: &str| ListedEntry {
        list,
        raw: raw.into(),
    };
    let page = Query::List(
        ProxyPage {
            offset: 0,
            limit: 1000,
        },
        2,
    );
    let text = |subject, asked, entries: &[ListedEntry]| {
        String::from_utf8(query(subject, asked, entries, Form::Legacy)).unwrap()
    };
    let all = [
        entry(ListKind::Resources, r#"{"uri":"a:1"}"#),
        entry(ListKind::Templates, r#"{"n":1.0}"#),
    ];
    assert_eq!(
        text(ProxySubject::Resource, page, &all),
        r#"{"content":[{"type":"resource","resource":{"uri":"proxy:list/resource","mimeType":"application/json","text":"[{\"uri\":\"a:1\"},{\"n\":1.0}]"},"annotations":{"proxyType":"resource","proxyAction":"list","totalCount":2,"offset":0,"limit":1000,"pythonType":"mcp.types.Resource | mcp.types.ResourceTemplate","many":true,"dataType":"Resource|ResourceTemplate","isArray":true}}],"isError":false}"#
    );
    let empty = text(
        ProxySubject::Tool,
        Query::List(
            ProxyPage {
                offset: 9,
                limit: 1,
            },
            2,
        ),
        &[],
    );
    assert!(
        empty.contains(r#""uri":"proxy:list/tool","mimeType":"application/json","text":"[]""#),
        "{empty}"
    );
    assert!(
        empty.contains(r#""pythonType":"Tool","many":true,"dataType":"Tool","isArray":true"#),
        "{empty}"
    );
    let one = text(ProxySubject::Resource, Query::Info("a:1"), &all[1..]);
    assert_eq!(
        one,
        r#"{"content":[{"type":"resource","resource":{"uri":"proxy:info/resource/a:1","mimeType":"application/json","text":"{\"n\":1.0}"},"annotations":{"proxyType":"resource","proxyAction":"info","proxyPath":"a:1","pythonType":"ResourceTemplate","many":false,"dataType":"ResourceTemplate","isArray":false}}],"isError":false}"#
    );
}

/// Appendix A.3, and Magg's `filter_server`.
#[test]
fn filters_choose_by_server_name_and_tag() {
    let raw = br#"{"uri":"mem://a","name":"notes","tags":["x","y"]}"#;
    let check = |server: Option<&str>, prefix: Option<&str>, tags: &[&str], expected: bool| {
        let [server, prefix] = [server, prefix].map(|text| text.map(str::to_owned));
        let filter = Filter {
            server,
            prefix,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        };
        assert_eq!(filter.fits("up", "mem://a", raw), expected, "{filter:?}");
    };
    check(None, None, &[], true);
    check(Some("up"), Some("mem:"), &["z", "y"], true);
    check(Some("u"), None, &[], false);
    check(Some("note"), Some("notes"), &["x"], true);
    check(Some("up"), Some("a"), &[], false);
    check(Some("up"), None, &["z"], false);
}

#[test]
fn tags_are_read_where_servers_put_them() {
    for raw in [
        r#"{"tags":["math","add"]}"#,
        r#"{"_meta":{"fastmcp":{"tags":["math","add"]}}}"#,
        r#"{"_meta":{"_fastmcp":{"tags":["math",7,"add"]}}}"#,
    ] {
        assert_eq!(tags_of(raw.as_bytes()), ["math", "add"], "{raw}");
    }
    assert!(tags_of(br#"{"name":"a","_meta":{}}"#).is_empty());
}

#[test]
fn absent_targets_are_named_in_the_words_of_magg() {
    assert_eq!(ProxySubject::Tool.unknown("x"), "Unknown tool: 'x'");
    assert_eq!(
        ProxySubject::Resource.unknown("a:b"),
        "Error calling tool 'proxy': Resource not found: Unknown resource: 'a:b'"
    );
    assert_eq!(
        ProxySubject::Prompt.unknown("x"),
        "Error calling tool 'proxy': Unknown prompt: 'x'"
    );
    assert_eq!(
        ProxySubject::Resource.not_found("x"),
        "Error calling tool 'proxy': Resource 'x' not found"
    );
}

/// Appendix A.1.
#[test]
fn a_batch_is_one_result_in_order() {
    let one = |operation: &str, result: &str| BatchResult {
        operation: operation.into(),
        result: result.into(),
    };
    let results = [
        one(
            "{ }",
            r#"{"content":[{"type":"text","text":"1.0","annotations":{"proxyType":"tool"}}, 7],"structuredContent":{"n":1.0}}"#,
        ),
        one(
            r#"{"a":1}"#,
            r#"{"content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"k":1}}"#,
        ),
        one("[]", r#"{"content":[]}"#),
    ];
    assert_eq!(
        String::from_utf8(batched(&results, Form::Modern)).unwrap(),
        r#"{"content":[{"type":"text","text":"1.0","annotations":{"proxyType":"tool","proxyOperation":0,"proxyFailed":false}},7,{"type":"text","text":"no","annotations":{"proxyOperation":1,"proxyFailed":true}}],"structuredContent":{"results":[{"operation":{ },"isError":false,"structuredContent":{"n":1.0}},{"operation":{"a":1},"isError":true,"_meta":{"k":1}},{"operation":[],"isError":false}]},"isError":false,"resultType":"complete"}"#
    );
}

#[test]
fn an_operation_has_nothing_that_is_for_the_whole_batch() {
    let params = r#"{"name":"proxy","arguments":{},"_meta":{"progressToken":7,"x":1.0},"task":{},"requestState":"s","inputResponses":{}}"#;
    let of = |params: &str| {
        let made = operation_params(
            &call(ProxySubject::Tool, "a", Some("{ }")),
            params.as_bytes(),
        )
        .unwrap();
        String::from_utf8(made).unwrap()
    };
    assert_eq!(
        of(params),
        r#"{"name":"a","arguments":{ },"_meta":{"x":1.0}}"#
    );
    assert_eq!(of(r#"{"name":"proxy"}"#), r#"{"name":"a","arguments":{ }}"#);
}
