//! Where the command line hands over to the gateway. Must not know how a gateway works inside.

use crate::config::{Loaded, Sources};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::Source;
use crate::output::Output;

/// Runs the gateway until it is told to stop. `sources` gives the configuration again for a reload.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn serve(_loaded: Loaded, _sources: Sources, _output: Output) -> Result<Exit, Failure> {
    Err(not_wired("serve"))
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
