//! The client for Python (`clients/python`): its own tests and types, its examples, and its
//! participants beside others.

mod crash;
mod examples;
mod package;
mod quoted;
mod reconnect;
mod room;

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use harness::{deps, repository};
use serde_json::{Value, json};

use crate::http::TIMEOUT;
use crate::program::Program;
use crate::support::Gateway;
use crate::ws::token;

fn folder() -> PathBuf {
    repository().join("clients/python")
}

/// A Python program that imports the package from its sources.
fn python(script: &str) -> Command {
    let mut command = Command::new(deps().python());
    command
        .env_clear()
        .env("PYTHONPATH", folder().join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(folder().join(script));
    command
}

/// The same as this participant of a gateway.
fn python_as(script: &str, url: &str, who: &str, args: &[&str]) -> Command {
    let mut command = python(script);
    command
        .args(args)
        .env("PORTMOOT_URL", url)
        .env("PORTMOOT_TOKEN", token(who));
    command
}

/// A participant that is driven by this test (`tests/programs/agent.py`).
pub(crate) struct Agent {
    program: Program,
    next: u64,
}

impl Agent {
    pub(crate) fn enter(gateway: &Gateway, who: &str, backend: &str, mode: &str) -> Agent {
        Agent::at(&gateway.url(), who, backend, mode)
    }

    fn at(url: &str, who: &str, backend: &str, mode: &str) -> Agent {
        let command = python_as("tests/programs/agent.py", url, who, &[backend, mode]);
        let mut agent = Agent {
            program: Program::start(command),
            next: 0,
        };
        let welcomed = agent.event("welcomed");
        assert_eq!(welcomed["id"], who, "{welcomed}");
        agent
    }

    /// The next line for which `pick` returns a value.
    #[track_caller]
    fn line<T>(&mut self, what: &str, pick: impl Fn(&Value) -> Option<T>) -> T {
        let end = Instant::now() + TIMEOUT;
        while Instant::now() < end {
            let line = self.program.wait_for_line("{");
            let read: Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(found) = pick(&read) {
                return found;
            }
        }
        panic!("never: {what}")
    }

    #[track_caller]
    fn event(&mut self, name: &str) -> Value {
        self.line(name, |line| (line["event"] == name).then(|| line.clone()))
    }

    /// Begins an operation; returns its number.
    fn begin(&mut self, name: &str, mut arguments: Value) -> u64 {
        self.next += 1;
        arguments["do"] = json!(name);
        arguments["n"] = json!(self.next);
        self.program.type_line(&arguments.to_string());
        self.next
    }

    /// The answer to this operation: its result, or the name of its exception with the words.
    #[track_caller]
    fn answer(&mut self, number: u64) -> Result<Value, (String, String)> {
        self.line("an answer", |line| {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            (line["n"] == number).then(|| match line.get("error") {
                Some(_) => Err((text("error"), text("why"))),
                None => Ok(line["result"].clone()),
            })
        })
    }

    /// Runs an operation.
    #[track_caller]
    pub(crate) fn run(&mut self, name: &str, arguments: Value) -> Result<Value, (String, String)> {
        let number = self.begin(name, arguments);
        self.answer(number)
    }

    /// Proposes a call of the tool `echo`; returns the id.
    #[track_caller]
    fn propose(&mut self, to: &str, text: &str) -> String {
        let arguments = json!({ "to": to, "tool": "echo", "arguments": { "text": text } });
        self.run("propose", arguments)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }
}
