//! Sources of settings and their order: defaults, file, client files, flags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::config::Config;
use upstream::config::Origin;

use crate::config::check::check;
use crate::config::client_file;
use crate::config::expand::expand_home;
use crate::config::node::{self, Layer, Node, Value};
use crate::config::problem::Problem;
use crate::config::values::Env;
use crate::config::{json_file, servers, toml_file, topics};
use crate::process::read_file;

pub(crate) const DEFAULTS: &str = include_str!("defaults.toml");
const DEMO: &str = include_str!("demo.toml");
const FILE_NAME: &str = "portmoot.toml";

/// Configuration files and overrides from the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// `--config`.
    pub(crate) config: Option<PathBuf>,
    /// `--mcp-config`; each file overrides those before it.
    pub(crate) mcp_config: Vec<PathBuf>,
    /// `--listen`.
    pub(crate) listen: Option<String>,
    /// `--data-dir`.
    pub(crate) data_dir: Option<PathBuf>,
    /// Store nothing on disk unless `--data-dir` is given: `portmoot stdio`.
    pub(crate) keep_nothing: bool,
}

/// A loaded and checked configuration.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// The checked configuration.
    pub(crate) config: Config,
    /// The merged tree, variables unexpanded.
    pub(crate) tree: Node,
    /// The files it was read from, to watch for changes.
    pub(crate) files: Vec<PathBuf>,
    /// Messages about ignored keys of client files and settings without effect.
    pub(crate) notices: Vec<String>,
    /// Whether there is no configuration file, so that the demo server is used.
    pub(crate) demo: bool,
}

impl Sources {
    /// Reads and checks the configuration; also used for reloads.
    ///
    /// # Errors
    /// All problems.
    pub(crate) fn load(&self, env: Env<'_>) -> Result<Loaded, Vec<Problem>> {
        let mut loaded = self.merge(env).map_err(|problem| vec![problem])?;
        loaded.config = check(&loaded.tree, env)?;
        loaded.notices.extend(topics::unimplemented(&loaded.tree));
        loaded.notices.extend(servers::unexpanded(&loaded.tree));
        if loaded.config.data_dir.is_none() && !self.keep_nothing {
            loaded.config.data_dir = state_dir(env);
        }
        if self.keep_nothing && self.data_dir.is_none() {
            loaded.config.data_dir = None;
        }
        Ok(loaded)
    }

    /// The data directory, also of a configuration that is not valid. `None` if there is none, a file cannot be read, or a
    /// file that needs consent names it: then only [`Sources::load`] says what it is.
    pub(crate) fn data_dir(&self, env: Env<'_>) -> Option<PathBuf> {
        let full = |text: &str| expand_home(text, env).ok().map(PathBuf::from);
        if let Some(named) = &self.data_dir {
            return full(&named.display().to_string());
        }
        match self.tree(env).ok()?.get("server").and_then(|server| server.get("data_dir")) {
            None => state_dir(env),
            Some(node) if node.location.layer.origin.needs_consent() => None,
            Some(node) => full(node.text()?),
        }
    }

    /// The merged tree of all layers, not checked.
    pub(crate) fn tree(&self, env: Env<'_>) -> Result<Node, Problem> {
        self.merge(env).map(|loaded| loaded.tree)
    }

    fn merge(&self, env: Env<'_>) -> Result<Loaded, Problem> {
        let defaults = Layer::new(node::DEFAULTS, Origin::Own);
        let mut tree = toml_file::read(DEFAULTS, &defaults)?;
        let (mut files, mut notices) = (Vec::new(), Vec::new());
        if let Some((path, origin)) = self.main_file(env) {
            let layer = Layer::new(path.display().to_string(), origin);
            tree.overlay(toml_file::read(&read(&path, &layer)?, &layer)?);
            files.push(path);
        }
        for path in &self.mcp_config {
            let layer = Layer::new(path.display().to_string(), Origin::Named);
            let file = client_file::adapt(json_file::read(&read(path, &layer)?, &layer)?)?;
            tree.overlay(file.tree);
            notices.extend(file.notices);
            files.push(path.clone());
        }
        let demo = files.is_empty();
        if demo {
            tree.overlay(toml_file::read(DEMO, &defaults)?);
        }
        self.flags(&mut tree);
        // `load` replaces it after the check.
        let config = Config::default();
        Ok(Loaded { config, tree, files, notices, demo })
    }

    /// The configuration file: `--config`, else `portmoot.toml` in the current directory, else the user's. Another user may
    /// have put the one in the current directory there, so its commands need consent.
    fn main_file(&self, env: Env<'_>) -> Option<(PathBuf, Origin)> {
        if let Some(named) = &self.config {
            return Some((named.clone(), Origin::Named));
        }
        let here = PathBuf::from(FILE_NAME);
        if here.is_file() {
            return Some((here, Origin::Imported));
        }
        let users = config_dir(env)?.join(FILE_NAME);
        users.is_file().then_some((users, Origin::Own))
    }

    fn flags(&self, tree: &mut Node) {
        let mut set = |flag: &str, key: &str, value: Option<String>| {
            if let Some(value) = value {
                let layer: Arc<Layer> = Layer::new(flag, Origin::Named);
                tree.overlay(Node::at(&layer, &["server", key], Value::Text(value)));
            }
        };
        set("--listen", "listen", self.listen.clone());
        set("--data-dir", "data_dir", self.data_dir.as_ref().map(|path| path.display().to_string()));
    }
}

/// Configuration directory of the service, else of the user.
pub(crate) fn config_dir(env: Env<'_>) -> Option<PathBuf> {
    base_dir(env, "CONFIGURATION_DIRECTORY", "XDG_CONFIG_HOME", ".config")
}

/// Default data directory of the service, else of the user.
fn state_dir(env: Env<'_>) -> Option<PathBuf> {
    base_dir(env, "STATE_DIRECTORY", "XDG_STATE_HOME", ".local/state")
}

/// `of_service` is set by systemd: directories of the service alone, separated by colons.
fn base_dir(env: Env<'_>, of_service: &str, variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |path: String| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let first = |paths: String| absolute(paths.split(':').next().unwrap_or_default().to_owned());
    if let Some(own) = env(of_service).and_then(first) {
        return Some(own);
    }
    if let Some(base) = env(variable).and_then(absolute) {
        return Some(base.join("portmoot"));
    }
    let home = env("HOME").and_then(absolute)?;
    let below_home = if cfg!(target_os = "macos") { "Library/Application Support" } else { below_home };
    Some(home.join(below_home).join("portmoot"))
}

fn read(path: &Path, layer: &Arc<Layer>) -> Result<String, Problem> {
    let unreadable = |error| {
        Problem::new("config_unreadable", format!("cannot read this file: {error}")).at(&layer.unknown_line())
    };
    let text = read_file(path).map_err(unreadable)?;
    // Some editors write a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
