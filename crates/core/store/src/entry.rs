//! Entries of a journal: records of their owners, each in an envelope with its owner's name.

use std::borrow::Cow;

use crate::error::StoreError;
use crate::fold::Fold;

const OWNER_PREFIX: &[u8] = br#""owner":""#;
const OWNER_SUFFIX: &[u8] = br#"","#;

/// A record in its envelope: its owner's name, and a JSON object that only the owner reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    owner: Cow<'static, str>,
    /// A JSON object with at least one member.
    body: Vec<u8>,
    is_for_all: bool,
}

impl Entry {
    /// The entry of an owner's record.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the record cannot be written as JSON.
    pub fn of<F: Fold>(record: &F::Record) -> Result<Entry, StoreError> {
        let body = serde_json::to_vec(record)
            .map_err(|cause| StoreError::io("write", "journal".as_ref(), cause.into()))?;
        Ok(Entry {
            owner: Cow::Borrowed(F::OWNER),
            body,
            is_for_all: F::is_for_all(record),
        })
    }

    /// An entry of an owner that is given by its name; `members` are those of the record, up to and
    /// with the brace that ends it.
    pub(crate) fn from_members(owner: impl Into<Cow<'static, str>>, members: &[u8]) -> Entry {
        Entry {
            owner: owner.into(),
            body: [b"{", members].concat(),
            is_for_all: false,
        }
    }

    /// Reads what follows the first brace of a line: the owner and the record's members.
    pub(crate) fn read(members: &[u8]) -> Option<Entry> {
        let rest = members.strip_prefix(OWNER_PREFIX)?;
        let is_of_name = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
        let length = rest.iter().take_while(|byte| is_of_name(byte)).count();
        let (name, rest) = rest.split_at_checked(length)?;
        let members = rest.strip_prefix(OWNER_SUFFIX)?;
        let owner = String::from_utf8(name.to_vec())
            .ok()
            .filter(|name| !name.is_empty())?;
        Some(Entry::from_members(owner, members))
    }

    /// The record in it, if this is its owner.
    #[must_use]
    pub fn record_of<F: Fold>(&self) -> Option<Result<F::Record, serde_json::Error>> {
        (self.owner() == F::OWNER).then(|| serde_json::from_slice(self.body()))
    }

    /// The name of its owner.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The word of [`Fold::is_for_all`] about its record; false of an entry that was read.
    #[must_use]
    pub fn is_for_all(&self) -> bool {
        self.is_for_all
    }

    /// The record, as JSON.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Reads an entry that [`Entry::line`] has written; `None` if it did not.
    #[must_use]
    pub fn read_line(line: &[u8]) -> Option<Entry> {
        Entry::read(line.strip_prefix(b"{")?)
    }

    /// The entry as a JSON object, in one line.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let members = self.body.strip_prefix(b"{").unwrap_or(&self.body);
        [
            b"{",
            OWNER_PREFIX,
            self.owner.as_bytes(),
            OWNER_SUFFIX,
            members,
        ]
        .concat()
    }

    /// About the bytes of its line.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.owner.len() + self.body.len()
    }
}
