//! Proposal details for reviewers: every member, spelled as proposed, hidden characters made visible.

use serde::Deserialize;
use serde_json::value::RawValue;

use json::{Token, Tokens, visible};

/// The answer to `GET proposals`.
#[derive(Deserialize)]
pub(super) struct ProposalList {
    proposals: Vec<ProposalDetails>,
}

/// The answer to `GET proposals/{id}`. Params, tool and answer keep their spelling, numbers and escapes too.
#[derive(Deserialize)]
pub(super) struct ProposalDetails {
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

impl ProposalList {
    pub(super) fn rows(self) -> impl Iterator<Item = Vec<String>> {
        self.proposals.into_iter().map(|one| {
            let (act, to) = (one.act(), one.to.join(", "));
            vec![one.id, one.state, one.by, act, to, one.expires]
        })
    }
}

impl ProposalDetails {
    fn act(&self) -> String {
        match &self.context {
            Some(context) => format!("{}:{context}", self.method),
            None => self.method.clone(),
        }
    }

    /// All details as text, one per line.
    pub(super) fn to_text(&self) -> String {
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
        line("call held", if self.held { "yes" } else { "no" });
        for (name, text) in [("decided by", &self.decided_by), ("reason", &self.reason)] {
            if let Some(text) = text {
                line(name, text);
            }
        }
        let parts = [
            ("params", &self.params),
            ("replacement params", &self.edited),
            ("tool, as described by its server", &self.tool),
            ("answer", &self.answer),
        ];
        for (name, raw) in parts {
            if let Some(raw) = raw {
                out += &format!("{name}:\n{}\n", pretty_json(raw.get()));
            }
        }
        out + &format!("digest: {}", visible::line(&self.digest))
    }

    /// The state of the proposal, as a sentence.
    pub(super) fn outcome(&self) -> String {
        let act = format!("`{}` proposed by {}", visible::line(&self.act()), visible::line(&self.by));
        match self.state.as_str() {
            "running" => format!("{act} is approved and running"),
            "completed" => {
                format!(
                    "{act} was approved and has completed; to see the answer: portmoot proposals show {}",
                    self.id
                )
            }
            "failed" => {
                format!("{act} was approved and has failed; to see why: portmoot proposals show {}", self.id)
            }
            state => format!("{act} is {}", visible::line(state)),
        }
    }
}

/// Pretty-prints JSON: every token keeps its spelling, hidden characters are made visible.
pub(super) fn pretty_json(json: &str) -> String {
    let (mut out, mut depth, mut opened) = (String::from("  "), 1_usize, false);
    let mut tokens = Tokens::new(json.as_bytes());
    while let Some(token) = tokens.next() {
        let closes = matches!(token, Token::Close(_));
        depth = depth.saturating_sub(usize::from(closes));
        // `{}` and `[]` stay on one line.
        if opened != closes {
            begin_line(&mut out, depth);
        }
        out += json.get(tokens.span().start..tokens.span().end).unwrap_or_default();
        opened = matches!(token, Token::Open(_));
        match token {
            Token::Open(_) => depth += 1,
            Token::Comma => begin_line(&mut out, depth),
            Token::Colon => out.push(' '),
            Token::Close(_) | Token::Text(_) | Token::Plain(_) => {}
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
    fn json_keeps_its_spelling_and_shows_hidden_characters() {
        let check = |json: &str, lines: &[&str]| assert_eq!(pretty_json(json), lines.join("\n"), "{json}");
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
