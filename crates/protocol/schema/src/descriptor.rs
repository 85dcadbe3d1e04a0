//! Field numbers of `google/protobuf/descriptor.proto`, for those who read descriptors without
//! taking them apart.

/// `google.protobuf.FileDescriptorSet`.
pub(crate) mod set {
    pub(crate) const FILE: u32 = 1;
}

/// `google.protobuf.FileDescriptorProto`.
pub(crate) mod file {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const DEPENDENCY: u32 = 3;
    pub(crate) const MESSAGE: u32 = 4;
    pub(crate) const ENUM: u32 = 5;
    pub(crate) const SERVICE: u32 = 6;
    pub(crate) const SOURCE: u32 = 9;
    pub(crate) const PUBLIC: u32 = 10;
    pub(crate) const WEAK: u32 = 11;
    pub(crate) const SYNTAX: u32 = 12;
}

/// `google.protobuf.DescriptorProto`.
pub(crate) mod message {
    pub(crate) const FIELD: u32 = 2;
    pub(crate) const NESTED: u32 = 3;
    pub(crate) const ENUM: u32 = 4;
}

/// `google.protobuf.FieldDescriptorProto`.
pub(crate) mod field {
    pub(crate) const OPTIONS: u32 = 8;
}
