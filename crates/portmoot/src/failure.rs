//! Failure of a command: message, hint, stable code, exit code.

use model::{Refusal, RefusalCode};
use serde_json::{Value, json};
use store::StoreError;

use crate::address::connectable;
use crate::config::Problem;
use crate::exit::Exit;

/// A failure, for people and scripts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &str, message: impl Into<String>) -> Failure {
        Failure { exit, code: code.to_owned(), message: message.into(), hint: None }
    }

    /// A wrong option or argument.
    pub(crate) fn bad_argument(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, "bad_argument", message)
    }

    /// The gateway needs a token, or another one. Its own hint is about HTTP headers, not about options of this program.
    pub(crate) fn needs_token(self) -> Failure {
        self.hint("pass a token with --token TOKEN or PORTMOOT_TOKEN; the gateway's operator issues one with: portmoot token new NAME")
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// The failure as JSON, with the members that the REST API uses.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "code": self.code, "message": self.message, "hint": self.hint })
    }

    /// Combines all problems of a configuration into one failure.
    pub(crate) fn configuration(problems: &[Problem]) -> Failure {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let code = problems.first().map_or("config", |problem| problem.code);
        let head = match problems.len() {
            1 => "the configuration is not valid:".to_owned(),
            count => format!("the configuration is not valid, {count} problems:"),
        };
        Failure::new(Exit::Usage, code, format!("{head}\n{}", texts.join("\n")))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let failure = Failure::new(Exit::Failed, error.code(), error.to_string());
        match &error {
            StoreError::Locked { listen: Some(listen), .. } => failure.hint(format!(
                "a gateway is running with this data directory: connect to it with --url http://{}",
                connectable(listen)
            )),
            StoreError::Locked { listen: None, .. } => {
                failure.hint("stop that process, or choose another directory with --data-dir DIR")
            }
            StoreError::Io { .. } => failure.hint("choose a writable directory: --data-dir DIR"),
            StoreError::Damaged { .. } => {
                failure.hint("restore the journal from a backup, or move it away to start with an empty one")
            }
            StoreError::Stopped | StoreError::Busy => failure,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let exit = match refusal.code {
            RefusalCode::Unauthenticated => Exit::Unauthenticated,
            RefusalCode::Forbidden
            | RefusalCode::CapabilityViolation
            | RefusalCode::AuthViolation
            | RefusalCode::RateLimited
            | RefusalCode::Conflict => Exit::Refused,
            RefusalCode::UnknownTarget | RefusalCode::UnknownSession => Exit::NotFound,
            RefusalCode::Malformed => Exit::Usage,
            RefusalCode::UpstreamBusy
            | RefusalCode::UpstreamDown
            | RefusalCode::UpstreamTimeout
            | RefusalCode::UpstreamFailed
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
        Failure { hint: refusal.hint.map(Into::into), ..failure }
    }
}
