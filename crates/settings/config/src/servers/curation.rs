//! Keys of a server about its tools: `tools`, `hide`, and the tables `[servers.NAME.tool.TOOL]`.

use std::sync::Arc;

use model::NameFilter;
use rules::ToolRules;
use upstream::curation::{CuratedTool, Curation};

use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::reader::{Problems, Table};
use crate::sets::name_filter;
use crate::values::approvals;

/// Curation of a server's tools by its table; `None` if the table says nothing about them.
pub(super) fn read(table: &Table<'_>) -> Option<Arc<Curation>> {
    let is_table = table
        .get("tools")
        .is_some_and(|node| matches!(node.value, Value::Table(_)));
    if is_table {
        let message = format!("`{}` is a list of patterns", table.full("tools"));
        table.note_value(
            "tools",
            message,
            format!("tables of single tools are [{}.NAME]", table.full("tool")),
        );
    }
    let filter = if is_table {
        NameFilter::default()
    } else {
        name_filter(table, None)
    };
    let mut curation = Curation {
        filter,
        ..Curation::default()
    };
    for (entry, inner) in table.tables("tool") {
        let tool = tool(&inner);
        let twin = curation
            .tools
            .iter()
            .find(|(_, other)| tool.name.is_some() && other.name == tool.name);
        if let Some((twin, _)) = twin {
            let message = format!("{}: `{twin}` has this `name` too", inner.name());
            inner.note_at(
                "name",
                "config_twice",
                message,
                "give each tool a name of its own",
            );
        }
        inner.finish();
        curation.tools.insert(Arc::from(&*entry.key), tool);
    }
    (curation != Curation::default()).then(|| Arc::new(curation))
}

/// The words for whether rules may approve calls of a tool.
const RULES: [(&str, ToolRules); 3] = [
    ("never", ToolRules::Never),
    ("ask", ToolRules::Ask),
    ("allow", ToolRules::Allow),
];

fn tool(table: &Table<'_>) -> CuratedTool {
    let tool = CuratedTool {
        name: name(table),
        title: table.text("title").map(str::to_owned),
        description: table.text("description").map(str::to_owned),
        annotations: values(table, "annotations"),
        preset: values(table, "preset"),
        hidden_arguments: table.plain_texts("hide_arguments"),
        rules: table.choice("rules", &RULES).unwrap_or_default(),
        reads_private: table.flag("reads_private").unwrap_or_default(),
        approvals: approvals(table, "approvals"),
    };
    if let Some((name, _)) = tool
        .preset
        .iter()
        .find(|(name, _)| tool.hidden_arguments.contains(name))
    {
        let message = format!(
            "{}: `{name}` has a preset, so it is hidden already",
            table.name()
        );
        table.note_at(
            "hide_arguments",
            "config_twice",
            message,
            "keep one of them",
        );
    }
    tool
}

/// A name of a tool: letters, digits, `_`, `-` and `.`.
fn name(table: &Table<'_>) -> Option<Arc<str>> {
    let name = table.text("name")?;
    if name.is_empty() || !name.chars().all(fits_name) {
        let message = format!(
            "`{}`: `{}` cannot be the name of a tool",
            table.full("name"),
            name.escape_debug()
        );
        table.note_value("name", message, "use letters, digits, `_`, `-` and `.`");
        return None;
    }
    Some(name.into())
}

/// Whether a character may be part of a tool's name.
fn fits_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}

/// The values of a table, in JSON.
fn values(table: &Table<'_>, key: &'static str) -> Vec<(String, String)> {
    let mut values = Vec::new();
    for entry in table.entries(key) {
        if let Some(value) = to_json(&entry.node, table.problems()) {
            values.push((entry.key.clone(), value.to_string()));
        }
    }
    values
}

fn to_json(node: &Node, problems: &Problems) -> Option<serde_json::Value> {
    Some(match &node.value {
        Value::Text(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::Decimal(number) => match serde_json::Number::from_f64(*number) {
            Some(number) => number.into(),
            None => {
                let problem = Problem::new("config_value", format!("JSON has no number {number}"));
                problems.note(problem.at(&node.location));
                return None;
            }
        },
        Value::List(items) => items
            .iter()
            .map(|item| to_json(item, problems))
            .collect::<Option<Vec<_>>>()?
            .into(),
        Value::Table(entries) => {
            let mut object = serde_json::Map::with_capacity(entries.len());
            for entry in entries {
                object.insert(entry.key.clone(), to_json(&entry.node, problems)?);
            }
            object.into()
        }
    })
}
