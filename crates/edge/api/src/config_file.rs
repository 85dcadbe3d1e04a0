//! The configuration file of a running gateway, as the API changes it: planned, checked and written
//! as the commands `add` and `rm` do, then taken over.

use std::path::PathBuf;

use model::{Refusal, RefusalCode};
use setup::{FileChange, FileError, NewEntry, SetupError, TextFile};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::spawn_blocking;

/// A wish that the gateway reads its configuration again. It is answered when that is in force, or
/// refused.
pub type Reload = oneshot::Sender<Result<(), Refusal>>;

/// The configuration file of a gateway that reads it again when it changes.
pub struct ConfigFile {
    path: PathBuf,
    /// Whether servers come from files of MCP clients too, which stay as they are.
    has_client_files: bool,
    env: fn(&str) -> Option<String>,
    reload: mpsc::Sender<Reload>,
    /// Held during a change: the next one plans with its result.
    changing: Mutex<()>,
}

/// A server as the file is to have it.
pub(crate) enum Wish {
    /// With these keys, in place of one of its name unless it must be `new`.
    Put { fields: NewEntry, new: bool },
    /// Not.
    Remove,
}

/// A change of the file that has been made.
pub(crate) struct Done {
    /// Whether the server was there before.
    pub(crate) was_there: bool,
    /// Whether the file is another one now.
    pub(crate) changed: bool,
}

impl ConfigFile {
    /// The file at this path, which may not be there yet, and where the gateway receives that it
    /// has changed.
    pub fn new(
        path: PathBuf,
        has_client_files: bool,
        env: fn(&str) -> Option<String>,
    ) -> (Self, mpsc::Receiver<Reload>) {
        let (reload, reloads) = mpsc::channel(1);
        (
            Self {
                path,
                has_client_files,
                env,
                reload,
                changing: Mutex::default(),
            },
            reloads,
        )
    }

    /// The file as it is named to the operator.
    pub(crate) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Changes one server, and has the gateway take the file over. If it does not, the file gets
    /// its old text back. `in_force` is whether the gateway has a server of this name.
    pub(crate) async fn change(
        &self,
        name: &str,
        wish: Wish,
        in_force: bool,
    ) -> Result<Done, Refusal> {
        let _changing = self.changing.lock().await;
        let path = self.path.clone();
        let env = self.env;
        let of_client = self.has_client_files && in_force;
        let named = name.to_owned();
        let planned = off_the_runtime(move || {
            let planned = plan(TextFile::read(&path)?, &named, wish, of_client)?;
            let problems = setup::new_problems(&planned.change, &env);
            if let Some(first) = problems.first() {
                return Err(invalid(&problems, first.hint.as_deref()).into());
            }
            setup::write(&planned.change, config::SCHEMA)?;
            Ok(planned)
        })
        .await?;
        let Planned { change, was_there } = planned;
        let changed = !change.is_none();
        if changed && let Err(refusal) = self.taken_over().await {
            off_the_runtime(move || Ok::<_, Failed>(put_back(&change)?)).await?;
            return Err(refusal);
        }
        Ok(Done { was_there, changed })
    }

    /// Has the gateway read the file again, and waits until it has taken it over, or refused it.
    async fn taken_over(&self) -> Result<(), Refusal> {
        let (done, wait) = oneshot::channel();
        if self.reload.send(done).await.is_ok()
            && let Ok(outcome) = wait.await
        {
            return outcome;
        }
        Err(Refusal::new(
            RefusalCode::Overloaded,
            "the gateway is about to stop",
        ))
    }
}

/// A change of the file that was not written yet.
struct Planned {
    change: FileChange,
    /// Whether the file had the server before.
    was_there: bool,
}

/// Plans a change of one server. `of_client` is whether the gateway has it from a file of
/// `--mcp-config`, if this one has it not.
fn plan(file: TextFile, name: &str, wish: Wish, of_client: bool) -> Result<Planned, Failed> {
    let was_there = setup::entries(&file)?
        .iter()
        .any(|entry| entry.name == name);
    if !was_there && of_client {
        let why =
            format!("`{name}` is in a file of `--mcp-config`, which the gateway does not change");
        return Err(Refusal::new(RefusalCode::Conflict, why)
            .hint("change it there: the gateway takes the file over within seconds")
            .into());
    }
    let change = match wish {
        Wish::Put { new: true, .. } if was_there => {
            let why = format!("there is a server `{name}`");
            return Err(Refusal::new(RefusalCode::Conflict, why)
                .hint("leave out `If-None-Match` to replace it")
                .into());
        }
        Wish::Put { fields, .. } => setup::put(file, name, &fields)?,
        Wish::Remove if was_there => setup::remove(file, &[name.to_owned()])?,
        Wish::Remove => {
            let why = format!("there is no server `{name}` in the configuration file");
            return Err(Refusal::new(RefusalCode::UnknownTarget, why)
                .hint("list them: portmoot servers ls")
                .into());
        }
    };
    Ok(Planned { change, was_there })
}

/// Gives a file the text back that it had before a change, if it still has that of the change.
fn put_back(change: &FileChange) -> Result<(), FileError> {
    let file = TextFile::read(&change.file.path)?;
    if file.bytes == change.after {
        let after = change.file.bytes.clone();
        FileChange { file, after }.make()
    } else {
        Ok(())
    }
}

fn invalid(problems: &[config::Problem], hint: Option<&str>) -> Refusal {
    let all: Vec<&str> = problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    let refusal = Refusal::new(
        RefusalCode::Malformed,
        format!(
            "the configuration would not be valid: {}; nothing was changed",
            all.join("; ")
        ),
    );
    match hint {
        Some(hint) => refusal.hint(hint.to_owned()),
        None => refusal,
    }
}

/// Why a file was not changed.
struct Failed(Refusal);

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl From<FileError> for Failed {
    fn from(error: FileError) -> Self {
        let code = match error {
            FileError::Changed { .. } | FileError::NotText { .. } => RefusalCode::Conflict,
            FileError::Unreadable { .. } | FileError::Unwritable { .. } => RefusalCode::Internal,
        };
        Self(Refusal::new(code, error.to_string()))
    }
}

impl From<SetupError> for Failed {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::File(error) => error.into(),
            SetupError::Edit { .. }
            | SetupError::ToolHidden { .. }
            | SetupError::TooMany { .. } => {
                Self(Refusal::new(RefusalCode::Conflict, error.to_string()))
            }
        }
    }
}

async fn off_the_runtime<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Refusal> {
    match spawn_blocking(act).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Failed(why))) => Err(why),
        Err(_) => Err(Refusal::new(
            RefusalCode::Internal,
            "the change was interrupted",
        )),
    }
}
