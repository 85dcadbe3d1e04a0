//! Names in descriptors: `google.protobuf.FileDescriptorSet`, read beside the bytes that are sent
//! on.

/// A descriptor set, its files as they were written.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FileDescriptorSet {
    /// A `FileDescriptorProto` each.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub file: Vec<bytes::Bytes>,
}

/// The names in a `FileDescriptorProto`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FileNames {
    /// The path.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The package.
    #[prost(string, tag = "2")]
    pub package: String,
    /// The paths of the files that it imports.
    #[prost(string, repeated, tag = "3")]
    pub dependency: Vec<String>,
    /// Its messages.
    #[prost(message, repeated, tag = "4")]
    pub message_type: Vec<MessageNames>,
    /// Its enums.
    #[prost(message, repeated, tag = "5")]
    pub enum_type: Vec<NamedDescriptor>,
    /// Its services.
    #[prost(message, repeated, tag = "6")]
    pub service: Vec<NamedDescriptor>,
}

/// The names in a message.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MessageNames {
    /// Its own.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The messages inside it.
    #[prost(message, repeated, tag = "3")]
    pub nested_type: Vec<Self>,
    /// The enums inside it.
    #[prost(message, repeated, tag = "4")]
    pub enum_type: Vec<NamedDescriptor>,
}

/// Anything with a name.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NamedDescriptor {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
}
