//! Servers of a client's file as servers of `portmoot.toml`.

use std::path::Path;

use model::{GATEWAY, ParticipantId};
use serde_json::{Map, Value};

use crate::edit::TableEntry;
use crate::secret::variable_name;
use crate::server::{NewServer, NewTransport, literal};
use crate::shape::{ClientFormat, Variables};

/// Keys that have no meaning for a gateway, so that nothing is lost without them: what the client
/// shows, allows or remembers.
const SILENT: [&str; 16] = [
    "name",
    "display_name",
    "description",
    "bundled",
    "env_keys",
    "env_vars",
    "source",
    "autoApprove",
    "alwaysAllow",
    "trust",
    "gallery",
    "version",
    "available_tools",
    "icon",
    "args",
    "enabled",
];
/// Types of what a client has inside itself.
const BUILT_IN: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// A server of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The server; `None` if the gateway cannot have it.
    pub server: Option<NewServer>,
    /// Notes that a person must read.
    pub notes: Vec<String>,
}

/// Whether an entry leads to a gateway of this kind: its name, or a program `portmoot` with
/// `stdio`.
#[must_use]
pub fn is_gateway(entry: &TableEntry, shape: &ClientFormat) -> bool {
    let command = entry
        .value
        .get(shape.command)
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_program = Path::new(command)
        .file_name()
        .is_some_and(|name| name == "portmoot");
    let first = entry
        .value
        .get("args")
        .and_then(|args| args.get(0))
        .and_then(Value::as_str);
    entry.name == GATEWAY || (is_program && first == Some("stdio"))
}

/// The reader of one entry.
struct Reader<'a> {
    name: &'a str,
    map: &'a Map<String, Value>,
    shape: &'a ClientFormat,
    project: &'a Path,
    notes: Vec<String>,
    /// The keys that were read.
    known: Vec<&'static str>,
}

/// Reads an entry of a client's file. `project` stands for the client's variable of that name.
#[must_use]
pub fn read(entry: &TableEntry, shape: &ClientFormat, project: &Path) -> Imported {
    let Value::Object(map) = &entry.value else {
        let notes = vec![format!("`{}` is not a table of keys: left out", entry.name)];
        return Imported {
            server: None,
            notes,
        };
    };
    let mut reader = Reader {
        name: &entry.name,
        map,
        shape,
        project,
        notes: Vec::new(),
        known: SILENT.to_vec(),
    };
    let server = reader.server();
    let ignored: Vec<String> = map
        .keys()
        .filter(|key| server.is_some() && !reader.known.contains(&key.as_str()))
        .map(|key| format!("`{key}`"))
        .collect();
    let mut notes = reader.notes;
    if !ignored.is_empty() {
        notes.push(format!("`{}`: {} left out", entry.name, ignored.join(", ")));
    }
    Imported { server, notes }
}

impl Reader<'_> {
    fn server(&mut self) -> Option<NewServer> {
        let kind = self
            .word("type")
            .or_else(|| self.word("transport"))
            .unwrap_or_default()
            .to_lowercase();
        if BUILT_IN.contains(&kind.as_str()) {
            return None;
        }
        let name = self.own_name()?;
        let transport = self.transport(&kind)?;
        let mut server = NewServer::new(name, transport);
        let disabled = self.flag("disabled").unwrap_or(false);
        server.enabled = !disabled && self.flag("enabled").unwrap_or(true);
        let start = self
            .millis("startup_timeout_sec", 1000)
            .or_else(|| self.millis("startup_timeout_ms", 1));
        let unit = if self.shape.timeout_ms { 1 } else { 1000 };
        let request = self
            .millis("tool_timeout_sec", 1000)
            .or_else(|| self.millis("timeout", unit));
        server.timeouts_ms = [start, request];
        self.extra_variables(&mut server);
        Some(server)
    }

    /// The name in the configuration: white space becomes `-`, and what no name may have is left
    /// out.
    fn own_name(&mut self) -> Option<String> {
        let joined = self.name.split_whitespace().collect::<Vec<_>>().join("-");
        let name = config::free_name(&joined);
        if name != joined {
            self.notes.push(format!(
                "`{}` is called `{name}`: callers or the gateway have its own name",
                self.name.escape_debug()
            ));
        }
        match ParticipantId::new(&name) {
            Ok(_) if name != GATEWAY => Some(name),
            Ok(_) => None,
            Err(error) => {
                self.notes
                    .push(format!("`{}`: {error}: left out", self.name.escape_debug()));
                None
            }
        }
    }

    /// How a server is reached; `None` if it is left out, which is noted.
    fn transport(&mut self, kind: &str) -> Option<NewTransport> {
        // An older form of Zed: the command is a table.
        let map = self.map;
        if let Some(inner) = map.get("command").and_then(Value::as_object) {
            return self.nested_command(inner);
        }
        let command = self
            .text("command")
            .or_else(|| self.text("cmd"))
            .filter(|command| !command.is_empty());
        let url = self.url();
        if let Some(command) = command {
            return self.command(command);
        }
        let Some((key, url)) = url else {
            self.notes.push(format!(
                "`{}` has neither a command nor a URL: left out",
                self.name
            ));
            return None;
        };
        let mut headers = self.pairs("headers");
        headers.extend(self.pairs("http_headers"));
        headers.extend(self.options());
        headers.extend(self.token());
        self.known.push("envs");
        // Some clients mean SSE by a bare `url`, and have another key for Streamable HTTP.
        let is_bare = self.shape.bare_url_is_sse && key == "url" && kind.is_empty();
        Some(NewTransport::Url {
            url,
            headers,
            is_sse: kind == "sse" || is_bare,
        })
    }

    /// A command that is a table of its own.
    fn nested_command(&mut self, inner: &Map<String, Value>) -> Option<NewTransport> {
        self.known.push("command");
        let mut reader = Reader {
            map: inner,
            notes: Vec::new(),
            known: Vec::new(),
            ..*self
        };
        let command = reader.text("path");
        let args = reader.texts("args");
        let env = reader.pairs("env");
        let notes = reader.notes;
        self.notes.extend(notes);
        Some(NewTransport::Command {
            command: command?,
            args,
            env,
            cwd: None,
        })
    }

    /// A program with its arguments and variables.
    fn command(&mut self, command: String) -> Option<NewTransport> {
        let (command, mut args) = self.program(command)?;
        args.extend(self.texts("args"));
        let mut env = self.pairs("env");
        env.extend(self.pairs("envs"));
        if self.map.contains_key("envFile") {
            self.notes.push(format!(
                "`{}`: `envFile` is not read: set its variables where the gateway starts",
                self.name
            ));
            self.known.push("envFile");
        }
        let cwd = self.directory(&command);
        Some(NewTransport::Command {
            command,
            args,
            env,
            cwd,
        })
    }

    /// The URL of a server, and the key that has it.
    fn url(&mut self) -> Option<(&'static str, String)> {
        for key in ["httpUrl", "url", "serverUrl", "uri"] {
            if let Some(url) = self.text(key) {
                return if url.is_empty() {
                    None
                } else {
                    Some((key, url))
                };
            }
        }
        None
    }

    /// A program and the arguments that are written behind it in the same text. `None` if it is not
    /// clear where these begin.
    fn program(&mut self, command: String) -> Option<(String, Vec<String>)> {
        let mut words = command.split_whitespace().map(str::to_owned);
        let (Some(program), args) = (words.next(), words.collect::<Vec<_>>()) else {
            return Some((command, Vec::new()));
        };
        if args.is_empty() || Path::new(&command).exists() {
            return Some((command, Vec::new()));
        }
        let is_program = !program.contains('/') || Path::new(&program).is_file();
        if !is_program || command.contains(['\'', '"', '\\']) {
            self.notes.push(format!(
                "`{}`: its command has arguments in it, and it is not clear where they begin: left out",
                self.name
            ));
            return None;
        }
        self.notes.push(format!(
            "`{}`: its command is the program `{program}` with arguments",
            self.name
        ));
        Some((program, args))
    }

    /// The directory: clients start servers in the project, the gateway does not.
    fn directory(&mut self, command: &str) -> Option<String> {
        let written = self.text("cwd");
        let is_relative = |path: &str| path.starts_with("./") || path.starts_with("../");
        let own = match &written {
            Some(cwd) if cwd.starts_with(['/', '~', '$']) => return written,
            Some(cwd) => self.project.join(cwd.trim_start_matches("./")),
            None if is_relative(command) => self.project.to_owned(),
            None => return None,
        };
        self.notes
            .push(format!("`{}`: it starts in {}", self.name, own.display()));
        Some(literal(&own.display().to_string()))
    }

    /// The headers inside `requestOptions`.
    fn options(&mut self) -> Vec<(String, String)> {
        self.known.push("requestOptions");
        let Some(inner) = self
            .map
            .get("requestOptions")
            .and_then(Value::as_object)
            .cloned()
        else {
            return Vec::new();
        };
        let mut reader = Reader {
            map: &inner,
            notes: Vec::new(),
            known: Vec::new(),
            ..*self
        };
        let headers = reader.pairs("headers");
        self.notes.append(&mut reader.notes);
        headers
    }

    /// Codex names the variables of its headers.
    fn token(&mut self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if let Some(variable) = self.word("bearer_token_env_var") {
            headers.push((
                "Authorization".to_owned(),
                format!("Bearer ${{{variable}}}"),
            ));
        }
        self.known.push("env_http_headers");
        let named = self.map.get("env_http_headers").and_then(Value::as_object);
        for (header, variable) in named.into_iter().flatten() {
            headers.push((
                header.clone(),
                format!("${{{}}}", variable.as_str().unwrap_or_default()),
            ));
        }
        headers
    }

    /// Variables that the client passes on by name.
    fn extra_variables(&mut self, server: &mut NewServer) {
        for (key, place) in [
            ("env_keys", "is in the client's keyring"),
            ("env_vars", "comes from the environment"),
        ] {
            let names = self
                .map
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for name in names.filter_map(Value::as_str) {
                if server.pairs().iter().any(|(known, _)| known == name) {
                    continue;
                }
                self.notes.push(format!(
                    "`{}`: {name} {place}: set it where the gateway starts",
                    self.name
                ));
                server
                    .pairs()
                    .push((name.to_owned(), format!("${{{name}}}")));
            }
        }
    }

    /// A text as it is.
    fn word(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        self.map.get(key).and_then(Value::as_str).map(str::to_owned)
    }

    fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.known.push(key);
        match self.map.get(key)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => text.trim().to_lowercase().parse().ok(),
            Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn millis(&mut self, key: &'static str, unit: u64) -> Option<u64> {
        self.known.push(key);
        let number = self
            .map
            .get(key)
            .and_then(Value::as_f64)
            .filter(|number| *number > 0.0)?;
        // Fractions of a second occur, of a millisecond not.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        Some((number * unit as f64).ceil() as u64)
    }

    /// A text with the gateway's variables.
    fn text(&mut self, key: &'static str) -> Option<String> {
        let text = self.word(key)?;
        Some(self.translated(&text))
    }

    fn texts(&mut self, key: &'static str) -> Vec<String> {
        self.known.push(key);
        let items = self
            .map
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let texts: Vec<String> = items.filter_map(plain).collect();
        texts.iter().map(|text| self.translated(text)).collect()
    }

    fn pairs(&mut self, key: &'static str) -> Vec<(String, String)> {
        self.known.push(key);
        let map = self
            .map
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let pairs: Vec<(String, String)> = map
            .filter_map(|(name, value)| Some((name.clone(), plain(value)?)))
            .collect();
        pairs
            .into_iter()
            .map(|(name, value)| (name, self.translated(&value)))
            .collect()
    }

    /// A text in which what the client expands is what the gateway expands, and all else is not
    /// expanded.
    fn translated(&mut self, text: &str) -> String {
        let variables = self.shape.variables;
        if variables == Variables::None || !text.contains('$') {
            return literal(text);
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out += before;
            let Some(inner) = after.strip_prefix('{') else {
                let length = after
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(after.len());
                let (name, behind) = after.split_at_checked(length).unwrap_or((after, ""));
                let is_name = variables == Variables::Dollar && !name.is_empty();
                out += &if is_name {
                    format!("${{{name}}}")
                } else {
                    format!("${name}")
                };
                rest = behind;
                continue;
            };
            let (end, length) = if inner.starts_with('{') {
                ("}}", 2)
            } else {
                ("}", 1)
            };
            let Some((name, behind)) = inner
                .find(end)
                .and_then(|at| Some((inner.get(..at)?, inner.get(at + length..)?)))
            else {
                out += &literal(&format!("${{{inner}"));
                return out;
            };
            out += &self.reference(name.trim_start_matches('{').trim());
            rest = behind;
        }
        out + rest
    }

    /// One variable of the client, as the gateway writes it.
    fn reference(&mut self, name: &str) -> String {
        let home = "${HOME}".to_owned();
        if let Some(inner) = name.strip_prefix("env:") {
            return format!("${{{inner}}}");
        }
        if let Some(input) = name
            .strip_prefix("input:")
            .or_else(|| name.strip_prefix("secrets."))
        {
            let variable = variable_name(input.rsplit('.').next().unwrap_or(input));
            self.notes.push(format!(
                "`{}`: the client asks for `{input}`: set {variable} where the gateway starts",
                self.name
            ));
            return format!("${{{variable}}}");
        }
        match name {
            "userHome" => home,
            "workspaceFolder" => literal(&self.project.display().to_string()),
            "pathSeparator" | "/" => "/".to_owned(),
            name if matches!(self.shape.variables, Variables::Braces | Variables::Dollar) => {
                format!("${{{name}}}")
            }
            name => {
                self.notes.push(format!(
                    "`{}`: the variable ${{{name}}} is not expanded",
                    self.name
                ));
                literal(&format!("${{{name}}}"))
            }
        }
    }
}

/// A text, number or flag as a text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn import(shape: &ClientFormat, value: Value) -> Imported {
        read(
            &TableEntry {
                name: "my server".to_owned(),
                value,
            },
            shape,
            Path::new("/work"),
        )
    }

    #[test]
    fn variables_are_those_of_the_client() {
        let check = |variables, text: &str, expect: &str| {
            let shape = ClientFormat {
                variables,
                ..ClientFormat::PLAIN
            };
            let found = import(&shape, json!({ "command": "x", "args": [text] }))
                .server
                .unwrap();
            let NewTransport::Command { args, .. } = found.transport else {
                panic!("no command")
            };
            assert_eq!(args, [expect], "{variables:?}: {text}");
        };
        check(Variables::None, "a ${X} $Y $${Z}", "a $${X} $Y $$${Z}");
        check(Variables::Braces, "a ${X:-b} $Y", "a ${X:-b} $Y");
        check(
            Variables::Editor,
            "${env:X}/${workspaceFolder}/${userHome}",
            "${X}//work/${HOME}",
        );
        check(
            Variables::Editor,
            "${input:my-key} ${other} ${open",
            "${MY_KEY} $${other} $${open",
        );
        check(Variables::Dollar, "$X ${Y} $ $$", "${X} ${Y} $ $$");
        check(Variables::Secrets, "${{ secrets.org/A.KEY }}", "${KEY}");
    }

    #[test]
    fn what_a_gateway_cannot_have_is_named() {
        let check = |value: Value| import(&ClientFormat::PLAIN, value);
        assert_eq!(
            check(json!({ "type": "builtin", "name": "developer" })).server,
            None
        );
        assert!(check(json!({ "args": [] })).notes[0].contains("neither a command nor a URL"));
        assert!(check(json!(3)).notes[0].contains("not a table"));
        let found =
            check(json!({ "command": "x", "alwaysAllow": ["a"], "sandbox": true, "oauth": {} }));
        assert_eq!(found.notes, ["`my server`: `oauth`, `sandbox` left out"]);
        assert_eq!(found.server.unwrap().name, "my-server");
        let odd = read(
            &TableEntry {
                name: "a\u{202e}b".into(),
                value: json!({ "command": "x" }),
            },
            &ClientFormat::PLAIN,
            Path::new("/"),
        );
        assert_eq!((odd.server, odd.notes.len()), (None, 1));
    }

    #[test]
    fn a_command_line_is_a_program_with_arguments_where_that_is_clear() {
        let check = |command: &str| {
            let found = import(
                &ClientFormat::PLAIN,
                json!({ "command": command, "args": ["last"] }),
            );
            let transport = found.server.map(|server| server.transport);
            (transport, found.notes.len())
        };
        for (command, expect) in [
            ("npx", Some(("npx", vec!["last"], 0))),
            (
                "npx -y foo --bar",
                Some(("npx", vec!["-y", "foo", "--bar", "last"], 1)),
            ),
            ("/bin/sh -x", Some(("/bin/sh", vec!["-x", "last"], 1))),
            ("/no/such/My App/run", None),
            ("npx -y 'a b'", None),
        ] {
            let (transport, notes) = check(command);
            let found = match &transport {
                Some(NewTransport::Command { command, args, .. }) => Some((
                    command.as_str(),
                    args.iter().map(String::as_str).collect(),
                    notes,
                )),
                _ => None,
            };
            assert_eq!(found, expect, "{command}");
            assert!(transport.is_some() || notes == 1, "{command}");
        }
    }

    #[test]
    fn a_name_of_callers_or_the_gateway_becomes_another_one() {
        for (written, expect) in [
            ("local", "server-local"),
            ("Local", "server-Local"),
            ("anonymous-1", "server-anonymous-1"),
            ("system:x", "server-system:x"),
            ("locals", "locals"),
            ("地图mcp", "地图mcp"),
        ] {
            let entry = TableEntry {
                name: written.to_owned(),
                value: json!({ "command": "x" }),
            };
            let found = read(&entry, &ClientFormat::PLAIN, Path::new("/"));
            assert_eq!(found.server.unwrap().name, expect);
            assert_eq!(
                found.notes.len(),
                usize::from(written != expect),
                "{written}"
            );
        }
    }

    #[test]
    fn flags_may_be_written_as_texts() {
        for (value, enabled) in [
            (json!({ "command": "x", "disabled": "true" }), false),
            (json!({ "command": "x", "disabled": "False" }), true),
            (json!({ "command": "x", "enabled": "false" }), false),
            (json!({ "command": "x", "disabled": true }), false),
        ] {
            assert_eq!(
                import(&ClientFormat::PLAIN, value.clone())
                    .server
                    .unwrap()
                    .enabled,
                enabled,
                "{value}"
            );
        }
    }
}
