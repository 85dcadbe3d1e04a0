//! Change detection for configuration files and those of TLS, by polling.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Poll interval. Polling works on every file system; change events do not.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The time and size of a file: a change that keeps both is not seen.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    bytes: u64,
}

/// The files of a configuration, with their last known time and size.
pub(super) struct WatchedFiles {
    paths: Vec<PathBuf>,
    known: Vec<Option<Stamp>>,
}

impl WatchedFiles {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let known = stamps(&paths);
        Self { paths, known }
    }

    /// The files.
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Watches these files from now on. Those that were watched before stay as they were known.
    pub(super) fn watch(&mut self, paths: Vec<PathBuf>) {
        let mut known = stamps(&paths);
        for (path, stamp) in paths.iter().zip(&mut known) {
            // One that changes again while it is read is changed once more.
            let before = self.paths.iter().position(|watched| watched == path);
            if let Some(before) = before.and_then(|index| self.known.get(index)) {
                *stamp = *before;
            }
        }
        self.known = known;
        self.paths = paths;
    }

    /// Waits until a file has changed since the last call.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = stamps(&self.paths);
            if now != self.known {
                self.known = now;
                return;
            }
        }
    }
}

/// The stamp of each file; `None` for one that is not there.
fn stamps(paths: &[PathBuf]) -> Vec<Option<Stamp>> {
    paths.iter().map(|path| stamp(path)).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Stamp {
        modified: metadata.modified().ok()?,
        bytes: metadata.len(),
    })
}
