//! Commands `tools ls`, `show` and `call`, and `disable`, `enable` and `rename`, which edit the configuration file.

mod arguments;
mod call;
mod unknown;

use serde_json::Value;
use setup::ToolEdit;

use arguments::Arguments;
use call::CallOptions;
use unknown::or_similar;

use crate::cli::ToolsCommand;
use crate::commands::setup::edit_tools;
use crate::commands::target::resolve;
use crate::commands::view::{cell, is_named, print, short};
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::timestamp::duration_of;

const COLUMNS: [&str; 3] = ["NAME", "SERVER", "DESCRIPTION"];

pub(crate) async fn run(command: ToolsCommand, output: Output) -> Result<Exit, Failure> {
    match command {
        ToolsCommand::Ls { pattern, topic, gateway, .. } => {
            let endpoint = resolve(&gateway, output)?;
            let mut answer: Value = api::get(&*endpoint, &["tools"], &[("topic", &topic)]).await?.read()?;
            if let (Some(pattern), Some(Value::Array(tools))) = (pattern, answer.get_mut("tools")) {
                tools.retain(|tool| is_named(&cell(tool, "name"), &pattern));
            }
            output.listing(&answer, "tools", &COLUMNS, row);
            Ok(Exit::Ok)
        }
        ToolsCommand::Show { name, gateway } => {
            let endpoint = resolve(&gateway, output)?;
            let found = api::get(&*endpoint, &["tools", &name], &[]).await;
            print(&or_similar(found, &name, config::MAIN_TOPIC, &*endpoint).await?, output)?;
            Ok(Exit::Ok)
        }
        ToolsCommand::Call { name, arguments, args, no_input, wait, topic, gateway } => {
            let wait = duration_of("--wait", &wait)?;
            let arguments = Arguments::read(args.as_deref(), &arguments)?;
            let place = CallOptions { topic: &topic, gateway: &gateway, no_input, wait };
            call::call(&name, &arguments, place, output).await
        }
        ToolsCommand::Disable(args) => {
            edit_tools(&args.file, &args.server, ToolEdit::Disable(&args.tools), args.dry_run, output)
        }
        ToolsCommand::Enable(args) => {
            edit_tools(&args.file, &args.server, ToolEdit::Enable(&args.tools), args.dry_run, output)
        }
        ToolsCommand::Rename { server, tool, name, dry_run, file } => {
            edit_tools(&file, &server, ToolEdit::Rename(&tool, &name), dry_run, output)
        }
    }
}

/// A tool as a row, with its name for clients that accept fewer characters, and the first line of its description.
fn row(tool: &Value) -> Vec<String> {
    let name = match tool.get("narrow_name").and_then(Value::as_str) {
        Some(narrow) => format!("{} ({narrow})", cell(tool, "name")),
        None => cell(tool, "name"),
    };
    vec![name, cell(tool, "server"), short(&cell(tool, "description"))]
}
