//! Canonical text of rules: TOML with one spelling for each rule.

use chrono::{DateTime, SecondsFormat};
use model::Digest;
use sha2::{Digest as _, Sha256};

use crate::constant::{Constant, ValueType};
use crate::decimal::SpelledNumber;
use crate::guards::RuleGuards;
use crate::range::CountRange;
use crate::rule::CallRule;
use crate::value_test::ValueTest;

/// Prefix of the bytes that are hashed, so that no other hash can be taken for one of these.
const DOMAIN: &[u8] = b"portmoot/rule/1\0";

impl CallRule {
    /// The canonical text, a `[[rule]]` of TOML, which reads as the same rule.
    #[must_use]
    pub fn text(&self) -> String {
        rule(self)
    }

    /// SHA-256 of the canonical text. Accepting a rule is bound to it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        hash.update(DOMAIN);
        hash.update(self.text());
        Digest(hash.finalize().into())
    }
}

fn rule(rule: &CallRule) -> String {
    let mut out = String::from("[[rule]]\n");
    let mut line = |key: &str, value: String| {
        out.push_str(key);
        out.push_str(" = ");
        out.push_str(&value);
        out.push('\n');
    };
    line("id", text(rule.name.id.as_str()));
    line("version", rule.name.version.to_string());
    line("author", text(rule.author.as_str()));
    line("decision", text(rule.decision.as_str()));
    line("kind", text(&rule.scope.kind()));
    if let Some(to) = &rule.scope.to {
        line("to", text(to.as_str()));
    }
    let proposers = rule.scope.proposers.iter().map(|one| text(one.as_str()));
    line("proposers", list(proposers));
    let digests = [
        ("definition", rule.scope.definition),
        ("server", rule.scope.server),
    ];
    for (key, digest) in digests {
        if let Some(digest) = digest {
            line(key, text(&digest.to_string()));
        }
    }
    if let Some(expires_ms) = rule.expires_ms {
        line("expires", text(&time(expires_ms)));
    }
    if let Some(uses) = rule.uses {
        line("uses", uses.to_string());
    }
    if let Some(rate) = rule.guards.rate {
        line("rate", text(&rate.to_string()));
    }
    if let Some(during) = rule.during {
        line("during", text(&during.to_string()));
    }
    if rule.destructive {
        line("destructive", "true".to_owned());
    }
    if rule.shadow {
        line("shadow", "true".to_owned());
    }
    out.push_str(&guards(&rule.guards));
    if !rule.when.is_empty() {
        out.push_str("\n[rule.when]\n");
    }
    for (pointer, test) in rule.when.iter() {
        out.push_str(&format!(
            "{} = {}\n",
            text(pointer.as_str()),
            test_table(test)
        ));
    }
    out
}

/// A time as RFC 3339 in UTC, with whole seconds.
pub(crate) fn time(at_ms: u64) -> String {
    let at = i64::try_from(at_ms)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    at.map_or_else(String::new, |at| {
        at.to_rfc3339_opts(SecondsFormat::Secs, true)
    })
}

fn guards(guards: &RuleGuards) -> String {
    let mut out = String::new();
    for sum in &guards.sums {
        out.push_str(&format!(
            "\n[[rule.sum]]\nof = {}\nmax = {}\nwithin = {}\n",
            text(sum.of.as_str()),
            sum.max,
            text(&sum.within.to_string())
        ));
    }
    for count in &guards.counts {
        out.push_str(&format!(
            "\n[[rule.count]]\nsame = {}\nmax = {}\nwithin = {}\n",
            text(count.same.as_str()),
            count.max,
            text(&count.within.to_string())
        ));
    }
    for after in &guards.after {
        let kind = format!("{}:{}:{}", model::REQUEST, after.method, after.target);
        let same = after
            .same
            .iter()
            .map(|(here, there)| format!("{} = {}", text(here.as_str()), text(there.as_str())));
        out.push_str(&format!(
            "\n[[rule.after]]\nkind = {}\nto = {}\nsame = {}\nwithin = {}\n",
            text(&kind),
            text(after.to.as_str()),
            table(same),
            text(&after.within.to_string())
        ));
    }
    out
}

fn test_table(test: &ValueTest) -> String {
    table(test_members(test))
}

fn test_members(test: &ValueTest) -> Vec<String> {
    match test {
        ValueTest::OneOf(constants) => match constants.as_slice() {
            [one] => vec![format!("equals = {}", constant(one))],
            all => vec![format!("one_of = {}", list(all.iter().map(constant)))],
        },
        ValueTest::Integer(min, max) => vec![format!("integer = [{min}, {max}]")],
        ValueTest::Fraction(min, max) => vec![format!(
            "decimal = [{}, {}]",
            min.with_fraction(),
            max.with_fraction()
        )],
        ValueTest::Under(root) => vec![format!("under = {}", text(&root.to_string()))],
        ValueTest::Url(root) => vec![format!(
            "url = {}",
            table([
                format!("origin = {}", text(root.origin())),
                format!("under = {}", text(&root.path())),
                format!("query = {}", list(root.query().map(text))),
            ])
        )],
        ValueTest::Chars(set, length) => vec![
            format!("chars = {}", text(&set.to_string())),
            format!("length = {}", range(*length)),
        ],
        ValueTest::Shape(shapes, length) => vec![
            format!(
                "shape = {}",
                list(shapes.iter().map(|one| text(one.as_str())))
            ),
            format!("length = {}", range(*length)),
        ],
        ValueTest::Each(count, each) => {
            let count = format!("count = {}", range(*count));
            let each = each
                .as_deref()
                .map(|test| format!("each = {}", test_table(test)));
            [count].into_iter().chain(each).collect()
        }
        ValueTest::Absent => vec!["absent = true".to_owned()],
        ValueTest::Type(one) => vec![format!("type = {}", text(one.as_str()))],
        ValueTest::Length(length) => vec![format!("length = {}", range(*length))],
        ValueTest::Some(test) => vec![format!("some = {}", test_table(test))],
    }
}

fn range(range: CountRange) -> String {
    format!("[{}, {}]", range.low(), range.high())
}

/// A constant as TOML spells it; what TOML does not have as JSON in a text.
fn constant(constant: &Constant) -> String {
    let raw = constant.as_str();
    let is_plain_number = || SpelledNumber::read(raw) != SpelledNumber::Odd;
    match constant.value_type() {
        ValueType::Text => raw_text(raw),
        ValueType::Boolean => raw.to_owned(),
        ValueType::Number if is_plain_number() => raw.to_owned(),
        ValueType::Number | ValueType::Null | ValueType::Array | ValueType::Object => {
            format!("{{ json = {} }}", text(raw))
        }
    }
}

/// A canonical string of JSON as a string of TOML: the escapes of the one are escapes of the other.
fn raw_text(raw: &str) -> String {
    raw.replace('\u{7f}', "\\u007f")
}

fn text(text: &str) -> String {
    raw_text(&json::quote(text))
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(", "))
}

fn table(members: impl IntoIterator<Item = String>) -> String {
    let members: Vec<String> = members.into_iter().collect();
    if members.is_empty() {
        "{}".to_owned()
    } else {
        format!("{{ {} }}", members.join(", "))
    }
}
