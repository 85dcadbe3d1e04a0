//! Sources of settings and their order: defaults, file, client files, flags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checked::Config;

use crate::check::check;
use crate::client_file;
use crate::expand::expand_home;
use crate::found::{FoundFile, keep_servers};
use crate::node::{self, Layer, Node, SourceOrigin, Value};
use crate::own_address::OwnAddress;
use crate::problem::Problem;
use crate::read_file::read_file;
use crate::secrets::{KeptSecrets, NamedSecret, NoSecret, Outside, Secrets};
use crate::unmatched::unmatched;
use crate::values::Env;
use crate::{cluster, json_file, servers, tls_files, toml_file};

pub(crate) const DEFAULTS: &str = include_str!("defaults.toml");
const DEMO: &str = include_str!("demo.toml");
const FILE_NAME: &str = "portmoot.toml";

/// Configuration files and overrides from the command line.
#[derive(Debug, Clone, Default)]
pub struct ConfigSources {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--mcp-config`; each file overrides those before it.
    pub mcp_config: Vec<PathBuf>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--with`: a file that is laid over all others. What it leaves out stays as it is.
    pub with: Option<PathBuf>,
    /// Whether an entry of a client's file that cannot be used is a problem of the whole
    /// configuration, as any other.
    pub strict: bool,
    /// Store nothing on disk unless `--data-dir` is given: `portmoot stdio`.
    pub keep_nothing: bool,
}

/// A loaded and checked configuration.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The checked configuration.
    pub config: Config,
    /// The merged tree, variables unexpanded.
    pub tree: Node,
    /// The secrets that it names. Until they are read, it has them without a value.
    pub secrets: Vec<NamedSecret>,
    /// Where those are that the gateway keeps itself; also of a gateway that stores nothing.
    pub kept: KeptSecrets,
    /// The files it was read from, those of TLS and of secrets, to watch for changes.
    pub files: Vec<PathBuf>,
    /// The user's configuration file if it is not there yet: it is read as soon as it is.
    pub awaited: Option<PathBuf>,
    /// Messages about ignored keys of client files and settings without effect.
    pub notices: Vec<String>,
    /// Whether there is no configuration file, so that the demo server is used.
    pub demo: bool,
    /// The file that the operator did not name, if there is one: this configuration may be used
    /// only after consent to it.
    pub found: Option<FoundFile>,
}

impl Loaded {
    /// The files of which a change is a change of the configuration, also one that is not there
    /// yet.
    #[must_use]
    pub fn watched(&self) -> Vec<PathBuf> {
        let kept = self
            .secrets
            .iter()
            .filter_map(|secret| self.kept.file(secret.kept()?));
        let mut watched: Vec<PathBuf> = self.files.iter().chain(&self.awaited).cloned().collect();
        for file in kept {
            if !watched.contains(&file) {
                watched.push(file);
            }
        }
        watched
    }

    /// Whether a file that the operator did not name says where secrets are kept, or with which
    /// key.
    #[must_use]
    pub fn keeps_by_found_file(&self) -> bool {
        let Some(server) = self.tree.get("server") else {
            return false;
        };
        ["data_dir", "key_file", "key_command"].iter().any(|key| {
            server
                .get(key)
                .is_some_and(|node| node.location.layer.origin == SourceOrigin::Found)
        })
    }

    /// Messages about secrets that are not set, without reading one.
    #[must_use]
    pub fn unset_secrets(&self) -> Vec<String> {
        let mut messages = Vec::new();
        for secret in &self.secrets {
            if let Some(name) = secret.kept()
                && !self.kept.has(name)
            {
                let NoSecret { why, fix, .. } = NoSecret::unset(name);
                messages.push(format!("`{}`: {why}: {fix}", secret.key));
            }
        }
        messages
    }
}

impl ConfigSources {
    /// Reads and checks the configuration; also used for reloads.
    ///
    /// # Errors
    /// All problems.
    pub fn load(&self, env: Env<'_>) -> Result<Loaded, Vec<Problem>> {
        let mut loaded = self.merge(env).map_err(|problem| vec![problem])?;
        let outside = Outside::unread(env);
        loaded.config = check(&loaded.tree, &outside, &mut loaded.notices)?;
        loaded.secrets = outside.into_named();
        let Loaded {
            config,
            tree,
            notices,
            files,
            secrets,
            kept,
            ..
        } = &mut loaded;
        notices.extend(servers::transport::unexpanded(tree));
        notices.extend(unmatched(tree, config));
        notices.extend(tls_files::warnings(config));
        notices.extend(servers::without_resource(tree));
        files.extend(config.rules.iter().map(|one| one.file.clone()));
        files.extend(tls_files::paths(config));
        files.extend(secrets.iter().filter_map(NamedSecret::file));
        let written = config.data_dir.clone();
        if written.is_none() && !self.keep_nothing {
            config.data_dir = state_dir(env);
        }
        // A gateway that stores nothing has the operator's secrets all the same: they are read
        // where others have put them.
        let data_dir = written.or_else(|| state_dir(env));
        *kept = KeptSecrets::of(data_dir.as_deref(), config.key.clone());
        if self.keep_nothing && self.data_dir.is_none() {
            config.data_dir = None;
        }
        if config.cluster.is_some() && config.data_dir.is_none() {
            return Err(vec![cluster::without_data_dir(tree)]);
        }
        keep_from_servers(config, kept);
        Ok(loaded)
    }

    /// The data directory, also of a configuration that is not valid. `None` if there is none, a
    /// file cannot be read, or a file that needs consent names it: then only [`ConfigSources::load`] says
    /// what it is.
    pub fn data_dir(&self, env: Env<'_>) -> Option<PathBuf> {
        let written = match &self.data_dir {
            Some(named) => named.display().to_string(),
            None => {
                let tree = self.tree(env).ok()?;
                let node = tree.get("server").and_then(|server| server.get("data_dir"));
                match node {
                    None => return state_dir(env),
                    Some(node) if node.location.layer.origin == SourceOrigin::Found => return None,
                    Some(node) => node.text()?.to_owned(),
                }
            }
        };
        Some(PathBuf::from(expand_home(&written, env).ok()?))
    }

    /// The merged tree of all layers, not checked.
    ///
    /// # Errors
    /// The first problem: a file that cannot be read or is no TOML or JSON.
    pub fn tree(&self, env: Env<'_>) -> Result<Node, Problem> {
        self.merge(env).map(|loaded| loaded.tree)
    }

    /// The configuration file that commands edit: the one that is read; where there is none, the
    /// place of the user's.
    pub fn edited_file(&self, env: Env<'_>) -> Option<PathBuf> {
        let read = self.main_file(env).map(|(path, _)| path);
        read.or_else(|| Some(config_dir(env)?.join(FILE_NAME)))
    }

    /// The user's configuration file if no other one is read and it is not there.
    fn awaited_file(&self, env: Env<'_>) -> Option<PathBuf> {
        if self.main_file(env).is_some() {
            return None;
        }
        Some(config_dir(env)?.join(FILE_NAME))
    }

    fn merge(&self, env: Env<'_>) -> Result<Loaded, Problem> {
        let mut tree = toml_file::read(&default_layer(DEFAULTS))?;
        let mut files = Vec::new();
        let mut notices = Vec::new();
        let mut clients = Node::empty(&default_layer(""));
        for path in &self.mcp_config {
            let file = client_file::adapt(json_file::read(&self.read_client_file(path)?)?)?;
            clients.overlay(file.tree);
            notices.extend(file.notices);
        }
        let mut found = None;
        if let Some((path, origin)) = self.main_file(env) {
            let mut file = toml_file::read(&read(&path, origin)?)?;
            if origin == SourceOrigin::Found {
                if !self.mcp_config.is_empty() {
                    notices.extend(keep_servers(&mut file, &clients));
                }
                found = FoundFile::of(&file);
            }
            // The servers of a found file come after those that the operator named: of two equal
            // URIs, the earlier server keeps its.
            if found.is_some() && !self.mcp_config.is_empty() {
                clients.overlay(file);
            } else {
                tree.overlay(file);
            }
            files.push(path);
        }
        tree.overlay(clients);
        files.extend(self.mcp_config.iter().cloned());
        let demo = files.is_empty();
        if demo {
            tree.overlay(toml_file::read(&default_layer(DEMO))?);
        }
        if let Some(with) = &self.with {
            tree.overlay(toml_file::read(&read(with, SourceOrigin::Operator)?)?);
        }
        self.flags(&mut tree);
        Ok(Loaded {
            // `load` replaces these three after the check.
            config: Config::default(),
            secrets: Vec::new(),
            kept: KeptSecrets::default(),
            tree,
            files,
            awaited: self.awaited_file(env),
            notices,
            demo,
            found,
        })
    }

    fn read_client_file(&self, path: &Path) -> Result<Arc<Layer>, Problem> {
        if self.strict {
            read(path, SourceOrigin::Operator)
        } else {
            read_as(path, SourceOrigin::Operator, Layer::client_file)
        }
    }

    /// The configuration file: `--config`, else `portmoot.toml` in the current directory, else the
    /// user's.
    fn main_file(&self, env: Env<'_>) -> Option<(PathBuf, SourceOrigin)> {
        if let Some(named) = &self.config {
            return Some((named.clone(), SourceOrigin::Operator));
        }
        let here = PathBuf::from(FILE_NAME);
        if here.is_file() {
            return Some((here, SourceOrigin::Found));
        }
        let users = config_dir(env)?.join(FILE_NAME);
        users.is_file().then_some((users, SourceOrigin::Operator))
    }

    /// Lays the flags over the files.
    fn flags(&self, tree: &mut Node) {
        if let Some(listen) = &self.listen {
            set_flag(tree, "--listen", "listen", listen.clone());
        }
        if let Some(data_dir) = &self.data_dir {
            let path = data_dir.display().to_string();
            set_flag(tree, "--data-dir", "data_dir", path);
        }
    }
}

impl Loaded {
    /// Reads the secrets that the configuration names, and gives it their values. Runs commands
    /// that its files name: the operator has agreed to them. Blocks, for as long as the slowest
    /// commands take. `secrets` keeps the values for the next time, for what cannot be read then.
    /// Returns messages about what could not be read now.
    ///
    /// # Errors
    /// All problems: a token of a participant or a secret of an issuer that cannot be read.
    pub fn read_secrets(
        &mut self,
        env: Env<'_>,
        secrets: &Secrets,
    ) -> Result<Vec<String>, Vec<Problem>> {
        let mut notices = secrets.renew(&self.secrets, &self.kept);
        if self.secrets.is_empty() {
            return Ok(notices);
        }
        let config = check(&self.tree, &Outside::with(env, secrets), &mut notices)?;
        let data_dir = self.config.data_dir.take();
        self.config = Config { data_dir, ..config };
        keep_from_servers(&mut self.config, &self.kept);
        notices.retain(|notice| !self.notices.contains(notice));
        Ok(notices)
    }
}

/// The problems of a configuration file with this text, before it is written; `name` stands for it
/// in messages.
pub fn check_text(name: &str, text: &str, env: Env<'_>) -> Vec<Problem> {
    match text_tree(name, text) {
        Ok(tree) => check(&tree, &Outside::unread(env), &mut Vec::new())
            .err()
            .unwrap_or_default(),
        Err(problem) => vec![problem],
    }
}

/// Address of the gateway of a configuration file with this text; `None` while the file has
/// problems.
pub fn address_of_text(name: &str, text: &str, env: Env<'_>) -> Option<OwnAddress> {
    let tree = text_tree(name, text).ok()?;
    Some(OwnAddress::of(
        &check(&tree, &Outside::unread(env), &mut Vec::new()).ok()?,
    ))
}

/// The problem of a topic with `anonymous` while callers need no token: it limits nothing.
#[must_use]
pub fn without_guests(loaded: &Loaded) -> Option<Problem> {
    let topic = loaded
        .config
        .identity
        .topics
        .iter()
        .find(|topic| topic.anonymous.is_some())?;
    let name = topic.name.as_str();
    let message = format!(
        "`topics.{name}.anonymous` limits nothing: while callers need no token, every program on this machine is the local user and may do everything"
    );
    let hint = "add a participant ([participants.NAME]) or issue a token (portmoot token new NAME): then callers without a token are guests. Or remove `anonymous`";
    let place = loaded.tree.place(&["topics", name, "anonymous"]);
    Some(
        Problem::new("config_anonymous", message)
            .hint(hint)
            .at(place),
    )
}

/// The tree of a configuration file with this text over the defaults.
fn text_tree(name: &str, text: &str) -> Result<Node, Problem> {
    let mut tree = toml_file::read(&default_layer(DEFAULTS))?;
    let file = Layer::file(name, SourceOrigin::Operator, text);
    tree.overlay(toml_file::read(&file)?);
    Ok(tree)
}

fn default_layer(text: &str) -> Arc<Layer> {
    Layer::file(node::DEFAULTS, SourceOrigin::Operator, text)
}

/// Sets a key of `[server]` to the value of a flag.
fn set_flag(tree: &mut Node, flag: &str, key: &str, value: String) {
    let layer: Arc<Layer> = Layer::new(flag, SourceOrigin::Operator);
    tree.overlay(Node::at(&layer, &["server", key], Value::Text(value)));
}

/// Keeps the gateway's own files from the servers in a sandbox, whatever their lists say.
fn keep_from_servers(config: &mut Config, kept: &KeptSecrets) {
    let folder = kept.folder().map(Path::to_owned);
    let own: Vec<PathBuf> = config.data_dir.iter().cloned().chain(folder).collect();
    for server in &mut config.servers {
        if let Some(child) = server.transport.child_mut()
            && let Some(files) = &mut child.confinement.files
        {
            files.never.clone_from(&own);
        }
    }
}

/// Configuration directory of the service, else of the user.
pub(crate) fn config_dir(env: Env<'_>) -> Option<PathBuf> {
    base_dir(env, "CONFIGURATION_DIRECTORY", "XDG_CONFIG_HOME", ".config")
}

/// Default data directory of the service, else of the user.
pub fn state_dir(env: Env<'_>) -> Option<PathBuf> {
    base_dir(env, "STATE_DIRECTORY", "XDG_STATE_HOME", ".local/state")
}

/// `of_service` is set by systemd: directories of the service alone, separated by colons.
fn base_dir(env: Env<'_>, of_service: &str, variable: &str, below_home: &str) -> Option<PathBuf> {
    if let Some(paths) = env(of_service)
        && let Some(own) = absolute(paths.split(':').next().unwrap_or_default())
    {
        return Some(own);
    }
    if let Some(base) = env(variable)
        && let Some(base) = absolute(&base)
    {
        return Some(base.join("portmoot"));
    }
    let home = absolute(&env("HOME")?)?;
    let below_home = if cfg!(target_os = "macos") {
        "Library/Application Support"
    } else {
        below_home
    };
    Some(home.join(below_home).join("portmoot"))
}

/// A path that does not depend on the working directory. The XDG specification has relative ones
/// ignored.
fn absolute(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    path.is_absolute().then(|| path.to_owned())
}

fn read(path: &Path, origin: SourceOrigin) -> Result<Arc<Layer>, Problem> {
    read_as(path, origin, |name, text| Layer::file(name, origin, text))
}

fn read_as(
    path: &Path,
    origin: SourceOrigin,
    layer: impl Fn(String, String) -> Arc<Layer>,
) -> Result<Arc<Layer>, Problem> {
    let name = path.display().to_string();
    match read_file(path) {
        // Some editors write a byte order mark.
        Ok(text) => Ok(layer(
            name,
            text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned(),
        )),
        Err(error) => {
            let problem = Problem::new(
                "config_unreadable",
                format!("cannot read this file: {error}"),
            );
            Err(problem.at(&Layer::new(name, origin).unknown_line()))
        }
    }
}
