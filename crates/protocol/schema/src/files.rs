//! The files of a serialized `FileDescriptorSet`, as bytes.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use fields::{Field, Fields, NoMessage, append};

use crate::common::is_common;
use crate::compile::VALIDATE_PROTO;
use crate::descriptor::{file, message, set};

/// Why a peer's descriptors are not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The bytes are no `google.protobuf.FileDescriptorSet`.
    #[error("not a FileDescriptorSet")]
    Malformed,
    /// There is more of something than a gateway takes from a peer.
    #[error("more than {max} {what}")]
    Limit {
        /// Kind of the things of which there are too many.
        what: &'static str,
        /// Number of them that there may be.
        max: usize,
    },
    /// The files are not valid, or not complete.
    #[error("{0}")]
    Invalid(String),
    /// A message that was named, or that the tool's name calls for, is not there.
    #[error("no message {0}")]
    NoMessage(String),
    /// A rule cannot be checked.
    #[error("a rule cannot be checked: {0}")]
    Rule(String),
    /// Several messages could be meant.
    #[error("more than one message {0}")]
    Ambiguous(String),
}

/// Bounds of a set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    bytes: usize,
    files: usize,
    /// Nested ones included.
    messages: usize,
    /// Messages inside each other.
    depth: usize,
    /// Fields, values of enums, methods, ranges and places of comments: two bytes of a set can be a
    /// few hundred in memory.
    parts: usize,
}

impl Bounds {
    /// For the set that a peer gives.
    pub(crate) const OF_PEERS: Self = Self {
        bytes: 1 << 20,
        files: 500,
        messages: 2_000,
        depth: 32,
        parts: 50_000,
    };
    /// For our own, which have the bounds of their JSON Schemas.
    pub(crate) const NONE: Self = Self {
        bytes: usize::MAX,
        files: usize::MAX,
        messages: usize::MAX,
        depth: usize::MAX,
        parts: usize::MAX,
    };
}

/// One file of a set.
#[derive(Debug, Clone)]
pub(crate) struct RawFile {
    pub(crate) name: String,
    /// Whether its syntax is proto2 or proto3: the reader of descriptors panics at any other.
    is_known: bool,
    pub(crate) imports: Vec<String>,
    /// Imports that it hands on to files that import it.
    public: Vec<usize>,
    /// The file without what says where its text was.
    pub(crate) bytes: Bytes,
    /// The file as it came, with `validate.proto` among its imports, without which nothing reads
    /// the rules, and with all that its imports hand on: the reader of descriptors would follow
    /// public imports again and again.
    pub(crate) ruled: Vec<u8>,
    /// Number of its parts, of [`Bounds::parts`].
    pub(crate) parts: usize,
}

/// The files of a set without those that both sides have, each after its imports.
///
/// # Errors
/// [`SetError::Limit`], or [`SetError::Malformed`] if it is no set.
pub(crate) fn read(set: &[u8], max: Bounds) -> Result<Vec<RawFile>, SetError> {
    within(set.len(), max.bytes, "bytes")?;
    let mut files = HashMap::new();
    let mut count = Count {
        max,
        messages: 0,
        parts: 0,
    };
    let mut order = Vec::new();
    for field in Fields::of(set) {
        let Field {
            number, content, ..
        } = field?;
        let content = match content {
            Some(content) if number == set::FILE => content,
            _ => continue,
        };
        within(order.len() + 1, max.files, "files")?;
        let file = RawFile::read(content, &mut count)?;
        order.push(file.name.clone());
        let is_common = is_common(&file.name);
        let earlier = files.insert(file.name.clone(), file);
        // A common one is left out below, however often it is there.
        if earlier.is_some() && !is_common {
            return Err(SetError::Invalid("a file is there twice".to_owned()));
        }
    }
    let mut sorted = Vec::with_capacity(files.len());
    for name in order {
        after_imports(&name, &mut files, &mut sorted);
    }
    sorted.retain(|file| !is_common(&file.name));
    if let Some(file) = sorted.iter().find(|file| !file.is_known) {
        return Err(SetError::Invalid(format!(
            "{}: its syntax is neither proto2 nor proto3",
            file.name
        )));
    }
    let mut earlier = HashSet::new();
    for file in &sorted {
        let missing = file
            .imports
            .iter()
            .find(|name| !earlier.contains(name.as_str()) && !is_common(name));
        if let Some(missing) = missing {
            return Err(SetError::Invalid(format!(
                "{}: {missing} is not there, or a circle",
                file.name
            )));
        }
        earlier.insert(&*file.name);
    }
    import_directly(&mut sorted);
    Ok(sorted)
}

/// Adds to the imports of each file those that its imports hand on.
fn import_directly(sorted: &mut [RawFile]) {
    let places: HashMap<_, _> = sorted
        .iter()
        .enumerate()
        .map(|(at, file)| (file.name.clone(), at))
        .collect();
    let names: Vec<_> = sorted.iter().map(|file| file.name.clone()).collect();
    let mut handed_on: Vec<Vec<bool>> = Vec::with_capacity(sorted.len());
    for file in sorted {
        let mut seen = vec![false; names.len()];
        let mut hands_on = vec![false; names.len()];
        let mut direct = HashSet::new();
        for (nth, import) in file.imports.iter().enumerate() {
            let Some(&at) = places.get(import) else {
                continue;
            };
            if !direct.insert(import) {
                continue;
            }
            // It stands before this file, so that what it hands on is known.
            let further = handed_on.get(at).map_or(&[][..], Vec::as_slice);
            mark(&mut seen, at, further);
            // A file may import another twice, and only once publicly.
            let is_public = file.public.contains(&nth)
                || file
                    .public
                    .iter()
                    .any(|&public| file.imports.get(public) == Some(import));
            if is_public {
                mark(&mut hands_on, at, further);
            }
        }
        handed_on.push(hands_on);
        for (name, is_seen) in names.iter().zip(seen) {
            if is_seen && !direct.contains(name) {
                append(&mut file.ruled, file::DEPENDENCY, name.as_bytes());
            }
        }
    }
}

/// Marks the file at a place, and all that it hands on.
fn mark(marks: &mut [bool], at: usize, handed_on: &[bool]) {
    for (mark, is_handed_on) in marks.iter_mut().zip(handed_on) {
        *mark |= is_handed_on;
    }
    if let Some(mark) = marks.get_mut(at) {
        *mark = true;
    }
}

/// Moves a file behind its imports, as far as that is possible.
fn after_imports(name: &str, files: &mut HashMap<String, RawFile>, sorted: &mut Vec<RawFile>) {
    // Files whose imports are being moved, each with the number of those that were. A stack of
    // our own: a chain of imports may be as long as a set.
    let mut open = Vec::from_iter(files.remove(name).map(|file| (file, 0)));
    while let Some((file, next)) = open.last_mut() {
        match file.imports.get(*next) {
            Some(import) => {
                *next += 1;
                let import = files.remove(import);
                open.extend(import.map(|file| (file, 0)));
            }
            None => sorted.extend(open.pop().map(|(file, _)| file)),
        }
    }
}

impl From<NoMessage> for SetError {
    fn from(_: NoMessage) -> Self {
        Self::Malformed
    }
}

impl RawFile {
    /// Reads a serialized `google.protobuf.FileDescriptorProto`, and counts what is in it.
    fn read(bytes: &[u8], count: &mut Count) -> Result<Self, SetError> {
        let mut name = String::new();
        let mut imports = Vec::new();
        let before = count.parts;
        let mut stripped = Vec::with_capacity(bytes.len());
        let mut ruled = Vec::new();
        let mut public = Vec::new();
        let mut is_known = true;
        for field in Fields::of(bytes) {
            let Field {
                number,
                content,
                whole,
                ..
            } = field?;
            let content = content.unwrap_or_default();
            count.part()?;
            match number {
                file::NAME => name = String::from_utf8_lossy(content).into_owned(),
                file::DEPENDENCY => imports.push(String::from_utf8_lossy(content).into_owned()),
                file::MESSAGE => count.message(content, 1)?,
                file::PUBLIC => public.extend(numbers(whole, content)),
                file::SYNTAX => is_known &= matches!(content, b"proto2" | b"proto3"),
                file::ENUM | file::SERVICE | file::SOURCE => count.parts(content)?,
                _ => {}
            }
            if number != file::SOURCE {
                stripped.extend_from_slice(whole);
            }
            // All public imports become direct ones (`import_directly`).
            if ![file::PUBLIC, file::WEAK].contains(&number) {
                ruled.extend_from_slice(whole);
            }
        }
        if !imports.iter().any(|import| import == VALIDATE_PROTO) {
            append(&mut ruled, file::DEPENDENCY, VALIDATE_PROTO.as_bytes());
        }
        Ok(Self {
            name,
            is_known,
            imports,
            public,
            bytes: stripped.into(),
            ruled,
            parts: count.parts - before,
        })
    }
}

/// The numbers of a repeated field: one, or many in a row ("packed").
fn numbers(whole: &[u8], content: &[u8]) -> Vec<usize> {
    let mut rest = content;
    if content.is_empty() {
        // A single number has no content: it comes right after the key of its field.
        rest = whole;
        let _key = prost::encoding::decode_key(&mut rest);
    }
    std::iter::from_fn(|| prost::encoding::decode_varint(&mut rest).ok())
        .filter_map(|number| number.try_into().ok())
        .collect()
}

/// Number of things in a set, as far as it was read.
struct Count {
    max: Bounds,
    messages: usize,
    parts: usize,
}

impl Count {
    fn part(&mut self) -> Result<(), SetError> {
        self.parts += 1;
        within(self.parts, self.max.parts, "parts")
    }

    fn parts(&mut self, bytes: &[u8]) -> Result<(), SetError> {
        for field in Fields::of(bytes) {
            field?;
            self.part()?;
        }
        Ok(())
    }

    fn message(&mut self, bytes: &[u8], depth: usize) -> Result<(), SetError> {
        self.messages += 1;
        within(self.messages, self.max.messages, "messages")?;
        within(depth, self.max.depth, "messages inside each other")?;
        for field in Fields::of(bytes) {
            let Field {
                number, content, ..
            } = field?;
            self.part()?;
            match (number, content) {
                (message::NESTED, Some(nested)) => self.message(nested, depth + 1)?,
                (message::ENUM, Some(nested)) => self.parts(nested)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Refuses a count beyond a bound; `what` names the things, for the peer.
pub(crate) fn within(count: usize, max: usize, what: &'static str) -> Result<(), SetError> {
    if count > max {
        Err(SetError::Limit { what, max })
    } else {
        Ok(())
    }
}

/// A set of these files.
pub(crate) fn set<'a>(files: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut set = Vec::new();
    for file in files {
        append(&mut set, set::FILE, file);
    }
    set
}
