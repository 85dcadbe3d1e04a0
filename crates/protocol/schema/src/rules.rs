//! Rules of `buf.validate` for what a JSON Schema demands of a value.

use crate::file::{Rule, Type};
use crate::node::Node;
use crate::pattern::{self, is_pattern};
use crate::print::literal;
use crate::shape::{Kind, ValueShape};

/// Values that a rule lists at most; a longer list is left to the JSON Schema.
const VALUES_MAX: usize = 1_000;
/// Formats, and the rules that check them.
const FORMATS: [(&str, &str); 8] = [
    ("email", "email"),
    ("uri", "uri"),
    ("uri-reference", "uri_ref"),
    ("hostname", "hostname"),
    ("ipv4", "ipv4"),
    ("ipv6", "ipv6"),
    ("uuid", "uuid"),
    ("idn-email", ""),
];

/// The rules of a value of this shape in a field of this type.
pub(crate) fn of(shape: &ValueShape<'_>, ty: &Type) -> Vec<Rule> {
    let mut rules = Rules {
        node: shape.node,
        prefix: ty.name().to_owned(),
        all: Vec::new(),
    };
    match &shape.kind {
        Kind::Text => rules.text(),
        Kind::Integer | Kind::Number => rules.number(ty),
        Kind::Bool => {
            if let Some(value) = shape.node.get("const") {
                rules.add("const", &String::from_utf8_lossy(value.0));
            }
        }
        Kind::List(item) => {
            rules.prefix = "repeated".to_owned();
            rules.count("minItems", "min_items");
            rules.count("maxItems", "max_items");
            if !ty.is_message()
                && shape
                    .node
                    .get("uniqueItems")
                    .is_some_and(|unique| unique.is("true"))
            {
                rules.add("unique", "true");
            }
            rules.inner("items", of(item, ty));
        }
        Kind::Map(value) => {
            rules.prefix = "map".to_owned();
            rules.count("minProperties", "min_pairs");
            rules.count("maxProperties", "max_pairs");
            rules.inner("values", of(value, ty));
        }
        Kind::Any | Kind::Object(_) | Kind::FreeObject | Kind::FreeList => {}
    }
    rules.all
}

/// The rules that check a format, with its name.
pub(crate) fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS
        .iter()
        .filter(|(_, rule)| !rule.is_empty())
        .map(|(format, rule)| (*rule, *format))
}

/// The rule that a field must be there.
pub(crate) fn required() -> Rule {
    Rule {
        path: "required".to_owned(),
        value: "true".to_owned(),
    }
}

/// The rule by which the others count only where something is: a list or map that is left out is
/// empty.
pub(crate) fn unless_empty() -> Rule {
    Rule {
        path: "ignore".to_owned(),
        value: "IGNORE_IF_ZERO_VALUE".to_owned(),
    }
}

/// Whether an empty list or map breaks these rules.
pub(crate) fn refuse_none(rules: &[Rule]) -> bool {
    let is_least =
        |rule: &Rule| ["repeated.min_items", "map.min_pairs"].contains(&rule.path.as_str());
    rules.iter().any(|rule| is_least(rule) && rule.value != "0")
}

struct Rules<'a> {
    node: Node<'a>,
    prefix: String,
    all: Vec<Rule>,
}

impl Rules<'_> {
    fn add(&mut self, name: &str, value: &str) {
        self.all.push(Rule {
            path: format!("{}.{name}", self.prefix),
            value: value.to_owned(),
        });
    }

    fn inner(&mut self, name: &str, rules: Vec<Rule>) {
        for rule in rules {
            self.add(&format!("{name}.{}", rule.path), &rule.value);
        }
    }

    fn count(&mut self, keyword: &str, rule: &str) {
        let count = self
            .node
            .get(keyword)
            .and_then(Node::number)
            .filter(|count| *count >= 0.0 && *count < 1e15);
        if let Some(count) = count {
            self.add(rule, &count.to_string());
        }
    }

    /// `const` or `in`, if the schema lists the values. Whether it does.
    fn values(&mut self, spell: impl Fn(Node<'_>) -> Option<String>) -> bool {
        if let Some(value) = self.node.get("const") {
            if let Some(value) = spell(value) {
                self.add("const", &value);
            }
            return true;
        }
        let Some(values) = self.node.get("enum") else {
            return false;
        };
        let values: Vec<_> = values.elements().into_iter().filter_map(spell).collect();
        if values.len() <= VALUES_MAX {
            values.iter().for_each(|value| self.add("in", value));
        }
        true
    }

    fn text(&mut self) {
        if self.values(|value| value.text().map(|text| literal(&text))) {
            return;
        }
        self.count("minLength", "min_len");
        self.count("maxLength", "max_len");
        if let Some(pattern) = self.node.get("pattern").and_then(Node::text) {
            let pattern = pattern::of_json(&pattern);
            if is_pattern(&pattern) {
                self.add("pattern", &literal(&pattern));
            }
        }
        let format = self.node.get("format").and_then(Node::text);
        let known = |format: &str| {
            FORMATS
                .iter()
                .find(|(name, rule)| *name == format && !rule.is_empty())
        };
        if let Some((_, rule)) = format.as_deref().and_then(known) {
            self.add(rule, "true");
        }
    }

    fn number(&mut self, ty: &Type) {
        let is_double = *ty == Type::Double;
        let whole = |value: Node<'_>| value.integer().map(|number| number.to_string());
        let spell = |value: Node<'_>| {
            if is_double {
                value.number().map(double)
            } else {
                whole(value)
            }
        };
        if self.values(spell) {
            return;
        }
        let Bounds { lower, upper } = Bounds::read(self.node);
        if let (Some(lower), Some(upper)) = (lower, upper)
            && lower.value > upper.value
        {
            return; // protovalidate reads such a pair as "outside of"
        }
        for (bound, names, round) in [
            (lower, ["gte", "gt"], f64::ceil as fn(f64) -> f64),
            (upper, ["lte", "lt"], f64::floor),
        ] {
            let Some(Bound { value, exclusive }) = bound else {
                continue;
            };
            let [inclusive_name, exclusive_name] = names;
            if is_double {
                self.add(
                    if exclusive {
                        exclusive_name
                    } else {
                        inclusive_name
                    },
                    &double(value),
                );
            } else if value.abs() < 9e15 {
                let is_whole = value.fract() == 0.0;
                let name = if exclusive && is_whole {
                    exclusive_name
                } else {
                    inclusive_name
                };
                self.add(name, &round(value).to_string());
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) value: f64,
    exclusive: bool,
}

/// The bounds of a number.
pub(crate) struct Bounds {
    pub(crate) lower: Option<Bound>,
    pub(crate) upper: Option<Bound>,
}

impl Bounds {
    /// Reads both spellings of exclusive bounds: a number of its own, and a flag beside the bound
    /// (draft 4).
    pub(crate) fn read(node: Node<'_>) -> Self {
        let bound = |keyword: &str, exclusive: &str, tighter: fn(f64, f64) -> bool| {
            let flag = node.get(exclusive);
            let flagged = flag.is_some_and(|flag| flag.is("true"));
            let number = |node: Option<Node<'_>>| node.and_then(Node::number);
            let inclusive = number(node.get(keyword)).map(|value| Bound {
                value,
                exclusive: flagged,
            });
            let exclusive = number(flag).map(|value| Bound {
                value,
                exclusive: true,
            });
            match (inclusive, exclusive) {
                (Some(one), Some(other)) => Some(if tighter(one.value, other.value) {
                    one
                } else {
                    other
                }),
                (one, other) => one.or(other),
            }
        };
        Self {
            lower: bound("minimum", "exclusiveMinimum", |one, other| one > other),
            upper: bound("maximum", "exclusiveMaximum", |one, other| one < other),
        }
    }
}

/// A double as protobuf's text spells it.
fn double(value: f64) -> String {
    if value != 0.0 && !(1e-5..1e15).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}
