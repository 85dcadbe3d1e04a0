//! Answers to server requests at the terminal: elicitation forms, URLs, sampling. Without a
//! terminal, requests are declined.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::elicitation::{FormField, fields};
use json::visible;
use terminal::output::Output;
use terminal::prompt::{Terminal, confirm};
use wire::rpc::code;

/// Attempts at one field before the form is cancelled.
const FIELD_TRIES_MAX: usize = 5;
/// "The user rejected the request" of sampling.
const REJECTED: i64 = -1;

/// Answers server requests with input from the terminal; declines them if the terminal is not
/// interactive.
pub(crate) struct TerminalResponder<'a> {
    terminal: &'a mut dyn Terminal,
    output: Output,
}

#[derive(Deserialize)]
struct Elicitation<'a> {
    mode: Option<String>,
    #[serde(default)]
    message: String,
    url: Option<String>,
    #[serde(borrow, default, rename = "requestedSchema")]
    schema: Option<&'a RawValue>,
}

impl<'a> TerminalResponder<'a> {
    pub(crate) fn new(terminal: &'a mut dyn Terminal, output: Output) -> TerminalResponder<'a> {
        TerminalResponder { terminal, output }
    }

    /// The client capabilities to declare: none without an interactive terminal, so that the
    /// session shares that of the gateway with a server.
    pub(crate) fn capabilities(&self) -> Value {
        if self.terminal.is_interactive() {
            json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {} })
        } else {
            json!({})
        }
    }

    fn elicit(&mut self, params: &str) -> Value {
        let Ok(request) = serde_json::from_str::<Elicitation<'_>>(params) else {
            return action("decline");
        };
        if !self.terminal.is_interactive() {
            self.output
                .warn("declined a request for input: the terminal is not interactive");
            return action("decline");
        }
        self.terminal.show(&format!(
            "\nThe server requests input: {}",
            visible::lines(&request.message)
        ));
        match (request.mode.as_deref(), &request.url, request.schema) {
            (Some("url"), Some(url), _) => self.visit(url),
            (Some("form") | None, _, Some(schema)) => self.fill(schema.get()),
            _ => action("decline"),
        }
    }

    /// Shows the whole URL and asks the user to open it. The program never opens it.
    fn visit(&mut self, url: &str) -> Value {
        let shown = visible::line(url);
        self.terminal.show(&format!(
            "The server asks you to open this URL in your browser:\n\n  {shown}\n"
        ));
        if let Some(host) = url
            .parse::<hyper::Uri>()
            .ok()
            .and_then(|uri| uri.host().map(str::to_owned))
        {
            self.terminal
                .show(&format!("Host: {}", visible::line(&host)));
            if host.contains("xn--") || !host.is_ascii() {
                self.terminal.show(
                    "Warning: this host name has characters that may look like other letters.",
                );
            }
        }
        action(if confirm(self.terminal, "Accept and open it?") {
            "accept"
        } else {
            "decline"
        })
    }

    fn fill(&mut self, schema: &str) -> Value {
        let fields = match fields(schema) {
            Ok(fields) => fields,
            Err(error) => {
                self.terminal
                    .show(&format!("This form cannot be shown: {error}. Declined."));
                return action("decline");
            }
        };
        if !confirm(self.terminal, "Fill in the form?") {
            return action("decline");
        }
        self.terminal
            .show("An empty line selects the default in brackets. Ctrl-D cancels.");
        let mut content = Map::new();
        for field in &fields {
            match self.field(field) {
                Some(Some(value)) => drop(content.insert(field.name.clone(), value)),
                Some(None) => {}
                None => return action("cancel"),
            }
        }
        let shown = Value::Object(content.clone());
        self.terminal.show(&format!(
            "\nThis will be sent: {}",
            visible::line(&shown.to_string())
        ));
        if confirm(self.terminal, "Send it?") {
            json!({ "action": "accept", "content": content })
        } else {
            action("decline")
        }
    }

    /// Asks for one field. `None` cancels the form: end of input, or too many invalid lines.
    fn field(&mut self, field: &FormField) -> Option<Option<Value>> {
        self.terminal.show(&format!("\n{}", field.prompt()));
        for _ in 0..FIELD_TRIES_MAX {
            let line = self.terminal.ask(">")?;
            match field.read(&line) {
                Ok(value) => return Some(value),
                Err(reason) => self.terminal.show(&visible::line(&reason)),
            }
        }
        None
    }

    /// Lets the user write the answer of the model.
    fn sample(&mut self, params: &str) -> Result<Value, (i64, String)> {
        let rejected = || (REJECTED, "the user rejected the request".to_owned());
        if !self.terminal.is_interactive() {
            return Err(rejected());
        }
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        self.terminal
            .show("\nThe server requests a model's answer (sampling). There is no model here; you can write the answer.");
        if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
            self.terminal
                .show(&format!("system: {}", visible::lines(system)));
        }
        for message in params
            .get("messages")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let role = message.get("role").and_then(Value::as_str).unwrap_or("?");
            let content = message.get("content").unwrap_or(&Value::Null);
            let text = content
                .get("text")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let text = text.unwrap_or_else(|| content.to_string());
            self.terminal.show(&format!(
                "{}: {}",
                visible::line(role),
                visible::lines(&text)
            ));
        }
        let answer = self
            .terminal
            .ask("Your answer (empty line rejects):")
            .filter(|answer| !answer.is_empty());
        let text = answer.ok_or_else(rejected)?;
        Ok(json!({
            "role": "assistant",
            "content": { "type": "text", "text": text },
            "model": "a person",
            "stopReason": "endTurn",
        }))
    }

    /// Answers a request of the server, whose params are JSON text as the server wrote it: a
    /// result, or code and message of an error.
    pub(crate) fn answer(&mut self, method: &str, params: &str) -> Result<Value, (i64, String)> {
        match method {
            "elicitation/create" => Ok(self.elicit(params)),
            "sampling/createMessage" => self.sample(params),
            "ping" => Ok(json!({})),
            // This client did not declare the capability.
            method => Err((
                code::METHOD_NOT_FOUND,
                format!("this client does not support {method}"),
            )),
        }
    }

    /// Shows a notification.
    pub(crate) fn notice(&mut self, method: &str, params: &Value) {
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        match method {
            "notifications/progress" => {
                let done = params
                    .get("progress")
                    .map(ToString::to_string)
                    .unwrap_or_default();
                let total = params
                    .get("total")
                    .map(|total| format!(" of {total}"))
                    .unwrap_or_default();
                let message =
                    text("message").map(|message| format!(": {}", visible::line(message)));
                self.output.message(&format!(
                    "progress {done}{total}{}",
                    message.unwrap_or_default()
                ));
            }
            "notifications/message" => {
                let level = visible::line(text("level").unwrap_or("info"));
                let data = params.get("data").unwrap_or(&Value::Null);
                let data = data
                    .as_str()
                    .map_or_else(|| data.to_string(), str::to_owned);
                self.output
                    .message(&format!("{level}: {}", visible::line(&data)));
            }
            "notifications/tasks/status" => {
                let status = visible::line(text("status").unwrap_or_default());
                let message =
                    text("statusMessage").map(|message| format!(": {}", visible::line(message)));
                self.output
                    .message(&format!("task {status}{}", message.unwrap_or_default()));
            }
            _ => {}
        }
    }
}

fn action(action: &str) -> Value {
    json!({ "action": action })
}

#[cfg(test)]
mod tests;
