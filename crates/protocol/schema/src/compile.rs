//! Proto text to descriptors.

use std::sync::OnceLock;

use protox::file::{ChainFileResolver, File as Source, FileResolver, GoogleFileResolver};

/// The path under which `buf.validate` is imported.
pub const VALIDATE_PROTO: &str = "buf/validate/validate.proto";
/// The text of that file (protovalidate 1.2, Apache-2.0).
pub const VALIDATE_TEXT: &str = include_str!("../proto/buf/validate/validate.proto");

/// Why a proto text is not a file.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct CompileError {
    /// The file.
    pub path: String,
    /// Fault of the file, with its place.
    pub why: String,
}

/// The descriptors of these files, by path, with all that they import, as a serialized
/// `google.protobuf.FileDescriptorSet`. They may import each other, `buf/validate/validate.proto`
/// and the well-known types.
///
/// # Errors
/// [`CompileError`]: the text of a file that does not compile.
pub fn compile(files: &[(String, String)]) -> Result<Vec<u8>, CompileError> {
    Ok(compiled(files)?.encode_file_descriptor_set())
}

/// The compiled files, for a look at their own descriptors.
pub(crate) fn compiled(files: &[(String, String)]) -> Result<protox::Compiler, CompileError> {
    let mut resolver = ChainFileResolver::new();
    resolver.add(Texts(files.to_vec()));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    for (path, _) in files {
        if let Err(why) = compiler.open_file(path) {
            return Err(CompileError {
                path: path.clone(),
                why: why.to_string(),
            });
        }
    }
    Ok(compiler)
}

/// Files by path, and `validate.proto`.
struct Texts(Vec<(String, String)>);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<Source, protox::Error> {
        if name == VALIDATE_PROTO {
            return validate();
        }
        match self.0.iter().find(|(path, _)| path == name) {
            Some((path, text)) => Source::from_source(path, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

/// `validate.proto`, which is parsed once: it is a hundred times as long as a tool's file.
pub(crate) fn validate() -> Result<Source, protox::Error> {
    static PARSED: OnceLock<Source> = OnceLock::new();
    if let Some(parsed) = PARSED.get() {
        return Ok(parsed.clone());
    }
    let parsed = Source::from_source(VALIDATE_PROTO, VALIDATE_TEXT)?;
    Ok(PARSED.get_or_init(|| parsed).clone())
}
