//! Change detection for configuration files and those of TLS, by polling.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Poll interval. Polling works on every file system; change events do not.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The files of a configuration, with their last known time and size.
pub(super) struct WatchedFiles {
    paths: Vec<PathBuf>,
    known: Vec<Option<(SystemTime, u64)>>,
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
        let now = stamps(&paths);
        let known = paths.iter().zip(now).map(|(path, now)| {
            let before = self.paths.iter().position(|known| known == path);
            before
                .and_then(|at| self.known.get(at).copied())
                .unwrap_or(now)
        });
        self.known = known.collect();
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

fn stamps(paths: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let stamp = |path: &PathBuf| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.modified().ok()?, meta.len()))
    };
    paths.iter().map(stamp).collect()
}
