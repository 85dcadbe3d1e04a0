//! Owner of a data directory: what the lock file says of the process that has it.

use serde::{Deserialize, Serialize};

/// Owner of a data directory, as its lock file names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryOwner {
    /// Process id.
    pub pid: u32,
    /// Address on which it listens, as `host:port`; `None` before it listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// SHA-256 of the certificate that it shows there, in hexadecimal digits; `None` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// When it took the directory, in Unix milliseconds; 0 if its version did not write it.
    #[serde(default)]
    pub since_ms: u64,
    /// The configuration files that it watches, as absolute paths, also one that is not there yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Why it did not take over its files as they are now; `None` if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_failed: Option<String>,
}
