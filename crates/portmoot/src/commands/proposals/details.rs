//! A proposal as whoever decides must see it: all of it, as it is spelled, with nothing hidden. Must not know who asks.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::visible;

/// What a list answers.
#[derive(Deserialize)]
pub(super) struct All {
    proposals: Vec<One>,
}

/// One proposal. What it carries stays as it is spelled: numbers and escapes too.
#[derive(Deserialize)]
pub(super) struct One {
    id: String,
    topic: String,
    pub(super) state: String,
    by: String,
    to: Vec<String>,
    method: String,
    context: Option<String>,
    envelope: String,
    params: Option<Box<RawValue>>,
    tool: Option<Box<RawValue>>,
    pub(super) digest: String,
    held: bool,
    at: String,
    expires: String,
    decided_by: Option<String>,
    edited: Option<Box<RawValue>>,
    reason: Option<String>,
    answer: Option<Box<RawValue>>,
}

impl All {
    pub(super) fn read(answer: &str) -> Result<Self, Failure> {
        serde_json::from_str(answer).map_err(|_| foreign())
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let row = |one: &One| {
            let [id, state, by, expires] = [&one.id, &one.state, &one.by, &one.expires].map(String::clone);
            vec![id, state, by, one.act(), one.to.join(", "), expires]
        };
        self.proposals.iter().map(row).collect()
    }
}

impl One {
    pub(super) fn read(answer: &str) -> Result<Self, Failure> {
        serde_json::from_str(answer).map_err(|_| foreign())
    }

    fn act(&self) -> String {
        match &self.context {
            Some(context) => format!("{}:{context}", self.method),
            None => self.method.clone(),
        }
    }

    /// Every line that counts.
    pub(super) fn sheet(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, text: &str| out += &format!("{name}: {}\n", visible::line(text));
        line("proposal", &self.id);
        line("state", &self.state);
        line("topic", &self.topic);
        line("by", &self.by);
        line("to", &if self.to.is_empty() { "everybody".to_owned() } else { self.to.join(", ") });
        line("method", &self.method);
        line("target", self.context.as_deref().unwrap_or("-"));
        line("envelope", &self.envelope);
        line("made", &self.at);
        line("expires", &self.expires);
        line("a call waits", if self.held { "yes" } else { "no" });
        for (name, text) in [("decided by", &self.decided_by), ("reason", &self.reason)] {
            if let Some(text) = text {
                line(name, text);
            }
        }
        let parts = [
            ("params", &self.params),
            ("ran with these params instead", &self.edited),
            ("the tool, as its server describes it", &self.tool),
            ("answer", &self.answer),
        ];
        for (name, raw) in parts {
            if let Some(raw) = raw {
                out += &format!("{name}:\n{}\n", laid_out(raw.get()));
            }
        }
        out + &format!("digest: {}", visible::line(&self.digest))
    }

    /// What has become of it, in a sentence.
    pub(super) fn stands(&self) -> String {
        let act = format!("`{}` proposed by {}", visible::line(&self.act()), visible::line(&self.by));
        match self.state.as_str() {
            "running" => format!("{act} is approved and runs"),
            "completed" => {
                format!("{act} is approved and done; its answer: portmoot proposals show {}", self.id)
            }
            "failed" => format!("{act} is approved and failed; why: portmoot proposals show {}", self.id),
            state => format!("{act} is {}", visible::line(state)),
        }
    }
}

fn foreign() -> Failure {
    let message = "what answers there is not a Portmoot gateway, or is another version of it";
    Failure::new(Exit::Failed, "gateway_foreign", message).hint("check --url")
}

/// JSON on lines of its own, every token spelled as it was, and nothing hidden.
pub(super) fn laid_out(json: &str) -> String {
    let (mut out, mut depth, mut text, mut escaped) = (String::from("  "), 1_usize, false, false);
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        if text {
            out.push(c);
            text = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            c if c.is_ascii_whitespace() => {}
            '"' => {
                text = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(close) = rest.next_if(|c| *c == '}' || *c == ']') {
                    out.push(close);
                } else {
                    depth += 1;
                    begin_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                begin_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                begin_line(&mut out, depth);
            }
            ':' => out += ": ",
            c => out.push(c),
        }
    }
    visible::lines(&out)
}

fn begin_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_spelling_and_hides_nothing() {
        let check = |json: &str, lines: &[&str]| assert_eq!(laid_out(json), lines.join("\n"), "{json}");
        check("1e400", &["  1e400"]);
        check("{ }", &["  {}"]);
        check(
            r#"{"a":[1.0,-0, "x,\"{"],"b":{}}"#,
            &[
                "  {",
                r#"    "a": ["#,
                "      1.0,",
                "      -0,",
                r#"      "x,\"{""#,
                "    ],",
                r#"    "b": {}"#,
                "  }",
            ],
        );
        check("\"a\u{202e}b\"", &["  \"a\\u{202e}b\""]);
        check("\"a\\\\\"", &["  \"a\\\\\""]);
    }
}
