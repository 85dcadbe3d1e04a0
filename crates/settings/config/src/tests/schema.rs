//! Tests of the schema for editors: it is what the readers read, and what the pages show is valid
//! under it.

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::documented::{SAMPLE, reading, rows};
use crate::reader::ValueForm;
use crate::sources::DEFAULTS;
use crate::{SCHEMA, to_json};

/// Spans of time and numbers of bytes, as the readers accept them.
const DURATION: &str = r"^[0-9]+\s*(ms|s|m|min|h|d)$";
const BYTES: &str = r"^[0-9]+\s*(B|KiB|MiB|GiB)?$";
/// The name of a kept secret.
const SECRET_NAME: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";
/// Keys without which their tables are not valid.
const REQUIRED: [(&str, &str); 6] = [
    ("cluster", "name"),
    ("cluster", "nats"),
    ("server.tls", "cert"),
    ("server.tls", "key"),
    ("profiles.NAME", "capabilities"),
    ("sets.NAME", "tools"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The schema of a value.
fn schema_of(path: &str, form: &ValueForm) -> Value {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": text() });
    let values = || json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } });
    let capabilities = || {
        json!({ "type": "array", "items": { "anyOf": [
            text(),
            { "type": "object", "additionalProperties": false, "required": ["kind"], "properties": {
                "kind": text(),
                "to": { "anyOf": [text(), texts()] },
            } },
        ] } })
    };
    let key = path.rsplit('.').next().unwrap();
    match (key, form) {
        ("capabilities" | "shadow_capabilities", _) => capabilities(),
        ("map", ValueForm::List) => json!({ "type": "array", "items": {
            "type": "object", "additionalProperties": false, "required": ["when"], "properties": {
                "when": values(),
                "profile": text(),
                "capabilities": capabilities(),
                "topics": texts(),
            },
        } }),
        ("env" | "headers" | "query", ValueForm::Entries) => {
            let value = json!({ "type": ["string", "number", "boolean"] });
            let forms = if key == "query" {
                vec![value, secret()]
            } else {
                vec![value, secret(), caller()]
            };
            json!({ "type": "object", "additionalProperties": { "anyOf": forms } })
        }
        // Any JSON.
        ("annotations" | "preset", ValueForm::Entries) => json!({ "type": "object" }),
        ("tool_timeouts", ValueForm::Entries) => {
            json!({ "type": "object", "additionalProperties": { "type": "string", "pattern": DURATION } })
        }
        (_, ValueForm::Entries) => json!({ "type": "object", "additionalProperties": text() }),
        (_, ValueForm::Text) => text(),
        (_, ValueForm::Flag) => json!({ "type": "boolean" }),
        (_, ValueForm::Count) => json!({ "type": "integer", "minimum": 0 }),
        (_, ValueForm::Decimal) => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        (_, ValueForm::Bytes) => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": BYTES }] })
        }
        (_, ValueForm::Duration) => json!({ "type": "string", "pattern": DURATION }),
        (_, ValueForm::Choice(words)) => json!({ "enum": words }),
        (_, ValueForm::Choices(words)) => json!({ "type": "array", "items": { "enum": words } }),
        (_, ValueForm::Texts) => texts(),
        (_, ValueForm::Table | ValueForm::Tables | ValueForm::List) => {
            panic!("{path} needs a form: {form:?}")
        }
    }
}

/// A rate, which is read in its own way.
fn rate() -> Value {
    let limit = json!({ "type": "string", "pattern": r"^[0-9]+\s*/\s*(s|m|min)$" });
    json!({ "anyOf": [limit, { "type": "object", "additionalProperties": false, "required": ["limit"],
        "properties": { "limit": limit, "burst": { "type": "integer", "minimum": 1 } } }] })
}

/// A table that names a secret.
fn secret() -> Value {
    let words = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
    let prefix = json!({ "type": "string" });
    json!({ "anyOf": [
        { "type": "object", "additionalProperties": false, "required": ["command"],
          "properties": { "command": words, "prefix": prefix } },
        { "type": "object", "additionalProperties": false, "required": ["file"],
          "properties": { "file": { "type": "string" }, "prefix": prefix } },
        { "type": "object", "additionalProperties": false, "required": ["secret"],
          "properties": { "secret": { "type": "string", "pattern": SECRET_NAME }, "prefix": prefix } },
    ] })
}

/// A table that stands for each caller's own key.
fn caller() -> Value {
    json!({ "type": "object", "additionalProperties": false, "required": ["caller"], "properties": {
        "caller": { "type": "string", "minLength": 1, "maxLength": crate::KEY_LABEL_CHARS_MAX },
        "prefix": { "type": "string" },
    } })
}

/// The schema of a value that the readers look at themselves.
fn own_schema_of(path: &str) -> Value {
    let text = || json!({ "type": "string" });
    match path.rsplit('.').next().unwrap() {
        "rate" | "anonymous_rate" => rate(),
        "grace" => json!({ "type": "string", "pattern": DURATION }),
        "token" | "client_secret" | "secret" | "slack" => secret(),
        "resource" => json!({ "type": ["boolean", "string"] }),
        "subject" => json!({ "type": "object", "additionalProperties": false,
            "required": ["issuer", "sub"], "properties": { "issuer": text(), "sub": text() } }),
        _ => panic!("{path} has no form"),
    }
}

/// The object for a table in the schema, made on the way.
fn object<'a>(schema: &'a mut Value, path: &str) -> &'a mut Map<String, Value> {
    let mut at = schema;
    for key in path.split('.').filter(|key| !key.is_empty()) {
        let empty = || json!({ "type": "object", "additionalProperties": false, "properties": {} });
        at = match key {
            "NAME" => {
                if !at["additionalProperties"].is_object() {
                    at.as_object_mut().unwrap().remove("properties");
                    at["additionalProperties"] = empty();
                }
                &mut at["additionalProperties"]
            }
            key => at["properties"]
                .as_object_mut()
                .unwrap()
                .entry(key)
                .or_insert_with(empty),
        };
    }
    at.as_object_mut().unwrap()
}

/// The schema that follows from the readers and the page.
fn made() -> String {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "portmoot.toml",
        "description": "Configuration of Portmoot, an MCP gateway",
        "type": "object",
        "additionalProperties": false,
        "properties": {},
    });
    // With each table that is read only where it is.
    let problems = reading(&SAMPLE.replace("[servers.NAME]\n", "[servers.NAME]\nlimits = {}\n"));
    let forms = problems.forms.borrow();
    let pages = rows();
    for path in problems.read_keys.borrow().iter() {
        let form = forms.get(path);
        if matches!(form, Some(ValueForm::Table | ValueForm::Tables)) {
            object(&mut schema, path);
            continue;
        }
        let mut value = form.map_or_else(|| own_schema_of(path), |form| schema_of(path, form));
        if let Some([default, meaning]) = pages.get(path) {
            value["description"] = meaning.replace("\\|", "|").into();
            let default = default
                .strip_prefix('`')
                .and_then(|text| text.strip_suffix('`'));
            if let Some(default) = default {
                let toml = super::documented::tree(&format!("x = {default}"));
                value["default"] = to_json(&toml)["x"].take();
            }
        }
        let (table, key) = path.rsplit_once('.').unwrap();
        object(&mut schema, table)["properties"][key] = value;
    }
    for (table, key) in REQUIRED {
        let table = object(&mut schema, table);
        let required = table.entry("required").or_insert_with(|| json!([]));
        required.as_array_mut().unwrap().push(key.into());
    }
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

fn validator() -> Validator {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap()
}

#[test]
fn the_schema_is_what_the_readers_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema.json");
    let made = made();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == made,
        "stale: UPDATE=1 cargo nextest run -p portmoot-config schema"
    );
}

/// The blocks of TOML in the pages that are configurations.
fn examples() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|page| page.unwrap().path());
    let pages = docs.filter(|page| page.extension().is_some_and(|end| end == "md"));
    let mut found = Vec::new();
    for page in pages.chain([root().join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        let blocks = text
            .split("```toml\n")
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap().to_owned());
        found.extend(blocks.map(|block| (page.display().to_string(), block)));
    }
    found
}

#[test]
fn the_examples_and_the_defaults_are_valid() {
    let validator = validator();
    let mut checked = 0;
    let own = [
        ("defaults", DEFAULTS),
        ("demo", include_str!("../demo.toml")),
    ];
    let own = own.map(|(name, text)| (name.to_owned(), text.to_owned()));
    for (page, text) in examples().into_iter().chain(own) {
        let value = to_json(&super::documented::tree(&text));
        let wrong: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{page}:\n{text}\n{wrong:#?}");
        checked += 1;
    }
    assert!(checked > 6, "{checked}");
}

#[test]
fn what_the_check_refuses_is_refused() {
    let validator = validator();
    let check = |text: &str, expect: bool| {
        let value = to_json(&super::documented::tree(text));
        assert_eq!(validator.is_valid(&value), expect, "{text}");
        let read = crate::check_text("x.toml", text, &super::documented::env);
        assert_eq!(read.is_empty(), expect, "{text}: {read:?}");
    };
    check(
        "[servers.a]\ncommand = \"x\"\nenv = { A = 1, B = true }\nrequest_timeout = \"30s\"\n",
        true,
    );
    check(
        "[servers.a]\ncommand = \"x\"\nenv = { A = { command = [\"op\", \"read\"] } }\n",
        true,
    );
    check(
        "[servers.a]\nurl = \"https://x.example\"\nheaders = { A = { file = \"/x\", prefix = \"Bearer \" } }\n",
        true,
    );
    check(
        "[servers.a]\ncommand = \"x\"\nenv = { A = { file = \"/x\", command = [\"op\"] } }\n",
        false,
    );
    check(
        "[servers.a]\ncommand = \"x\"\nenv = { A = { command = \"op read\" } }\n",
        false,
    );
    check(
        "[servers.a]\ncommand = \"x\"\nenv = { A = { command = [] } }\n",
        false,
    );
    check(
        "[servers.a]\ncommand = \"x\"\nenv = { A = { text = \"hush\" } }\n",
        false,
    );
    check("[participants.a]\ntoken = { file = \"/x\" }\n", true);
    check("[participants.a]\ntoken = \"hush\"\n", false);
    check("[login]\ngrace = \"0s\"\n", true);
    check(
        "[servers.a]\nurl = \"https://x.example\"\nauth = { resource = false }\n",
        true,
    );
    check(
        "[servers.a]\ntype = \"demo\"\ntool_timeouts = { x = \"5m\" }\n",
        true,
    );
    check(
        "[server.limits]\nbody_bytes_max = \"4MiB\"\nkeep_alive = \"20s\"\n",
        true,
    );
    check(
        "[topics.main]\nbuiltin = [\"room\"]\nanonymous_rate = { limit = \"6/min\", burst = 2 }\n",
        true,
    );
    check(
        "[profiles.p]\ncapabilities = [\"chat\", { kind = \"mcp/request:*\", to = [\"a\"] }]\n",
        true,
    );
    check("[servers.a]\ncomand = \"x\"\n", false);
    check("[servers.a]\ncommand = \"x\"\nargs = \"y\"\n", false);
    check("[servers.a]\ntype = \"pipe\"\ncommand = \"x\"\n", false);
    check(
        "[servers.a]\ncommand = \"x\"\nrequest_timeout = \"30\"\n",
        false,
    );
    check("[server.limits]\nbody_bytes_max = \"4MB\"\n", false);
    check("[topics.main]\nbuiltin = [\"rooms\"]\n", false);
    check("[participants.a]\nrate = \"fast\"\n", false);
    check("[participants.a]\nwires = [\"ws\", \"tcp\"]\n", false);
    check("[profiles.p]\n", false);
    let cluster =
        "[cluster]\nname = \"prod\"\nnats = [\"nats://127.0.0.1:4222\"]\nkey_file = \"k\"\n";
    check(cluster, true);
    check(&format!("{cluster}cut_off = \"30\"\n"), false);
    check(&format!("{cluster}port = 4222\n"), false);
    check("[cluster]\nkey_file = \"k\"\n", false);
    check("[other]\nx = 1\n", false);
}
