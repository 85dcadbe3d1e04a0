//! Table of MCP clients: where each keeps its servers and how it writes them, on Linux and macOS.

use std::path::{Path, PathBuf};

use crate::edit::{Syntax, Table};
use crate::shape::{ClientFormat, Http, Variables};

/// The operating system, whose rules say where programs keep their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Os {
    /// Linux and others with XDG directories.
    Linux,
    /// macOS.
    MacOs,
}

/// Surroundings on which the places of files depend.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The operating system.
    pub os: Os,
    /// The user's home directory.
    pub home: &'a Path,
    /// The directory of the project.
    pub project: &'a Path,
    /// Environment variables.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// Scope of one of a client's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileScope {
    /// The user's, for all projects.
    User,
    /// The project's, in its directory.
    Project,
}

/// A client.
#[derive(Clone, Copy)]
pub struct ClientProgram {
    /// Its name in commands.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The page that describes its file.
    pub source: &'static str,
    /// Act by which it reads a changed file.
    pub reload: &'static str,
    user: fn(&Surroundings<'_>) -> Vec<PathBuf>,
    project: Option<&'static str>,
    kind: Kind,
}

/// The families of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Windsurf,
    Gemini,
    Codex,
    Zed,
    Goose,
    Cline,
    LmStudio,
    Continue,
}

/// A file of a client.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The file; it may not be there.
    pub file: PathBuf,
    /// Table in which it has its servers.
    pub table: Table,
    /// Further tables whose servers the client uses too; they are read only.
    pub others: Vec<Table>,
    /// Form in which it writes a server.
    pub shape: ClientFormat,
}

/// All clients, by their names in commands.
pub const CLIENTS: [ClientProgram; 12] = [
    ClientProgram {
        id: "claude-code",
        name: "Claude Code",
        source: "https://code.claude.com/docs/en/mcp",
        reload: "start a new session of Claude Code; /mcp shows its servers",
        user: |at| {
            vec![
                at.var("CLAUDE_CONFIG_DIR")
                    .unwrap_or_else(|| at.home.to_owned())
                    .join(".claude.json"),
            ]
        },
        project: Some(".mcp.json"),
        kind: Kind::ClaudeCode,
    },
    ClientProgram {
        id: "claude-desktop",
        name: "Claude Desktop",
        source: "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        reload: "quit Claude Desktop and start it again",
        user: |at| vec![at.app("Claude").join("claude_desktop_config.json")],
        project: None,
        kind: Kind::ClaudeDesktop,
    },
    ClientProgram {
        id: "cline",
        name: "Cline",
        source: "https://docs.cline.bot/mcp/adding-and-configuring-servers",
        reload: "Cline reads the file again by itself",
        user: |at| {
            let extension =
                "User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
            let named = at.var("CLINE_MCP_SETTINGS_PATH");
            let own = at.home.join(".cline/data/settings/cline_mcp_settings.json");
            named
                .into_iter()
                .chain([at.app("Code").join(extension), own])
                .collect()
        },
        project: None,
        kind: Kind::Cline,
    },
    ClientProgram {
        id: "codex",
        name: "Codex",
        source: "https://developers.openai.com/codex/mcp",
        reload: "start a new session of Codex; /mcp shows its servers",
        user: |at| {
            let home = at
                .var("CODEX_HOME")
                .unwrap_or_else(|| at.home.join(".codex"));
            vec![home.join("config.toml")]
        },
        project: Some(".codex/config.toml"),
        kind: Kind::Codex,
    },
    ClientProgram {
        id: "continue",
        name: "Continue",
        source: "https://docs.continue.dev/customize/deep-dives/mcp",
        reload: "Continue reads the file again by itself",
        user: |at| vec![at.home.join(".continue/config.yaml")],
        // JSON files of other clients are read in this folder.
        project: Some(".continue/mcpServers/mcp.json"),
        kind: Kind::Continue,
    },
    ClientProgram {
        id: "cursor",
        name: "Cursor",
        source: "https://cursor.com/docs/mcp",
        reload: "switch the server on in Cursor: Settings, MCP",
        user: |at| vec![at.home.join(".cursor/mcp.json")],
        project: Some(".cursor/mcp.json"),
        kind: Kind::Cursor,
    },
    ClientProgram {
        id: "gemini-cli",
        name: "Gemini CLI",
        source: "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
        reload: "start Gemini CLI again; /mcp shows its servers",
        user: |at| vec![at.home.join(".gemini/settings.json")],
        project: Some(".gemini/settings.json"),
        kind: Kind::Gemini,
    },
    ClientProgram {
        id: "goose",
        name: "Goose",
        source: "https://github.com/aaif-goose/goose/blob/main/documentation/docs/guides/config-files.md",
        reload: "start a new session of Goose",
        user: |at| {
            let config = at
                .var("XDG_CONFIG_HOME")
                .unwrap_or_else(|| at.home.join(".config"));
            vec![
                config.join("goose/config.yaml"),
                at.home.join(".config/goose/config.yaml"),
            ]
        },
        project: None,
        kind: Kind::Goose,
    },
    ClientProgram {
        id: "lm-studio",
        name: "LM Studio",
        source: "https://lmstudio.ai/docs/app/mcp",
        reload: "LM Studio reads the file again by itself",
        // Older versions on macOS: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1371
        user: |at| {
            [".lmstudio/mcp.json", ".cache/lm-studio/mcp.json"]
                .map(|file| at.home.join(file))
                .into()
        },
        project: None,
        kind: Kind::LmStudio,
    },
    ClientProgram {
        id: "vscode",
        name: "VS Code",
        source: "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        reload: "start the server in VS Code: MCP: List Servers",
        user: |at| vec![at.app("Code").join("User/mcp.json")],
        project: Some(".vscode/mcp.json"),
        kind: Kind::VsCode,
    },
    ClientProgram {
        id: "windsurf",
        name: "Windsurf",
        source: "https://docs.windsurf.com/windsurf/cascade/mcp",
        reload: "refresh the servers in Windsurf: Cascade, MCP servers",
        user: |at| vec![at.home.join(".codeium/windsurf/mcp_config.json")],
        project: None,
        kind: Kind::Windsurf,
    },
    ClientProgram {
        id: "zed",
        name: "Zed",
        source: "https://zed.dev/docs/ai/mcp",
        reload: "Zed reads the file again by itself",
        user: |at| {
            let config = at.var("XDG_CONFIG_HOME").filter(|_| at.os == Os::Linux);
            vec![
                config
                    .unwrap_or_else(|| at.home.join(".config"))
                    .join("zed/settings.json"),
            ]
        },
        project: Some(".zed/settings.json"),
        kind: Kind::Zed,
    },
];

impl Surroundings<'_> {
    /// An absolute path in an environment variable.
    fn var(&self, name: &str) -> Option<PathBuf> {
        (self.env)(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }

    /// The directory of a desktop program.
    fn app(&self, name: &str) -> PathBuf {
        match self.os {
            Os::MacOs => self.home.join("Library/Application Support").join(name),
            Os::Linux => self
                .var("XDG_CONFIG_HOME")
                .unwrap_or_else(|| self.home.join(".config"))
                .join(name),
        }
    }
}

/// The client of this name, in any spelling: `vscode`, `VS Code`, `vs-code`.
#[must_use]
pub fn client(name: &str) -> Option<&'static ClientProgram> {
    let plain = |text: &str| -> String {
        text.chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect()
    };
    let wanted = match plain(name).as_str() {
        "claude" => "claudecode".to_owned(),
        "gemini" => "geminicli".to_owned(),
        "code" | "visualstudiocode" | "copilot" => "vscode".to_owned(),
        other => other.to_owned(),
    };
    CLIENTS.iter().find(|client| plain(client.id) == wanted)
}

impl ClientProgram {
    /// Its file of a scope; `None` if it has none in a project.
    #[must_use]
    pub fn spot(&self, scope: FileScope, at: &Surroundings<'_>) -> Option<Spot> {
        let file = match scope {
            FileScope::User => {
                let all = (self.user)(at);
                let there = all.iter().find(|file| file.exists()).cloned();
                // Of a client that is not there, the last place is the newest version's own.
                let installed = || {
                    all.iter()
                        .find(|file| file.parent().is_some_and(Path::exists))
                        .cloned()
                };
                there.or_else(installed).or_else(|| all.first().cloned())?
            }
            FileScope::Project => at.project.join(self.project?),
        };
        Some(self.at(file, scope, at))
    }

    /// Spot of the client's servers for a file in another place.
    #[must_use]
    pub fn at(&self, file: PathBuf, scope: FileScope, at: &Surroundings<'_>) -> Spot {
        let table = self.table(scope);
        let others = match (self.kind, scope) {
            // Servers of one project that only this user has.
            (Kind::ClaudeCode, FileScope::User) => {
                let project = at.project.display().to_string();
                vec![Table::new(
                    Syntax::Json,
                    &["projects", &project, "mcpServers"],
                )]
            }
            _ => Vec::new(),
        };
        Spot {
            file,
            table,
            others,
            shape: self.shape(scope),
        }
    }

    /// Whether the client is there: its file, or the folder that it makes.
    #[must_use]
    pub fn is_installed(&self, at: &Surroundings<'_>) -> bool {
        let is_there = |file: &PathBuf| {
            file.exists()
                || file
                    .parent()
                    .is_some_and(|folder| folder != at.home && folder.is_dir())
        };
        (self.user)(at).iter().any(is_there)
    }

    /// Whether it has a file in projects.
    #[must_use]
    pub fn has_project_file(&self) -> bool {
        self.project.is_some()
    }

    fn table(&self, scope: FileScope) -> Table {
        match (self.kind, scope) {
            (Kind::VsCode, _) => Table::new(Syntax::Json, &["servers"]),
            (Kind::Zed, _) => Table::new(Syntax::Json, &["context_servers"]),
            (Kind::Codex, _) => Table::new(Syntax::Toml, &["mcp_servers"]),
            (Kind::Goose, _) => Table::new(Syntax::Yaml, &["extensions"]),
            (Kind::Continue, FileScope::User) => Table::list(Syntax::Yaml, &["mcpServers"]),
            (Kind::Continue, FileScope::Project)
            | (
                Kind::ClaudeDesktop
                | Kind::ClaudeCode
                | Kind::Cursor
                | Kind::Windsurf
                | Kind::Gemini
                | Kind::Cline
                | Kind::LmStudio,
                _,
            ) => Table::new(Syntax::Json, &["mcpServers"]),
        }
    }

    fn shape(&self, scope: FileScope) -> ClientFormat {
        let plain = ClientFormat::PLAIN;
        let http = Http::PLAIN;
        match self.kind {
            Kind::ClaudeDesktop => ClientFormat {
                http: None,
                ..plain
            },
            Kind::ClaudeCode => ClientFormat {
                stdio: Some("stdio"),
                http: Some(Http {
                    kind: Some("http"),
                    ..http
                }),
                variables: Variables::Braces,
                ..plain
            },
            Kind::VsCode => ClientFormat {
                stdio: Some("stdio"),
                http: Some(Http {
                    kind: Some("http"),
                    ..http
                }),
                variables: Variables::Editor,
                ..plain
            },
            Kind::Cursor | Kind::LmStudio => ClientFormat {
                variables: Variables::Editor,
                ..plain
            },
            Kind::Windsurf => ClientFormat {
                http: Some(Http {
                    url: "serverUrl",
                    ..http
                }),
                variables: Variables::Editor,
                ..plain
            },
            Kind::Gemini => ClientFormat {
                http: Some(Http {
                    url: "httpUrl",
                    ..http
                }),
                variables: Variables::Dollar,
                bare_url_is_sse: true,
                timeout_ms: true,
                ..plain
            },
            Kind::Codex => ClientFormat {
                http: Some(Http {
                    headers: "http_headers",
                    ..http
                }),
                ..plain
            },
            Kind::Zed => plain,
            Kind::Goose => ClientFormat {
                stdio: Some("stdio"),
                command: "cmd",
                env: "envs",
                http: Some(Http {
                    url: "uri",
                    kind: Some("streamable_http"),
                    ..http
                }),
                is_goose: true,
                ..plain
            },
            Kind::Cline => ClientFormat {
                http: Some(Http {
                    kind: Some("streamableHttp"),
                    ..http
                }),
                ..plain
            },
            Kind::Continue => ClientFormat {
                http: Some(Http {
                    kind: Some("streamable-http"),
                    in_options: scope == FileScope::User,
                    ..http
                }),
                variables: Variables::Secrets,
                ..plain
            },
        }
    }
}
