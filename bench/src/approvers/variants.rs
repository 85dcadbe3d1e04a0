//! Hostile variants of approved calls: each row of the table of attacks on the learner that is a change of
//! a call. No approver may pass one by itself.

use std::fmt;

use model::Digest;
use serde_json::{Map, Value, json};

use super::trace::TracedCall;

/// A row of the table of attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttackRow {
    /// A value far from all that were approved: what feeding is for.
    Beyond,
    /// A member more, once more, or in another case.
    Smuggled,
    /// A value, or all arguments, as a text or inside of something.
    Stringified,
    /// Look-alikes, hidden characters, twins that normalisation makes equal.
    Unicode,
    /// A path that leads elsewhere.
    Path,
    /// An option, a file or a command in a text.
    Injected,
    /// A number that readers read differently.
    Number,
    /// Another definition, configuration, server, tool or proposer.
    Swapped,
}

/// A variant of a call.
#[derive(Debug, Clone)]
pub struct AttackVariant {
    /// The row that it is of.
    pub row: AttackRow,
    /// The call.
    pub call: TracedCall,
}

/// Texts that are put before a text of an approved call, and behind it.
const AROUND: [(AttackRow, &str); 18] = [
    (AttackRow::Unicode, "\u{200b}"),
    (AttackRow::Unicode, "\u{202e}"),
    (AttackRow::Unicode, "\u{e0041}"),
    (AttackRow::Unicode, "\u{301}"),
    (AttackRow::Unicode, "\u{430}"),
    (AttackRow::Path, "/../../etc/passwd"),
    (AttackRow::Path, "%2e%2e/"),
    (AttackRow::Path, "//"),
    (AttackRow::Path, "\\"),
    (AttackRow::Path, "~"),
    (AttackRow::Path, "$HOME"),
    (AttackRow::Path, "."),
    (AttackRow::Path, " "),
    (AttackRow::Path, "/NUL"),
    (AttackRow::Injected, "; rm -rf /"),
    (AttackRow::Injected, "$(id)"),
    (AttackRow::Injected, "`id`"),
    (AttackRow::Injected, "\n"),
];

/// Texts that are put before a text.
const BEFORE: [(AttackRow, &str); 7] = [
    (AttackRow::Path, "C:"),
    (AttackRow::Path, "/"),
    (AttackRow::Injected, "--output="),
    (AttackRow::Injected, "-o"),
    (AttackRow::Injected, "-"),
    (AttackRow::Injected, "@"),
    (AttackRow::Injected, "file://"),
];

impl AttackRow {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Beyond,
        Self::Smuggled,
        Self::Stringified,
        Self::Unicode,
        Self::Path,
        Self::Injected,
        Self::Number,
        Self::Swapped,
    ];
}

/// The name of the row.
impl fmt::Display for AttackRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Beyond => "values beyond what was approved",
            Self::Smuggled => "smuggled members",
            Self::Stringified => "stringified or nested arguments",
            Self::Unicode => "Unicode twins and hidden characters",
            Self::Path => "paths that lead elsewhere",
            Self::Injected => "argument injection",
            Self::Number => "numbers that are read differently",
            Self::Swapped => "a tool swapped behind the name",
        })
    }
}

/// The variants of a call.
pub fn variants(call: &TracedCall) -> Vec<AttackVariant> {
    let Ok(Value::Object(members)) = serde_json::from_str(&call.arguments) else {
        return Vec::new();
    };
    let mut found = Variants {
        call,
        members: &members,
        found: Vec::new(),
    };
    found.of_members();
    found.of_tool();
    for (name, value) in &members {
        found.of_value(name, value);
        match value {
            Value::String(text) => found.of_text(name, text),
            Value::Number(number) => found.of_number(name, &number.to_string()),
            _ => {}
        }
    }
    found.found
}

struct Variants<'c> {
    call: &'c TracedCall,
    members: &'c Map<String, Value>,
    found: Vec<AttackVariant>,
}

impl Variants<'_> {
    fn add(&mut self, row: AttackRow, change: impl FnOnce(&mut TracedCall)) {
        let mut call = self.call.clone().decided(false);
        change(&mut call);
        self.found.push(AttackVariant { row, call });
    }

    /// One member has another value, or is a new one.
    fn put(&mut self, row: AttackRow, name: &str, value: &Value) {
        self.put_raw(row, name, &value.to_string());
    }

    fn put_raw(&mut self, row: AttackRow, name: &str, json: &str) {
        let others = self.members.iter().filter(|(own, _)| *own != name);
        let others = others.map(|(own, value)| (own.as_str(), value.to_string()));
        let all = others.chain([(name, json.to_owned())]);
        let all = all.map(|(name, value)| format!("{}:{value}", json!(name)));
        let arguments = format!("{{{}}}", all.collect::<Vec<_>>().join(","));
        self.add(row, |call| call.arguments = arguments);
    }

    fn of_members(&mut self) {
        let row = AttackRow::Smuggled;
        for (name, value) in [
            ("force", json!(true)),
            ("Path", json!("/etc/passwd")),
            ("x", json!({})),
            ("y", json!([])),
            ("z", Value::Null),
        ] {
            self.put(row, name, &value);
        }
        self.add(row, |call| call.beside = vec!["_meta".to_owned()]);
        let text = Value::Object(self.members.clone()).to_string();
        self.add(AttackRow::Stringified, |call| {
            call.arguments = json!(text).to_string();
        });
        for name in self.members.keys() {
            let own = self.call.arguments.trim_start();
            let twice = own.replacen('{', &format!("{{{}:\"x\",", json!(name)), 1);
            self.add(row, |call| call.arguments = twice);
            let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
            let twin = format!("{}{rest}", first.to_uppercase());
            for twin in [twin, format!("{name}\u{200b}")] {
                if !self.members.contains_key(&twin) {
                    self.put(row, &twin, &json!("x"));
                }
            }
        }
    }

    fn of_tool(&mut self) {
        let row = AttackRow::Swapped;
        self.add(row, |call| call.definition = Digest([1; 32]));
        self.add(row, |call| call.configuration = Digest([1; 32]));
        self.add(row, |call| "another".clone_into(&mut call.server));
        self.add(row, |call| call.tool.push('2'));
        self.add(row, |call| "stranger".clone_into(&mut call.agent));
    }

    /// Values of other types.
    fn of_value(&mut self, name: &str, value: &Value) {
        let row = AttackRow::Stringified;
        self.put(row, name, &json!([value]));
        self.put(row, name, &json!({ "x": value }));
        self.put(row, name, &json!(value.to_string()));
        if !value.is_null() {
            self.put(row, name, &Value::Null);
        }
    }

    fn of_text(&mut self, name: &str, text: &str) {
        for (row, hostile) in AROUND {
            self.put(row, name, &json!(format!("{text}{hostile}")));
            self.put(row, name, &json!(format!("{hostile}{text}")));
        }
        for (row, hostile) in BEFORE {
            self.put(row, name, &json!(format!("{hostile}{text}")));
        }
        let shouted = text.to_uppercase() + "!";
        self.put(AttackRow::Beyond, name, &json!(shouted));
        if let Some(first) = text.chars().next().filter(char::is_ascii_alphanumeric) {
            // Full width: equal to the letter after compatible normalisation.
            let twin = char::from_u32(u32::from(first) + 0xFEE0).unwrap_or(first);
            let twin = text.replacen(first, &twin.to_string(), 1);
            self.put(AttackRow::Unicode, name, &json!(twin));
        }
    }

    fn of_number(&mut self, name: &str, spelled: &str) {
        let row = AttackRow::Number;
        for other in [
            "-0",
            "1000000000000000000000000000000",
            "0.0000000000000000000001",
        ] {
            self.put_raw(row, name, other);
        }
        self.put_raw(row, name, &format!("{spelled}e0"));
        self.put_raw(row, name, &format!("\"{spelled}\""));
        if let Ok(whole) = spelled.parse::<i64>() {
            self.put_raw(row, name, &format!("{spelled}.0"));
            self.put_raw(row, name, &format!("{spelled}.125"));
            self.put(AttackRow::Beyond, name, &json!(whole + 1_000_000));
            self.put(AttackRow::Beyond, name, &json!(-1 - whole));
        } else if let Ok(fraction) = spelled.parse::<f64>() {
            self.put(AttackRow::Beyond, name, &json!(fraction + 1_000_000.5));
            self.put(AttackRow::Beyond, name, &json!(-1.5 - fraction));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_variants_that_differ_from_their_call() {
        let arguments = r#"{"path":"/srv/a.md","amount":5,"rate":1.5}"#;
        let call = TracedCall::new("scout", "bank", "pay", arguments.to_owned());
        let all = variants(&call);
        for row in AttackRow::ALL {
            assert!(all.iter().any(|one| one.row == row), "{row}");
        }
        let is_other = |one: &TracedCall| {
            one.arguments != call.arguments
                || one.beside != call.beside
                || (&one.server, &one.tool, &one.agent) != (&call.server, &call.tool, &call.agent)
                || (one.definition, one.configuration) != (call.definition, call.configuration)
        };
        assert!(all.iter().all(|one| is_other(&one.call)));
    }
}
