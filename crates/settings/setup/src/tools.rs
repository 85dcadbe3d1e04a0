//! Tools of a server in `portmoot.toml`: hidden, shown again, named otherwise.

use model::NamePattern;
use serde_json::{Value, json};

use crate::change::{FileChange, SetupError, edited};
use crate::edit::{EditError, Syntax, Table};
use crate::files::TextFile;

/// Edit of a server's tools, by its own names.
#[derive(Debug, Clone, Copy)]
pub enum ToolEdit<'e> {
    /// They are hidden: names or patterns with `*`.
    Disable(&'e [String]),
    /// They are shown again.
    Enable(&'e [String]),
    /// One gets this name; its own takes it back.
    Rename(&'e str, &'e str),
}

/// Plans a file in which a server has these tools otherwise.
///
/// # Errors
/// When the file is broken or cannot be edited, has no such server, or a pattern in it stands
/// against the change.
pub fn edit_tools(
    file: TextFile,
    server: &str,
    edit: ToolEdit<'_>,
) -> Result<FileChange, SetupError> {
    let after = match changed(&file.text, server, edit) {
        Err(Unchanged::Hidden { pattern, tool }) => {
            let path = file.path.display().to_string();
            return Err(SetupError::ToolHidden {
                path,
                server: server.to_owned(),
                pattern,
                tool,
            });
        }
        Err(Unchanged::Edit(error)) => edited(&file, Err(error), || None)?,
        Ok(after) => after,
    };
    Ok(FileChange::text(file, &after))
}

/// Why a text stays as it is.
#[derive(Debug, PartialEq, Eq)]
enum Unchanged {
    /// It cannot be edited.
    Edit(EditError),
    /// A pattern of `hide` still hides a tool that is to be shown.
    Hidden { pattern: String, tool: String },
}

impl From<EditError> for Unchanged {
    fn from(error: EditError) -> Self {
        Self::Edit(error)
    }
}

fn changed(text: &str, server: &str, edit: ToolEdit<'_>) -> Result<String, Unchanged> {
    let servers = Table::new(Syntax::Toml, &["servers"]);
    let entry = servers
        .entries(text)?
        .into_iter()
        .find(|entry| entry.name == server);
    let entry = entry
        .ok_or_else(|| EditError::Shape(format!("there is no server `{server}`")))?
        .value;
    let listed = |key: &str| {
        let items = entry.get(key).and_then(Value::as_array)?;
        Some(
            items
                .iter()
                .filter_map(|item| Some(item.as_str()?.to_owned()))
                .collect::<Vec<String>>(),
        )
    };
    let only = listed("tools");
    let mut hide = listed("hide").unwrap_or_default();
    let set = |text: &str, key, list: Vec<String>| {
        let value = json!(list);
        servers.set(text, server, key, (!list.is_empty()).then_some(&value))
    };
    let after = match edit {
        ToolEdit::Disable(names) => {
            let new: Vec<String> = names
                .iter()
                .filter(|name| !hide.contains(name))
                .cloned()
                .collect();
            hide.extend(new);
            set(text, "hide", hide)
        }
        ToolEdit::Enable(names) => {
            hide.retain(|pattern| !names.contains(pattern));
            for name in names {
                if let Some(pattern) = hide.iter().find(|pattern| matches(pattern, name)) {
                    return Err(Unchanged::Hidden {
                        pattern: pattern.clone(),
                        tool: name.clone(),
                    });
                }
            }
            let text = set(text, "hide", hide)?;
            let Some(mut only) = only else {
                return Ok(text);
            };
            let is_missing = |name: &&String| !only.iter().any(|pattern| matches(pattern, name));
            let missing: Vec<String> = names.iter().filter(is_missing).cloned().collect();
            only.extend(missing);
            set(&text, "tools", only)
        }
        ToolEdit::Rename(tool, name) => {
            let tools = Table::new(Syntax::Toml, &["servers", server, "tool"]);
            let known = tools
                .entries(text)?
                .into_iter()
                .find(|entry| entry.name == tool);
            let value = json!(name);
            match known.map(|entry| entry.value) {
                Some(Value::Object(fields))
                    if name == tool && fields.keys().all(|key| key == "name") =>
                {
                    tools.remove(text, tool)
                }
                Some(_) => tools.set(text, tool, "name", (name != tool).then_some(&value)),
                None if name == tool => Ok(text.to_owned()),
                None => tools.insert(text, tool, &vec![("name".to_owned(), value)]),
            }
        }
    };
    Ok(after?)
}

/// Whether a pattern of the file matches a name, or is the same pattern.
fn matches(pattern: &str, name: &str) -> bool {
    pattern == name || NamePattern::parse(pattern).is_ok_and(|pattern| pattern.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# mine\n[servers.a]\ncommand = 'x' # odd\n# below\n\n[topics.main]\nhistory = 3\n";

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn tools_are_hidden_and_shown_again_and_all_else_stays() {
        let hidden = changed(FILE, "a", ToolEdit::Disable(&names(&["one", "two_*"]))).unwrap();
        assert_eq!(
            hidden,
            FILE.replace("# odd\n", "# odd\nhide = [\"one\", \"two_*\"]\n")
        );
        let more = changed(&hidden, "a", ToolEdit::Disable(&names(&["one", "three"]))).unwrap();
        assert_eq!(more, hidden.replace("\"two_*\"]", "\"two_*\", \"three\"]"));
        let fewer = changed(&more, "a", ToolEdit::Enable(&names(&["three", "other"]))).unwrap();
        assert_eq!(fewer, hidden);
        let refused = changed(&hidden, "a", ToolEdit::Enable(&names(&["two_x"]))).unwrap_err();
        assert_eq!(
            refused,
            Unchanged::Hidden {
                pattern: "two_*".to_owned(),
                tool: "two_x".to_owned()
            }
        );
        assert_eq!(
            changed(&hidden, "a", ToolEdit::Enable(&names(&["one", "two_*"]))).unwrap(),
            FILE
        );
        assert!(changed(FILE, "b", ToolEdit::Disable(&names(&["x"]))).is_err());
    }

    #[test]
    fn what_is_enabled_is_chosen_where_tools_are_chosen() {
        let text = FILE.replace(
            "# odd\n",
            "# odd\ntools = [\n  \"get_*\", # reads\n]\nhide = [\"put\"]\n",
        );
        let enabled = changed(&text, "a", ToolEdit::Enable(&names(&["get_x", "put"]))).unwrap();
        assert_eq!(
            enabled,
            FILE.replace("# odd\n", "# odd\ntools = [\"get_*\", \"put\"]\n")
        );
    }

    #[test]
    fn a_tool_gets_a_name_and_its_own_back() {
        let renamed = changed(FILE, "a", ToolEdit::Rename("b c", "d")).unwrap();
        let section = "\n[servers.a.tool.\"b c\"]\nname = \"d\"\n";
        assert_eq!(
            renamed,
            FILE.replace("# below\n", &format!("# below\n{section}"))
        );
        let again = changed(&renamed, "a", ToolEdit::Rename("b c", "e")).unwrap();
        assert_eq!(again, renamed.replace("\"d\"", "\"e\""));
        assert_eq!(
            changed(&again, "a", ToolEdit::Rename("b c", "b c")).unwrap(),
            FILE
        );
        let with_title = again.replace("name = \"e\"\n", "title = \"T\"\n");
        let named = changed(&with_title, "a", ToolEdit::Rename("b c", "f")).unwrap();
        assert_eq!(
            named,
            with_title.replace("title = \"T\"\n", "title = \"T\"\nname = \"f\"\n")
        );
        assert_eq!(
            changed(&named, "a", ToolEdit::Rename("b c", "b c")).unwrap(),
            with_title
        );
    }

    #[test]
    fn a_server_in_one_line_is_edited_too() {
        let text = "servers = { a = { command = \"x\" } }\n";
        let hidden = changed(text, "a", ToolEdit::Disable(&names(&["one"]))).unwrap();
        assert_eq!(
            toml_of(&hidden)["servers"]["a"]["hide"],
            json!(["one"]),
            "{hidden}"
        );
        let shown = changed(&hidden, "a", ToolEdit::Enable(&names(&["one"]))).unwrap();
        assert_eq!(toml_of(&shown), toml_of(text), "{shown}");
    }

    fn toml_of(text: &str) -> Value {
        let entries = Table::new(Syntax::Toml, &["servers"])
            .entries(text)
            .unwrap();
        let servers = entries.into_iter().map(|entry| (entry.name, entry.value));
        json!({ "servers": Value::Object(servers.collect()) })
    }
}
