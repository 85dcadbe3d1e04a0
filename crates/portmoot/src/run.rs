//! Where the command line hands over to the gateway. Must not know how a gateway works inside.

use gateway::config::Config;

use crate::config::{Loaded, Sources};
use crate::consent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::Source;
use crate::machine::env;
use crate::output::Output;

/// Runs the gateway until it is told to stop. `sources` gives the configuration again for a reload.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn serve(_loaded: Loaded, sources: Sources, output: Output) -> Result<Exit, Failure> {
    let _reload = move |before: &Config| reload(&sources, before, output);
    Err(not_wired("serve"))
}

/// The configuration again, after a file changed or on SIGHUP: all of it or nothing. What would need consent is left
/// disabled unless it was agreed to before.
///
/// # Errors
/// What is wrong with it; the gateway goes on with the one that it has.
fn reload(sources: &Sources, before: &Config, output: Output) -> Result<Config, Failure> {
    let loaded = sources.load(&env).map_err(|problems| Failure::configuration(&problems))?;
    let mut after = loaded.config;
    for name in consent::carry_over(before, &mut after) {
        output.warn(&format!("server `{name}` needs your consent: restart to give it"));
    }
    Ok(after)
}

/// Serves one client on stdin and stdout with a gateway of its own.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn stdio(_loaded: Loaded, _topic: &str, _output: Output) -> Result<Exit, Failure> {
    Err(not_wired("stdio"))
}

/// Serves one client on stdin and stdout as a door to a running gateway.
///
/// # Errors
/// When the gateway cannot be reached.
pub(crate) async fn stdio_door(
    _source: Box<dyn Source>,
    _topic: &str,
    _output: Output,
) -> Result<Exit, Failure> {
    Err(not_wired("stdio --url"))
}

/// A gateway in this process, on no port, for one command.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn in_process(_loaded: Loaded, _output: Output) -> Result<Box<dyn Source>, Failure> {
    Err(not_wired("a gateway in this process"))
}

fn not_wired(what: &str) -> Failure {
    Failure::new(Exit::Failed, "not_wired", format!("{what} is not part of this build yet"))
}
