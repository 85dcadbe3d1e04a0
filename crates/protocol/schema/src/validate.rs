//! Rules of `buf.validate`: whether they can be checked, and what breaks them.

use std::collections::HashSet;

use prost_protovalidate::{Error, Validator};
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor, Value};

use crate::common::is_common;
use crate::costs::Costs;
use crate::cycles::Cycles;
use crate::pattern::is_pattern;

/// Patterns of one tool of a peer.
const PATTERNS_MAX: usize = 100;
/// Bytes of one expression of a peer.
const EXPRESSION_BYTES_MAX: usize = 2_048;
/// Expressions of one tool of a peer.
const EXPRESSIONS_MAX: usize = 200;
/// Brackets and choices inside each other in an expression: its parser recurses.
const EXPRESSION_DEPTH_MAX: usize = 32;

/// A rule that a message breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleViolation {
    /// The field, such as `filter.max_results` or `tags[2]`; empty for the whole message.
    pub field: String,
    /// The rule, such as `string.min_len`.
    pub rule: String,
    /// Message about the fault, for people.
    pub message: String,
}

/// Why a message is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It breaks rules.
    #[error("{}", .0.iter().map(|one| format!("{}: {}", one.field, one.message)).collect::<Vec<_>>().join("; "))]
    Violations(Vec<RuleViolation>),
    /// A rule could not be checked.
    #[error("the rules of the schema cannot be checked: {0}")]
    Unchecked(String),
}

/// The rules of all messages of one pool.
#[derive(Default)]
pub(crate) struct Rules {
    /// Remembers messages by name.
    validator: Validator,
    cycles: Cycles,
}

impl Rules {
    /// Rules of a pool in which the view of the library ends at these fields.
    pub(crate) fn new(cycles: Cycles) -> Self {
        Self {
            validator: Validator::new(),
            cycles,
        }
    }

    /// Checks a message by its rules, whose expressions have these costs.
    pub(crate) fn check(&self, costs: &Costs, message: &DynamicMessage) -> Result<(), Invalid> {
        // First: the evaluator of expressions has no limit, and the message is a stranger's.
        if !costs.allow(message) {
            return Err(Invalid::Unchecked(
                "its expressions would take too long for so large a message".to_owned(),
            ));
        }
        let mut found = self.violations("", message)?;
        self.cycles.behind(message, &mut |path, inner| {
            found.extend(self.violations(path, inner)?);
            Ok(())
        })?;
        if found.is_empty() {
            Ok(())
        } else {
            Err(Invalid::Violations(found))
        }
    }

    /// Violations that the library finds in a message at this path.
    fn violations(
        &self,
        path: &str,
        message: &DynamicMessage,
    ) -> Result<Vec<RuleViolation>, Invalid> {
        let error = match self.validator.validate(message) {
            Ok(()) => return Ok(Vec::new()),
            Err(Error::Validation(error)) => error,
            Err(error) => return Err(Invalid::Unchecked(error.to_string())),
        };
        let mut violations = Vec::new();
        for one in error.violations() {
            if is_empty_reference(one) {
                continue;
            }
            violations.push(RuleViolation {
                field: below(path, &without_dots(&one.field_path())),
                rule: one.rule_id().to_owned(),
                message: one.message().to_owned(),
            });
        }
        Ok(violations)
    }

    /// Compiles the rules of these messages and of all that are in them, and returns what their
    /// expressions cost.
    ///
    /// # Errors
    /// The first rule that cannot be compiled, or is too large.
    pub(crate) fn compile(
        &self,
        roots: impl Iterator<Item = MessageDescriptor>,
    ) -> Result<Costs, String> {
        let messages = reachable(roots);
        let costs = costs(&messages)?;
        for message in messages {
            // The library compiles the rules of a message when it checks the first one.
            match self.check(&costs, &DynamicMessage::new(message)) {
                Err(Invalid::Unchecked(why)) => return Err(why),
                Ok(()) | Err(Invalid::Violations(_)) => {}
            }
        }
        Ok(costs)
    }
}

/// The path of a field in a message that is itself at a path.
fn below(path: &str, field: &str) -> String {
    match (path, field) {
        ("", field) => field.to_owned(),
        (path, "") => path.to_owned(),
        (path, field) => format!("{path}.{field}"),
    }
}

/// The library refuses an empty URI reference, which refers to where it stands (RFC 3986, 4.4);
/// `validate.proto` does not.
fn is_empty_reference(one: &prost_protovalidate::Violation) -> bool {
    one.rule_id() == "string.uri_ref_empty" && one.rule_path().ends_with("string.uri_ref")
}

/// A path without the dot that the library writes between a map and a key with brackets.
fn without_dots(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut quoted = false;
    let mut escaped = false;
    for (at, letter) in path.char_indices() {
        let is_key = !quoted && path.get(at..).is_some_and(|rest| rest.starts_with(".[\""));
        quoted ^= letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        if !is_key {
            out.push(letter);
        }
    }
    out
}

/// Costs of the expressions of these messages.
///
/// # Errors
/// The first rule that is too large.
fn costs(messages: &[MessageDescriptor]) -> Result<Costs, String> {
    let mut sizes = Sizes::default();
    for message in messages {
        let options = std::iter::once(message.options())
            .chain(message.fields().map(|field| field.options()))
            .chain(message.oneofs().map(|oneof| oneof.options()));
        sizes.message = Some(message.full_name().to_owned());
        for options in options {
            sizes.extensions(&options)?;
        }
    }
    // Rules that the schema itself adds to those of `buf.validate` may be anywhere.
    sizes.message = None;
    if let Some(message) = messages.first() {
        for extension in message.parent_pool().all_extensions() {
            if !is_common(extension.parent_file().name()) {
                sizes.extensions(&extension.options())?;
            }
        }
    }
    Ok(sizes.costs)
}

/// These messages and those of their fields, without the well-known ones.
fn reachable(roots: impl Iterator<Item = MessageDescriptor>) -> Vec<MessageDescriptor> {
    let mut open = roots.collect::<Vec<_>>();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    while let Some(message) = open.pop() {
        if is_common(message.parent_file().name()) || !seen.insert(message.full_name().to_owned()) {
            continue;
        }
        for field in message.fields() {
            if let Kind::Message(inner) = field.kind() {
                open.push(inner);
            }
        }
        // The entry of a map has no rules of its own; its values are found by its field.
        if !message.is_map_entry() {
            found.push(message);
        }
    }
    found
}

/// Patterns and expressions of a tool's rules, as far as they were read.
#[derive(Default)]
struct Sizes {
    patterns: usize,
    expressions: usize,
    costs: Costs,
    /// Message whose rules are read; `None` for those that may be in any message.
    message: Option<String>,
}

impl Sizes {
    /// Reads the rules in the options of a message, a field or a oneof.
    fn extensions(&mut self, options: &DynamicMessage) -> Result<(), String> {
        for (_, value) in options.extensions() {
            self.value("", value, false)?;
        }
        Ok(())
    }

    /// Reads the value of a field of rules, and all in it. `for_each`: inside the rules of
    /// elements.
    fn value(&mut self, field: &str, value: &Value, for_each: bool) -> Result<(), String> {
        const OF_ELEMENTS: [&str; 3] = [
            "buf.validate.RepeatedRules.items",
            "buf.validate.MapRules.keys",
            "buf.validate.MapRules.values",
        ];
        let for_each = for_each || OF_ELEMENTS.contains(&field);
        match value {
            Value::Message(rules) => {
                for (field, value) in rules.fields() {
                    self.value(field.full_name(), value, for_each)?;
                }
                Ok(())
            }
            Value::List(values) => {
                for value in values {
                    self.value(field, value, for_each)?;
                }
                Ok(())
            }
            Value::String(text) => self.text(field, text, for_each),
            _ => Ok(()),
        }
    }

    /// Counts a pattern or an expression, and refuses one that is too large.
    fn text(&mut self, field: &str, text: &str, for_each: bool) -> Result<(), String> {
        match field {
            "buf.validate.StringRules.pattern" | "buf.validate.BytesRules.pattern" => {
                self.patterns += 1;
                if self.patterns > PATTERNS_MAX || !is_pattern(text) {
                    return Err(format!(
                        "a pattern that is invalid or too large, or more than {PATTERNS_MAX}"
                    ));
                }
            }
            "buf.validate.Rule.expression"
            | "buf.validate.FieldRules.cel_expression"
            | "buf.validate.MessageRules.cel_expression" => {
                self.expressions += 1;
                if self.expressions > EXPRESSIONS_MAX
                    || text.len() > EXPRESSION_BYTES_MAX
                    || depth(text) > EXPRESSION_DEPTH_MAX
                {
                    return Err(format!(
                        "an expression that is too large, or more than {EXPRESSIONS_MAX}"
                    ));
                }
                self.costs.add(self.message.as_deref(), text, for_each)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Depth of an expression at most: brackets inside each other, and all choices, which nest without
/// brackets (`a ? b : c ? d : e`). Letters in strings count too: it is a bound, not a measure.
fn depth(expression: &str) -> usize {
    let mut open = 0_usize;
    let mut deepest = 0;
    let mut choices = 0;
    for letter in expression.bytes() {
        match letter {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'?' => choices += 1,
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest + choices
}
