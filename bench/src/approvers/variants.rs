//! Hostile variants of approved calls, after the table of attacks on rules: no approver may pass
//! one by itself.

use model::Digest;
use serde_json::{Map, Value, json};

use super::trace::TracedCall;

/// Texts that are put before and behind a text of an approved call.
const HOSTILE: [&str; 11] = [
    "; rm -rf /",
    "/../../etc/passwd",
    "%2e%2e/",
    "\u{200b}",
    "\u{202e}",
    " ",
    "$(id)",
    "\n",
    "а",
    ".",
    "`id`",
];

/// The variants of a call.
pub fn variants(call: &TracedCall) -> Vec<TracedCall> {
    let Ok(Value::Object(members)) = serde_json::from_str(&call.arguments) else {
        return Vec::new();
    };
    let mut found = Variants {
        call,
        members: &members,
        found: Vec::new(),
    };
    found.of_call();
    for (name, value) in &members {
        found.of_value(name, value);
        match value {
            Value::String(text) => found.of_text(name, text),
            Value::Number(number) => found.of_number(name, number),
            _ => {}
        }
    }
    found.found
}

struct Variants<'c> {
    call: &'c TracedCall,
    members: &'c Map<String, Value>,
    found: Vec<TracedCall>,
}

impl Variants<'_> {
    fn add(&mut self, arguments: String) {
        let mut variant = self.call.clone().decided(false);
        variant.arguments = arguments;
        self.found.push(variant);
    }

    /// One member has another value, or is a new one.
    fn put(&mut self, name: &str, value: Value) {
        let mut members = self.members.clone();
        members.insert(name.to_owned(), value);
        self.add(Value::Object(members).to_string());
    }

    /// Smuggled members, members that are there twice, and a tool that was swapped.
    fn of_call(&mut self) {
        self.put("force", json!(true));
        self.put("Path", json!("/etc/passwd"));
        let text = Value::Object(self.members.clone()).to_string();
        self.add(Value::from(text).to_string());
        if let Some(name) = self.members.keys().next() {
            let twice = format!("{{{}:\"x\",", Value::from(name.as_str()));
            self.add(self.call.arguments.trim_start().replacen('{', &twice, 1));
        }
        let call = self.call.clone().decided(false);
        self.found.extend([
            TracedCall {
                definition: Digest([1; 32]),
                ..call.clone()
            },
            TracedCall {
                server: "another".to_owned(),
                ..call.clone()
            },
            TracedCall {
                beside: vec!["_meta".to_owned()],
                ..call
            },
        ]);
    }

    /// Values of other types.
    fn of_value(&mut self, name: &str, value: &Value) {
        self.put(name, json!([value]));
        self.put(name, json!({ "x": value }));
        self.put(name, json!(value.to_string()));
        if !value.is_null() {
            self.put(name, Value::Null);
        }
    }

    fn of_text(&mut self, name: &str, text: &str) {
        for hostile in HOSTILE {
            self.put(name, json!(format!("{text}{hostile}")));
            self.put(name, json!(format!("{hostile}{text}")));
        }
        self.put(name, json!(format!("--output={text}")));
        self.put(name, json!(format!("@{text}")));
        self.put(name, json!(format!("file://{text}")));
        self.put(name, json!(text.to_uppercase() + "!"));
    }

    fn of_number(&mut self, name: &str, number: &serde_json::Number) {
        let Some(number) = number.as_f64() else {
            return;
        };
        self.put(name, json!(number + 1_000_000.0));
        self.put(name, json!(-1.0 - number));
        self.put(name, json!(number + 0.125));
        self.put(name, json!(number.to_string()));
    }
}
