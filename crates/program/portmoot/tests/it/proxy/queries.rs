//! Operations `list` and `info`: the caller's own view, under Magg's annotations.

use serde_json::{Value, json};

use super::{Caller, client, stage};
use crate::support::fixture;

/// The only item of a result: its data and its annotations.
#[track_caller]
fn one(result: &Value) -> (Value, Value) {
    let content = result["content"].as_array().unwrap();
    assert_eq!(
        (content.len(), &result["isError"]),
        (1, &json!(false)),
        "{result}"
    );
    let item = &content[0];
    assert_eq!(
        (&item["type"], &item["resource"]["mimeType"]),
        (&json!("resource"), &json!("application/json"))
    );
    let data = serde_json::from_str(item["resource"]["text"].as_str().unwrap()).unwrap();
    (data, item["annotations"].clone())
}

#[track_caller]
fn names(data: &Value, key: &str) -> Vec<String> {
    let all = data.as_array().unwrap_or_else(|| panic!("{data}"));
    all.iter()
        .filter_map(|one| one[key].as_str().map(str::to_owned))
        .collect()
}

fn list(kind: &str) -> Value {
    json!({ "action": "list", "type": kind })
}

#[test]
fn lists_are_the_callers_own() {
    let (_home, gateway) = stage("");
    for who in ["boss", "clerk", "scout"] {
        let direct = client(&gateway, who);
        for caller in Caller::both(&gateway, who) {
            let (tools, notes) = one(&caller.proxy(list("tool")));
            assert_eq!(names(&tools, "name"), direct.names("tools"), "{who}");
            let total = tools.as_array().unwrap().len();
            assert_eq!(
                notes,
                json!({ "proxyType": "tool", "proxyAction": "list", "totalCount": total, "offset": 0, "limit": 1000,
                    "pythonType": "Tool", "many": true, "dataType": "Tool", "isArray": true })
            );
            let (prompts, notes) = one(&caller.proxy(list("prompt")));
            assert_eq!(names(&prompts, "name"), direct.names("prompts"), "{who}");
            assert_eq!(notes["pythonType"], "Prompt");
            let (resources, notes) = one(&caller.proxy(list("resource")));
            assert_eq!(names(&resources, "uri"), direct.names("resources"), "{who}");
            assert_eq!(
                names(&resources, "uriTemplate"),
                direct.names("templates"),
                "{who}"
            );
            assert_eq!(
                notes["pythonType"],
                "mcp.types.Resource | mcp.types.ResourceTemplate"
            );
        }
    }
    let raw = client(&gateway, "boss").call("proxy", list("tool"));
    assert_eq!(raw["content"][0]["resource"]["uri"], "proxy:list/tool");
}

#[test]
fn definitions_are_those_of_the_lists() {
    let (_home, gateway) = stage(&fixture("raw", &["--raw"]));
    gateway.ready("raw");
    let boss = client(&gateway, "boss");
    let info = boss.call(
        "proxy",
        json!({ "action": "info", "type": "tool", "path": "raw_canned" }),
    );
    let text = info["content"][0]["resource"]["text"].as_str().unwrap();
    assert!(text.contains(r#""name":"raw_canned""#), "{text}");
    assert!(
        text.contains(r#""x-vendor":{"deep":[1.0,-0.0,1e400,12345678901234567890]}"#),
        "{text}"
    );
    let mut page = list("tool");
    page["filter_server"] = json!("raw");
    let listed = boss.call("proxy", page);
    assert!(
        listed["content"][0]["resource"]["text"]
            .as_str()
            .unwrap()
            .contains(text)
    );
}

#[test]
fn lists_have_pages_filters_and_an_empty_form() {
    let (_home, gateway) = stage(&fixture("more", &[]));
    gateway.ready("more");
    for caller in Caller::both(&gateway, "boss") {
        let ask = |kind: &str, more: Value| {
            let mut arguments = list(kind);
            arguments
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            one(&caller.proxy(arguments))
        };
        let (all, _) = ask("tool", json!({}));
        let all = names(&all, "name");
        let (page, notes) = ask("tool", json!({ "offset": 3, "limit": 4 }));
        assert_eq!(names(&page, "name"), all[3..7]);
        assert_eq!(
            (&notes["totalCount"], &notes["offset"], &notes["limit"]),
            (&json!(all.len()), &json!(3), &json!(4))
        );
        let (page, _) = ask("tool", json!({ "offset": all.len() - 1 }));
        assert_eq!(names(&page, "name"), all[all.len() - 1..]);
        let (empty, notes) = ask("tool", json!({ "offset": all.len() }));
        assert_eq!(
            (empty, &notes["totalCount"]),
            (json!([]), &json!(all.len()))
        );

        let (more, notes) = ask("tool", json!({ "filter_server": "more" }));
        let expected: Vec<_> = all
            .iter()
            .filter(|name| name.starts_with("more_"))
            .cloned()
            .collect();
        assert_eq!(
            (names(&more, "name"), &notes["totalCount"]),
            (expected.clone(), &json!(expected.len()))
        );
        let (echo, _) = ask("tool", json!({ "filter": { "prefix": "more_ec" } }));
        assert_eq!(names(&echo, "name"), ["more_echo"]);
        let (none, notes) = ask("tool", json!({ "filter": { "tags": ["absent"] } }));
        assert_eq!((none, &notes["totalCount"]), (json!([]), &json!(0)));
        // Resources carry no prefix, so they are found by their server.
        let (resources, _) = ask("resource", json!({ "filter_server": "more" }));
        let uris = names(&resources, "uri");
        assert!(
            !uris.is_empty() && uris.iter().all(|uri| uri.contains("more")),
            "{uris:?}"
        );
    }
}

#[test]
fn one_definition_is_found_by_name_or_uri() {
    let (_home, gateway) = stage("");
    for caller in Caller::both(&gateway, "boss") {
        let info = |kind: &str, path: &str| {
            let result = caller.proxy(json!({ "action": "info", "type": kind, "path": path }));
            assert_eq!(
                result["content"][0]["resource"]["uri"],
                format!("proxy:info/{kind}/{path}")
            );
            one(&result)
        };
        let (tool, notes) = info("tool", "up_echo");
        assert_eq!(tool["name"], "up_echo");
        assert_eq!(
            notes,
            json!({ "proxyType": "tool", "proxyAction": "info", "proxyPath": "up_echo", "pythonType": "Tool",
                "many": false, "dataType": "Tool", "isArray": false })
        );
        assert_eq!(
            info("prompt", "up_test_simple_prompt").1["pythonType"],
            "Prompt"
        );
        for path in ["test://static-text", "static-text"] {
            let (resource, notes) = info("resource", path);
            assert_eq!(
                (&resource["uri"], &notes["pythonType"]),
                (&json!("test://static-text"), &json!("Resource"))
            );
        }
        let (template, notes) = info("resource", "test://template/{id}/data");
        assert_eq!(
            (&template["name"], &notes["pythonType"]),
            (&json!("template"), &json!("ResourceTemplate"))
        );
    }
    for caller in Caller::both(&gateway, "clerk") {
        let fails = |kind: &str, path: &str| {
            caller.fails(json!({ "action": "info", "type": kind, "path": path }))
        };
        // Hidden and absent ones have one answer.
        assert_eq!(
            fails("tool", "up_echo"),
            "Error calling tool 'proxy': Tool 'up_echo' not found"
        );
        assert_eq!(
            fails("tool", "absent"),
            "Error calling tool 'proxy': Tool 'absent' not found"
        );
        assert_eq!(
            fails("resource", "test://static-binary"),
            "Error calling tool 'proxy': Resource 'test://static-binary' not found"
        );
    }
}
