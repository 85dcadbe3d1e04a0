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
    let read = |file: &Bytes| Some((FileNames::decode(file.clone()).ok()?, file.clone()));
    let files: Vec<_> = set.file.iter().map(read).collect::<Option<_>>()?;
    let by_path: HashMap<_, _> = files
        .iter()
        .map(|(names, _)| (names.name.as_str(), names))
        .collect();
    let mut open: Vec<&FileNames> = Vec::new();
    for name in types {
        let before = open.len();
        open.extend(
            files
                .iter()
                .map(|(names, _)| names)
                .filter(|names| has(names, name)),
        );
        if open.len() == before {
            return None;
        }
    }
    if types.is_empty() {
        open.extend(files.iter().map(|(names, _)| names));
    }
    let mut wanted = HashSet::new();
    while let Some(names) = open.pop() {
        if wanted.insert(names.name.as_str()) {
            open.extend(
                names
                    .dependency
                    .iter()
                    .filter_map(|path| by_path.get(path.as_str()).copied()),
            );
        }
    }
    let is_sent = |names: &FileNames| wanted.contains(names.name.as_str()) && keep(&names.name);
    let file = files
        .iter()
        .filter(|(names, _)| is_sent(names))
        .map(|(_, file)| file.clone())
        .collect();
    Some(FileDescriptorSet { file }.encode_to_vec().into())
}

/// Whether a file declares this type, or belongs to this package.
fn has(file: &FileNames, name: &str) -> bool {
    if file.package == name {
        return true;
    }
    let below = |prefix: &str| {
        name.strip_prefix(prefix)?
            .strip_prefix('.')
            .map(str::to_owned)
    };
    let own = if file.package.is_empty() {
        Some(name.to_owned())
    } else {
        below(&file.package)
    };
    own.is_some_and(|own| {
        let flat = file.enum_type.iter().chain(&file.service);
        flat.into_iter().any(|named| named.name == own)
            || file
                .message_type
                .iter()
                .any(|message| declares(message, &own))
    })
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
