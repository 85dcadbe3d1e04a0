//! Command `tools call`: a call in an MCP session, as a task where the tool or an approval needs
//! one.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json::visible;
use serde_json::{Value, json};
use tokio::time::timeout;
use wire::mcp::meta::{AS_TASK, HELD};

use super::{arguments::Arguments, unknown::or_similar};
use crate::cli::GatewayArgs;
use crate::commands::target::resolve;
use crate::remote::{BROKEN, ClientSession, Endpoint, api};
use crate::responder::TerminalResponder;
use ::chat::content;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::{ProcessTerminal, Terminal, Unattended};

/// The text of a task for the model that made the call (2025-11-25, "Model Immediate Response").
const IMMEDIATE: &str = "/_meta/io.modelcontextprotocol~1model-immediate-response";

/// The notes of reviewers in a result.
const NOTES: &str = "/_meta/portmoot~1approval/notes";

/// Options of a tool's call.
pub(super) struct CallOptions<'a> {
    pub(super) topic: &'a str,
    pub(super) gateway: &'a GatewayArgs,
    /// Whether requests of the server for input are not shown.
    pub(super) no_input: bool,
    /// Time to wait for the decision about a call that needs approval.
    pub(super) wait: Duration,
    /// The file for the first image, audio or file of the result.
    pub(super) file: Option<&'a Path>,
}

/// Calls a tool in an MCP session, so that requests of the server reach this terminal.
pub(super) async fn call(
    name: &str,
    arguments: &Arguments,
    place: CallOptions<'_>,
    output: Output,
) -> Result<Exit, Failure> {
    let CallOptions {
        topic,
        gateway,
        no_input,
        wait,
        file,
    } = place;
    let endpoint = resolve(gateway, output)?;
    let tool = tool(&*endpoint, name, topic).await;
    let schema = tool.get("inputSchema").unwrap_or(&Value::Null);
    arguments.check(schema)?;
    let arguments = arguments.object(schema);
    let held = tool
        .get("held")
        .is_some_and(|held| *held == Value::Bool(true));
    let requires_task = tool
        .pointer("/execution/taskSupport")
        .is_some_and(|support| support == "required");
    // Without a person to ask, the session declares nothing, and shares the gateway's session with
    // the server.
    let mut person = ProcessTerminal;
    let mut unattended = Unattended;
    let terminal: &mut dyn Terminal = if no_input {
        &mut unattended
    } else {
        &mut person
    };
    let mut session =
        ClientSession::open(&*endpoint, topic, TerminalResponder::new(terminal, output)).await?;
    let quoted = Value::from(name);
    let task = if held || requires_task {
        r#","task":{}"#
    } else {
        ""
    };
    // A rule or a pause may hold what the list does not call held.
    let meta = json!({ "progressToken": 1, HELD: AS_TASK });
    let params = format!(r#"{{"name":{quoted},"arguments":{arguments},"_meta":{meta}{task}}}"#);
    let spinner = output.spinner(&format!("calling {}", visible::line(name)));
    let answer = session.request("tools/call", &params).await;
    let end = match answer {
        Ok(result) => {
            let wait = task_wait(&*endpoint, &result, held, wait).await;
            follow(&mut session, result, wait, output).await
        }
        Err(failure) => Err(failure),
    };
    let end = match end {
        Err(failure) if failure.code == BROKEN => Err(why_broken(&*endpoint, failure).await),
        end => end,
    };
    session.close().await;
    drop(spinner);
    let CallEnd { result, is_pending } = or_similar(end, name, topic, &*endpoint, output).await?;
    let parsed: Value = serde_json::from_str(&result).unwrap_or_default();
    let text = if is_pending {
        parsed.pointer(IMMEDIATE).and_then(Value::as_str)
    } else {
        None
    };
    match text {
        _ if output.json => output.result_json_text(&result),
        Some(text) => output.result(&visible::lines(text)),
        None => output.result(&content::text(&parsed)),
    }
    if !output.json {
        notes(&parsed).for_each(|note| output.message(&note));
    }
    match (file, blob(&parsed)) {
        (Some(file), Some(blob)) => write(file, &blob, output)?,
        (Some(_), None) => {
            output.warn("the result has no image, audio or file: nothing was written")
        }
        (None, Some(_)) if !output.json => output.message("to write it to a file: -o FILE"),
        (None, _) => {}
    }
    Ok(exit_of(&parsed, is_pending))
}

/// The notes that reviewers gave with their approvals of the call. No server can write them.
fn notes(result: &Value) -> impl Iterator<Item = String> {
    let notes = result.pointer(NOTES).and_then(Value::as_array);
    notes.into_iter().flatten().map(|one| {
        let [by, note] = ["by", "note"].map(|key| one.get(key).and_then(Value::as_str));
        let [by, note] = [by, note].map(|text| visible::line(text.unwrap_or_default()));
        format!("note by {by}: {note}")
    })
}

/// The exit code that says how a call ended.
fn exit_of(result: &Value, is_pending: bool) -> Exit {
    // Also a call whose tool is not listed may need approval: its result names the proposal.
    let is_proposed = result
        .get("_meta")
        .is_some_and(|meta| meta.get("portmoot/proposal").is_some());
    if is_pending || is_proposed {
        return Exit::Held;
    }
    match result.get("isError") {
        Some(Value::Bool(true)) => Exit::Failed,
        _ => Exit::Ok,
    }
}

/// How far a call has come when the command ends.
struct CallEnd {
    /// The result as the server spelled it; of a call that waits, its task.
    result: String,
    /// Whether it waits for a decision still.
    is_pending: bool,
}

/// The first image, audio or file of a result, in base64.
fn blob(result: &Value) -> Option<String> {
    let mut blocks = result.get("content")?.as_array()?.iter();
    blocks.find_map(|block| {
        let data = block
            .get("data")
            .or_else(|| block.get("resource")?.get("blob"))?;
        data.as_str().map(str::to_owned)
    })
}

fn write(file: &Path, blob: &str, output: Output) -> Result<(), Failure> {
    let bytes = STANDARD.decode(blob).map_err(|_| {
        Failure::new(
            Exit::Failed,
            "malformed",
            "what the tool returned is not base64",
        )
    })?;
    std::fs::write(file, &bytes).map_err(|error| {
        Failure::new(
            Exit::Failed,
            "unwritable",
            format!("cannot write {}: {error}", file.display()),
        )
    })?;
    output.message(&format!(
        "wrote {} bytes to {}",
        bytes.len(),
        visible::line(&file.display().to_string())
    ));
    Ok(())
}

/// Why a call has no answer, as the gateway says now: the token is not valid any more, or the gateway
/// is gone. What was found out about the call itself stays the hint.
async fn why_broken(endpoint: &dyn Endpoint, broken: Failure) -> Failure {
    let why = match api::get(endpoint, &["tools"], &[]).await {
        Err(failure) if failure.exit == Exit::Unauthenticated => Failure {
            message: format!(
                "the gateway ended the call, as it takes the token no more: {}",
                failure.message
            ),
            ..failure
        },
        Err(failure) if ["gateway_unreachable", BROKEN].contains(&&*failure.code) => Failure {
            message: format!("the gateway is gone: {}", failure.message),
            ..failure
        },
        Err(_) | Ok(_) => return broken,
    };
    Failure {
        hint: broken.hint,
        ..why
    }
}

/// The id of the task that a call has become; `None` if it has not.
fn task_of(result: &Value) -> Option<&str> {
    result.pointer("/task/taskId").and_then(Value::as_str)
}

/// The time to wait for the task that a call has become: `wait` if it is a proposal, which the
/// gateway says, and no server.
async fn task_wait(
    endpoint: &dyn Endpoint,
    result: &str,
    held: bool,
    wait: Duration,
) -> Option<Duration> {
    if held {
        return Some(wait);
    }
    let created: Value = serde_json::from_str(result).unwrap_or_default();
    let found = api::get(endpoint, &["proposals", task_of(&created)?], &[]).await;
    found.is_ok().then_some(wait)
}

/// The end of a call, after its task, if it became one. `held` is the time to wait for the decision
/// about a call that needs approval.
async fn follow(
    session: &mut ClientSession<'_>,
    result: String,
    held: Option<Duration>,
    output: Output,
) -> Result<CallEnd, Failure> {
    let created: Value = serde_json::from_str(&result).unwrap_or_default();
    let Some(id) = task_of(&created) else {
        return Ok(CallEnd {
            result,
            is_pending: false,
        });
    };
    let params = json!({ "taskId": id }).to_string();
    let Some(wait) = held else {
        output.message(&format!(
            "the server runs this call as a task, {}: waiting",
            visible::line(id)
        ));
        return Ok(CallEnd {
            result: session.request("tasks/result", &params).await?,
            is_pending: false,
        });
    };
    let show = format!("portmoot proposals show {id}");
    output.message(&format!(
        "this call needs approval: it is proposed as {id} ({show}); waiting for a decision"
    ));
    match timeout(wait, session.request("tasks/result", &params)).await {
        Ok(Err(failure)) if failure.code == BROKEN => {
            Err(failure.hint(format!("the proposal goes on; to look at it: {show}")))
        }
        Ok(end) => Ok(CallEnd {
            result: end?,
            is_pending: false,
        }),
        Err(_) => {
            session.cancel().await;
            output.message(&format!(
                "no decision yet: the proposal goes on; to look at it: {show}"
            ));
            Ok(CallEnd {
                result,
                is_pending: true,
            })
        }
    }
}

/// The tool as the API describes it; null if it is not known.
async fn tool(endpoint: &dyn Endpoint, name: &str, topic: &str) -> Value {
    let found = api::get(endpoint, &["tools", name], &[("topic", topic)]).await;
    found.and_then(|answer| answer.read()).unwrap_or_default()
}
