//! Messages of schema registries, with the fields that this crate reads and writes.
//!
//! Sources, both Apache-2.0: bufbuild/registry-proto at 845a35c (`buf.registry.module.v1`,
//! `buf.registry.owner.v1`), and bufbuild/reflect-proto (`buf.reflect.v1beta1`). A `oneof` that is
//! only read is declared as its members: the bytes are the same.

pub mod descriptor;
pub mod module;
pub mod owner;
pub mod reflect;

/// `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Timestamp {
    /// Seconds since 1970 (UTC).
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// The rest, in nanoseconds.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Timestamp {
    /// A time in milliseconds since 1970.
    #[must_use]
    pub fn of_ms(ms: u64) -> Self {
        let nanos = i32::try_from(ms % 1_000).unwrap_or_default() * 1_000_000;
        Self {
            seconds: i64::try_from(ms / 1_000).unwrap_or_default(),
            nanos,
        }
    }
}
