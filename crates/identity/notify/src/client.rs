//! The ways out: a program, or a request over the guarded dialer.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use client::{Guard, HookEnd, HookLimits, run_hook};
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use oauth::dialer::{AllowedAddresses, DialError, Dialer, FetchRequest, Fetched};
use tls::ClientTls;

use crate::Notification;
use crate::config::{NotifyForm, NotifyTarget, NotifyWay};

/// The time in which a program has to end.
pub const NOTIFY_EXEC_LIMIT: Duration = Duration::from_secs(10);
/// The bytes that are kept of a program's stdout, and of its stderr.
pub const NOTIFY_OUTPUT_BYTES_MAX: usize = 4096;
/// The longest answer to a request, in bytes.
const NOTIFY_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The times that a notification is sent under one id. Then what it is about is due anew.
pub const NOTIFY_TRIES_MAX: u32 = 5;
/// The wait before the first repetition, which doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_secs(1);

const JSON: &str = "application/json";
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Why a notification did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum NotifyFault {
    /// It was not sent, or no answer came.
    #[error(transparent)]
    Dial(DialError),
    /// The answer is a redirect, whose address may have a secret in it.
    #[error("`{0}` redirects, which is not followed")]
    Redirected(String),
    /// The secret with which it would be signed was not read.
    #[error("it cannot be signed: its secret is not there")]
    Unsigned,
    /// The answer is a refusal.
    #[error("the answer has the status {0}")]
    Status(u16),
    /// The program could not be started.
    #[error("the program `{program}` cannot be started: {why}")]
    NotStarted {
        /// The program, without its arguments.
        program: String,
        /// The reason.
        why: io::Error,
    },
    /// The program did not end in time: it was killed with its group.
    #[error("the program `{0}` did not end within {limit} s", limit = NOTIFY_EXEC_LIMIT.as_secs())]
    Hanging(String),
    /// The program failed.
    #[error("the program `{program}` failed: {how}{output}")]
    Failed {
        /// The program, without its arguments.
        program: String,
        /// Its exit code.
        how: String,
        /// Its output, on one line.
        output: String,
    },
}

impl NotifyFault {
    /// Whether the same notification may arrive later. What a program does is not repeated.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_transient(),
            Self::Status(status) => matches!(status, 408 | 425 | 429) || *status >= 500,
            Self::Redirected(_)
            | Self::Unsigned
            | Self::NotStarted { .. }
            | Self::Hanging(_)
            | Self::Failed { .. } => false,
        }
    }
}

impl From<DialError> for NotifyFault {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Redirected { host, .. } => Self::Redirected(host),
            error => Self::Dial(error),
        }
    }
}

/// The wait after so many failures in a row.
#[must_use]
pub fn retry_wait(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(NOTIFY_TRIES_MAX);
    RETRY_FIRST.saturating_mul(2_u32.saturating_pow(doublings))
}

/// Sends the notifications of one route. It follows no redirect.
#[derive(Debug)]
pub struct NotifyClient {
    way: NotifyWay,
    dialer: Dialer,
    guard: Option<Guard>,
}

impl NotifyClient {
    /// A client for this way. Programs are started under `guard`, if there is one.
    #[must_use]
    pub fn new(way: NotifyWay, guard: Option<Guard>) -> Self {
        Self {
            way,
            dialer: Dialer::new(ClientTls::of_machine()),
            guard,
        }
    }

    /// Sends a notification. The same id says that it is the same one. Returns what came back, in
    /// words.
    ///
    /// # Errors
    /// [`NotifyFault`].
    pub async fn send(
        &self,
        notification: &Notification,
        id: &str,
        unix_s: u64,
    ) -> Result<String, NotifyFault> {
        match &self.way {
            NotifyWay::Exec(words) => self.run(words, notification).await,
            NotifyWay::Request(target) => {
                let fetch = request(target, notification, id, unix_s)?;
                let reach = AllowedAddresses::of(&target.url, &target.allowed);
                let fetched = self.dialer.fetch(fetch, &reach).await?;
                answered(&fetched)
            }
        }
    }

    async fn run(
        &self,
        words: &[String],
        notification: &Notification,
    ) -> Result<String, NotifyFault> {
        let program = words.first().cloned().unwrap_or_default();
        let mut input = notification.json();
        input.push(b'\n');
        let input = Bytes::from(input);
        let limits = HookLimits {
            time: NOTIFY_EXEC_LIMIT,
            output_bytes: NOTIFY_OUTPUT_BYTES_MAX,
        };
        let ended = run_hook(words, input, limits, self.guard.as_ref());
        let ended = match ended.await {
            Ok(Some(ended)) => ended,
            Ok(None) => return Err(NotifyFault::Hanging(program)),
            Err(why) => return Err(NotifyFault::NotStarted { program, why }),
        };
        let HookEnd { code, output } = ended;
        let output = match output.trim_ascii() {
            [] => String::new(),
            text => format!(": {}", json::visible::line(&String::from_utf8_lossy(text))),
        };
        match code {
            Some(0) => Ok(format!("exit code 0{output}")),
            code => Err(NotifyFault::Failed {
                program,
                how: code.map_or_else(
                    || "ended by a signal".to_owned(),
                    |code| format!("exit code {code}"),
                ),
                output,
            }),
        }
    }
}

/// The request that carries a notification.
fn request(
    target: &NotifyTarget,
    notification: &Notification,
    id: &str,
    unix_s: u64,
) -> Result<FetchRequest, NotifyFault> {
    let body = match &target.form {
        NotifyForm::Webhook(_) => notification.json(),
        NotifyForm::Slack => notification.slack(),
        NotifyForm::Ntfy { topic, .. } => notification.ntfy(topic),
    };
    let mut headers = Vec::new();
    match &target.form {
        NotifyForm::Webhook(secret) => {
            headers.push((WEBHOOK_ID, id.to_owned()));
            headers.push((WEBHOOK_TIMESTAMP, unix_s.to_string()));
            if let Some(secret) = secret {
                let signature = secret.signature(id, unix_s, &body);
                let signature = signature.ok_or(NotifyFault::Unsigned)?;
                headers.push((WEBHOOK_SIGNATURE, signature));
            }
        }
        NotifyForm::Slack | NotifyForm::Ntfy { token: None, .. } => {}
        NotifyForm::Ntfy {
            token: Some(token), ..
        } => headers.push((AUTHORIZATION, format!("Bearer {}", token.expose()))),
    }
    let fetch = FetchRequest::post(target.url.as_str(), JSON, Bytes::from(body))?;
    let mut fetch = fetch.bytes_max(NOTIFY_ANSWER_BYTES_MAX);
    for (name, value) in headers {
        if let Ok(mut value) = HeaderValue::try_from(value) {
            value.set_sensitive(name == AUTHORIZATION);
            fetch = fetch.header(name, value);
        }
    }
    Ok(fetch)
}

fn answered(fetched: &Fetched) -> Result<String, NotifyFault> {
    let status = fetched.status.as_u16();
    if fetched.status.is_success() {
        return Ok(format!("status {status}"));
    }
    Err(NotifyFault::Status(status))
}
