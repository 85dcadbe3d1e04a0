//! Plan of a check: the graph of a schema's subschemas, by which the steps of the check are counted
//! before it is made.
//!
//! The count takes every branch, so it is never lower than the check. A schema in which a subschema
//! is applied to one value again and again, or whose references cannot be followed, has no plan.

mod keywords;
mod node;
mod patterns;

use node::{Node, STEP_BYTES, size};
use serde_json::Value;

/// Steps of one check: some tenths of a second.
const STEPS_MAX: u64 = 1_000_000;
/// Values that may be copied to name what does not fit.
const COPIES_MAX: u64 = 20_000;
/// Steps of a check up to which what does not fit is named: that takes a check for each choice
/// around it.
const NAMED_STEPS_MAX: u64 = STEPS_MAX / 8;
/// Subschemas inside each other in one check: a validator recurses.
const DEPTH_MAX: usize = 256;
/// Subschemas that apply to one value, each because of another.
const HERE_DEPTH_MAX: usize = 64;
/// Subschemas that apply to one value in all.
const HERE_MAX: u64 = 10_000;
/// Items that an array or object may be compared with in one step, where items are arrays or
/// objects.
const COMPARED_IN_STEP: u64 = 16;

/// The subschemas of a schema; the first is the whole.
#[derive(Debug)]
pub(super) struct Plan {
    nodes: Vec<Node>,
    /// Values in the schema, each pattern as many.
    values: usize,
}

/// The steps of a check.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    steps: u64,
    /// Values that are copied to name what does not fit.
    copies: u64,
    too_deep: bool,
}

impl Cost {
    /// Whether it would take too long.
    pub(super) fn is_too_high(&self) -> bool {
        self.too_deep || self.steps > STEPS_MAX
    }

    /// Whether what does not fit can be named in little time and memory.
    pub(super) fn may_be_named(&self) -> bool {
        self.steps <= NAMED_STEPS_MAX && self.copies <= COPIES_MAX
    }
}

impl Plan {
    /// The plan of a schema.
    ///
    /// # Errors
    /// Why it has none.
    pub(super) fn new(schema: &Value) -> Result<Self, String> {
        let values = keywords::look_through(schema)?;
        let plan = Self {
            nodes: keywords::nodes(schema)?,
            values,
        };
        let mut known = vec![None; plan.nodes.len()];
        for at in 0..plan.nodes.len() {
            plan.here(at, 1, &mut known)?;
        }
        Ok(plan)
    }

    /// Weight of the schema in memory, in values.
    pub(super) fn values(&self) -> usize {
        self.values
    }

    /// Number of subschemas that one applies to a value of its own, and number of them that follow
    /// from each other.
    fn here(
        &self,
        at: usize,
        depth: usize,
        known: &mut [Option<(u64, usize)>],
    ) -> Result<(u64, usize), String> {
        if let Some(Some(known)) = known.get(at) {
            return Ok(*known);
        }
        let mut all = 1_u64;
        let mut longest = 0;
        if depth <= HERE_DEPTH_MAX {
            for inner in self
                .nodes
                .get(at)
                .map(|node| node.here.as_slice())
                .unwrap_or_default()
            {
                let (count, deep) = self.here(*inner, depth + 1, known)?;
                all = all.saturating_add(count);
                longest = longest.max(deep);
            }
        }
        longest += 1;
        if depth > HERE_DEPTH_MAX || longest > HERE_DEPTH_MAX {
            let why = "its input schema applies to one value again and again, by references inside each other";
            return Err(why.to_owned());
        }
        if all > HERE_MAX {
            return Err(format!(
                "its input schema applies more than {HERE_MAX} subschemas to one value"
            ));
        }
        if let Some(known) = known.get_mut(at) {
            *known = Some((all, longest));
        }
        Ok((all, longest))
    }

    /// The steps of a check of this value.
    pub(super) fn cost(&self, value: &Value) -> Cost {
        let mut cost = Cost::default();
        self.count(0, value, (0, 0), &mut cost);
        cost
    }

    /// Counts the steps of one subschema; ends where they are too many. `depth` has the subschemas
    /// and the choices around it.
    fn count(&self, at: usize, value: &Value, (depth, choices): (usize, u64), cost: &mut Cost) {
        let Some(node) = self.nodes.get(at) else {
            return;
        };
        cost.too_deep |= depth >= DEPTH_MAX;
        cost.add(node.steps.saturating_add(1), node.copies.saturating_add(1));
        if cost.is_too_high() {
            return;
        }
        if node.reads > 0 {
            cost.add(node.reads.saturating_mul(size(value)), 0);
        }
        if choices > 0 && cost.may_be_named() {
            cost.add(0, choices.saturating_mul(size(value)));
        }
        let inner = (depth + 1, choices + u64::from(node.is_choice));
        let before = cost.steps;
        for one in &node.here {
            self.count(*one, value, inner, cost);
        }
        if node.repeats {
            cost.add(cost.steps - before, 0);
        }
        match value {
            Value::String(text) => {
                cost.add(pattern_steps(node.byte_steps[0], text), 0);
            }
            Value::Array(items) => {
                if node.compares {
                    let nested = items.iter().any(|item| item.is_array() || item.is_object());
                    let count = items.len() as u64;
                    cost.add(
                        if nested {
                            count.saturating_mul(count) / COMPARED_IN_STEP
                        } else {
                            count
                        },
                        0,
                    );
                }
                for (place, item) in items.iter().enumerate() {
                    let here = node.places.get(place);
                    for one in here.into_iter().chain(&node.each_item) {
                        self.count(*one, item, inner, cost);
                    }
                    if cost.is_too_high() {
                        return;
                    }
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let names = if node.each_member.is_empty() {
                        0
                    } else {
                        1 + name.len() as u64 / STEP_BYTES
                    };
                    cost.add(pattern_steps(node.byte_steps[1], name), names);
                    for one in &node.names {
                        self.count(
                            *one,
                            &Value::String(name.clone()),
                            (inner.0, inner.1 + 1),
                            cost,
                        );
                    }
                    for one in node.members.get(name).into_iter().chain(&node.each_member) {
                        self.count(*one, member, inner, cost);
                    }
                    if cost.is_too_high() {
                        return;
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Cost {
    fn add(&mut self, steps: u64, copies: u64) {
        self.steps = self.steps.saturating_add(steps);
        self.copies = self.copies.saturating_add(copies);
    }
}

fn pattern_steps(byte_steps: u64, text: &str) -> u64 {
    byte_steps.saturating_mul(text.len() as u64 + 1)
}

#[cfg(test)]
mod tests;
