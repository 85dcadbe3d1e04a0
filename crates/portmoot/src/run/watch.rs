//! Change detection for configuration files, by polling.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Poll interval. Polling works on every file system; change events do not.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The files of a configuration with their last known time and size.
pub(super) struct WatchedFiles {
    paths: Vec<PathBuf>,
    known: Vec<Option<(SystemTime, u64)>>,
}

impl WatchedFiles {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let known = stamps(&paths);
        Self { paths, known }
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
