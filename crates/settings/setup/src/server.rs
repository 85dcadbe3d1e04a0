//! A server as `portmoot.toml` has it.

use serde_json::{Map, Value};

use crate::edit::NewEntry;
use crate::secret::{is_secret, variable_name};

/// A server to put into `portmoot.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewServer {
    /// Its name.
    pub name: String,
    /// Way in which the gateway reaches it.
    pub transport: NewTransport,
    /// The beginning of its tools' names, if not its own name.
    pub prefix: Option<String>,
    /// Whether it runs.
    pub enabled: bool,
    /// `start_timeout` and `request_timeout`, milliseconds.
    pub timeouts_ms: [Option<u64>; 2],
    /// Whether its process is confined to few files.
    pub is_confined: bool,
}

/// Way in which the gateway reaches a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewTransport {
    /// A program that the gateway starts.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, besides the gateway's own.
        env: Vec<(String, String)>,
        /// Its directory.
        cwd: Option<String>,
    },
    /// A URL.
    Url {
        /// The URL.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
        /// HTTP+SSE of 2024-11-05, and not Streamable HTTP.
        is_sse: bool,
    },
    /// An HTTP API.
    OpenApi {
        /// Its OpenAPI description: a file or a URL.
        description: String,
        /// Where it is, if not where the description says.
        url: Option<String>,
        /// Headers of every request.
        headers: Vec<(String, String)>,
        /// Parameters of the query of every request.
        query: Vec<(String, String)>,
    },
}

impl NewServer {
    /// A server with this transport, all else by default.
    #[must_use]
    pub fn new(name: impl Into<String>, transport: NewTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            prefix: None,
            enabled: true,
            timeouts_ms: [None; 2],
            is_confined: false,
        }
    }

    /// Its keys in `[servers.NAME]`.
    #[must_use]
    pub fn fields(&self) -> NewEntry {
        let mut fields: NewEntry = Vec::new();
        let mut add = |key: &str, value: Value| fields.push((key.to_owned(), value));
        match &self.transport {
            NewTransport::Command {
                command,
                args,
                env,
                cwd,
            } => {
                add("command", command.as_str().into());
                if !args.is_empty() {
                    add("args", args.clone().into());
                }
                if let Some(cwd) = cwd {
                    add("cwd", cwd.as_str().into());
                }
                if !env.is_empty() {
                    add("env", table(env));
                }
            }
            NewTransport::Url {
                url,
                headers,
                is_sse,
            } => {
                if *is_sse {
                    add("type", "sse".into());
                }
                add("url", url.as_str().into());
                if !headers.is_empty() {
                    add("headers", table(headers));
                }
            }
            NewTransport::OpenApi {
                description,
                url,
                headers,
                query,
            } => {
                add("openapi", description.as_str().into());
                if let Some(url) = url {
                    add("url", url.as_str().into());
                }
                for (key, pairs) in [("headers", headers), ("query", query)] {
                    if !pairs.is_empty() {
                        add(key, table(pairs));
                    }
                }
            }
        }
        if let Some(prefix) = &self.prefix {
            add("prefix", prefix.as_str().into());
        }
        if self.is_confined {
            add("sandbox", "files".into());
        }
        if !self.enabled {
            add("enabled", false.into());
        }
        for (key, time) in ["start_timeout", "request_timeout"]
            .into_iter()
            .zip(self.timeouts_ms)
        {
            if let Some(time) = time {
                add(key, duration(time).into());
            }
        }
        fields
    }

    /// The environment of a process; the headers of a server at a URL.
    pub(crate) fn pairs(&mut self) -> &mut Vec<(String, String)> {
        match &mut self.transport {
            NewTransport::Command { env, .. } => env,
            NewTransport::Url { headers, .. } | NewTransport::OpenApi { headers, .. } => headers,
        }
    }

    /// All names with values that may be secrets: variables, headers, parameters of the query.
    fn values(&mut self) -> impl Iterator<Item = (Given, &mut (String, String))> {
        let (given, pairs, query): (_, _, &mut [_]) = match &mut self.transport {
            NewTransport::Command { env, .. } => (Given::Env, env, &mut []),
            NewTransport::Url { headers, .. } => (Given::Header, headers, &mut []),
            NewTransport::OpenApi { headers, query, .. } => (Given::Header, headers, query),
        };
        let query = query.iter_mut().map(|pair| (Given::Query, pair));
        pairs.iter_mut().map(move |pair| (given, pair)).chain(query)
    }

    /// The names of variables, headers and parameters whose values look like secrets.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let mut copy = self.clone();
        let secret = copy
            .values()
            .filter(|(_, (name, value))| is_secret(name, value));
        secret.map(|(_, (name, _))| name.clone()).collect()
    }

    /// The option of `portmoot add` that gives the first secret as a reference to an environment
    /// variable; `None` without a secret.
    #[must_use]
    pub fn referring_option(&self) -> Option<String> {
        let mut copy = self.clone();
        let first = copy
            .values()
            .position(|(_, (name, value))| is_secret(name, value))?;
        copy.hide_secrets();
        let (given, (name, value)) = copy.values().nth(first)?;
        Some(match given {
            Given::Env => format!("--env '{name}={value}'"),
            Given::Header => format!("--header '{name}: {value}'"),
            Given::Query => format!("--query '{name}={value}'"),
        })
    }

    /// Writes secrets as references to environment variables, whose names it returns.
    pub fn hide_secrets(&mut self) -> Vec<String> {
        let server = self.name.clone();
        let mut variables = Vec::new();
        for (given, (name, value)) in self.values() {
            if !is_secret(name, value) {
                continue;
            }
            let is_env = given == Given::Env;
            let variable = variable_name(&if is_env {
                name.clone()
            } else {
                format!("{server}_{name}")
            });
            let scheme = value
                .split_once(' ')
                .map(|(scheme, _)| scheme)
                .filter(|_| given == Given::Header);
            *value = match scheme {
                Some(scheme) => format!("{scheme} ${{{variable}}}"),
                None => format!("${{{variable}}}"),
            };
            variables.push(variable);
        }
        variables
    }
}

/// As what a name with a value is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Env,
    Header,
    Query,
}

fn table(pairs: &[(String, String)]) -> Value {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn duration(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{}s", ms / 1000)
    } else {
        format!("{ms}ms")
    }
}

/// A text that the gateway does not expand.
#[must_use]
pub fn literal(text: &str) -> String {
    text.replace("${", "$${")
}
