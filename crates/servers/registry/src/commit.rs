//! A commit: the files of a module at one time, with its id and digest.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use schema::{OWNER, VALIDATE_PROTO, VALIDATE_TEXT};

use crate::digest::{self, DIGEST_BYTES};
use crate::messages::Timestamp;
use crate::messages::module::{Commit as CommitMessage, ModuleDigest};

/// Texts of proto files by their paths.
pub type Files = BTreeMap<String, Arc<str>>;

/// The module with `buf/validate/validate.proto`, which all others depend on: each with a copy of
/// its own could not be used together.
pub(crate) const VALIDATE_MODULE: &str = "protovalidate";

/// One state of a module. Its id follows from its files: the same files have the same id, after a
/// restart too.
#[derive(Debug)]
pub struct Commit {
    pub(crate) module: String,
    pub(crate) id: String,
    pub(crate) digest: [u8; DIGEST_BYTES],
    pub(crate) files: Files,
    pub(crate) dependencies: Vec<Arc<Self>>,
    made_ms: u64,
}

impl Commit {
    /// The commit of a module of tools with these files.
    #[must_use]
    pub fn new(module: &str, files: Files, now_ms: u64) -> Self {
        let imports = files.values().any(|text| text.contains(VALIDATE_PROTO));
        let dependencies = if imports {
            vec![Self::validate()]
        } else {
            Vec::new()
        };
        Self::with(module, files, dependencies, now_ms)
    }

    /// The commit of the module that all others depend on.
    pub(crate) fn validate() -> Arc<Self> {
        static COMMIT: OnceLock<Arc<Commit>> = OnceLock::new();
        Arc::clone(COMMIT.get_or_init(|| {
            let files = Files::from([(VALIDATE_PROTO.to_owned(), VALIDATE_TEXT.into())]);
            Arc::new(Self::with(VALIDATE_MODULE, files, Vec::new(), 0))
        }))
    }

    fn with(module: &str, files: Files, dependencies: Vec<Arc<Self>>, made_ms: u64) -> Self {
        let below: Vec<_> = dependencies.iter().map(|commit| commit.digest).collect();
        let digest = digest::b5(
            files
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_bytes())),
            &below,
        );
        let id = digest::id(&[b"commit", module.as_bytes(), &digest]);
        Self {
            module: module.to_owned(),
            id,
            digest,
            files,
            dependencies,
            made_ms,
        }
    }

    /// Its id: 32 hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its B5 digest as `buf.lock` has it: `b5:` and 128 hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        digest::printed(&self.digest)
    }

    /// The bytes of its files.
    pub(crate) fn bytes(&self) -> usize {
        self.files
            .iter()
            .map(|(path, text)| path.len() + text.len())
            .sum()
    }

    pub(crate) fn message(&self) -> CommitMessage {
        CommitMessage {
            id: self.id.clone(),
            create_time: Some(Timestamp::of_ms(self.made_ms)),
            owner_id: owner_id(),
            module_id: module_id(&self.module),
            digest: Some(ModuleDigest {
                kind: ModuleDigest::B5,
                value: self.digest.to_vec(),
            }),
        }
    }
}

pub(crate) fn owner_id() -> String {
    digest::id(&[b"owner", OWNER.as_bytes()])
}

pub(crate) fn module_id(module: &str) -> String {
    digest::id(&[b"module", OWNER.as_bytes(), module.as_bytes()])
}
