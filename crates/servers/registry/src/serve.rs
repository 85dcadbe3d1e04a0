//! RPCs of the registry: the ones that the `buf` CLI makes, and those that resolve references.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
pub use schema::OWNER;
use schema::{LABELS, VALIDATE_PROTO, compile};

use crate::commit::{Commit, VALIDATE_MODULE, module_id, owner_id};
use crate::connect::{Code, ConnectError};
use crate::messages::{Timestamp, module, owner, reflect};
use crate::set::files_with;
use crate::shelf::{Shelf, Viewer};

/// References in one request (`buf.registry.module.v1`: `max_items`).
const REFERENCES_MAX: usize = 250;
/// Label among [`LABELS`] that is meant where none is named.
const DEFAULT_LABEL: &str = "main";

pub(crate) const GET_COMMITS: &str = "/buf.registry.module.v1.CommitService/GetCommits";
pub(crate) const GET_GRAPH: &str = "/buf.registry.module.v1.GraphService/GetGraph";
pub(crate) const DOWNLOAD: &str = "/buf.registry.module.v1.DownloadService/Download";
const GET_MODULES: &str = "/buf.registry.module.v1.ModuleService/GetModules";
const GET_OWNERS: &str = "/buf.registry.owner.v1.OwnerService/GetOwners";
/// The descriptor set of a module, by the v1 API.
pub(crate) const GET_SET: &str =
    "/buf.registry.module.v1.FileDescriptorSetService/GetFileDescriptorSet";
/// The descriptor set of a module, by the reflection API.
pub(crate) const REFLECT_SET: &str =
    "/buf.reflect.v1beta1.FileDescriptorSetService/GetFileDescriptorSet";

/// The paths of all RPCs.
pub const METHODS: [&str; 7] = [
    GET_COMMITS,
    GET_GRAPH,
    DOWNLOAD,
    GET_MODULES,
    GET_OWNERS,
    GET_SET,
    REFLECT_SET,
];

impl Shelf {
    /// Answers an RPC: `path` is one of [`METHODS`], `body` its request in protobuf.
    ///
    /// # Errors
    /// [`ConnectError`]: the answer that a Connect client gets instead.
    pub fn answer(
        &self,
        path: &str,
        body: &[u8],
        viewer: &Viewer<'_>,
    ) -> Result<Bytes, ConnectError> {
        match path {
            GET_COMMITS => self
                .commits(&read(body)?, viewer)
                .map(|answer| write(&answer)),
            GET_GRAPH => self
                .graph(&read(body)?, viewer)
                .map(|answer| write(&answer)),
            DOWNLOAD => self
                .download(&read(body)?, viewer)
                .map(|answer| write(&answer)),
            GET_MODULES => self
                .modules(&read(body)?, viewer)
                .map(|answer| write(&answer)),
            GET_OWNERS => owners(&read(body)?).map(|answer| write(&answer)),
            GET_SET => self.set(&read(body)?, viewer).map(|answer| write(&answer)),
            REFLECT_SET => self
                .reflect(&read(body)?, viewer)
                .map(|answer| write(&answer)),
            other => Err(ConnectError::new(
                Code::Unimplemented,
                format!("there is no RPC {other}"),
            )),
        }
    }

    fn commits(
        &self,
        request: &module::GetCommitsRequest,
        viewer: &Viewer<'_>,
    ) -> Result<module::GetCommitsResponse, ConnectError> {
        let commits = self.all(&request.resource_refs, viewer)?;
        Ok(module::GetCommitsResponse {
            commits: commits.iter().map(|commit| commit.message()).collect(),
        })
    }

    fn graph(
        &self,
        request: &module::GetGraphRequest,
        viewer: &Viewer<'_>,
    ) -> Result<module::GetGraphResponse, ConnectError> {
        let mut graph = module::Graph::default();
        let mut open = self.all(&request.resource_refs, viewer)?;
        while let Some(commit) = open.pop() {
            if graph.commits.iter().any(|known| known.id == commit.id) {
                continue;
            }
            graph.commits.push(commit.message());
            for below in &commit.dependencies {
                graph.edges.push(module::Edge {
                    from_node: Some(module::GraphNode {
                        commit_id: commit.id.clone(),
                    }),
                    to_node: Some(module::GraphNode {
                        commit_id: below.id.clone(),
                    }),
                });
                open.push(Arc::clone(below));
            }
        }
        Ok(module::GetGraphResponse { graph: Some(graph) })
    }

    fn download(
        &self,
        request: &module::DownloadRequest,
        viewer: &Viewer<'_>,
    ) -> Result<module::DownloadResponse, ConnectError> {
        few(request.values.len())?;
        let mut contents = Vec::with_capacity(request.values.len());
        for value in &request.values {
            let commit = self.find(&value.resource_ref.clone().unwrap_or_default(), viewer)?;
            let files = wanted_files(&commit, value)?;
            contents.push(module::DownloadContent {
                commit: Some(commit.message()),
                files,
            });
        }
        Ok(module::DownloadResponse { contents })
    }

    fn modules(
        &self,
        request: &module::GetModulesRequest,
        viewer: &Viewer<'_>,
    ) -> Result<module::GetModulesResponse, ConnectError> {
        few(request.module_refs.len())?;
        let mut names = viewer.source.names();
        names.push(VALIDATE_MODULE.to_owned());
        let now = Some(Timestamp::of_ms(viewer.now_ms));
        let mut modules = Vec::with_capacity(request.module_refs.len());
        for wanted in &request.module_refs {
            let found = names.iter().find(|name| match &wanted.name {
                Some(full) => full.owner == OWNER && full.module == **name,
                None => module_id(name) == wanted.id,
            });
            let name = found.ok_or_else(|| unknown("module"))?;
            modules.push(module::ModuleMessage {
                id: module_id(name),
                create_time: now,
                update_time: now,
                name: name.clone(),
                owner_id: owner_id(),
                visibility: module::ModuleMessage::PRIVATE,
                state: module::ModuleMessage::ACTIVE,
                default_label_name: DEFAULT_LABEL.to_owned(),
            });
        }
        Ok(module::GetModulesResponse { modules })
    }

    fn set(
        &self,
        request: &module::GetFileDescriptorSetRequest,
        viewer: &Viewer<'_>,
    ) -> Result<module::GetFileDescriptorSetResponse, ConnectError> {
        if !request.exclude_types.is_empty() {
            return Err(ConnectError::new(
                Code::Unimplemented,
                "exclude_types is not supported",
            ));
        }
        let commit = self.find(&request.resource_ref.clone().unwrap_or_default(), viewer)?;
        let file_descriptor_set =
            descriptors(&commit, &request.include_types, request.exclude_imports)?;
        let Some(file_descriptor_set) = file_descriptor_set else {
            return Err(ConnectError::new(
                Code::InvalidArgument,
                "the module has not all of these types",
            ));
        };
        Ok(module::GetFileDescriptorSetResponse {
            file_descriptor_set,
            commit: Some(commit.message()),
        })
    }

    fn reflect(
        &self,
        request: &reflect::GetFileDescriptorSetRequest,
        viewer: &Viewer<'_>,
    ) -> Result<reflect::GetFileDescriptorSetResponse, ConnectError> {
        let mut parts = request.module.split('/');
        let (Some(_host), Some(owner), Some(module)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(ConnectError::new(
                Code::InvalidArgument,
                "a module is named host/owner/name",
            ));
        };
        let name = module::ResourceName {
            owner: owner.to_owned(),
            module: module.to_owned(),
            reference: request.version.clone(),
            ..module::ResourceName::default()
        };
        let commit = self.find(
            &module::ResourceRef {
                id: String::new(),
                name: Some(name),
            },
            viewer,
        )?;
        let Some(file_descriptor_set) = descriptors(&commit, &request.symbols, false)? else {
            return Err(ConnectError::new(
                Code::FailedPrecondition,
                "the module has not all of these symbols",
            ));
        };
        Ok(reflect::GetFileDescriptorSetResponse {
            file_descriptor_set,
            version: commit.id.clone(),
        })
    }

    fn all(
        &self,
        references: &[module::ResourceRef],
        viewer: &Viewer<'_>,
    ) -> Result<Vec<Arc<Commit>>, ConnectError> {
        few(references.len())?;
        references
            .iter()
            .map(|reference| self.find(reference, viewer))
            .collect()
    }

    /// The commit that a reference means. A module that the viewer does not see is answered like
    /// one that is not there.
    fn find(
        &self,
        reference: &module::ResourceRef,
        viewer: &Viewer<'_>,
    ) -> Result<Arc<Commit>, ConnectError> {
        let Some(name) = &reference.name else {
            if let Some(held) = self.held(&reference.id, viewer) {
                return Ok(held);
            }
            // An id without its module: any may have it, as after a start of the gateway.
            for module in viewer.source.names() {
                if let Some(now) = self.current(&module, viewer)
                    && now.id == reference.id
                {
                    return Ok(now);
                }
            }
            return Err(unknown("commit"));
        };
        let label = if name.label_name.is_empty() {
            &name.reference
        } else {
            &name.label_name
        };
        let is_label = label.is_empty() || LABELS.contains(&label.as_str());
        let found = match (&*name.owner, &*name.module) {
            (OWNER, VALIDATE_MODULE) if is_label => Some(Commit::validate()),
            (OWNER, module) if is_label => self.current(module, viewer),
            (OWNER, module) => {
                let held = self
                    .held(label, viewer)
                    .filter(|commit| commit.module == module);
                // A gateway that was started again has the same commits.
                held.or_else(|| self.current(module, viewer).filter(|now| now.id == *label))
            }
            _ => None,
        };
        found.ok_or_else(|| unknown("module, label or commit"))
    }
}

fn owners(request: &owner::GetOwnersRequest) -> Result<owner::GetOwnersResponse, ConnectError> {
    few(request.owner_refs.len())?;
    let time = Some(Timestamp::of_ms(0));
    let mut owners = Vec::with_capacity(request.owner_refs.len());
    for wanted in &request.owner_refs {
        if wanted.name != OWNER && wanted.id != owner_id() {
            return Err(unknown("owner"));
        }
        owners.push(owner::Owner {
            organization: Some(owner::Organization {
                id: owner_id(),
                create_time: time,
                update_time: time,
                name: OWNER.to_owned(),
            }),
        });
    }
    Ok(owner::GetOwnersResponse { owners })
}

/// The files of a commit that a request wants.
fn wanted_files(
    commit: &Commit,
    value: &module::DownloadValue,
) -> Result<Vec<module::ModuleFile>, ConnectError> {
    if !value.paths_allow_not_exist {
        for path in &value.paths {
            if !commit.files.keys().any(|file| is_at(file, path)) {
                return Err(unknown("path"));
            }
        }
    }
    let mut wanted = Vec::new();
    // All files are protos.
    if !value.file_types.is_empty() && !value.file_types.contains(&module::DownloadValue::PROTO) {
        return Ok(wanted);
    }
    for (file, text) in &commit.files {
        if value.paths.is_empty() || value.paths.iter().any(|path| is_at(file, path)) {
            wanted.push(module::ModuleFile {
                path: file.clone(),
                content: text.as_bytes().to_vec(),
            });
        }
    }
    Ok(wanted)
}

/// Whether a file is the one at this path, or in the folder there.
fn is_at(file: &str, path: &str) -> bool {
    file.strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The descriptors of a commit; `None` if it has not all of these types.
fn descriptors(
    commit: &Commit,
    types: &[String],
    is_bare: bool,
) -> Result<Option<Bytes>, ConnectError> {
    let own = commit
        .files
        .iter()
        .filter(|(path, _)| *path != VALIDATE_PROTO);
    let own: Vec<_> = own
        .map(|(path, text)| (path.clone(), text.to_string()))
        .collect();
    let set =
        compile(&own).map_err(|error| ConnectError::new(Code::Internal, error.to_string()))?;
    Ok(files_with(&set, types, |path| {
        !is_bare || commit.files.contains_key(path)
    }))
}

fn read<M: Message + Default>(body: &[u8]) -> Result<M, ConnectError> {
    M::decode(body)
        .map_err(|error| ConnectError::new(Code::InvalidArgument, format!("the request: {error}")))
}

fn write(answer: &impl Message) -> Bytes {
    answer.encode_to_vec().into()
}

fn few(count: usize) -> Result<(), ConnectError> {
    if (1..=REFERENCES_MAX).contains(&count) {
        return Ok(());
    }
    Err(ConnectError::new(
        Code::InvalidArgument,
        format!("1 to {REFERENCES_MAX} references, not {count}"),
    ))
}

fn unknown(what: &str) -> ConnectError {
    ConnectError::new(Code::NotFound, format!("there is no such {what}"))
}
