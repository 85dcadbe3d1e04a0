//! Commands `servers ls` and `servers show`.

use serde_json::Value;

use crate::cli::ServersCommand;
use crate::commands::target::running_endpoint;
use crate::commands::view::{cell, print};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::api;

const COLUMNS: [&str; 6] = ["NAME", "STATE", "TRANSPORT", "ERA", "TOOLS", "REASON"];

pub(crate) async fn run(command: ServersCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ServersCommand::Ls(gateway) => {
            let endpoint = running_endpoint(&gateway, output)?;
            let answer = api::get(&endpoint, &["servers"], &[]).await?.read()?;
            let row = |row: &Value| COLUMNS.iter().map(|column| cell(row, &column.to_lowercase())).collect();
            output.listing(&answer, "servers", &COLUMNS, row);
        }
        ServersCommand::Show { name, gateway } => {
            let endpoint = running_endpoint(&gateway, output)?;
            print(&api::get(&endpoint, &["servers", &name], &[]).await?, output)?;
        }
    }
    Ok(Exit::Ok)
}
