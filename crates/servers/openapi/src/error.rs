//! Bounds of descriptions, and why one cannot be used.

/// The longest description that is read, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
/// The deepest nesting of a description.
pub const DEPTH_MAX: usize = 100;
/// The most values of a description, those that YAML's aliases repeat included.
pub const VALUES_MAX: usize = 1_000_000;
/// The most bytes of the texts of a description in YAML, those that aliases repeat included.
pub const EXPANDED_BYTES_MAX: usize = 64 << 20;
/// The most parameters of one operation.
pub(crate) const PARAMETERS_MAX: usize = 256;

/// Why a description cannot be used, in words for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// It is longer than [`DOCUMENT_BYTES_MAX`].
    #[error("the description is longer than {DOCUMENT_BYTES_MAX} bytes")]
    TooLarge,
    /// It has more values than [`VALUES_MAX`].
    #[error("the description has more than {VALUES_MAX} values, with those that aliases repeat")]
    TooManyValues,
    /// Its texts have more bytes than [`EXPANDED_BYTES_MAX`].
    #[error(
        "the texts of the description have more than {EXPANDED_BYTES_MAX} bytes, with those that aliases repeat"
    )]
    TooMuchText,
    /// It is nested deeper than [`DEPTH_MAX`].
    #[error("the description is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// It is neither JSON nor YAML.
    #[error("the description is neither JSON nor YAML: line {line}: {why}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The fault of that line.
        why: String,
    },
    /// It has no member `openapi`.
    #[error("this is no OpenAPI description: it has no `openapi: 3.x`")]
    NoOpenApi,
    /// Its version is not supported.
    #[error("the description is written for OpenAPI {0}; 3.0 and 3.1 can be read")]
    Version(String),
    /// It has no `paths`.
    #[error("the description has no `paths`")]
    NoPaths,
}
