//! Curation of a server's tools: the ones that callers see, their names and texts, and arguments
//! that callers cannot pass.
//!
//! It is configuration, and changes no list of its own accord: `Curation::curate` is applied once
//! to a list that was judged, [`Curation::complete`] once to the arguments of each call. The
//! server's original definition and own name stay what pins, checks, held calls and the audit log
//! go by.

mod definition;
#[cfg(test)]
mod tests;
mod tool;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::{ListKind, NameFilter, Refusal, RefusalCode};
use rules::{ToolRules, name_likeness};
use wire::mcp::list::Item;

use crate::manifest::{Altered, List};
use crate::status::QuarantinedTool;

pub use tool::CuratedTool;

/// The end of a refusal of an argument that callers do not see.
const NOT_CALLED: &str = "so it was not called: the configuration of the gateway sets or hides it";
/// The end of a refusal of another value than a preset.
const BY_CONFIGURATION: &str = "by the configuration of the gateway: it cannot be changed";

/// Selection and changes of a server's tools by the configuration (`tools`, `hide`,
/// `[servers.NAME.tool.TOOL]`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Curation {
    /// The tools that callers see, by the server's own names.
    pub filter: NameFilter,
    /// Tools that callers see otherwise than their server lists them, by its own names.
    pub tools: BTreeMap<Arc<str>, CuratedTool>,
}

/// The author of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// A caller, who sees no hidden argument.
    Caller,
    /// A reviewer of a proposal, who is shown the presets and may leave them as they are.
    Reviewer,
}

/// A list of tools as callers see it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Curated {
    /// The tools, in the server's order, under its own names.
    pub(crate) tools: List,
    /// The tools that differ from the server's definitions, by their own names.
    pub(crate) altered: HashMap<String, Altered>,
    /// The tools that are hidden, by their own names.
    pub(crate) hidden: Vec<String>,
    /// Tools that are left out because their definitions cannot be changed as the configuration
    /// wants.
    pub(crate) unusable: Vec<QuarantinedTool>,
    /// Lines of the configuration that do not have the effect which they seem to have, for
    /// operators.
    pub(crate) notes: Vec<String>,
}

impl Curation {
    /// Whether callers see the tool of this own name, and may call it.
    #[must_use]
    pub fn shows(&self, own: &str) -> bool {
        self.filter.admits(own)
    }

    /// The name of a tool below the server's prefix.
    #[must_use]
    pub fn name<'a>(&'a self, own: &'a str) -> &'a str {
        self.tools
            .get(own)
            .and_then(|tool| tool.name.as_deref())
            .unwrap_or(own)
    }

    /// The names that it gives to tools, by the server's own names.
    pub fn renamed(&self) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
        self.tools
            .iter()
            .filter_map(|(own, tool)| Some((Arc::clone(own), tool.name.clone()?)))
    }

    /// Whether some arguments of this tool are preset or hidden.
    #[must_use]
    pub fn cuts(&self, own: &str) -> bool {
        self.tools.get(own).is_some_and(CuratedTool::cuts)
    }

    /// Whether rules may approve calls of this tool.
    #[must_use]
    pub fn rules_of(&self, own: &str) -> ToolRules {
        self.tools
            .get(own)
            .map(|tool| tool.rules)
            .unwrap_or_default()
    }

    /// Whether this tool reads what others must not see.
    #[must_use]
    pub fn reads_private(&self, own: &str) -> bool {
        self.tools.get(own).is_some_and(|tool| tool.reads_private)
    }

    /// The number of participants that must approve a proposed call of this tool, if it says so.
    #[must_use]
    pub fn approvals_of(&self, own: &str) -> Option<usize> {
        self.tools.get(own)?.approvals
    }

    /// The presets of a tool: names of arguments, and their values in JSON.
    #[must_use]
    pub fn presets(&self, own: &str) -> &[(String, String)] {
        self.tools
            .get(own)
            .map(|tool| &*tool.preset)
            .unwrap_or_default()
    }

    /// The arguments of a call of a tool with the presets that they do not have; `None` if nothing
    /// is added.
    ///
    /// # Errors
    /// Arguments that their author may not pass, or that are no JSON object:
    /// [`RefusalCode::SchemaViolation`].
    pub fn complete(
        &self,
        own: &str,
        arguments: Option<&[u8]>,
        by: Author,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        match self.tools.get(own) {
            Some(tool) if tool.cuts() => tool.complete(arguments, by),
            Some(_) | None => Ok(None),
        }
    }

    /// A list as callers see it.
    pub(crate) fn curate(&self, server: &str, list: List) -> Curated {
        if *self == Self::default() {
            return Curated {
                tools: list,
                ..Curated::default()
            };
        }
        let mut curated = Curated {
            notes: self.notes(server, &list.items),
            ..Curated::default()
        };
        let given = self.given_names(&list.items);
        let mut items = Vec::with_capacity(list.items.len());
        for item in list.items {
            let own = item.key.as_str();
            if !self.shows(own) {
                curated.hidden.push(item.key);
                continue;
            }
            // The configuration gives the name to another tool.
            if let Some(taken_by) = given.get(self.name(own))
                && *taken_by != own
            {
                let note = format!(
                    "`{own}` is not offered: [servers.{server}.tool.{taken_by}] has its name"
                );
                curated.notes.push(note);
                curated.hidden.push(item.key);
                continue;
            }
            let Some(tool) = self.tools.get(own) else {
                items.push(item);
                continue;
            };
            match tool.alter(&item) {
                Ok(None) => items.push(item),
                Ok(Some(shown)) => {
                    items.push(shown);
                    let name = item.key.clone();
                    let altered = Altered {
                        original: item,
                        is_cut: tool.cuts(),
                    };
                    curated.altered.insert(name, altered);
                }
                Err(why) => curated.unusable.push(QuarantinedTool {
                    name: item.key,
                    reason: format!("its definition cannot be changed as configured: {why}"),
                }),
            }
        }
        curated.tools = List { items, ..list };
        curated
    }

    /// The names that it gives to those of these tools that callers see, with the tools' own names.
    fn given_names(&self, items: &[Item]) -> HashMap<&str, &str> {
        let mut given = HashMap::new();
        for (own, tool) in &self.tools {
            let Some(name) = tool.name.as_deref() else {
                continue;
            };
            if self.shows(own) && items.iter().any(|item| item.key == **own) {
                given.insert(name, &**own);
            }
        }
        given
    }

    /// Notes on curation that has no effect on these tools, or another one than it seems.
    fn notes(&self, server: &str, tools: &[Item]) -> Vec<String> {
        let mut notes = Vec::new();
        // A server that has listed nothing yet may have them.
        if tools.is_empty() {
            return notes;
        }
        for pattern in self.filter.patterns() {
            if !tools.iter().any(|tool| pattern.matches(&tool.key)) {
                notes.push(format!(
                    "no tool of the server matches `{pattern}` in `tools` or `hide`"
                ));
            }
        }
        for (own, curated) in &self.tools {
            let table = format!("[servers.{server}.tool.{own}]");
            match tools.iter().find(|tool| tool.key == **own) {
                None => notes.push(format!("{table}: the server has no tool `{own}`")),
                Some(_) if !self.shows(own) => notes.push(format!("{table}: the tool is hidden")),
                Some(tool) => notes.extend(
                    curated
                        .notes(tool)
                        .into_iter()
                        .map(|why| format!("{table}: {why}")),
                ),
            }
        }
        notes
    }
}

impl CuratedTool {
    /// The tool as callers see it; `None` if it stays as it is.
    fn alter(&self, item: &Item) -> Result<Option<Item>, String> {
        let mut cut = None;
        if self.cuts()
            && let Some(schema) = item.get("inputSchema")
        {
            let hidden = definition::Hidden {
                argument: &|name| self.hides(name),
                preset: &|name| self.has_preset(name),
            };
            cut = definition::cut(&schema, hidden).map_err(|error| error.to_string())?;
        }
        let raw =
            definition::rewritten(item, self, cut.as_deref()).map_err(|error| error.to_string())?;
        match raw {
            Some(raw) => Item::read(ListKind::Tools, raw).map(Some),
            None => Ok(None),
        }
    }

    /// Whether an argument has a preset, in any spelling of its name that servers may take for it.
    fn has_preset(&self, name: &str) -> bool {
        let name = name_likeness(name);
        let mut presets = self.preset.iter();
        presets.any(|(preset, _)| name_likeness(preset) == name)
    }

    fn complete(&self, arguments: Option<&[u8]>, by: Author) -> Result<Option<Vec<u8>>, Refusal> {
        let arguments = match arguments {
            None | Some(b"null") => b"{}",
            Some(arguments) => arguments,
        };
        let members = json::members(arguments, json::Span::all(arguments)).map_err(|error| {
            refused(format!(
                "the arguments of this tool must be a JSON object: {error}"
            ))
        })?;
        for (name, member) in members.iter() {
            if self.hides(name) {
                self.check_hidden(name, member.raw, by)?;
            }
        }
        let missing: Vec<_> = self
            .preset
            .iter()
            .filter(|(name, _)| members.get(name).is_none())
            .map(|(name, value)| (name.as_str(), Some(value.as_bytes())))
            .collect();
        if missing.is_empty() {
            return Ok(None);
        }
        json::edited(arguments, &missing)
            .map(Some)
            .map_err(|error| refused(error.to_string()))
    }

    /// Refuses an argument that is preset or hidden, unless a reviewer leaves its preset as it is.
    fn check_hidden(&self, name: &str, value: &[u8], by: Author) -> Result<(), Refusal> {
        if by == Author::Reviewer
            && let Some((_, preset)) = self.preset.iter().find(|(preset, _)| preset == name)
        {
            if is_same(value, preset.as_bytes()) {
                return Ok(());
            }
            return Err(refused(format!(
                "the argument `{name}` is set to {preset} {BY_CONFIGURATION}"
            )));
        }
        // A caller does not learn whether there is a preset.
        let name = name.escape_debug();
        Err(refused(format!(
            "this tool takes no argument `{name}`, {NOT_CALLED}"
        )))
    }

    /// Notes on curation of one tool that has another effect than it seems.
    fn notes(&self, tool: &Item) -> Vec<String> {
        let Some(schema) = tool.get("inputSchema") else {
            return Vec::new();
        };
        let Some(known) = definition::arguments(&schema) else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        for name in self.withheld() {
            if !known.iter().any(|argument| argument.name == *name) {
                notes.push(format!("the tool has no argument `{name}`"));
            }
        }
        for name in &self.hidden_arguments {
            let is_required = known
                .iter()
                .any(|argument| argument.is_required && argument.name == *name);
            if is_required {
                notes.push(format!(
                    "the tool requires the argument `{name}`, which no call can have: write a preset"
                ));
            }
        }
        notes
    }
}

fn refused(why: String) -> Refusal {
    Refusal::new(RefusalCode::SchemaViolation, why)
}

/// Whether two values are the same, however they are written.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one == other {
        return true;
    }
    match (json::canonical(one), json::canonical(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
