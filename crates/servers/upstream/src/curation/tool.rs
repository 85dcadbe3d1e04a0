//! Curated tool: what the configuration changes about it, and the arguments that callers cannot
//! pass.

use std::sync::Arc;

use rules::{ToolRules, name_likeness};

/// Changes that the configuration makes to one tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CuratedTool {
    /// Its name in place of the server's own, below the server's prefix.
    pub name: Option<Arc<str>>,
    /// Its title.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Members of its annotations, in JSON: they replace those of the same names.
    pub annotations: Vec<(String, String)>,
    /// Arguments that every call of it has, in JSON, and that no caller passes.
    pub preset: Vec<(String, String)>,
    /// Arguments that no call of it has.
    pub hidden_arguments: Vec<String>,
    /// Whether rules may approve its calls.
    pub rules: ToolRules,
    /// Whether it reads what others must not see.
    pub reads_private: bool,
    /// The number of participants that must approve a proposed call of it; the topic's, if it does
    /// not say.
    pub approvals: Option<usize>,
}

impl CuratedTool {
    /// Whether some arguments are preset or hidden.
    pub(super) fn cuts(&self) -> bool {
        !self.preset.is_empty() || !self.hidden_arguments.is_empty()
    }

    /// Whether callers cannot pass an argument, however it is spelled.
    pub(super) fn hides(&self, argument: &str) -> bool {
        let argument = name_likeness(argument);
        self.withheld().any(|name| name_likeness(name) == argument)
    }

    /// The names of the arguments that callers cannot pass.
    pub(super) fn withheld(&self) -> impl Iterator<Item = &str> {
        self.preset
            .iter()
            .map(|(name, _)| name)
            .chain(&self.hidden_arguments)
            .map(String::as_str)
    }
}
