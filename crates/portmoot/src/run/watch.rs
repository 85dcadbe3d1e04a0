//! Whether the configuration's files have changed. Must not know what is in them.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// How often the files are looked at. Looking works on every file system, where waiting for events does not.
const LOOK: Duration = Duration::from_secs(1);

/// The files of a configuration, as they were last seen.
pub(super) struct Files {
    paths: Vec<PathBuf>,
    seen: Vec<Option<(SystemTime, u64)>>,
}

impl Files {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let seen = look(&paths);
        Self { paths, seen }
    }

    /// Returns when a file has changed since the last time.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let now = look(&self.paths);
            if now != self.seen {
                self.seen = now;
                return;
            }
        }
    }
}

fn look(paths: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let look = |path: &PathBuf| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.modified().ok()?, meta.len()))
    };
    paths.iter().map(look).collect()
}
