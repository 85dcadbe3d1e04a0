//! Commands `servers ls` and `servers show`.

use std::time::Duration;

use serde_json::Value;

use crate::cli::ServersCommand;
use crate::commands::target::resolve;
use crate::commands::view::{cell, print};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::api;

/// How long the commands wait for servers to start. After it, a server is shown as starting.
const START_WAIT: Duration = Duration::from_secs(30);
const COLUMNS: [&str; 6] = ["NAME", "STATE", "TRANSPORT", "ERA", "TOOLS", "REASON"];

pub(crate) async fn run(command: ServersCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ServersCommand::Ls(gateway) => {
            let endpoint = resolve(&gateway, START_WAIT, output).await?;
            let answer = api::get(&*endpoint, &["servers"], &[]).await?.read()?;
            let row = |row: &Value| COLUMNS.iter().map(|column| cell(row, &column.to_lowercase())).collect();
            output.listing(&answer, "servers", &COLUMNS, row);
        }
        ServersCommand::Show { name, gateway } => {
            let endpoint = resolve(&gateway, START_WAIT, output).await?;
            print(&api::get(&*endpoint, &["servers", &name], &[]).await?, output)?;
        }
    }
    Ok(Exit::Ok)
}
