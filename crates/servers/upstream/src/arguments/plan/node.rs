//! Subschemas as a plan has them.

use std::collections::HashMap;

use serde_json::Value;

/// Bytes that are compared in one step.
pub(super) const STEP_BYTES: u64 = 64;

/// A subschema: those that it applies, by number.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// To the same value.
    pub(super) here: Vec<usize>,
    /// To a member of this name.
    pub(super) members: HashMap<String, usize>,
    /// To each member.
    pub(super) each_member: Vec<usize>,
    /// To the name of each member.
    pub(super) names: Vec<usize>,
    /// To the item at this place.
    pub(super) places: Vec<usize>,
    /// To each item.
    pub(super) each_item: Vec<usize>,
    /// Steps of its own assertions.
    pub(super) steps: u64,
    /// Assertions that read the whole value.
    pub(super) reads: u64,
    /// Steps for each byte that patterns read: of a text, and of the name of a member.
    pub(super) byte_steps: [u64; 2],
    /// Values that it copies into an account of what does not fit.
    pub(super) copies: u64,
    /// Whether those who name what does not fit go through all branches (`anyOf`, `oneOf`).
    pub(super) is_choice: bool,
    /// Whether it applies what it applies to the same value once more (`unevaluatedProperties`).
    pub(super) repeats: bool,
    /// Whether it compares items.
    pub(super) compares: bool,
}

/// The steps to read a value whole. Values are at most as deep as their parser allows.
pub(super) fn size(value: &Value) -> u64 {
    let text = |text: &str| text.len() as u64 / STEP_BYTES;
    match value {
        Value::String(one) => 1 + text(one),
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => {
            1 + members
                .iter()
                .map(|(name, one)| text(name) + size(one))
                .sum::<u64>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
