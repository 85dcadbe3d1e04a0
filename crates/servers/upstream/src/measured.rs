//! Durations of the calls at one server.

mod bounds;
mod tools;

use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use model::method::{CALL_TOOL, COMPLETE, GET_PROMPT, GET_SKILL, READ_RESOURCE};
use model::{Answer, Coding, Outcome, Refusal};
use platform::{Histogram, HistogramCounts, Mutex};
use wire::mcp::result::says_error;

pub use bounds::DURATION_BOUNDS;
use bounds::OTHER;
use tools::{MeasuredTool, Tools};
pub use tools::{TOOLS_MEASURED_MAX, ToolDurations};

/// The methods whose durations are kept apart. All others count as [`OTHER`].
const METHODS: [&str; 5] = [
    CALL_TOOL.name,
    READ_RESOURCE.name,
    GET_PROMPT.name,
    COMPLETE.name,
    GET_SKILL.name,
];
/// The type of the error of a tool that ran and says that it failed.
const TOOL_ERROR: &str = "tool_error";
/// The type of the error of a call that was cancelled before its answer.
pub(crate) const CANCELLED: &str = "cancelled";
/// The codes of JSON-RPC and MCP that are types of errors of their own.
const CODES: [(i64, &str); 13] = [
    (-32700, "-32700"),
    (-32600, "-32600"),
    (-32601, "-32601"),
    (-32602, "-32602"),
    (-32603, "-32603"),
    (-32000, "-32000"),
    (-32001, "-32001"),
    (-32002, "-32002"),
    (-32020, "-32020"),
    (-32021, "-32021"),
    (-32022, "-32022"),
    (-32042, "-32042"),
    (-33001, "-33001"),
];

/// A call that is sent to the server: its method and tool, and when that was.
#[derive(Debug)]
pub(crate) struct Began {
    /// The place of its method.
    method: usize,
    tool: Option<MeasuredTool>,
    at: Instant,
}

/// Durations of the calls at one server, in all its sessions, by method and by type of error.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    answered: [OnceLock<Histogram>; METHODS.len() + 1],
    /// Of calls that failed, with the place of the method and the type of the error. There are only
    /// as many types as this file and the codes of refusals name.
    failed: Mutex<Vec<FailedCalls>>,
    tools: Tools,
}

#[derive(Debug)]
struct FailedCalls {
    method: usize,
    error_type: &'static str,
    durations: Histogram,
}

/// Durations of calls of one method that ended in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDurations {
    /// The method, or `_OTHER`.
    pub method: &'static str,
    /// How they failed: a code of JSON-RPC, the code of a refusal of the gateway, `tool_error`,
    /// `cancelled` or `_OTHER`; `None` if they did not.
    pub error_type: Option<&'static str>,
    /// Their durations, from the sending of the call to its answer.
    pub durations: HistogramCounts,
}

impl Measured {
    /// A call that begins; `target` is the server's own name of its tool.
    pub(crate) fn begin(&self, method: &str, target: Option<&str>, at: Instant) -> Began {
        let known = METHODS.iter().position(|name| *name == method);
        let tool = target.filter(|_| method == CALL_TOOL.name);
        Began {
            method: known.unwrap_or(METHODS.len()),
            tool: tool.map(|tool| self.tools.find(tool)),
            at,
        }
    }

    /// Enters a call that has ended, and returns its duration.
    pub(crate) fn enter(&self, began: Began, error_type: Option<&'static str>) -> Duration {
        let duration = began.at.elapsed();
        match error_type {
            Some(error_type) => self.enter_failed(began.method, error_type, duration),
            None => {
                if let Some(of_method) = self.answered.get(began.method) {
                    of_method
                        .get_or_init(|| Histogram::new(&DURATION_BOUNDS))
                        .enter(duration);
                }
            }
        }
        if let Some(tool) = began.tool {
            self.tools.enter(tool, error_type.is_some(), duration);
        }
        duration
    }

    fn enter_failed(&self, method: usize, error_type: &'static str, duration: Duration) {
        let mut failed = self.failed.lock();
        let known = failed
            .iter()
            .find(|one| one.method == method && one.error_type == error_type);
        if let Some(known) = known {
            return known.durations.enter(duration);
        }
        let first = FailedCalls {
            method,
            error_type,
            durations: Histogram::new(&DURATION_BOUNDS),
        };
        first.durations.enter(duration);
        failed.push(first);
    }

    /// The durations of all tools until now.
    pub(crate) fn read_tools(&self) -> Vec<ToolDurations> {
        self.tools.read()
    }

    /// All durations until now.
    pub(crate) fn read(&self) -> Vec<CallDurations> {
        let mut all = Vec::new();
        for (method, answered) in self.answered.iter().enumerate() {
            if let Some(durations) = answered.get() {
                all.push(CallDurations {
                    method: name_of(method),
                    error_type: None,
                    durations: durations.read(),
                });
            }
        }
        for failed in self.failed.lock().iter() {
            all.push(CallDurations {
                method: name_of(failed.method),
                error_type: Some(failed.error_type),
                durations: failed.durations.read(),
            });
        }
        all
    }
}

fn name_of(method: usize) -> &'static str {
    METHODS.get(method).copied().unwrap_or(OTHER)
}

/// The type of the error with which a call has ended; `None` of one that succeeded.
pub(crate) fn error_type(end: &Result<Answer, Refusal>) -> Option<&'static str> {
    match end {
        Ok(answer) => answer_error_type(answer),
        Err(refusal) => Some(refusal.code.as_str()),
    }
}

/// The type of the error that an answer is; `None` of one that is none.
#[must_use]
pub fn answer_error_type(answer: &Answer) -> Option<&'static str> {
    static MEMBER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"isError\""));
    let is_json = answer.payload.coding == Coding::Json;
    let body = answer.payload.body_bytes();
    match answer.outcome {
        Outcome::Error if is_json => Some(code_of(body)),
        Outcome::Error => Some(OTHER),
        // Most results do not have the member, and are not read for it.
        Outcome::Ok if is_json && MEMBER.find(body).is_some() && says_error(body) => {
            Some(TOOL_ERROR)
        }
        Outcome::Ok | Outcome::Refused | Outcome::Cancelled => None,
    }
}

/// The code of an error, or `_OTHER` for one that has no name: servers choose codes as they like.
fn code_of(error: &[u8]) -> &'static str {
    let raw = json::at(error, &["code"]);
    let code = raw
        .and_then(|raw| std::str::from_utf8(raw).ok())
        .and_then(|raw| raw.parse::<i64>().ok());
    let named = CODES.iter().find(|(known, _)| Some(*known) == code);
    named.map_or(OTHER, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use model::{Form, RefusalCode};

    use super::*;

    fn answer(outcome: Outcome, body: &str) -> Result<Answer, Refusal> {
        Ok(Answer {
            outcome,
            payload: wire::rpc::Message::read(body.as_bytes().to_vec().into())
                .map(|message| wire::mcp::relay::decode_answer(&message, Form::Legacy).payload)
                .unwrap(),
        })
    }

    #[test]
    fn an_end_has_a_type_of_error_from_a_closed_list() {
        let result = |result: &str| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            answer(Outcome::Ok, &body)
        };
        let error = |code: i64| {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"m"}}}}"#);
            answer(Outcome::Error, &body)
        };
        let down = Err(Refusal::new(RefusalCode::UpstreamDown, "it is down"));
        let ends = [
            (result(r#"{"content":[]}"#), None),
            (result(r#"{"content":[],"isError":false}"#), None),
            (result(r#"{"content":[{"text":"\"isError\":true"}]}"#), None),
            (
                result(r#"{"content":[],"isError":true}"#),
                Some("tool_error"),
            ),
            (error(-32602), Some("-32602")),
            (error(7_777), Some("_OTHER")),
            (down, Some("upstream_down")),
        ];
        for (end, expected) in ends {
            assert_eq!(error_type(&end), expected, "{end:?}");
        }
    }

    #[test]
    fn durations_are_kept_by_method_and_by_type_of_error() {
        let measured = Measured::default();
        let at = Instant::now();
        measured.enter(measured.begin("tools/call", Some("read"), at), None);
        measured.enter(measured.begin("tools/call", Some("read"), at), None);
        measured.enter(measured.begin("acme/own", None, at), None);
        measured.enter(
            measured.begin("tools/call", Some("read"), at),
            Some("tool_error"),
        );
        measured.enter(
            measured.begin("tools/call", Some("read"), at),
            Some("tool_error"),
        );
        measured.enter(
            measured.begin("prompts/get", Some("read"), at),
            Some("tool_error"),
        );
        let read = measured.read();
        let found: Vec<_> = read
            .iter()
            .map(|one| (one.method, one.error_type, one.durations.total()))
            .collect();
        assert_eq!(
            found,
            [
                ("tools/call", None, 2),
                ("_OTHER", None, 1),
                ("tools/call", Some("tool_error"), 2),
                ("prompts/get", Some("tool_error"), 1),
            ]
        );
        let tools = measured.read_tools();
        let tools: Vec<_> = tools
            .iter()
            .map(|one| (&*one.tool, one.has_failed, one.durations.total()))
            .collect();
        assert_eq!(tools, [("read", false, 2), ("read", true, 2)]);
    }
}
