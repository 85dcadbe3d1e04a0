//! Approvers that other products have: a button per tool, a prefix, exact repetition.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Approver;
use super::trace::TracedCall;

/// Characters of the first argument that a prefix rule has.
const PREFIX_CHARS: usize = 4;

/// "Always allow this tool", pressed at its first approval.
#[derive(Default)]
pub struct ToolButton(BTreeSet<String>);

/// "Always allow what begins like this", pressed at the first approval.
#[derive(Default)]
pub struct PrefixRule(BTreeSet<String>);

/// The repetition of a call that was approved so many times.
pub struct ExactRepeat {
    after: u32,
    approved: BTreeMap<String, u32>,
}

/// A tool of an agent.
pub fn tool_of(call: &TracedCall) -> String {
    format!("{} {} {}", call.agent, call.server, call.tool)
}

impl Approver for ToolButton {
    fn name(&self) -> String {
        "button per tool".to_owned()
    }

    fn approves(&self, call: &TracedCall, _: usize) -> bool {
        self.0.contains(&tool_of(call))
    }

    fn take(&mut self, call: &TracedCall, _: usize, _: bool) {
        if call.is_approved_by_hand() {
            self.0.insert(tool_of(call));
        }
    }

    fn rules(&self) -> usize {
        self.0.len()
    }

    fn questions(&self) -> usize {
        self.0.len()
    }
}

fn prefix(call: &TracedCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let first = arguments
        .as_object()
        .and_then(|members| members.values().next());
    let text = match first {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let prefix: String = text.chars().take(PREFIX_CHARS).collect();
    format!("{} {prefix}", tool_of(call))
}

impl Approver for PrefixRule {
    fn name(&self) -> String {
        format!("prefix of {PREFIX_CHARS} characters")
    }

    fn approves(&self, call: &TracedCall, _: usize) -> bool {
        self.0.contains(&prefix(call))
    }

    fn take(&mut self, call: &TracedCall, _: usize, _: bool) {
        if call.is_approved_by_hand() {
            self.0.insert(prefix(call));
        }
    }

    fn rules(&self) -> usize {
        self.0.len()
    }

    fn questions(&self) -> usize {
        self.0.len()
    }
}

impl ExactRepeat {
    /// Repetition after so many approvals.
    pub fn after(after: u32) -> Self {
        Self {
            after,
            approved: BTreeMap::new(),
        }
    }
}

fn exactly(call: &TracedCall) -> String {
    let (tool, arguments) = (tool_of(call), &call.arguments);
    let digests = (call.definition, call.configuration);
    format!("{tool} {digests:?} {:?} {arguments}", call.beside)
}

impl Approver for ExactRepeat {
    fn name(&self) -> String {
        format!("exact repeat after {}", self.after)
    }

    fn approves(&self, call: &TracedCall, _: usize) -> bool {
        let times = self.approved.get(&exactly(call));
        times.is_some_and(|times| *times >= self.after)
    }

    fn take(&mut self, call: &TracedCall, _: usize, _: bool) {
        if call.is_approved_by_hand() {
            *self.approved.entry(exactly(call)).or_default() += 1;
        }
    }

    fn rules(&self) -> usize {
        let all = self.approved.values();
        all.filter(|times| **times >= self.after).count()
    }

    fn questions(&self) -> usize {
        self.rules()
    }
}
