//! Option `--watch`: a listing again and again.

use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use platform::{Mutex, unix_ms};
use wire::time::rfc3339;

use crate::cli::{
    AuditCommand, Cli, Command, ParticipantsCommand, PromptsCommand, ResourcesCommand,
    ServersCommand, TokenCommand, ToolsCommand,
};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::duration_of;

/// Shortest time between two listings.
const EVERY_MIN: Duration = Duration::from_millis(200);
/// Clears the screen and goes to its first line (ECMA-48).
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// The results of the listing that runs.
static RESULTS: Mutex<String> = Mutex::new(String::new());

/// Interval at which a command is run; `None` for once.
///
/// # Errors
/// When the option is not a time.
pub(super) fn interval(command: &Command) -> Result<Option<Duration>, Failure> {
    let watch = match command {
        Command::Status { watch, .. }
        | Command::Servers(ServersCommand::Ls { watch, .. })
        | Command::Tools(ToolsCommand::Ls { watch, .. })
        | Command::Resources(ResourcesCommand::Ls { watch, .. })
        | Command::Prompts(PromptsCommand::Ls { watch, .. })
        | Command::Participants(ParticipantsCommand::Ls { watch, .. })
        | Command::Token(TokenCommand::Ls { watch, .. })
        | Command::Audit(AuditCommand::Query { watch, .. }) => watch,
        Command::Init(_)
        | Command::Add(_)
        | Command::Rm(_)
        | Command::Secret(_)
        | Command::Notifications(_)
        | Command::Import(_)
        | Command::Connect(_)
        | Command::Disconnect(_)
        | Command::Search(_)
        | Command::Serve(_)
        | Command::Start(_)
        | Command::Stop(_)
        | Command::Stdio(_)
        | Command::Auth(_)
        | Command::Pins(_)
        | Command::Login(_)
        | Command::Clients(_)
        | Command::Consents(_)
        | Command::Servers(
            ServersCommand::Show { .. }
            | ServersCommand::Restart { .. }
            | ServersCommand::Disable { .. }
            | ServersCommand::Enable { .. }
            | ServersCommand::Login { .. }
            | ServersCommand::Logout { .. }
            | ServersCommand::ConnectCode(_)
            | ServersCommand::Auth { .. },
        )
        | Command::Logs { .. }
        | Command::Names { .. }
        | Command::Tools(
            ToolsCommand::Show { .. }
            | ToolsCommand::Call { .. }
            | ToolsCommand::Disable(_)
            | ToolsCommand::Enable(_)
            | ToolsCommand::Rename { .. },
        )
        | Command::Resources(ResourcesCommand::Read { .. })
        | Command::Prompts(PromptsCommand::Get { .. })
        | Command::Console { .. }
        | Command::Chat { .. }
        | Command::Participants(
            ParticipantsCommand::Can { .. }
            | ParticipantsCommand::Allow { .. }
            | ParticipantsCommand::Grant { .. }
            | ParticipantsCommand::Pause { .. }
            | ParticipantsCommand::Resume { .. }
            | ParticipantsCommand::Revoke { .. },
        )
        // It prints what comes and changes by itself.
        | Command::Proposals(_)
        | Command::Token(
            TokenCommand::New { .. } | TokenCommand::Rotate { .. } | TokenCommand::Revoke { .. },
        )
        | Command::Audit(AuditCommand::Verify { .. })
        | Command::Doctor(_)
        | Command::Config(_)
        | Command::Tokens(_)
        | Command::Proto(_)
        | Command::Version
        | Command::Completions { .. }
        | Command::Rules(_)
        | Command::Cluster(_)
        | Command::Man { .. } => return Ok(None),
    };
    let every = watch
        .watch
        .as_deref()
        .map(|time| duration_of("--watch", time))
        .transpose()?;
    Ok(every.map(|every| every.max(EVERY_MIN)))
}

/// Runs a listing until the program is interrupted. A terminal shows the last one; elsewhere each
/// that differs from the one before is printed. Later failures are shown, and the next listing may
/// succeed. `once` runs the command.
pub(super) async fn run<F>(
    cli: Cli,
    every: Duration,
    output: Output,
    once: impl Fn(Cli, Output) -> F,
) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Exit, Failure>>,
{
    let is_screen = stdout().is_terminal() && !output.json;
    let mut last: Option<String> = None;
    loop {
        RESULTS.lock().clear();
        let cli = Cli {
            output: cli.output,
            command: cli.command.clone(),
        };
        let ended = Box::pin(once(cli, output.watched(&RESULTS))).await;
        let mut results = std::mem::take(&mut *RESULTS.lock());
        match ended {
            Ok(_) => {}
            Err(failure) if last.is_none() => return Err(failure),
            Err(failure) => {
                results = format!(
                    "{} [{}]\n",
                    json::visible::lines(&failure.message),
                    failure.code
                )
            }
        }
        if is_screen || last.as_ref() != Some(&results) {
            let head = rfc3339(unix_ms());
            let head = head.get(11..19).unwrap_or_default();
            let text = if is_screen {
                format!("{CLEAR}{head} UTC, every {every:?}\n\n{results}")
            } else {
                results.clone()
            };
            let mut out = stdout().lock();
            if out
                .write_all(text.as_bytes())
                .and_then(|()| out.flush())
                .is_err()
            {
                // The reader has gone.
                return Ok(Exit::Ok);
            }
        }
        last = Some(results);
        tokio::time::sleep(every).await;
    }
}
