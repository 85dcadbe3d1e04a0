//! The sources of a module and of what it depends on: each is compared with its digest, then they
//! are compiled.
//!
//! A descriptor set has no digest, and the one of its module says nothing about it without a
//! compiler.

use std::collections::{BTreeMap, HashMap, HashSet};

use schema::{ModuleSources, compile_sources};
use tokio::task::spawn_blocking;

use super::error::ResolveError;
use super::rpc::{At, Fetched, call, read};
use crate::commit::Commit;
use crate::digest::{self, DIGEST_BYTES, is_commit};
use crate::messages::module::{
    self, DownloadRequest, DownloadResponse, DownloadValue, GetGraphRequest, GetGraphResponse,
    Graph, ModuleDigest, ResourceRef,
};
use crate::serve::{DOWNLOAD, GET_GRAPH};
use crate::set::files_with;

/// The files of a module and of all that it depends on, in bytes.
pub const SOURCES_BYTES_MAX: usize = 8 << 20;
/// These modules.
pub const MODULES_MAX: usize = 64;
/// The answer that names them, in bytes.
const GRAPH_BYTES_MAX: usize = 1 << 20;

/// Fetches the sources of a version and compiles what has these symbols. [`ResolveError::Absent`]
/// if the registry gives no sources.
pub(super) async fn fetch(
    at: At<'_>,
    module: &str,
    resource: ResourceRef,
    version: &str,
    symbols: &[String],
) -> Result<Fetched, ResolveError> {
    let request = GetGraphRequest {
        resource_refs: vec![resource],
    };
    let answer = call(at, GET_GRAPH, &request, GRAPH_BYTES_MAX).await?;
    let graph = read::<GetGraphResponse>(answer)?.graph.unwrap_or_default();
    let tree = Tree::read(&graph).ok_or(ResolveError::Malformed)?;
    if is_commit(version) && tree.root != version {
        return Err(ResolveError::Malformed);
    }
    if let Some(expected) = at.digests.of(module, &tree.root) {
        same(module, &expected, &tree.digest(&tree.root))?;
    }
    let wanted = tree.wanted();
    let mut request = DownloadRequest { values: Vec::new() };
    for id in &wanted {
        request.values.push(DownloadValue {
            resource_ref: Some(ResourceRef {
                id: id.clone(),
                name: None,
            }),
            ..DownloadValue::default()
        });
    }
    let answer = read::<DownloadResponse>(call(at, DOWNLOAD, &request, SOURCES_BYTES_MAX).await?)?;
    let module = module.to_owned();
    let symbols = symbols.to_vec();
    // Hashing and compiling megabytes would hold up all other tasks.
    let compiled = spawn_blocking(move || {
        let sources = tree.sources(&module, &wanted, answer)?;
        let all = compile_sources(&sources, &symbols)
            .map_err(|error| ResolveError::Sources(error.to_string()))?;
        match files_with(&all, &symbols, |_| true) {
            Some(set) => Ok(Fetched {
                commit: tree.root,
                set,
            }),
            None => Err(ResolveError::Sources(format!(
                "there is no {}",
                symbols.join(", ")
            ))),
        }
    });
    compiled.await.unwrap_or(Err(ResolveError::Malformed))
}

/// The modules of an answer.
struct Tree {
    /// The commit that was asked for: no other depends on it.
    root: String,
    /// The digests of all commits, by id.
    digests: HashMap<String, [u8; DIGEST_BYTES]>,
    edges: Vec<Dependency>,
}

/// An edge of the graph: one commit depends on another.
struct Dependency {
    from: String,
    to: String,
}

impl Tree {
    /// `None` if there is not one root, or too many modules, or one has no B5 digest.
    fn read(graph: &Graph) -> Option<Self> {
        let mut edges = Vec::with_capacity(graph.edges.len());
        for edge in &graph.edges {
            edges.push(Dependency {
                from: edge.from_node.clone().unwrap_or_default().commit_id,
                to: edge.to_node.clone().unwrap_or_default().commit_id,
            });
        }
        let mut digests = HashMap::new();
        for commit in &graph.commits {
            let ModuleDigest { kind, value } = commit.digest.clone()?;
            if kind != ModuleDigest::B5 || !is_commit(&commit.id) {
                return None;
            }
            digests.insert(commit.id.clone(), value.try_into().ok()?);
        }
        let is_below: HashSet<_> = edges.iter().map(|edge| &edge.to).collect();
        let mut roots = digests.keys().filter(|id| !is_below.contains(id));
        let root = roots.next()?.clone();
        let has_one_root = roots.next().is_none();
        let is_small = digests.len() <= MODULES_MAX && edges.len() <= MODULES_MAX * MODULES_MAX;
        let is_whole = edges
            .iter()
            .all(|edge| digests.contains_key(&edge.from) && digests.contains_key(&edge.to));
        if !has_one_root || !is_small || !is_whole {
            return None;
        }
        Some(Self {
            root,
            digests,
            edges,
        })
    }

    /// The digest of a commit.
    fn digest(&self, id: &str) -> [u8; DIGEST_BYTES] {
        // Root and edges name commits of the answer.
        self.digests.get(id).copied().unwrap_or([0; DIGEST_BYTES])
    }

    /// The commits whose files are needed, the root first; `validate.proto` is here.
    fn wanted(&self) -> Vec<String> {
        let validate = Commit::validate();
        let mut wanted = vec![self.root.clone()];
        for (id, digest) in &self.digests {
            if *id != self.root && *digest != validate.digest {
                wanted.push(id.clone());
            }
        }
        wanted
    }

    /// The digests of all that a commit depends on.
    fn below(&self, id: &str) -> Vec<[u8; DIGEST_BYTES]> {
        let mut found = HashSet::new();
        let mut open = vec![id];
        while let Some(from) = open.pop() {
            for edge in &self.edges {
                // The answer is a stranger's: its edges may lead in a circle.
                if edge.from == from && found.insert(edge.to.as_str()) {
                    open.push(&edge.to);
                }
            }
        }
        found.into_iter().map(|id| self.digest(id)).collect()
    }

    /// The proto files of an answer, all of whose modules have their digests.
    fn sources(
        &self,
        module: &str,
        wanted: &[String],
        answer: DownloadResponse,
    ) -> Result<ModuleSources, ResolveError> {
        if answer.contents.len() != wanted.len() {
            return Err(ResolveError::Malformed);
        }
        let mut sources = ModuleSources::default();
        for (id, content) in wanted.iter().zip(answer.contents) {
            let mut files = BTreeMap::new();
            for module::ModuleFile { path, content } in content.files {
                // A line break in a path would be another line of the manifest.
                if path.contains(char::is_control) || files.insert(path, content).is_some() {
                    return Err(ResolveError::Malformed);
                }
            }
            let of_files = files
                .iter()
                .map(|(path, content)| (path.as_str(), &**content));
            let computed = digest::b5(of_files, &self.below(id));
            let is_own = *id == self.root;
            let name = if is_own {
                module.to_owned()
            } else {
                format!("{module}'s dependency {id}")
            };
            same(&name, &self.digest(id), &computed)?;
            for (path, content) in files {
                if !path.ends_with(".proto") {
                    continue;
                }
                let text = String::from_utf8(content).map_err(|_| ResolveError::Malformed)?;
                if is_own {
                    sources.own.push(path.clone());
                }
                sources.texts.entry(path).or_insert(text);
            }
        }
        Ok(sources)
    }
}

/// Refuses a module whose files have another digest.
fn same(
    module: &str,
    expected: &[u8; DIGEST_BYTES],
    computed: &[u8; DIGEST_BYTES],
) -> Result<(), ResolveError> {
    if expected == computed {
        return Ok(());
    }
    let expected = digest::printed(expected);
    let computed = digest::printed(computed);
    Err(ResolveError::Digest {
        module: module.to_owned(),
        expected,
        computed,
    })
}
