//! Five descriptions of public APIs: every operation is listed, its schemas are valid, and its
//! requests are what it describes.

use openapi::{Document, Operations, Presets, TOOL_NAME_CHARS_MAX};
use serde_json::{Map, Value, json};
use url::Url;

/// The files, with the number of operations that their authors wrote, and of those among them that
/// are at another origin than the API.
const FILES: [(&str, &[u8], usize, usize); 5] = [
    ("figma", include_bytes!("../descriptions/figma.yaml"), 54, 0),
    (
        "blockfrost",
        include_bytes!("../descriptions/blockfrost.yaml"),
        129,
        6,
    ),
    (
        "readme",
        include_bytes!("../descriptions/readme.json"),
        54,
        0,
    ),
    (
        "readme-legacy",
        include_bytes!("../descriptions/readme-legacy.json"),
        36,
        0,
    ),
    (
        "petstore",
        include_bytes!("../descriptions/petstore.json"),
        20,
        0,
    ),
];

fn read(text: &[u8]) -> Operations {
    let document = Document::read(text).unwrap();
    let base = document.base(None).unwrap();
    document.operations(&base, &Presets::default())
}

#[test]
fn every_operation_of_five_public_apis_is_listed() {
    for (name, text, written, elsewhere) in FILES {
        let all = read(text);
        let count = written - elsewhere;
        assert_eq!(
            (all.operations.len(), all.left_out.len()),
            (count, elsewhere),
            "{name}"
        );
        for one in &all.left_out {
            assert!(
                one.reason.contains("another origin"),
                "{name}: {}: {}",
                one.name,
                one.reason
            );
        }
        assert!(!all.title.is_empty() && !all.version.is_empty(), "{name}");
        let mut names: Vec<&str> = all.operations.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{name}");
        for one in &all.operations {
            assert!(
                one.name.len() <= TOOL_NAME_CHARS_MAX,
                "{name}: {}",
                one.name
            );
            let tool: Value = serde_json::from_str(&one.definition).unwrap();
            assert_eq!(tool["name"], one.name.as_str());
            for key in ["inputSchema", "outputSchema"] {
                let Some(schema) = tool.get(key) else {
                    continue;
                };
                assert_eq!(schema["type"], "object", "{name}: {}", one.name);
                if let Err(why) = jsonschema::draft202012::meta::validate(schema) {
                    panic!("{name}: {}: {key}: {why}", one.name);
                }
                assert!(
                    jsonschema::draft202012::new(schema).is_ok(),
                    "{name}: {}: {key}",
                    one.name
                );
            }
        }
    }
}

/// A value that a schema allows, as far as its type says it.
fn sample(schema: &Value, root: &Value, depth: usize) -> Value {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return sample(
            root.pointer(reference.trim_start_matches('#')).unwrap(),
            root,
            depth,
        );
    }
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(key).and_then(|schemas| schemas.get(0)) {
            return sample(first, root, depth);
        }
    }
    let of = schema
        .get("type")
        .and_then(|of| of.as_str().or_else(|| of.get(0).and_then(Value::as_str)));
    match of {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") if depth < 4 => json!([sample(&schema["items"], root, depth + 1)]),
        Some("array") => json!([]),
        Some("object") => {
            let needed = schema
                .get("required")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let needed = needed
                .iter()
                .filter_map(Value::as_str)
                .filter(|_| depth < 4);
            let member = |name: &str| {
                (
                    name.to_owned(),
                    sample(&schema["properties"][name], root, depth + 1),
                )
            };
            Value::Object(needed.map(member).collect::<Map<String, Value>>())
        }
        _ => json!("UE5H"),
    }
}

#[test]
fn every_operation_of_five_public_apis_can_be_requested() {
    for (name, text, ..) in FILES {
        let base = Document::read(text).unwrap().base(None).unwrap();
        for one in read(text).operations {
            let tool: Value = serde_json::from_str(&one.definition).unwrap();
            let schema = &tool["inputSchema"];
            let arguments: Map<String, Value> = schema["properties"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, property)| (name.clone(), sample(property, schema, 0)))
                .collect();
            let request = one
                .request(&arguments)
                .unwrap_or_else(|why| panic!("{name}: {}: {why}", one.name));
            let url: Url = base.join(&request.target).unwrap();
            assert_eq!(url.origin(), base.origin());
            // The last line of the words is the method and the path that the author wrote.
            let words = tool["description"].as_str().unwrap();
            let line = words
                .split("\n\n")
                .filter(|line| *line != "Deprecated.")
                .last()
                .unwrap();
            let (method, path) = line.split_once(' ').unwrap();
            assert_eq!(request.method, method, "{name}: {line}");
            let path = format!("{}{path}", base.path().trim_end_matches('/'));
            let (written, sent): (Vec<&str>, Vec<&str>) =
                (path.split('/').collect(), url.path().split('/').collect());
            assert_eq!(written.len(), sent.len(), "{name}: {line}: {url}");
            for (written, sent) in written.iter().zip(&sent) {
                assert!(
                    written.contains('{') || written == sent,
                    "{name}: {line}: {url}"
                );
                assert!(
                    !sent.is_empty() || written.is_empty(),
                    "{name}: {line}: {url}"
                );
            }
            if schema["properties"].get("body").is_some() && method != "GET" {
                let (media, bytes) = request.body.unwrap();
                // A form without fields has no bytes.
                let is_blank = arguments["body"] == json!({});
                assert!(
                    media.contains('/') && (is_blank || !bytes.is_empty()),
                    "{name}: {line}"
                );
            }
        }
    }
}
