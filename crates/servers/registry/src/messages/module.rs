//! Modules, commits and their files: `buf.registry.module.v1`.

use super::Timestamp;

/// A module, label or commit.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResourceRef {
    /// The id of a commit or module; empty if `name` is there.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its name.
    #[prost(message, optional, tag = "2")]
    pub name: Option<ResourceName>,
}

/// A module by name, and what of it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResourceName {
    /// The owner.
    #[prost(string, tag = "1")]
    pub owner: String,
    /// The module.
    #[prost(string, tag = "2")]
    pub module: String,
    /// A label; empty for none.
    #[prost(string, tag = "3")]
    pub label_name: String,
    /// A commit id or a label; empty for none.
    #[prost(string, tag = "4")]
    pub reference: String,
}

/// A commit: one state of a module.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Commit {
    /// 32 hexadecimal digits.
    #[prost(string, tag = "1")]
    pub id: String,
    /// When it was made.
    #[prost(message, optional, tag = "2")]
    pub create_time: Option<Timestamp>,
    /// The id of the owner.
    #[prost(string, tag = "3")]
    pub owner_id: String,
    /// The id of the module.
    #[prost(string, tag = "4")]
    pub module_id: String,
    /// The digest of its files and dependencies.
    #[prost(message, optional, tag = "5")]
    pub digest: Option<ModuleDigest>,
}

/// A digest.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ModuleDigest {
    /// [`ModuleDigest::B5`].
    #[prost(int32, tag = "1")]
    pub kind: i32,
    /// Its 64 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

impl ModuleDigest {
    /// `DIGEST_TYPE_B5`.
    pub const B5: i32 = 1;
}

/// Request of `CommitService.GetCommits`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetCommitsRequest {
    /// Up to 250.
    #[prost(message, repeated, tag = "1")]
    pub resource_refs: Vec<ResourceRef>,
}

/// Its answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetCommitsResponse {
    /// In the order of the request.
    #[prost(message, repeated, tag = "1")]
    pub commits: Vec<Commit>,
}

/// Request of `GraphService.GetGraph`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetGraphRequest {
    /// Up to 250.
    #[prost(message, repeated, tag = "1")]
    pub resource_refs: Vec<ResourceRef>,
}

/// Its answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetGraphResponse {
    /// The graph.
    #[prost(message, optional, tag = "1")]
    pub graph: Option<Graph>,
}

/// Commits, and which depends on which.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Graph {
    /// Each once.
    #[prost(message, repeated, tag = "1")]
    pub commits: Vec<Commit>,
    /// From a commit to what it depends on.
    #[prost(message, repeated, tag = "2")]
    pub edges: Vec<Edge>,
}

/// A dependency.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Edge {
    /// The commit that depends.
    #[prost(message, optional, tag = "1")]
    pub from_node: Option<GraphNode>,
    /// The commit on which it depends.
    #[prost(message, optional, tag = "2")]
    pub to_node: Option<GraphNode>,
}

/// One end of an edge.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GraphNode {
    /// The commit.
    #[prost(string, tag = "1")]
    pub commit_id: String,
}

/// Request of `DownloadService.Download`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DownloadRequest {
    /// Up to 250.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<DownloadValue>,
}

/// A module whose files are wanted.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DownloadValue {
    /// The module.
    #[prost(message, optional, tag = "1")]
    pub resource_ref: Option<ResourceRef>,
    /// Of these types; none means all. A proto file is [`DownloadValue::PROTO`].
    #[prost(int32, repeated, tag = "2")]
    pub file_types: Vec<i32>,
    /// Files or folders; none means all.
    #[prost(string, repeated, tag = "3")]
    pub paths: Vec<String>,
    /// Whether paths that are not there are no error.
    #[prost(bool, tag = "4")]
    pub paths_allow_not_exist: bool,
}

impl DownloadValue {
    /// `FILE_TYPE_PROTO`.
    pub const PROTO: i32 = 1;
}

/// Its answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DownloadResponse {
    /// In the order of the request.
    #[prost(message, repeated, tag = "1")]
    pub contents: Vec<DownloadContent>,
}

/// A commit with its files.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DownloadContent {
    /// The commit.
    #[prost(message, optional, tag = "1")]
    pub commit: Option<Commit>,
    /// Its files.
    #[prost(message, repeated, tag = "2")]
    pub files: Vec<ModuleFile>,
}

/// A file.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ModuleFile {
    /// Its path from the module's root.
    #[prost(string, tag = "1")]
    pub path: String,
    /// Its bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub content: Vec<u8>,
}

/// A module by id or name.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ModuleRef {
    /// Its id; empty if `name` is there.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its name.
    #[prost(message, optional, tag = "2")]
    pub name: Option<ModuleName>,
}

/// Owner and module.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ModuleName {
    /// The owner.
    #[prost(string, tag = "1")]
    pub owner: String,
    /// The module.
    #[prost(string, tag = "2")]
    pub module: String,
}

/// Request of `ModuleService.GetModules`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetModulesRequest {
    /// Up to 250.
    #[prost(message, repeated, tag = "1")]
    pub module_refs: Vec<ModuleRef>,
}

/// Its answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetModulesResponse {
    /// In the order of the request.
    #[prost(message, repeated, tag = "1")]
    pub modules: Vec<ModuleMessage>,
}

/// A module.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ModuleMessage {
    /// 32 hexadecimal digits.
    #[prost(string, tag = "1")]
    pub id: String,
    /// When it was made.
    #[prost(message, optional, tag = "2")]
    pub create_time: Option<Timestamp>,
    /// When it was changed.
    #[prost(message, optional, tag = "3")]
    pub update_time: Option<Timestamp>,
    /// Its name.
    #[prost(string, tag = "4")]
    pub name: String,
    /// The id of its owner.
    #[prost(string, tag = "5")]
    pub owner_id: String,
    /// [`ModuleMessage::PRIVATE`].
    #[prost(int32, tag = "6")]
    pub visibility: i32,
    /// [`ModuleMessage::ACTIVE`].
    #[prost(int32, tag = "7")]
    pub state: i32,
    /// The label that is meant where none is named.
    #[prost(string, tag = "10")]
    pub default_label_name: String,
}

impl ModuleMessage {
    /// `MODULE_VISIBILITY_PRIVATE`.
    pub const PRIVATE: i32 = 2;
    /// `MODULE_STATE_ACTIVE`.
    pub const ACTIVE: i32 = 1;
}

/// Request of `FileDescriptorSetService.GetFileDescriptorSet`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetFileDescriptorSetRequest {
    /// The module.
    #[prost(message, optional, tag = "1")]
    pub resource_ref: Option<ResourceRef>,
    /// Whether the files that it imports from elsewhere stay away.
    #[prost(bool, tag = "2")]
    pub exclude_imports: bool,
    /// Types by full name; none means all.
    #[prost(string, repeated, tag = "5")]
    pub include_types: Vec<String>,
    /// Types that stay away.
    #[prost(string, repeated, tag = "6")]
    pub exclude_types: Vec<String>,
}

/// Its answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetFileDescriptorSetResponse {
    /// The `google.protobuf.FileDescriptorSet`, as bytes: a typed one would lose the rules of
    /// `buf.validate`.
    #[prost(bytes = "bytes", tag = "1")]
    pub file_descriptor_set: bytes::Bytes,
    /// Its commit.
    #[prost(message, optional, tag = "2")]
    pub commit: Option<Commit>,
}
