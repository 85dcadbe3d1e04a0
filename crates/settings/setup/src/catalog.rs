//! Servers of an MCP registry (<https://github.com/modelcontextprotocol/registry>, API v0.1) as
//! servers of `portmoot.toml`.
//!
//! What a registry says is a stranger's text: none of it is expanded as a variable.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::secret::variable_name;
use crate::server::{NewServer, NewTransport, literal};

/// The public registry.
pub const REGISTRY: &str = "https://registry.modelcontextprotocol.io";

/// An answer of `/v0.1/servers`.
#[derive(Debug, Clone, Deserialize)]
pub struct CatalogPage {
    /// The servers, one version each.
    #[serde(default)]
    pub servers: Vec<RegistryEntry>,
}

/// A version of a server in a registry.
#[derive(Debug, Clone, Deserialize)]
pub struct RegistryEntry {
    /// Description of the server by its author.
    pub server: Described,
}

/// A `server.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// Its name, such as `io.github.owner/server`.
    pub name: String,
    /// Purpose of the server.
    #[serde(default)]
    pub description: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    packages: Vec<Package>,
    #[serde(default)]
    remotes: Vec<Remote>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    registry_type: String,
    identifier: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    transport: Option<Remote>,
    #[serde(default)]
    runtime_arguments: Vec<Input>,
    #[serde(default)]
    package_arguments: Vec<Input>,
    #[serde(default)]
    environment_variables: Vec<Input>,
}

#[derive(Debug, Clone, Deserialize)]
struct Remote {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    headers: Vec<Input>,
    #[serde(default)]
    variables: BTreeMap<String, Input>,
}

/// An argument, a variable of the environment or a header.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    value_hint: Option<String>,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    default: Option<String>,
    #[serde(default)]
    is_required: bool,
    #[serde(default)]
    is_secret: bool,
    #[serde(default)]
    variables: BTreeMap<String, Input>,
}

/// A way to use a server of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOffer {
    /// `npm`, `pypi`, `oci`, `nuget`, `http` or `sse`.
    pub kind: String,
    /// The server.
    pub server: NewServer,
    /// Environment variables that must be set where the gateway starts.
    pub to_set: Vec<String>,
    /// Values that are missing: names for `--set NAME=VALUE`.
    pub missing: Vec<String>,
}

/// The reader of the values of one offer.
struct Values<'a> {
    given: &'a BTreeMap<String, String>,
    to_set: Vec<String>,
    missing: Vec<String>,
}

impl Described {
    /// The last part of the name.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// The ways in which its author offers it: `npm`, `http`, ...
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        let remotes = self
            .remotes
            .iter()
            .map(|remote| kind_of(&remote.kind).to_owned());
        let mut kinds: Vec<String> = self
            .packages
            .iter()
            .map(|package| package.registry_type.clone())
            .chain(remotes)
            .collect();
        kinds.dedup();
        kinds
    }

    /// The ways that a gateway can use, packages first. `given` are the user's values.
    #[must_use]
    pub fn offers(&self, name: &str, given: &BTreeMap<String, String>) -> Vec<ServerOffer> {
        let packages = self
            .packages
            .iter()
            .filter_map(|package| package.offer(name, given));
        packages
            .chain(
                self.remotes
                    .iter()
                    .filter_map(|remote| remote.offer(name, given)),
            )
            .collect()
    }
}

fn kind_of(transport: &str) -> &str {
    match transport {
        "streamable-http" => "http",
        other => other,
    }
}

impl Package {
    fn offer(&self, name: &str, given: &BTreeMap<String, String>) -> Option<ServerOffer> {
        if self
            .transport
            .as_ref()
            .is_some_and(|transport| transport.kind != "stdio")
        {
            return None;
        }
        let mut values = Values {
            given,
            to_set: Vec::new(),
            missing: Vec::new(),
        };
        let runtime = values.arguments(&self.runtime_arguments);
        let arguments = values.arguments(&self.package_arguments);
        let env = values.pairs(&self.environment_variables);
        let at = |sign: &str| match &self.version {
            Some(version) => literal(&format!("{}{sign}{version}", self.identifier)),
            None => literal(&self.identifier),
        };
        let (command, args): (&str, Vec<String>) = match self.registry_type.as_str() {
            "npm" => {
                let yes = (!runtime.iter().any(|one| one == "-y")).then(|| "-y".to_owned());
                (
                    "npx",
                    yes.into_iter()
                        .chain(runtime)
                        .chain([at("@")])
                        .chain(arguments)
                        .collect(),
                )
            }
            "pypi" => (
                "uvx",
                runtime
                    .into_iter()
                    .chain([at("@")])
                    .chain(arguments)
                    .collect(),
            ),
            "nuget" => {
                let end = (!arguments.is_empty()).then(|| "--".to_owned());
                let start = runtime.into_iter().chain([at("@"), "--yes".to_owned()]);
                ("dnx", start.chain(end).chain(arguments).collect())
            }
            "oci" => {
                let passed = env
                    .iter()
                    .flat_map(|(name, _)| ["-e".to_owned(), name.clone()]);
                let has_tag = self
                    .identifier
                    .rsplit('/')
                    .next()
                    .is_some_and(|last| last.contains([':', '@']));
                let image = if has_tag {
                    literal(&self.identifier)
                } else {
                    at(":")
                };
                let run = ["run", "-i", "--rm"].map(str::to_owned).into_iter();
                (
                    "docker",
                    run.chain(passed)
                        .chain(runtime)
                        .chain([image])
                        .chain(arguments)
                        .collect(),
                )
            }
            _ => return None,
        };
        let transport = NewTransport::Command {
            command: command.to_owned(),
            args,
            env,
            cwd: None,
        };
        Some(values.offer(&self.registry_type, NewServer::new(name, transport)))
    }
}

impl Remote {
    fn offer(&self, name: &str, given: &BTreeMap<String, String>) -> Option<ServerOffer> {
        let is_sse = match self.kind.as_str() {
            "streamable-http" => false,
            "sse" => true,
            _ => return None,
        };
        let mut values = Values {
            given,
            to_set: Vec::new(),
            missing: Vec::new(),
        };
        let url = values.filled(&self.url, &self.variables);
        let headers = values.pairs(&self.headers);
        let server = NewServer::new(
            name,
            NewTransport::Url {
                url,
                headers,
                is_sse,
            },
        );
        Some(values.offer(kind_of(&self.kind), server))
    }
}

impl Values<'_> {
    fn offer(self, kind: &str, server: NewServer) -> ServerOffer {
        ServerOffer {
            kind: kind.to_owned(),
            server,
            to_set: self.to_set,
            missing: self.missing,
        }
    }

    /// Arguments: those without a value are left out, unless they are required.
    fn arguments(&mut self, inputs: &[Input]) -> Vec<String> {
        let mut out = Vec::new();
        for input in inputs {
            let flag = input.name.as_deref().filter(|name| name.starts_with('-'));
            let called = flag
                .map(|flag| flag.trim_start_matches('-'))
                .or(input.value_hint.as_deref());
            let called = called.or(input.name.as_deref()).unwrap_or("value");
            match (self.value(input, called), flag) {
                (Some(value), Some(flag)) => out.extend([literal(flag), value]),
                (Some(value), None) => out.push(value),
                (None, Some(flag)) if input.is_required => out.push(literal(flag)),
                (None, _) => {}
            }
        }
        out
    }

    fn pairs(&mut self, inputs: &[Input]) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for input in inputs {
            let Some(name) = input.name.clone() else {
                continue;
            };
            let value = match self.given.get(&name) {
                Some(value) => Some(value.clone()),
                None if input.value.is_none() && (input.is_secret || input.is_required) => {
                    Some(self.variable(&name))
                }
                None => self.value(input, &name),
            };
            out.extend(value.map(|value| (name, value)));
        }
        out
    }

    /// A reference to a variable of the gateway's environment.
    fn variable(&mut self, name: &str) -> String {
        let variable = variable_name(name);
        if !self.to_set.contains(&variable) {
            self.to_set.push(variable.clone());
        }
        format!("${{{variable}}}")
    }

    /// The user's value, else the author's, else the default.
    fn value(&mut self, input: &Input, called: &str) -> Option<String> {
        if let Some(given) = self.given.get(called) {
            return Some(given.clone());
        }
        if let Some(value) = &input.value {
            return Some(self.filled(value, &input.variables));
        }
        if let Some(default) = &input.default {
            return Some(literal(default));
        }
        if input.is_required {
            self.missing.push(called.to_owned());
        }
        None
    }

    /// A text with its `{variables}`.
    fn filled(&mut self, text: &str, variables: &BTreeMap<String, Input>) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            out += &literal(before);
            let inner = after
                .split_once('}')
                .filter(|(name, _)| variables.contains_key(*name));
            let Some((name, behind)) = inner else {
                // A brace behind a dollar would be a variable of the gateway's environment.
                out += if before.ends_with('$') { "${" } else { "{" };
                rest = after;
                continue;
            };
            let input = variables.get(name).cloned().unwrap_or_default();
            out += &match self.value(&input, name) {
                Some(value) => value,
                None if input.is_secret => {
                    self.missing.retain(|missing| missing != name);
                    self.variable(name)
                }
                None => String::new(),
            };
            rest = behind;
        }
        out + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(json: &str) -> Described {
        let page: CatalogPage =
            serde_json::from_str(&format!(r#"{{"servers":[{{"server":{json}}}]}}"#)).unwrap();
        page.servers[0].server.clone()
    }

    #[test]
    fn packages_and_remotes_are_offered() {
        let one = described(
            r#"{"name":"io.github.me/files","version":"1.0.2","packages":[
              {"registryType":"npm","identifier":"@me/files","version":"1.0.2","transport":{"type":"stdio"},
               "packageArguments":[{"type":"positional","valueHint":"dir","isRequired":true},
                 {"type":"named","name":"--mode","default":"ro"},{"type":"named","name":"--port"}],
               "environmentVariables":[{"name":"API_KEY","isRequired":true,"isSecret":true},{"name":"LEVEL"},{"name":"L2","default":"info"}]},
              {"registryType":"pypi","identifier":"files","version":"2","runtimeHint":"uvx"},
              {"registryType":"oci","identifier":"docker.io/me/files","version":"3",
               "runtimeArguments":[{"type":"named","name":"--mount","value":"src={from}","variables":{"from":{"isRequired":true}}}],
               "environmentVariables":[{"name":"TOKEN","isSecret":true}]},
              {"registryType":"mcpb","identifier":"https://x/y.mcpb"},
              {"registryType":"npm","identifier":"x","transport":{"type":"streamable-http","url":"http://localhost"}}],
             "remotes":[{"type":"streamable-http","url":"https://{host}/mcp","variables":{"host":{"default":"a.example"}},
               "headers":[{"name":"Authorization","value":"Bearer {key}","variables":{"key":{"isSecret":true,"isRequired":true}}}]},
              {"type":"sse","url":"https://a.example/sse"}]}"#,
        );
        assert_eq!(one.short_name(), "files");
        assert_eq!(
            one.kinds(),
            ["npm", "pypi", "oci", "mcpb", "npm", "http", "sse"]
        );
        let given = BTreeMap::from([
            ("dir".to_owned(), "/tmp".to_owned()),
            ("from".to_owned(), "/x".to_owned()),
        ]);
        let shown: String = one
            .offers("f", &given)
            .iter()
            .map(|one| {
                format!(
                    "{}\n{}set {:?}, missing {:?}\n",
                    one.kind,
                    crate::own::section(&one.server),
                    one.to_set,
                    one.missing
                )
            })
            .collect();
        insta::assert_snapshot!(shown, @r#"
        npm
        [servers.f]
        command = "npx"
        args = ["-y", "@me/files@1.0.2", "/tmp", "--mode", "ro"]
        env = { API_KEY = "${API_KEY}", L2 = "info" }
        set ["API_KEY"], missing []
        pypi
        [servers.f]
        command = "uvx"
        args = ["files@2"]
        set [], missing []
        oci
        [servers.f]
        command = "docker"
        args = ["run", "-i", "--rm", "-e", "TOKEN", "--mount", "src=/x", "docker.io/me/files:3"]
        env = { TOKEN = "${TOKEN}" }
        set ["TOKEN"], missing []
        http
        [servers.f]
        url = "https://a.example/mcp"
        headers = { Authorization = "Bearer ${KEY}" }
        set ["KEY"], missing []
        sse
        [servers.f]
        type = "sse"
        url = "https://a.example/sse"
        set [], missing []
        "#);
        assert_eq!(one.offers("f", &BTreeMap::new())[0].missing, ["dir"]);
    }

    #[test]
    fn nothing_of_a_registry_is_expanded() {
        let one = described(
            r#"{"name":"x/y","packages":[{"registryType":"npm","identifier":"a${HOME}","packageArguments":[{"type":"positional","value":"${AWS_SECRET}"},{"type":"positional","default":"${X}"}]}],
                "remotes":[{"type":"sse","url":"https://evil.example/?${AWS_SECRET}&$${B}"}]}"#,
        );
        for offer in one.offers("y", &BTreeMap::new()) {
            let section = crate::own::section(&offer.server);
            assert!(!section.replace("$${", "").contains("${"), "{section}");
        }
    }
}
