//! Where settings come from and in which order they are laid over each other. Reads files; must not know any key but
//! those that flags set.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway::config::Config;
use upstream::config::Origin;

use crate::config::check::check;
use crate::config::client_file;
use crate::config::node::{self, Layer, Node, Value};
use crate::config::problem::Problem;
use crate::config::values::Env;
use crate::config::{json_file, toml_file, topics};

const DEFAULTS: &str = include_str!("defaults.toml");
const DEMO: &str = include_str!("demo.toml");
const FILE_NAME: &str = "portmoot.toml";
/// A larger file is a mistake.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What the command line and the environment say about where the configuration is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// `--config`.
    pub(crate) config: Option<PathBuf>,
    /// `--mcp-config`, each laid over those before it.
    pub(crate) mcp_config: Vec<PathBuf>,
    /// `--listen`.
    pub(crate) listen: Option<String>,
    /// `--data-dir`.
    pub(crate) data_dir: Option<PathBuf>,
    /// Keep nothing on disk unless `data_dir` above says so: `portmoot stdio`.
    pub(crate) keep_nothing: bool,
}

/// A configuration that was read and checked.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// What a gateway runs on.
    pub(crate) config: Config,
    /// The same as it was written, variables unexpanded.
    pub(crate) tree: Node,
    /// The files it came from, to watch.
    pub(crate) files: Vec<PathBuf>,
    /// What was left out of other clients' files, and what does nothing.
    pub(crate) notices: Vec<String>,
    /// Whether nothing was configured, so that the demo server stands in.
    pub(crate) demo: bool,
}

impl Sources {
    /// Reads and checks everything, again and again for a reload.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub(crate) fn load(&self, env: Env<'_>) -> Result<Loaded, Vec<Problem>> {
        let mut loaded = self.lay(env).map_err(|problem| vec![problem])?;
        loaded.config = check(&loaded.tree, env)?;
        loaded.notices.extend(topics::idle(&loaded.tree));
        if loaded.config.data_dir.is_none() && !self.keep_nothing {
            loaded.config.data_dir = state_dir(env);
        }
        if self.keep_nothing {
            loaded.config.data_dir.clone_from(&self.data_dir);
        }
        Ok(loaded)
    }

    /// The tree of all layers, not yet checked.
    pub(crate) fn tree(&self, env: Env<'_>) -> Result<Node, Problem> {
        self.lay(env).map(|loaded| loaded.tree)
    }

    fn lay(&self, env: Env<'_>) -> Result<Loaded, Problem> {
        let defaults = Layer::new(node::DEFAULTS, Origin::Own);
        let mut tree = toml_file::read(DEFAULTS, &defaults)?;
        let (mut files, mut notices) = (Vec::new(), Vec::new());
        if let Some((path, origin)) = self.own_file(env) {
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
        // Replaced by `load`; the shape of an empty one is the checker's affair.
        let config = Config::default();
        Ok(Loaded { config, tree, files, notices, demo })
    }

    /// The first that exists of: the one that was named, the one here, the user's. Only the one here was put there by
    /// somebody who may not be the operator.
    fn own_file(&self, env: Env<'_>) -> Option<(PathBuf, Origin)> {
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

/// Where this user's own configuration is.
pub(crate) fn config_dir(env: Env<'_>) -> Option<PathBuf> {
    base_dir(env, "XDG_CONFIG_HOME", ".config")
}

/// Where state is kept that nobody configured a place for.
fn state_dir(env: Env<'_>) -> Option<PathBuf> {
    base_dir(env, "XDG_STATE_HOME", ".local/state")
}

fn base_dir(env: Env<'_>, variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |path: String| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    if let Some(base) = env(variable).and_then(absolute) {
        return Some(base.join("portmoot"));
    }
    let home = env("HOME").and_then(absolute)?;
    let below_home = if cfg!(target_os = "macos") { "Library/Application Support" } else { below_home };
    Some(home.join(below_home).join("portmoot"))
}

fn read(path: &Path, layer: &Arc<Layer>) -> Result<String, Problem> {
    let problem = |message: String| Problem::new("config_unreadable", message).at(&layer.somewhere());
    let size =
        std::fs::metadata(path).map_err(|error| problem(format!("cannot open this file: {error}")))?.len();
    if size > FILE_BYTES_MAX {
        return Err(problem(format!("this file has more than {FILE_BYTES_MAX} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| problem(format!("cannot read this file: {error}")))
}
