//! Failure of a command: message, hint, stable code, exit code.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::{Refusal, RefusalCode};
use rustix::process::geteuid;
use serde_json::{Value, json};
use store::{DirectoryOwner, StoreError};
use wire::time::rfc3339;

use crate::address::url_of;
use crate::exit::Exit;
use config::Problem;

/// A failure, for people and scripts.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The code with which the program ends.
    pub exit: Exit,
    /// A stable code for scripts.
    pub code: String,
    /// Message about the failure.
    pub message: String,
    /// Advice on the next step.
    pub hint: Option<String>,
    /// The problems of a configuration that the message sums up.
    pub problems: Vec<Problem>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, code: &str, message: impl Into<String>) -> Failure {
        Failure {
            exit,
            code: code.to_owned(),
            message: message.into(),
            hint: None,
            problems: Vec::new(),
        }
    }

    /// A wrong option or argument.
    pub fn bad_argument(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, "bad_argument", message)
    }

    /// The gateway needs a token, or another one. Its own hint is about HTTP headers, not about
    /// options of this program.
    pub fn needs_token(self) -> Failure {
        self.hint("pass a token with --token TOKEN or PORTMOOT_TOKEN; the gateway's operator issues one with: portmoot token new NAME")
    }

    /// The failure, with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// The failure as JSON, with the members that the REST API uses.
    pub fn to_json(&self) -> Value {
        json!({ "code": self.code, "message": self.lines(), "hint": self.hint })
    }

    /// The message and the problems that it sums up, a line each.
    pub fn lines(&self) -> String {
        let texts = self.problems.iter().map(ToString::to_string);
        std::iter::once(self.message.clone())
            .chain(texts)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Combines all problems of a configuration into one failure.
    pub fn configuration(problems: &[Problem]) -> Failure {
        let code = problems.first().map_or("config", |problem| problem.code);
        let message = match problems.len() {
            1 => "the configuration is not valid".to_owned(),
            count => format!("the configuration is not valid: {count} problems"),
        };
        Failure {
            problems: problems.to_vec(),
            ..Failure::new(Exit::Usage, code, message)
        }
    }
}

/// Advice about a file that this user may not open: as whom it could be opened.
fn no_access(path: &Path) -> String {
    const ELSE: &str = "choose another directory: --data-dir DIR";
    let user = path
        .ancestors()
        .find_map(|one| Some(one.metadata().ok()?.uid()));
    match user.filter(|user| *user != geteuid().as_raw()) {
        Some(user) => format!(
            "it belongs to another user: run the command as that one (sudo -u '#{user}' portmoot ...), or {ELSE}"
        ),
        None => format!("correct its permissions, or {ELSE}"),
    }
}

/// Consequence of an empty journal.
const OPEN: &str = "without tokens every program on this machine may then do everything";

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Advice about a data directory that another process has.
fn running(owner: Option<&DirectoryOwner>) -> String {
    const ELSE: &str = "or choose another directory with --data-dir DIR";
    let Some((owner, listen)) = owner.and_then(|owner| Some((owner, owner.listen.as_deref()?)))
    else {
        return format!("stop that process, {ELSE}");
    };
    let url = url_of(listen, owner.certificate.is_some());
    let pid = owner.pid;
    let since = match owner.since_ms {
        0 => String::new(),
        since => format!(" since {}", rfc3339(since)),
    };
    let files = match owner.files.as_slice() {
        [] => String::new(),
        files => format!(" with {}", files.join(", ")),
    };
    format!("it runs{since}{files}: use it with --url {url}, stop it (kill {pid}), {ELSE}")
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let failure = Failure::new(Exit::Failed, error.code(), error.to_string());
        match &error {
            StoreError::Locked { owner, .. } => failure.hint(running(owner.as_deref())),
            StoreError::Foreign { .. } => failure.hint(
                "if you trust the gateway that uses it, name its address with --url http://HOST:PORT; else choose another directory with --data-dir DIR",
            ),
            StoreError::OfOther { user, .. } => failure.hint(format!(
                "run the command as that user (sudo -u '#{user}' portmoot ...), or name its gateway and a token of yours: --url http://HOST:PORT --token TOKEN; else choose another directory with --data-dir DIR"
            )),
            StoreError::Io { path, cause, .. } | StoreError::Unopened { path, cause }
                if cause.kind() == ErrorKind::PermissionDenied =>
            {
                failure.hint(no_access(path))
            }
            StoreError::Io { .. } | StoreError::Unopened { .. } => {
                failure.hint("choose a writable directory: --data-dir DIR")
            }
            StoreError::Damaged { path, head, .. } => {
                let journal = quoted(path);
                let head = quoted(head);
                failure.hint(format!(
                    "nothing was changed. Restore journal and head from a backup. To go on with an empty one: \
                     mv {journal} {journal}.damaged && echo accepted > {head}; {OPEN}"
                ))
            }
            StoreError::Lost { head, .. } => {
                let head = quoted(head);
                failure.hint(format!(
                    "the journal has the tokens, grants and proposals. Restore the latest one. To go on with what is \
                     there now: echo accepted > {head}; {OPEN}"
                ))
            }
            StoreError::Elsewhere => failure.hint(
                "send the command again: it reaches the node that writes it",
            ),
            StoreError::Untaken(_)
            | StoreError::Compacted
            | StoreError::Stopped
            | StoreError::Paused
            | StoreError::Busy
            | StoreError::Share => failure,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let exit = match refusal.code {
            RefusalCode::Unauthenticated
            | RefusalCode::TokenExpired
            | RefusalCode::TokenForeign
            | RefusalCode::TokenUnknownKey
            | RefusalCode::IssuerUnknown => Exit::Unauthenticated,
            RefusalCode::Forbidden
            | RefusalCode::NoPlace
            | RefusalCode::InsufficientScope
            | RefusalCode::CapabilityViolation
            | RefusalCode::AuthViolation
            | RefusalCode::RateLimited
            | RefusalCode::Conflict
            | RefusalCode::ToolChanged => Exit::Refused,
            RefusalCode::UnknownTarget | RefusalCode::UnknownSession => Exit::NotFound,
            RefusalCode::Malformed | RefusalCode::SchemaViolation => Exit::Usage,
            RefusalCode::UpstreamBusy
            | RefusalCode::UpstreamDown
            | RefusalCode::IssuerUnreachable
            | RefusalCode::SchemaUnresolved
            | RefusalCode::UpstreamTimeout
            | RefusalCode::UpstreamFailed
            | RefusalCode::UpstreamLoginNeeded
            | RefusalCode::UpstreamLoginLost
            | RefusalCode::UpstreamClientNeeded
            | RefusalCode::UpstreamMetadataRefused
            | RefusalCode::TooLarge
            | RefusalCode::Unsupported
            | RefusalCode::Cancelled
            | RefusalCode::Overloaded
            | RefusalCode::UnsupportedProtocol
            | RefusalCode::LogUnavailable
            | RefusalCode::OutcomeUnknown
            | RefusalCode::Internal => Exit::Failed,
        };
        let failure = Failure::new(exit, refusal.code.as_str(), refusal.message);
        Failure {
            hint: refusal.hint.map(Into::into),
            ..failure
        }
    }
}
