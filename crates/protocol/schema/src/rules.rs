//! Rules of `buf.validate` for what a JSON Schema demands of a value.

use crate::file::{Rule, Type};
use crate::node::Node;
use crate::pattern::{self, is_pattern};
use crate::print::literal;
use crate::shape::{Kind, ValueShape};

/// Values that a rule lists at most; a longer list is left to the JSON Schema.
const VALUES_MAX: usize = 1_000;
/// Formats that a rule checks. Not `idn-email`: the rule for addresses is for those of ASCII.
const FORMATS: [CheckedFormat; 7] = [
    CheckedFormat::new("email", "email"),
    CheckedFormat::new("uri", "uri"),
    CheckedFormat::new("uri-reference", "uri_ref"),
    CheckedFormat::new("hostname", "hostname"),
    CheckedFormat::new("ipv4", "ipv4"),
    CheckedFormat::new("ipv6", "ipv6"),
    CheckedFormat::new("uuid", "uuid"),
];

/// A format of JSON Schema, and the rule of strings that checks it.
pub(crate) struct CheckedFormat {
    pub(crate) format: &'static str,
    pub(crate) rule: &'static str,
}

impl CheckedFormat {
    const fn new(format: &'static str, rule: &'static str) -> Self {
        Self { format, rule }
    }
}

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
            let unique = shape.node.get("uniqueItems");
            // protovalidate compares scalars only.
            if !ty.is_message() && unique.is_some_and(|unique| unique.is("true")) {
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

/// The formats that rules check.
pub(crate) fn checked_formats() -> &'static [CheckedFormat] {
    &FORMATS
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
    rules.iter().any(|rule| {
        let is_least = ["repeated.min_items", "map.min_pairs"].contains(&rule.path.as_str());
        is_least && rule.value != "0"
    })
}

/// The rules of one value while they are collected.
struct Rules<'a> {
    node: Node<'a>,
    /// Rules of the type, such as `string`.
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

    /// Adds `const` or `in`, if the schema lists the values, and returns whether it does: then no
    /// other rule is needed.
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
        if let Some(checked) = FORMATS
            .iter()
            .find(|checked| format.as_deref() == Some(checked.format))
        {
            self.add(checked.rule, "true");
        }
    }

    fn number(&mut self, ty: &Type) {
        let is_double = *ty == Type::Double;
        let is_listed = if is_double {
            self.values(|value| value.number().map(double))
        } else {
            self.values(|value| value.integer().map(|number| number.to_string()))
        };
        if is_listed {
            return;
        }
        let Bounds { lower, upper } = Bounds::read(self.node);
        if let (Some(lower), Some(upper)) = (lower, upper)
            && lower.value > upper.value
        {
            return; // protovalidate reads such a pair as "outside of"
        }
        if let Some(lower) = lower {
            let name = if lower.is_exclusive_for(is_double) {
                "gt"
            } else {
                "gte"
            };
            self.bound(name, lower.value, is_double, f64::ceil);
        }
        if let Some(upper) = upper {
            let name = if upper.is_exclusive_for(is_double) {
                "lt"
            } else {
                "lte"
            };
            self.bound(name, upper.value, is_double, f64::floor);
        }
    }

    /// Adds a bound of a number; `round` makes one for integers of a bound that is none.
    fn bound(&mut self, name: &str, value: f64, is_double: bool, round: fn(f64) -> f64) {
        if is_double {
            self.add(name, &double(value));
        } else if value.abs() < 9e15 {
            // Beyond that a double is not exact, and would refuse numbers that are allowed.
            self.add(name, &round(value).to_string());
        }
    }
}

/// One bound of a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) value: f64,
    exclusive: bool,
}

impl Bound {
    /// Whether the rule must exclude the bound itself. Integers beyond 1.5 begin at 2, which is
    /// allowed.
    fn is_exclusive_for(self, is_double: bool) -> bool {
        self.exclusive && (is_double || self.value.fract() == 0.0)
    }
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
        let lower = BoundPair::read(node, "minimum", "exclusiveMinimum");
        let upper = BoundPair::read(node, "maximum", "exclusiveMaximum");
        Self {
            lower: lower.tighter(|inclusive, exclusive| inclusive > exclusive),
            upper: upper.tighter(|inclusive, exclusive| inclusive < exclusive),
        }
    }
}

/// The two bounds that a schema may have at one side.
struct BoundPair {
    inclusive: Option<Bound>,
    exclusive: Option<Bound>,
}

impl BoundPair {
    fn read(node: Node<'_>, inclusive: &str, exclusive: &str) -> Self {
        let flag = node.get(exclusive);
        let is_flagged = flag.is_some_and(|flag| flag.is("true"));
        Self {
            inclusive: node
                .get(inclusive)
                .and_then(Node::number)
                .map(|value| Bound {
                    value,
                    exclusive: is_flagged,
                }),
            exclusive: flag.and_then(Node::number).map(|value| Bound {
                value,
                exclusive: true,
            }),
        }
    }

    /// The bound that allows less; of two equal ones the exclusive one.
    fn tighter(self, is_inclusive_tighter: fn(f64, f64) -> bool) -> Option<Bound> {
        match (self.inclusive, self.exclusive) {
            (Some(inclusive), Some(exclusive))
                if is_inclusive_tighter(inclusive.value, exclusive.value) =>
            {
                Some(inclusive)
            }
            (inclusive, exclusive) => exclusive.or(inclusive),
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
