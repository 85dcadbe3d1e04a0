//! What a server asks the person at the terminal: forms, URLs, sampling. Declines when nobody is there. Must not know how
//! questions travel.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::form::{Field, fields};
use crate::gate::{Answers, Question, not_offered};
use crate::output::Output;
use crate::terminal::{Terminal, confirm};
use crate::visible;

/// Tries at one field before the form is cancelled.
const TRIES_MAX: usize = 5;
/// "The user rejected the request" of sampling.
const REJECTED: i64 = -1;

/// The person at the terminal, or nobody.
pub(crate) struct Interview<'a> {
    terminal: &'a mut dyn Terminal,
    output: Output,
}

#[derive(Deserialize)]
struct Elicitation<'a> {
    #[serde(borrow, default)]
    mode: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "requestedSchema")]
    schema: Option<&'a RawValue>,
}

impl<'a> Interview<'a> {
    pub(crate) fn new(terminal: &'a mut dyn Terminal, output: Output) -> Interview<'a> {
        Interview { terminal, output }
    }

    /// What this client offers to servers. Elicitation always, so that a server is told "declined" and not "impossible";
    /// sampling only where somebody can write the answer.
    pub(crate) fn capabilities(&self) -> Value {
        let elicitation = json!({ "form": {}, "url": {} });
        if self.terminal.is_attended() {
            json!({ "elicitation": elicitation, "sampling": {} })
        } else {
            json!({ "elicitation": elicitation })
        }
    }

    fn elicit(&mut self, params: &str) -> Value {
        let Ok(asked) = serde_json::from_str::<Elicitation<'_>>(params) else { return action("decline") };
        if !self.terminal.is_attended() {
            self.output.warn("the server asked something, and nobody is at the terminal: declined");
            return action("decline");
        }
        self.terminal.show(&format!("\nThe server asks: {}", visible::lines(&asked.message)));
        match (asked.mode.as_deref(), &asked.url, asked.schema) {
            (Some("url"), Some(url), _) => self.visit(url),
            (Some("form") | None, _, Some(schema)) => self.fill(schema.get()),
            _ => action("decline"),
        }
    }

    /// The URL is shown whole, and opened by nobody but the person.
    fn visit(&mut self, url: &str) -> Value {
        let shown = visible::line(url);
        self.terminal.show(&format!("It wants you to open this address yourself:\n\n  {shown}\n"));
        if let Some(host) = url.parse::<hyper::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)) {
            self.terminal.show(&format!("Its host is {}.", visible::line(&host)));
            if host.contains("xn--") || !host.is_ascii() {
                self.terminal.show("Careful: that name is written with letters that may look like others.");
            }
        }
        action(if confirm(self.terminal, "Will you open it?") { "accept" } else { "decline" })
    }

    fn fill(&mut self, schema: &str) -> Value {
        let fields = match fields(schema) {
            Ok(fields) => fields,
            Err(error) => {
                self.terminal.show(&format!("This form cannot be shown: {error}. Declined."));
                return action("decline");
            }
        };
        if !confirm(self.terminal, "Fill in the form?") {
            return action("decline");
        }
        self.terminal.show("An empty line takes the default in brackets. Ctrl-D cancels.");
        let mut content = Map::new();
        for field in &fields {
            match self.field(field) {
                Some(Some(value)) => drop(content.insert(field.name.clone(), value)),
                Some(None) => {}
                None => return action("cancel"),
            }
        }
        let shown = Value::Object(content.clone());
        self.terminal.show(&format!("\nThis is sent: {}", visible::line(&shown.to_string())));
        if confirm(self.terminal, "Send it?") {
            json!({ "action": "accept", "content": content })
        } else {
            action("decline")
        }
    }

    /// `None` when the person has had enough.
    fn field(&mut self, field: &Field) -> Option<Option<Value>> {
        self.terminal.show(&format!("\n{}", field.prompt()));
        for _ in 0..TRIES_MAX {
            let line = self.terminal.ask(">")?;
            match field.read(&line) {
                Ok(value) => return Some(value),
                Err(reason) => self.terminal.show(&visible::line(&reason)),
            }
        }
        None
    }

    /// The person writes what a model would.
    fn sample(&mut self, params: &str) -> Result<Value, (i64, String)> {
        let rejected = || (REJECTED, "the user rejected the request".to_owned());
        if !self.terminal.is_attended() {
            return Err(rejected());
        }
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        self.terminal
            .show("\nThe server asks for a model's answer; there is no model here, but you can write one.");
        if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
            self.terminal.show(&format!("system: {}", visible::lines(system)));
        }
        for message in params.get("messages").and_then(Value::as_array).into_iter().flatten() {
            let role = message.get("role").and_then(Value::as_str).unwrap_or("?");
            let content = message.get("content").unwrap_or(&Value::Null);
            let text = content.get("text").and_then(Value::as_str).map(str::to_owned);
            let text = text.unwrap_or_else(|| content.to_string());
            self.terminal.show(&format!("{}: {}", visible::line(role), visible::lines(&text)));
        }
        let answer = self.terminal.ask("Your answer (empty to reject):").filter(|answer| !answer.is_empty());
        let text = answer.ok_or_else(rejected)?;
        Ok(json!({
            "role": "assistant",
            "content": { "type": "text", "text": text },
            "model": "a person",
            "stopReason": "endTurn",
        }))
    }
}

impl Answers for Interview<'_> {
    fn answer(&mut self, question: &Question) -> Result<Value, (i64, String)> {
        match question.method.as_str() {
            "elicitation/create" => Ok(self.elicit(&question.params)),
            "sampling/createMessage" => self.sample(&question.params),
            "ping" => Ok(json!({})),
            method => Err(not_offered(method)),
        }
    }

    fn notice(&mut self, method: &str, params: &Value) {
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        match method {
            "notifications/progress" => {
                let done = params.get("progress").map(ToString::to_string).unwrap_or_default();
                let total = params.get("total").map(|total| format!(" of {total}")).unwrap_or_default();
                let message = text("message").map(|message| format!(": {}", visible::line(message)));
                self.output.talk(&format!("progress {done}{total}{}", message.unwrap_or_default()));
            }
            "notifications/message" => {
                let level = visible::line(text("level").unwrap_or("info"));
                let data = params.get("data").unwrap_or(&Value::Null);
                let data = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
                self.output.talk(&format!("{level}: {}", visible::line(&data)));
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
