//! The reflection API: `buf.reflect.v1beta1`.

/// Request of `FileDescriptorSetService.GetFileDescriptorSet`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetFileDescriptorSetRequest {
    /// `host/owner/name`.
    #[prost(string, tag = "1")]
    pub module: String,
    /// A commit id or a label; empty for the default label.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Types by full name; none means all.
    #[prost(string, repeated, tag = "3")]
    pub symbols: Vec<String>,
}

/// Its answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetFileDescriptorSetResponse {
    /// The `google.protobuf.FileDescriptorSet`, as bytes: a typed one would lose the rules of
    /// `buf.validate`.
    #[prost(bytes = "bytes", tag = "1")]
    pub file_descriptor_set: bytes::Bytes,
    /// The commit id.
    #[prost(string, tag = "2")]
    pub version: String,
}
