//! Kept manifests: what servers listed when they last ran, in the data directory, which
//! participants used them lately, and when their tools were called last.
//!
//! One file for each server, bound to the digest of its configuration, and one for the uses of
//! servers and of tools. A file that cannot be read is as good as none: the server is started once
//! to list it.

mod record;
mod tool_uses;
mod uses;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use platform::{Mutex, open_regular, replace_file};
use sha2::{Digest, Sha256};

pub(crate) use record::{Kept, KeptLists};
pub use tool_uses::ToolUse;
use tool_uses::{CalledToday, ToolUses};
pub(crate) use uses::Used;
use uses::Uses;
pub use uses::today;

/// The folder of the manifests in the data directory.
const DIR: &str = "manifests";
/// The file of the uses in the data directory.
const USES: &str = "server-uses.json";
/// The file of the uses of tools.
const TOOL_USES: &str = "tool-uses.json";
/// The longest file that is read or written, in bytes: one server's lists, or all uses.
pub const KEPT_BYTES_MAX: usize = 64 << 20;
/// A manifest that was not written for this long is removed at a start: its server is configured no
/// more.
const FORGOTTEN: Duration = Duration::from_secs(90 * 24 * 3_600);
/// The longest file name made of a server's name alone, in bytes. Longer ones end with a hash.
const NAME_BYTES_MAX: usize = 150;
/// The characters of a server's name that are not spelled as they are in a file name.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The manifests and uses that a data directory keeps; without one they end with the process.
#[derive(Debug, Default)]
pub struct KeptManifests {
    /// The data directory.
    dir: Option<PathBuf>,
    state: Mutex<State>,
    called: CalledToday,
}

#[derive(Debug, Default)]
struct State {
    uses: Uses,
    tools: ToolUses,
    /// Digest of each server's file as it is, or will be when the thread has written it: a manifest
    /// that stays the same is not written again.
    digests: BTreeMap<String, [u8; 32]>,
    /// Files that are yet to be written.
    unwritten: BTreeMap<PathBuf, Vec<u8>>,
    /// Whether a thread writes them.
    is_written: bool,
}

impl KeptManifests {
    /// The manifests that a data directory keeps.
    #[must_use]
    pub fn open(data_dir: Option<&Path>) -> Arc<Self> {
        let uses = data_dir.map(|dir| read(&dir.join(USES))).and_then(|read| match read {
            Ok(text) => serde_json::from_slice(&text?).ok(),
            Err(error) => {
                tracing::warn!(file = USES, %error, "it cannot be read: no server is warmed for its users");
                None
            }
        });
        let tools = data_dir
            .map(|dir| read(&dir.join(TOOL_USES)))
            .and_then(|read| {
                let tools =
                    read.map(|text| text.map(|text| serde_json::from_slice(&text)).transpose());
                match tools {
                    Ok(Ok(tools)) => tools,
                    Ok(Err(_)) | Err(_) => {
                        tracing::warn!(
                            file = TOOL_USES,
                            "it cannot be read: calls of tools are counted from now on"
                        );
                        None
                    }
                }
            });
        if let Some(dir) = data_dir {
            remove_forgotten(&dir.join(DIR));
        }
        let uses = uses.unwrap_or_default();
        let tools = tools.unwrap_or_default();
        let state = Mutex::new(State {
            uses,
            tools,
            ..State::default()
        });
        let kept = Self {
            dir: data_dir.map(Path::to_path_buf),
            state,
            called: CalledToday::default(),
        };
        kept.turn_day();
        Arc::new(kept)
    }

    /// Kept lists of a server with this configuration.
    pub(crate) fn load(&self, server: &str, configuration: &str) -> Option<Kept> {
        let path = self.path_of(server)?;
        let text = match read(&path) {
            Ok(text) => text?,
            Err(error) => {
                tracing::warn!(server, %error, "its kept lists cannot be read: it is started to list them");
                return None;
            }
        };
        let kept = Kept::read(&text, configuration)?;
        self.state
            .lock()
            .digests
            .insert(server.to_owned(), Sha256::digest(&text).into());
        Some(kept)
    }

    /// Keeps the lists of a server. They are written on a thread of its own.
    pub(crate) fn store(self: &Arc<Self>, server: &str, kept: &Kept, configuration: &str) {
        let Some(path) = self.path_of(server) else {
            return;
        };
        let Some(text) = kept
            .write(server, configuration)
            .filter(|text| text.len() <= KEPT_BYTES_MAX)
        else {
            tracing::warn!(
                server,
                "its lists are too long to be kept: it is started to list them"
            );
            return;
        };
        let digest = Sha256::digest(&text).into();
        let mut state = self.state.lock();
        if state.digests.insert(server.to_owned(), digest) == Some(digest) {
            return;
        }
        self.write_soon(&mut state, path, text);
    }

    /// Notes that a participant uses a server: a client of this name by a session of its own, or
    /// with `None` any client by the shared one.
    pub(crate) fn note_use(self: &Arc<Self>, server: &str, participant: &str, own: Option<&str>) {
        let mut state = self.state.lock();
        if !state.uses.note(server, participant, own, uses::today()) {
            return;
        }
        let Some(path) = self.dir.as_ref().map(|dir| dir.join(USES)) else {
            return;
        };
        if let Some(text) = serde_json::to_vec(&state.uses)
            .ok()
            .filter(|text| text.len() <= KEPT_BYTES_MAX)
        {
            self.write_soon(&mut state, path, text);
        }
    }

    /// Use of a server by a participant in the last days. `client` is the name of its client.
    pub(crate) fn used(&self, server: &str, participant: &str, client: Option<&str>) -> Used {
        self.state
            .lock()
            .uses
            .used(server, participant, client, uses::today())
    }

    /// Notes a call of a tool, by its server's own name.
    #[inline]
    pub(crate) fn note_call(self: &Arc<Self>, server: &str, tool: &str) {
        if !self.called.mark(server, tool) {
            self.note_tools(|tools, today| tools.note_call(server, tool, today));
        }
    }

    /// Notes the tools that a server lists.
    pub(crate) fn note_listed<'t>(
        self: &Arc<Self>,
        server: &str,
        listed: impl Iterator<Item = &'t str>,
    ) {
        self.note_tools(|tools, today| tools.note_listed(server, listed, today));
    }

    /// The use of a tool, if its calls are counted.
    pub(crate) fn tool_use(&self, server: &str, tool: &str) -> Option<ToolUse> {
        self.state.lock().tools.of(server, tool)
    }

    /// Takes what day it is, so that calls on a new day are noted. To be called every few seconds.
    pub fn turn_day(&self) {
        self.called.turn(uses::today());
    }

    #[cold]
    fn note_tools(self: &Arc<Self>, note: impl FnOnce(&mut ToolUses, u64) -> bool) {
        let mut state = self.state.lock();
        if !note(&mut state.tools, uses::today()) {
            return;
        }
        let Some(path) = self.dir.as_ref().map(|dir| dir.join(TOOL_USES)) else {
            return;
        };
        if let Some(text) = serde_json::to_vec(&state.tools)
            .ok()
            .filter(|text| text.len() <= KEPT_BYTES_MAX)
        {
            self.write_soon(&mut state, path, text);
        }
    }

    fn path_of(&self, server: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(DIR).join(file_name(server)))
    }

    /// Writes a file on a thread of its own: the caller may be on the path of a call.
    fn write_soon(self: &Arc<Self>, state: &mut State, path: PathBuf, text: Vec<u8>) {
        state.unwritten.insert(path, text);
        if std::mem::replace(&mut state.is_written, true) {
            return;
        }
        let me = Arc::clone(self);
        let writer = std::thread::Builder::new().name("manifests".to_owned());
        if let Err(error) = writer.spawn(move || me.write_all()) {
            // The next change tries again.
            state.is_written = false;
            tracing::warn!(%error, "manifests cannot be written now");
        }
    }

    fn write_all(&self) {
        loop {
            let (path, text) = {
                let mut state = self.state.lock();
                let Some(next) = state.unwritten.pop_first() else {
                    state.is_written = false;
                    return;
                };
                next
            };
            if let Err(error) = write(&path, &text) {
                let file = path.display();
                tracing::warn!(%file, %error, "what servers list is not kept after the end of the gateway");
            }
        }
    }
}

/// The digest of what tells a configuration from another one.
pub(crate) fn digest(parts: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(parts.as_bytes()))
}

/// The name of a server's file.
fn file_name(server: &str) -> String {
    let mut name = utf8_percent_encode(server, ESCAPED).to_string();
    if name.len() > NAME_BYTES_MAX {
        name.truncate(NAME_BYTES_MAX);
        name.push('~');
        name.push_str(&HEXLOWER.encode(&Sha256::digest(server.as_bytes())));
    }
    name.push_str(".json");
    name
}

/// A file's text; `None` if there is none.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(OpenOptions::new().read(true), path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = Vec::new();
    file.take(KEPT_BYTES_MAX as u64).read_to_end(&mut text)?;
    Ok(Some(text))
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    match replace_file(path, text) {
        // The folder of manifests is made with the first one; a data directory that is gone is not
        // made anew.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path
                .parent()
                .filter(|folder| folder.ends_with(DIR))
                .ok_or(error)?;
            // Only the gateway's user may know which servers there are.
            fs::DirBuilder::new().mode(0o700).create(folder)?;
            replace_file(path, text)
        }
        written => written,
    }
}

/// Removes manifests of servers that are long gone.
fn remove_forgotten(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let written = entry.metadata().and_then(|meta| meta.modified());
        let age = written
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age > FORGOTTEN) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn kept_until_written(store: &KeptManifests) {
        let began = Instant::now();
        while store.state.lock().is_written {
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
    }

    #[test]
    fn lists_outlive_the_process_for_the_same_configuration_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = KeptManifests::open(Some(dir.path()));
        for server in ["files", "../x y", &"long".repeat(32)] {
            assert!(store.load(server, "one").is_none());
            let kept = record::tests::sample();
            store.store(server, &kept, "one");
            kept_until_written(&store);
            let again = KeptManifests::open(Some(dir.path()));
            assert_eq!(again.load(server, "one").unwrap(), kept);
            assert!(again.load(server, "two").is_none());
        }
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "every file is in the folder"
        );
    }

    #[test]
    fn a_damaged_or_foreign_file_is_as_good_as_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(DIR)).unwrap();
        let store = KeptManifests::open(Some(dir.path()));
        let text = record::tests::sample().write("files", "one").unwrap();
        let cut = text[..text.len() - 1].to_vec();
        for bad in [
            Vec::new(),
            b"{}".to_vec(),
            b"[1]".to_vec(),
            cut,
            b"\xff".to_vec(),
        ] {
            fs::write(dir.path().join(DIR).join("files.json"), bad).unwrap();
            assert!(store.load("files", "one").is_none());
        }
        fs::write(dir.path().join(USES), "{\"uses\":3}").unwrap();
        let store = KeptManifests::open(Some(dir.path()));
        assert_eq!(store.used("files", "ann", None), Used::No);
    }

    #[test]
    fn uses_outlive_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let store = KeptManifests::open(Some(dir.path()));
        store.note_use("files", "ann", None);
        store.note_use("files", "bob", Some("cursor"));
        kept_until_written(&store);
        let again = KeptManifests::open(Some(dir.path()));
        assert_eq!(again.used("files", "ann", Some("cursor")), Used::Shared);
        assert_eq!(again.used("files", "bob", Some("cursor")), Used::Own);
        assert_eq!(again.used("files", "eve", None), Used::No);
    }

    #[test]
    fn uses_of_tools_outlive_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let store = KeptManifests::open(Some(dir.path()));
        store.note_listed("files", ["read", "write"].into_iter());
        store.note_call("files", "read");
        store.note_call("files", "read");
        kept_until_written(&store);
        let again = KeptManifests::open(Some(dir.path()));
        let read = again.tool_use("files", "read").unwrap();
        assert_eq!(read.last, Some(read.since));
        assert_eq!(
            again.tool_use("files", "write"),
            Some(ToolUse { last: None, ..read })
        );
        fs::write(dir.path().join(TOOL_USES), "[]").unwrap();
        let damaged = KeptManifests::open(Some(dir.path()));
        assert_eq!(damaged.tool_use("files", "read"), None);
    }

    #[test]
    fn names_of_files_differ_and_stay_in_the_folder() {
        assert_eq!(file_name("git-hub_1"), "git-hub_1.json");
        assert_eq!(file_name("../a"), "%2E%2E%2Fa.json");
        let one = file_name(&"é".repeat(64));
        let other = file_name(&format!("{}e", "é".repeat(63)));
        assert!(one != other && one.len() < 255);
    }
}
