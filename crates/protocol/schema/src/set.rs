//! Descriptors of a schema: those of a peer's `FileDescriptorSet`, or of a converted module.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};

use crate::common::{common, complete, is_common};
use crate::cycles::{Cycles, edited};
use crate::files::{self, Bounds, RawFile, SetError};
use crate::pattern::file_for_library;
use crate::validate::Rules;

/// The descriptors of one schema with all that it imports. Cheap to clone.
///
/// The rules of `buf.validate` in it are readable: `validate.proto` and the well-known types are
/// always ours.
#[derive(Clone)]
pub struct Descriptors {
    inner: Arc<Inner>,
    /// The files of this schema, if the pool has those of others too.
    only: Option<Arc<HashSet<String>>>,
}

struct Inner {
    pool: DescriptorPool,
    files: Vec<RawFile>,
    /// One for each pool: they remember messages by name.
    rules: Rules,
}

impl Default for Descriptors {
    /// Descriptors that both sides have.
    fn default() -> Self {
        let inner = Inner {
            pool: common().pool.clone(),
            files: Vec::new(),
            rules: Rules::default(),
        };
        Self {
            inner: Arc::new(inner),
            only: None,
        }
    }
}

impl std::fmt::Debug for Descriptors {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.files().map(|file| &file.name);
        out.debug_list().entries(names).finish()
    }
}

impl Descriptors {
    /// Reads a set. It may leave out `google/protobuf/*` and `buf/validate/validate.proto`; those
    /// that it has are not used.
    ///
    /// # Errors
    /// [`SetError`]: a set that is malformed, too large or incomplete.
    pub fn read(set: &[u8]) -> Result<Self, SetError> {
        Self::of_files(files::read(set, Bounds::OF_PEERS)?)
    }

    /// Reads a set of our own making.
    pub(crate) fn own(set: &[u8]) -> Result<Self, SetError> {
        Self::of_files(files::read(set, Bounds::NONE)?)
    }

    pub(crate) fn of_files(mut files: Vec<RawFile>) -> Result<Self, SetError> {
        let mut ruled: Vec<_> = files
            .iter_mut()
            .map(|file| file_for_library(std::mem::take(&mut file.ruled)))
            .collect();
        let mut pool = pool_of(&ruled)?;
        if let Some(entry) = pool
            .all_messages()
            .find(|message| message.is_map_entry() && !is_entry(message))
        {
            return Err(SetError::Invalid(format!(
                "{} is no entry of a map",
                entry.full_name()
            )));
        }
        let own = pool
            .all_messages()
            .filter(|message| !is_common(message.parent_file().name()));
        let (cycles, edits) = Cycles::find(own).map_err(SetError::Rule)?;
        if !edits.is_empty() {
            for (file, ruled) in files.iter().zip(&mut ruled) {
                if let Some(edits) = edits.get(&file.name) {
                    *ruled = edited(ruled, edits);
                }
            }
            // Circles are found in a pool, which cannot be changed: a second one is needed.
            pool = pool_of(&ruled)?;
        }
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                files,
                rules: Rules::new(cycles),
            }),
            only: None,
        })
    }

    /// These files alone of all that are there.
    pub(crate) fn only(&self, files: HashSet<String>) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            only: Some(Arc::new(files)),
        }
    }

    /// Its own files.
    fn files(&self) -> impl DoubleEndedIterator<Item = &RawFile> {
        self.inner.files.iter().filter(|file| self.has(&file.name))
    }

    fn has(&self, file: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(file))
    }

    /// All descriptors, with those of the imports, and perhaps of other tools.
    #[must_use]
    pub fn pool(&self) -> &DescriptorPool {
        &self.inner.pool
    }

    /// A message by its full name.
    #[must_use]
    pub fn message(&self, name: &str) -> Option<MessageDescriptor> {
        let found = self.inner.pool.get_message_by_name(name)?;
        let file = found.parent_file();
        (self.has(file.name()) || is_common(file.name())).then_some(found)
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.inner.rules
    }

    /// The messages of its own files.
    pub(crate) fn own_messages(&self) -> impl Iterator<Item = MessageDescriptor> + '_ {
        let all = self.inner.pool.all_messages();
        all.filter(|message| {
            let file = message.parent_file();
            self.has(file.name()) && !is_common(file.name())
        })
    }

    /// The methods of its own files.
    pub(crate) fn methods(&self) -> impl Iterator<Item = MethodDescriptor> + '_ {
        let services = self
            .inner
            .pool
            .services()
            .filter(|service| self.has(service.parent_file().name()));
        services.flat_map(|service| service.methods().collect::<Vec<_>>())
    }

    /// All own files as a serialized set, each after its imports, without `google/protobuf/*`,
    /// without `validate.proto` and without source information.
    #[must_use]
    pub fn set(&self) -> Bytes {
        files::set(self.files().map(|file| &*file.bytes)).into()
    }

    /// The set with all imports.
    #[must_use]
    pub fn full_set(&self) -> Bytes {
        complete(&self.set())
    }

    /// The set of the files that these messages need.
    pub(crate) fn set_of<'m>(
        &self,
        messages: impl Iterator<Item = &'m MessageDescriptor>,
    ) -> Bytes {
        let mut needed: HashSet<String> = messages
            .map(|message| message.parent_file().name().to_owned())
            .collect();
        let mut kept = Vec::new();
        for file in self.files().rev() {
            if needed.remove(&file.name) {
                needed.extend(file.imports.iter().cloned());
                kept.push(&*file.bytes);
            }
        }
        files::set(kept.into_iter().rev()).into()
    }
}

/// The common files and these.
fn pool_of(files: &[Vec<u8>]) -> Result<DescriptorPool, SetError> {
    let mut pool = common().pool.clone();
    let set = files::set(files.iter().map(Vec::as_slice));
    pool.decode_file_descriptor_set(set.as_slice())
        .map_err(|why| SetError::Invalid(why.to_string()))?;
    Ok(pool)
}

/// Whether a message that says it is an entry of a map has a key and a value: readers take both for
/// granted.
fn is_entry(message: &MessageDescriptor) -> bool {
    let (Some(key), Some(value)) = (message.get_field(1), message.get_field(2)) else {
        return false;
    };
    let is_key_kind = !matches!(
        key.kind(),
        Kind::Double | Kind::Float | Kind::Bytes | Kind::Message(_) | Kind::Enum(_)
    );
    is_key_kind && is_single(&key) && is_single(&value) && message.fields().len() == 2
}

/// Whether a field has one plain value.
fn is_single(field: &FieldDescriptor) -> bool {
    !field.is_list() && !field.is_map() && !field.is_group()
}
