//! Judgements about a proposal for its reviewer: claims of the tool's server, and marks for a second
//! look.

use json::visible::is_hidden;
use json::{Token, Tokens};
use serde::Deserialize;

use crate::details::ProposalDetails;

/// A longer text among the arguments is marked, in characters.
pub const LONG_VALUE_CHARS: usize = 2_000;

/// MCP's methods that only read, besides the lists.
const READING_METHODS: [&str; 3] = ["resources/read", "prompts/get", "completion/complete"];

/// Effects of a tool, by its annotations. They are claims of its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffects {
    /// The method only reads, whatever is read.
    Reading,
    /// `readOnlyHint` is true.
    ReadOnly,
    /// `destructiveHint` is false.
    Additive,
    /// `destructiveHint` is true.
    Destructive,
    /// Nothing is said, or there is no definition: MCP's defaults (`readOnlyHint` false,
    /// `destructiveHint` true) apply.
    Unsaid,
}

impl ToolEffects {
    /// By the definition of the proposed tool; of a plan, those of the step that may do most.
    #[must_use]
    pub fn of(proposal: &ProposalDetails) -> Self {
        let steps = proposal.single_steps();
        let most = steps.iter().map(Self::of_one).max_by_key(|one| one.rank());
        most.unwrap_or_else(|| Self::of_one(proposal))
    }

    /// Its place in the order of what it may do.
    fn rank(self) -> usize {
        match self {
            Self::Reading => 0,
            Self::ReadOnly => 1,
            Self::Additive => 2,
            Self::Unsaid => 3,
            Self::Destructive => 4,
        }
    }

    fn of_one(proposal: &ProposalDetails) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Annotations {
            read_only_hint: Option<bool>,
            destructive_hint: Option<bool>,
        }
        #[derive(Deserialize)]
        struct Tool {
            annotations: Option<Annotations>,
        }
        if READING_METHODS.contains(&proposal.method.as_str()) || proposal.method.ends_with("/list")
        {
            return Self::Reading;
        }
        let tool = proposal
            .tool
            .as_ref()
            .and_then(|tool| serde_json::from_str::<Tool>(tool.get()).ok());
        let Annotations {
            read_only_hint,
            destructive_hint,
        } = tool.and_then(|tool| tool.annotations).unwrap_or_default();
        match (read_only_hint, destructive_hint) {
            (Some(true), _) => Self::ReadOnly,
            (_, Some(false)) => Self::Additive,
            (_, Some(true)) => Self::Destructive,
            (Some(false) | None, None) => Self::Unsaid,
        }
    }

    /// Whether an approval needs a second key.
    #[must_use]
    pub fn needs_second_key(self) -> bool {
        match self {
            Self::Reading | Self::ReadOnly | Self::Additive => false,
            Self::Destructive | Self::Unsaid => true,
        }
    }

    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Reading => "reads only, by its method",
            Self::ReadOnly => "read-only, says its server",
            Self::Additive => "not destructive, says its server",
            Self::Destructive => "DESTRUCTIVE, says its server",
            Self::Unsaid => "may be DESTRUCTIVE: its server does not say (MCP's default)",
        }
    }
}

/// Marks for a second look, in words. `is_here` tells whether a participant is in the topic.
#[must_use]
pub fn marks(proposal: &ProposalDetails, is_here: impl Fn(&str) -> bool) -> Vec<String> {
    let steps = proposal.single_steps();
    if steps.is_empty() {
        return marks_of_one(proposal, &is_here);
    }
    let mut marks = Vec::new();
    for (number, step) in (1..).zip(&steps) {
        let of_step = marks_of_one(step, &is_here).into_iter();
        marks.extend(of_step.map(|mark| format!("step {number}: {mark}")));
    }
    marks
}

fn marks_of_one(proposal: &ProposalDetails, is_here: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut marks = Vec::new();
    let params = proposal.params.as_ref().map_or("", |params| params.get());
    if proposal.method == "tools/call" && proposal.tool.is_none() {
        marks.push("no definition of this tool".to_owned());
    }
    let absent: Vec<&str> = proposal
        .to
        .iter()
        .map(String::as_str)
        .filter(|to| !is_here(to))
        .collect();
    if !absent.is_empty() {
        marks.push(format!(
            "not here: {}",
            json::visible::line(&absent.join(", "))
        ));
    }
    let target = proposal.context.as_deref().unwrap_or_default();
    let texts = Texts::of(params);
    if texts.is_unreadable {
        marks.push("the params cannot be read".to_owned());
    }
    if texts.has_hidden || has_hidden(target) {
        marks.push("hidden characters".to_owned());
    }
    if texts.longest > LONG_VALUE_CHARS {
        marks.push(format!(
            "a value is longer than {LONG_VALUE_CHARS} characters"
        ));
    }
    marks
}

/// The texts of a JSON text, keys too: what a reviewer may overlook in them.
#[derive(Debug, Default)]
struct Texts {
    /// Whether it is no JSON.
    is_unreadable: bool,
    /// Whether a hidden character, or half a surrogate pair, is written or spelled with an escape.
    has_hidden: bool,
    /// The length of the longest one, in characters.
    longest: usize,
}

impl Texts {
    /// The tokens are looked at one by one: no number and no depth keeps a text from being seen.
    fn of(json: &str) -> Self {
        let mut texts = Self {
            is_unreadable: !json.is_empty() && json::check(json.trim().as_bytes()).is_err(),
            has_hidden: has_hidden(json),
            longest: 0,
        };
        for token in Tokens::new(json.as_bytes()) {
            if let Token::Text(raw) = token {
                let text = json::text(raw);
                texts.has_hidden |= text.as_deref().is_none_or(has_hidden);
                let chars = text.map_or(raw.len(), |text| text.chars().count());
                texts.longest = texts.longest.max(chars);
            }
        }
        texts
    }
}

/// Whether a text has a hidden character other than a line feed or a tab.
fn has_hidden(text: &str) -> bool {
    text.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::details::tests_support::proposal;

    #[test]
    fn a_second_key_follows_the_annotations_and_the_defaults_of_mcp() {
        for (tool, expect, second) in [
            (
                json!({ "annotations": { "readOnlyHint": true } }),
                ToolEffects::ReadOnly,
                false,
            ),
            (
                json!({ "annotations": { "readOnlyHint": true, "destructiveHint": true } }),
                ToolEffects::ReadOnly,
                false,
            ),
            (
                json!({ "annotations": { "destructiveHint": false } }),
                ToolEffects::Additive,
                false,
            ),
            (
                json!({ "annotations": { "destructiveHint": true } }),
                ToolEffects::Destructive,
                true,
            ),
            (
                json!({ "annotations": { "readOnlyHint": false } }),
                ToolEffects::Unsaid,
                true,
            ),
            (json!({ "annotations": {} }), ToolEffects::Unsaid, true),
            (
                json!({ "annotations": { "destructiveHint": "no" } }),
                ToolEffects::Unsaid,
                true,
            ),
            (json!({ "name": "x" }), ToolEffects::Unsaid, true),
            (Value::Null, ToolEffects::Unsaid, true),
        ] {
            let effects = ToolEffects::of(&proposal("1", &json!({ "tool": tool })));
            assert_eq!(
                (effects, effects.needs_second_key()),
                (expect, second),
                "{tool}"
            );
        }
        for (method, second) in [
            ("resources/read", false),
            ("tools/list", false),
            ("vendor/act", true),
        ] {
            let effects = ToolEffects::of(&proposal("1", &json!({ "method": method })));
            assert_eq!(effects.needs_second_key(), second, "{method}");
        }
    }

    #[test]
    fn what_deserves_a_second_look_is_marked() {
        let marked = |params: Value, to: &str| {
            let more = json!({ "params": params, "to": [to], "tool": { "name": "echo" } });
            marks(&proposal("1", &more), |id| id == "worker").join("; ")
        };
        let of = |text: &str| json!({ "name": "echo", "arguments": { "text": text } });
        assert_eq!(marked(of("a\nb\tc"), "worker"), "");
        assert_eq!(marked(of("a"), "gone"), "not here: gone");
        assert_eq!(marked(of("a\u{202e}b"), "worker"), "hidden characters");
        assert_eq!(
            marked(json!({ "arguments": { "a\u{200b}": 1 } }), "worker"),
            "hidden characters"
        );
        assert_eq!(marked(of(&"x".repeat(LONG_VALUE_CHARS)), "worker"), "");
        let long = marked(of(&"x".repeat(LONG_VALUE_CHARS + 1)), "worker");
        assert_eq!(long, "a value is longer than 2000 characters");
        let spelled =
            serde_json::value::RawValue::from_string(r#"{"a":"\u202e"}"#.to_owned()).unwrap();
        let spelled = ProposalDetails {
            params: Some(spelled),
            ..proposal("1", &json!({ "to": ["worker"] }))
        };
        assert_eq!(
            marks(&spelled, |_| true),
            ["no definition of this tool", "hidden characters"]
        );
    }

    #[test]
    fn no_number_and_no_depth_switches_a_mark_off() {
        let hides = format!(r#""a":"\u202e","b":"{}""#, "x".repeat(LONG_VALUE_CHARS + 1));
        let deep = "[".repeat(500) + &"]".repeat(500);
        let both = [
            "hidden characters",
            "a value is longer than 2000 characters",
        ];
        for (params, expect) in [
            (format!(r#"{{{hides},"n":1e400}}"#), &both[..]),
            (format!(r#"{{{hides},"n":{deep}}}"#), &both[..]),
            (r#"{"half \ud800":1}"#.to_owned(), &both[..1]),
        ] {
            let params = serde_json::value::RawValue::from_string(params).unwrap();
            let of = ProposalDetails {
                params: Some(params),
                ..proposal(
                    "1",
                    &json!({ "to": ["worker"], "tool": { "name": "echo" } }),
                )
            };
            assert_eq!(marks(&of, |_| true), expect);
        }
        assert!(Texts::of("{").is_unreadable);
    }
}
