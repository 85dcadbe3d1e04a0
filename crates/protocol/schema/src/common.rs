//! The descriptors that both sides of a connection have.

use std::sync::OnceLock;

use bytes::Bytes;
use fields::append;
use prost_reflect::DescriptorPool;

use crate::compile::{VALIDATE_PROTO, VALIDATE_TEXT, compile};
use crate::cycles::{Cycles, edited};
use crate::descriptor::set;

/// A set with the files that both sides have before its own.
pub(crate) fn complete(set: &[u8]) -> Bytes {
    // The serialized form of a repeated field continues that of another.
    [common().set.as_slice(), set].concat().into()
}

/// The files that no set needs: the well-known types and `validate.proto`.
pub(crate) struct Common {
    pub(crate) pool: DescriptorPool,
    set: Vec<u8>,
}

pub(crate) fn common() -> &'static Common {
    static COMMON: OnceLock<Common> = OnceLock::new();
    COMMON.get_or_init(|| {
        let mut pool = DescriptorPool::global();
        let set =
            compile(&[(VALIDATE_PROTO.to_owned(), VALIDATE_TEXT.to_owned())]).unwrap_or_default();
        let added = pool.decode_file_descriptor_set(set.as_slice());
        debug_assert!(added.is_ok(), "{added:?}");
        let set = pool.encode_to_vec();
        let without_circles = without_circles(&pool);
        debug_assert!(without_circles.is_some(), "a circle among the common files");
        Common {
            set,
            pool: without_circles.unwrap_or(pool),
        }
    })
}

/// A pool of the same files in which the view of the rules ends before each circle.
fn without_circles(pool: &DescriptorPool) -> Option<DescriptorPool> {
    let (_, edits) = Cycles::find(pool.all_messages()).ok()?;
    let mut set = Vec::new();
    for file in pool.files() {
        let bytes = file.encode_to_vec();
        match edits.get(file.name()) {
            Some(edits) => append(&mut set, set::FILE, &edited(&bytes, edits)),
            None => append(&mut set, set::FILE, &bytes),
        }
    }
    DescriptorPool::decode(set.as_slice()).ok()
}

/// The common files with the fields that lead in circles; `None` if they cannot be read.
pub(crate) fn whole_pool() -> Option<&'static DescriptorPool> {
    static WHOLE: OnceLock<Option<DescriptorPool>> = OnceLock::new();
    WHOLE
        .get_or_init(|| DescriptorPool::decode(common().set.as_slice()).ok())
        .as_ref()
}

/// Whether both sides have this file, so that no set needs it.
pub(crate) fn is_common(name: &str) -> bool {
    name == VALIDATE_PROTO
        || name.starts_with("google/protobuf/") && common().pool.get_file_by_name(name).is_some()
}
