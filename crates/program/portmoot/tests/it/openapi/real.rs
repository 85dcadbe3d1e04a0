//! Five descriptions of public APIs through the gateway: every operation is listed, and its calls
//! arrive as their authors describe them. The stub reads each description by itself, and checks
//! requests with JSON Schema.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use harness::{deps, repository};
use jsonschema::{Draft, Validator};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::{JSON, Received, Stub};
use crate::home::Home;
use crate::support::{Client, Gateway};

/// The files; the path of each API; how many operations are at its origin.
const FILES: [(&str, &str, &str, usize); 5] = [
    ("figma", "figma.yaml", "/", 54),
    ("blockfrost", "blockfrost.yaml", "/api/v0", 123),
    ("readme", "readme.json", "/v2", 54),
    ("legacy", "readme-legacy.json", "/api/v1", 36),
    ("petstore", "petstore.json", "/v2", 20),
];
/// Methods of operations.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
/// Texts that patterns and formats of these descriptions ask for.
const TEXTS: [&str; 12] = [
    "text",
    "1",
    "2026-11-27",
    "2026-11-27T12:00:00Z",
    "https://api.example.com/a",
    "someone@example.com",
    "9b2f3c1e-5d64-4c8e-8f11-2a7b6c5d4e3f",
    "0.1.0",
    "/a/b",
    "api.json",
    "0123456789abcdef01234567",
    "/versions/1.0/categories/guides/text",
];

/// A description as its author wrote it, by a reader that is not the gateway's.
struct Written {
    root: Value,
    base: &'static str,
}

/// An operation with the variables of its path.
struct Found<'w> {
    item: &'w Value,
    operation: &'w Value,
    variables: BTreeMap<String, String>,
}

fn file(name: &str) -> PathBuf {
    repository()
        .join("crates/servers/openapi/tests/descriptions")
        .join(name)
}

impl Written {
    fn read(name: &str, base: &'static str) -> Written {
        let path = file(name);
        let text = if name.ends_with(".json") {
            std::fs::read(path).unwrap()
        } else {
            let script = "import json, sys, yaml\n\
                loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)\n\
                json.dump(yaml.load(open(sys.argv[1], encoding='utf-8'), loader), sys.stdout, default=str)";
            let ran = Command::new(deps().python())
                .args(["-c", script])
                .arg(path)
                .output()
                .unwrap();
            assert!(
                ran.status.success(),
                "{}",
                String::from_utf8_lossy(&ran.stderr)
            );
            ran.stdout
        };
        Written {
            root: serde_json::from_slice(&text).unwrap(),
            base,
        }
    }

    /// What a reference within the description leads to.
    fn whole<'w>(&'w self, value: &'w Value) -> &'w Value {
        match value["$ref"].as_str() {
            Some(reference) => self.whole(
                self.root
                    .pointer(reference.strip_prefix('#').unwrap())
                    .unwrap(),
            ),
            None => value,
        }
    }

    /// The operation that a request is for. A path without variables comes before one with them.
    fn find(&self, method: &str, path: &str) -> Option<Found<'_>> {
        let own = path.strip_prefix(self.base.trim_end_matches('/'))?;
        let sent: Vec<&str> = own.split('/').collect();
        let mut found: Vec<Found<'_>> = Vec::new();
        for (template, item) in self.root["paths"].as_object()? {
            let operation = &item[method.to_lowercase()];
            let parts: Vec<&str> = template.split('/').collect();
            if operation.is_null() || parts.len() != sent.len() {
                continue;
            }
            let mut variables = BTreeMap::new();
            let fits = parts
                .iter()
                .zip(&sent)
                .all(|(part, sent)| match part.find('{') {
                    None => part == sent,
                    Some(start) => {
                        let (before, rest) = part.split_at(start);
                        let (name, after) = rest[1..].split_once('}').unwrap();
                        let value = sent
                            .strip_prefix(before)
                            .and_then(|rest| rest.strip_suffix(after));
                        let value = value.map(|value| {
                            percent_decode_str(value)
                                .decode_utf8()
                                .unwrap()
                                .into_owned()
                        });
                        value.is_some_and(|value| {
                            !value.is_empty() && variables.insert(name.to_owned(), value).is_none()
                        })
                    }
                });
            if fits {
                found.push(Found {
                    item,
                    operation,
                    variables,
                });
            }
        }
        found.into_iter().min_by_key(|one| one.variables.len())
    }

    /// Whether a schema allows a value.
    fn allows(&self, schema: &Value, value: &Value) -> Result<(), String> {
        // OpenAPI 3.0 has the limits of Draft 4, which are flags.
        let is_old = self.root["openapi"].as_str().unwrap().starts_with("3.0");
        let draft = if is_old {
            Draft::Draft4
        } else {
            Draft::Draft202012
        };
        compiled(schema, &self.root, draft)
            .validate(value)
            .map_err(|why| why.to_string())
    }

    /// What is wrong with a request, by the description.
    fn check(&self, request: &Received) -> Result<(), String> {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let Found {
            item,
            operation,
            variables,
        } = self
            .find(&request.method, path)
            .ok_or_else(|| format!("there is no {} {path}", request.method))?;
        let decoded = |text: &str| {
            percent_decode_str(&text.replace('+', " "))
                .decode_utf8()
                .unwrap()
                .into_owned()
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let mut sent: Vec<(String, String)> = pairs
            .map(|(name, value)| (decoded(name), decoded(value)))
            .collect();
        let mut declared = BTreeSet::new();
        let lists = [operation, item].map(|of| of["parameters"].as_array().into_iter().flatten());
        for parameter in lists.into_iter().flatten().map(|one| self.whole(one)) {
            let (name, place) = (
                parameter["name"].as_str().unwrap(),
                parameter["in"].as_str().unwrap(),
            );
            // Parameters of these names say nothing (OpenAPI 3, "Parameter Object").
            let is_ignored =
                ["accept", "content-type", "authorization"].contains(&name.to_lowercase().as_str());
            if is_ignored || !declared.insert((name, place)) {
                continue;
            }
            let values: Vec<String> = match place {
                "path" => variables.get(name).cloned().into_iter().collect(),
                "query" => {
                    let (own, others) = sent.into_iter().partition(|(sent, _)| sent == name);
                    sent = others;
                    Vec::into_iter(own)
                        .map(|(_, value): (String, String)| value)
                        .collect()
                }
                "header" => request
                    .header(name)
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
                other => return Err(format!("the stub knows no parameter in {other}")),
            };
            if values.is_empty() {
                if parameter["required"] == true {
                    return Err(format!("{name} is missing in {place}"));
                }
                continue;
            }
            let Some(schema) = parameter.get("schema") else {
                continue;
            };
            self.allows_one_of(schema, &readings(&values))
                .map_err(|why| format!("{name} in {place}: {why}"))?;
        }
        if let Some((name, _)) = sent.first() {
            return Err(format!("{name} is no parameter of the query"));
        }
        self.check_body(self.whole(&operation["requestBody"]), request)
    }

    fn check_body(&self, described: &Value, request: &Received) -> Result<(), String> {
        if described.is_null() || (request.body.is_empty() && described["required"] != true) {
            return if request.body.is_empty() {
                Ok(())
            } else {
                Err("it has no body".to_owned())
            };
        }
        let sent = request.header("Content-Type").unwrap_or_default();
        let media = sent.split(';').next().unwrap().trim();
        let content = described["content"]
            .get(media)
            .ok_or_else(|| format!("it takes no {media:?}"))?;
        match media {
            "application/json" => {
                let body = serde_json::from_str(&request.body).map_err(|why| why.to_string())?;
                self.allows(&content["schema"], &body)
            }
            "application/x-www-form-urlencoded" | "multipart/form-data" => {
                let schema = self.whole(&content["schema"]);
                let needed = schema["required"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str);
                match needed
                    .into_iter()
                    .find(|name| !request.body.contains(*name))
                {
                    Some(name) => Err(format!("the form has no {name}")),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether a schema allows one of these readings of a text.
    fn allows_one_of(&self, schema: &Value, readings: &[Value]) -> Result<(), String> {
        let mut why = String::new();
        for reading in readings {
            match self.allows(schema, reading) {
                Ok(()) => return Ok(()),
                Err(wrong) => why = wrong,
            }
        }
        Err(why)
    }
}

/// A schema of a document, with what it leads to there and nothing else. The same one is compiled
/// once.
fn compiled(schema: &Value, root: &Value, draft: Draft) -> Arc<Validator> {
    static KNOWN: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut schema = schema.clone();
    for annotation in ["title", "description", "example", "examples", "default"] {
        schema
            .as_object_mut()
            .map(|members| members.remove(annotation));
    }
    let mut whole = json!({ "allOf": [schema] });
    let (mut open, mut seen) = (references(&schema), BTreeSet::new());
    while let Some(reference) = open.pop() {
        let pointer = reference.strip_prefix('#').unwrap();
        let target = root.pointer(pointer).unwrap();
        if !seen.insert(reference.clone()) {
            continue;
        }
        open.extend(references(target));
        let mut place = &mut whole;
        for name in pointer.split('/').skip(1) {
            place = place
                .as_object_mut()
                .unwrap()
                .entry(name)
                .or_insert_with(|| json!({}));
        }
        place.clone_from(target);
    }
    let key = format!("{draft:?} {whole}");
    let known = KNOWN.lock().unwrap().get(&key).cloned();
    known.unwrap_or_else(|| {
        let built = jsonschema::options()
            .with_draft(draft)
            .offline()
            .build(&whole)
            .unwrap();
        let built = Arc::new(built);
        KNOWN.lock().unwrap().insert(key, Arc::clone(&built));
        built
    })
}

/// The references in a schema.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => {
            let own = members
                .get("$ref")
                .and_then(Value::as_str)
                .map(str::to_owned);
            own.into_iter()
                .chain(members.values().flat_map(references))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// What the texts of a parameter may stand for.
fn readings(values: &[String]) -> Vec<Value> {
    let text = |value: &String| Value::String(value.clone());
    let plain = |value: &String| match serde_json::from_str(value) {
        Ok(read @ (Value::Number(_) | Value::Bool(_))) => read,
        _ => text(value),
    };
    let mut all: Vec<Value> = match values {
        [one] => vec![plain(one), text(one)],
        _ => Vec::new(),
    };
    let pieces: Vec<String> = match values {
        [one] => one.split(',').map(str::to_owned).collect(),
        many => many.to_vec(),
    };
    all.extend([
        pieces.iter().map(plain).collect(),
        pieces.iter().map(text).collect(),
    ]);
    all
}

/// Values for the schemas of one tool.
struct Samples<'t> {
    root: &'t Value,
}

impl Samples<'_> {
    /// Whether a schema of the tool allows a value.
    fn allows(&self, schema: &Value, value: &Value) -> bool {
        let is_plain =
            |key: &String| ["type", "title", "description", "deprecated"].contains(&key.as_str());
        if schema["type"] == "string"
            && value.is_string()
            && schema.as_object().unwrap().keys().all(is_plain)
        {
            return true;
        }
        compiled(schema, self.root, Draft::Draft202012).is_valid(value)
    }

    /// A value: an example or a default of its author, else one that is made of what the schema
    /// says. `None` if none of them fits.
    fn of(&self, schema: &Value, depth: usize) -> Option<Value> {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.root.pointer(&reference[1..])?.clone();
            return self.of(&target, depth + 1);
        }
        if depth > 8 {
            return None;
        }
        let list = |key: &str| schema[key].as_array().cloned().unwrap_or_default();
        let mut candidates: Vec<Value> = list("examples");
        candidates.extend(
            ["example", "const", "default"]
                .iter()
                .filter_map(|key| schema.get(key))
                .cloned(),
        );
        candidates.extend(list("enum").into_iter().take(1));
        for key in ["oneOf", "anyOf"] {
            for option in list(key) {
                candidates.extend(self.of(&option, depth + 1));
            }
        }
        let parts: Vec<Value> = list("allOf")
            .iter()
            .filter_map(|part| self.of(part, depth + 1))
            .collect();
        let merged = parts.iter().filter_map(Value::as_object).flatten();
        let merged: Map<String, Value> = merged
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !merged.is_empty() {
            candidates.push(merged.into());
        }
        candidates.extend(parts);
        candidates.extend(self.made(schema, depth));
        candidates
            .into_iter()
            .find(|value| self.allows(schema, value))
    }

    /// Values that the type and the limits of a schema suggest.
    fn made(&self, schema: &Value, depth: usize) -> Vec<Value> {
        let of = schema["type"]
            .as_str()
            .or_else(|| schema["type"][0].as_str());
        let is_object = ["properties", "required"]
            .iter()
            .any(|key| schema.get(key).is_some());
        match of.or(is_object.then_some("object")) {
            Some("object") => self.objects(schema, depth),
            Some("integer" | "number") => {
                let limit = ["minimum", "maximum"].map(|key| schema.get(key).cloned());
                limit
                    .into_iter()
                    .flatten()
                    .chain([json!(1), json!(100)])
                    .collect()
            }
            Some("boolean") => vec![json!(true)],
            Some("array") => {
                let items = schema.get("items").cloned().unwrap_or(json!({}));
                let item = self.of(&items, depth + 1);
                vec![item.map_or(json!([]), |item| json!([item])), json!([])]
            }
            Some("null") => vec![Value::Null],
            _ => {
                let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap();
                let long = json!("a".repeat(least));
                TEXTS
                    .iter()
                    .map(|text| json!(text))
                    .chain([long, json!({})])
                    .collect()
            }
        }
    }

    /// Objects with the members that are needed; with some others beside, where a schema wants
    /// more.
    fn objects(&self, schema: &Value, depth: usize) -> Vec<Value> {
        let of = |name: &str| schema["properties"].get(name).cloned().unwrap_or(json!({}));
        let mut members = Map::new();
        for name in schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            members.insert(
                name.to_owned(),
                self.of(&of(name), depth + 1).unwrap_or_default(),
            );
        }
        let mut all = vec![Value::from(members.clone())];
        let others = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name);
        for name in others
            .filter(|name| all[0].get(name).is_none())
            .take(2)
            .cloned()
            .collect::<Vec<_>>()
        {
            if let Some(value) = self.of(&of(&name), depth + 1) {
                members.insert(name, value);
                all.push(members.clone().into());
            }
        }
        all
    }
}

/// Arguments of a tool: all parameters at the top for which there is a value.
fn arguments(schema: &Value) -> Option<Value> {
    let samples = Samples { root: schema };
    let needed: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut arguments = Map::new();
    for (name, property) in schema["properties"].as_object().unwrap() {
        match samples.of(property, 0) {
            Some(value) => drop(arguments.insert(name.clone(), value)),
            None if needed.contains(&name.as_str()) => return None,
            None => {}
        }
    }
    Some(arguments.into())
}

#[test]
fn every_operation_of_five_public_apis_is_listed_and_its_calls_fit_the_description() {
    let home = Home::new();
    let (mut config, mut stubs) = (String::new(), Vec::new());
    for (name, path, base, _) in FILES {
        let written = Arc::new(Written::read(path, base));
        let checking = Arc::clone(&written);
        let stub = Stub::new(move |request| match checking.check(request) {
            Ok(()) => (200, JSON, "{}".to_owned()),
            Err(why) => (422, JSON, json!({ "error": why }).to_string()),
        });
        let (path, url) = (file(path), stub.origin() + base);
        config.push_str(&format!(
            "[servers.{name}]\nopenapi = {path:?}\nurl = {url:?}\n"
        ));
        stubs.push((stub, written));
    }
    let gateway = Gateway::start(&home, &config);
    for (name, ..) in FILES {
        gateway.ready(name);
    }
    let client = Client::plain(&gateway);
    let (mut tools, mut cursor) = (BTreeMap::new(), None);
    loop {
        let params = cursor
            .take()
            .map_or(json!({}), |cursor: Value| json!({ "cursor": cursor }));
        let page = client.ask("tools/list", params)["result"].take();
        for tool in page["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap().to_owned();
            assert!(
                tools.insert(name, tool["inputSchema"].clone()).is_none(),
                "{tool}"
            );
        }
        match &page["nextCursor"] {
            Value::Null => break,
            next => cursor = Some(next.clone()),
        }
    }
    let (mut wrong, mut called) = (Vec::new(), 0);
    for ((name, _, _, count), (stub, written)) in FILES.iter().zip(&stubs) {
        let prefix = format!("{name}_");
        let own: Vec<(&String, &Value)> = tools
            .iter()
            .filter(|(tool, _)| tool.starts_with(&prefix))
            .collect();
        assert_eq!(own.len(), *count, "{name}");
        for (tool, schema) in own {
            let Some(arguments) = arguments(schema) else {
                wrong.push(format!("{tool}: no values fit its schema"));
                continue;
            };
            let answer = client.call(tool, arguments.clone());
            called += 1;
            if answer["isError"] == true {
                wrong.push(format!(
                    "{tool} {arguments}: {}",
                    answer["content"][0]["text"]
                ));
            }
        }
        // Each operation that its author wrote for this origin was called, and nothing else was.
        let paths = written.root["paths"].as_object().unwrap();
        let is_here = |of: &Value| of.get("servers").is_none();
        let of_item = |item: &Value| {
            METHODS
                .iter()
                .filter(|method| item.get(**method).is_some_and(is_here))
                .count()
        };
        let described: usize = paths
            .values()
            .filter(|item| is_here(item))
            .map(of_item)
            .sum();
        assert_eq!(
            (described, stub.received().len()),
            (*count, *count),
            "{name}"
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(called, tools.len());
}
