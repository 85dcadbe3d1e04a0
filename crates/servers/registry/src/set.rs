//! Descriptor sets: files that have some types, with what they import, in the order in which they
//! were written.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use prost::Message as _;

use crate::messages::descriptor::{FileDescriptorSet, FileNames, MessageNames};

/// The files that have all of these types or packages, and those that they import; without types
/// all files. `keep` decides which paths may be there. `None` if there is a type that no file has,
/// or the set cannot be read.
pub(crate) fn files_with(
    set: &[u8],
    types: &[String],
    keep: impl Fn(&str) -> bool,
) -> Option<Bytes> {
    let set = FileDescriptorSet::decode(set).ok()?;
    let mut names = Vec::with_capacity(set.file.len());
    for file in &set.file {
        names.push(FileNames::decode(file.clone()).ok()?);
    }
    let by_path: HashMap<_, _> = names.iter().map(|one| (one.name.as_str(), one)).collect();
    let mut open: Vec<&FileNames> = Vec::new();
    for name in types {
        let before = open.len();
        open.extend(names.iter().filter(|one| has(one, name)));
        if open.len() == before {
            return None;
        }
    }
    if types.is_empty() {
        open.extend(&names);
    }
    let mut wanted = HashSet::new();
    while let Some(one) = open.pop() {
        if wanted.insert(one.name.as_str()) {
            for path in &one.dependency {
                open.extend(by_path.get(path.as_str()));
            }
        }
    }
    let mut file = Vec::new();
    // The bytes as they came: decoding them loses what these messages do not have.
    for (one, bytes) in names.iter().zip(&set.file) {
        if wanted.contains(one.name.as_str()) && keep(&one.name) {
            file.push(bytes.clone());
        }
    }
    Some(FileDescriptorSet { file }.encode_to_vec().into())
}

/// Whether a file declares this type, or belongs to this package.
fn has(file: &FileNames, name: &str) -> bool {
    if file.package == name {
        return true;
    }
    let own = if file.package.is_empty() {
        Some(name)
    } else {
        name.strip_prefix(file.package.as_str())
            .and_then(|rest| rest.strip_prefix('.'))
    };
    let Some(own) = own else {
        return false;
    };
    let mut flat = file.enum_type.iter().chain(&file.service);
    flat.any(|named| named.name == own)
        || file
            .message_type
            .iter()
            .any(|message| declares(message, own))
}

/// Whether a message is this one, or has it inside.
fn declares(message: &MessageNames, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(&message.name) else {
        return false;
    };
    match rest.strip_prefix('.') {
        None => rest.is_empty(),
        Some(inner) => {
            message
                .nested_type
                .iter()
                .any(|nested| declares(nested, inner))
                || message.enum_type.iter().any(|named| named.name == inner)
        }
    }
}
