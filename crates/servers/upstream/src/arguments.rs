//! Check of a call's arguments by the input schema of its tool (`validate = true`).
//!
//! A server wrote the schema and a caller the arguments: [`Plan`] bounds what the two make of each
//! other before they meet. Nothing is fetched: a schema that refers to another document cannot be
//! checked.

mod plan;
mod words;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use jsonschema::{PatternOptions, Validator};
use platform::Mutex;
use serde_json::Value;

use crate::schema;
use plan::Plan;
pub(crate) use words::of_rules;

/// Bytes of a compiled pattern.
const PATTERN_SIZE_MAX: usize = 4 << 20;
/// Values in the schemas of one manifest whose validators are kept; beyond it the others make way.
const KEPT_VALUES_MAX: usize = 50_000;

/// An input schema by which arguments can be checked.
#[derive(Debug)]
pub(crate) struct Arguments {
    plan: Plan,
    validator: Validator,
}

impl Arguments {
    /// Compiles an input schema that [`schema::check`] accepts.
    ///
    /// # Errors
    /// Why arguments cannot be checked by it, in words for the operator.
    pub(crate) fn new(raw: &[u8]) -> Result<Self, String> {
        let schema = schema::read(raw)?;
        let plan =
            Plan::new(&schema).map_err(|why| format!("arguments cannot be checked: {why}"))?;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_SIZE_MAX)
            .dfa_size_limit(PATTERN_SIZE_MAX);
        // `format` is an annotation since 2019-09.
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(false);
        let validator = options
            .with_pattern_options(patterns)
            .build(&schema)
            .map_err(|error| {
                let place = words::bounded(format_args!("`{}`", error.instance_path()));
                format!(
                    "arguments cannot be checked: its input schema cannot be compiled at {place}"
                )
            })?;
        Ok(Self { plan, validator })
    }

    /// Weight of the schema in memory, in values.
    pub(crate) fn values(&self) -> usize {
        self.plan.values()
    }

    /// Checks arguments; a call without arguments has an empty object.
    ///
    /// # Errors
    /// What does not fit, in words for the caller.
    pub(crate) fn check(&self, raw: Option<&[u8]>) -> Result<(), String> {
        let raw = raw.unwrap_or(b"{}");
        let read = json::refuse_duplicates(raw)
            .ok()
            .and_then(|()| schema::read(raw).ok());
        let arguments: Value =
            read.ok_or("- they are nested too deeply, or an object has a member twice")?;
        let cost = self.plan.cost(&arguments);
        if cost.is_too_high() {
            return Err("- they are too large or too deep to be checked by this schema".to_owned());
        }
        if self.validator.is_valid(&arguments) {
            return Ok(());
        }
        if cost.may_be_named() {
            Err(words::of(self.validator.iter_errors(&arguments)))
        } else {
            Err("- what does not fit is too much to be named".to_owned())
        }
    }
}

/// The schemas of a manifest by which arguments were checked, by the tool's own name. It says
/// nothing more than the manifest, so it does not count in comparisons.
#[derive(Debug, Default)]
pub struct Checks(Mutex<(HashMap<String, Arc<Arguments>>, usize)>);

impl Checks {
    /// The schema of a tool; `read` gives its text.
    ///
    /// # Errors
    /// [`Arguments::new`].
    pub(crate) fn of(
        &self,
        tool: &str,
        read: impl FnOnce() -> Bytes,
    ) -> Result<Arc<Arguments>, String> {
        if let Some(known) = self.0.lock().0.get(tool) {
            return Ok(Arc::clone(known));
        }
        let arguments = Arc::new(Arguments::new(&read())?);
        let (kept, values) = &mut *self.0.lock();
        if values.saturating_add(arguments.values()) > KEPT_VALUES_MAX {
            kept.clear();
            *values = 0;
        }
        if kept
            .insert(tool.to_owned(), Arc::clone(&arguments))
            .is_none()
        {
            *values = values.saturating_add(arguments.values());
        }
        Ok(arguments)
    }
}

/// A copy of a manifest compiles again.
impl Clone for Checks {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Checks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Checks {}

#[cfg(test)]
mod tests;
