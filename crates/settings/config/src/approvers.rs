//! Tables `[topics.NAME.approver]`: approvers outside.

use std::time::Duration;

use authzen::config::{AuthzenService, OutsideApprover, SentArguments, TakenDecisions};
use identity::config::ParticipantConfig;
use model::{NamePattern, TopicName};

use crate::node::{Node, SourceOrigin};
use crate::problem::Problem;
use crate::reader::{ListedText, Problems, Table};
use crate::secrets::Outside;
use crate::services::{TOKEN, allowed, secret, sendable, url};
use crate::values::participant_id;

/// The key of a topic that has its approver.
const KEY: &str = "approver";
/// The time for a whole request, unless it is configured.
const WINDOW: Duration = Duration::from_secs(600);
/// The least time for a whole request: an answer that takes long counts as none.
const APPROVER_WINDOW_MIN: Duration = Duration::from_secs(10);
/// The most time for a whole request.
const APPROVER_WINDOW_MAX: Duration = Duration::from_secs(86_400);
/// The most JSON pointers to arguments that are sent.
const APPROVER_ARGUMENTS_MAX: usize = 64;
/// An address of a service.
const EXAMPLE_URL: &str = "for example \"https://pdp.example.com/access/v1/evaluation\"";
/// All arguments.
const ALL: &str = "*";

const DECIDES: [(&str, TakenDecisions); 3] = [
    ("both", TakenDecisions::Both),
    ("approve", TakenDecisions::Approve),
    ("reject", TakenDecisions::Reject),
];

/// The approver outside of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicApprover {
    /// The topic.
    pub topic: TopicName,
    /// The approver.
    pub approver: OutsideApprover,
}

/// Reads the approver of a topic's table, if it has one.
pub(crate) fn read(
    topic: &Table<'_>,
    name: Option<&TopicName>,
    outside: &Outside<'_>,
) -> Option<TopicApprover> {
    let table = topic.table(KEY)?;
    if table.location().layer.origin == SourceOrigin::Found {
        // Consent is to the configuration: what a call says would go to whom its author chose.
        topic.note_value(
            KEY,
            format!(
                "`{}`: a file that you did not name has no approver",
                topic.full(KEY)
            ),
            "name your configuration with --config FILE",
        );
        return None;
    }
    let approver = approver(&table, outside);
    table.finish();
    Some(TopicApprover {
        topic: name?.clone(),
        approver: approver?,
    })
}

fn approver(table: &Table<'_>, outside: &Outside<'_>) -> Option<OutsideApprover> {
    let evaluation_url = url(table, "evaluation_url", EXAMPLE_URL);
    let request_url = url(table, "request_url", EXAMPLE_URL);
    let token = secret(table, TOKEN, outside);
    let allowed = allowed(table);
    let acts_as = acts_as(table);
    let tools = tools(table);
    let arguments = arguments(table);
    let decides = table.choice("decides", &DECIDES).unwrap_or_default();
    let window = window(table);
    for key in ["evaluation_url", "as", "tools"] {
        if table.get(key).is_none() {
            let message = format!("{} has no `{key}`", table.name());
            table.wrong(
                "config_missing",
                message,
                "docs/approvals.md has an example",
            );
        }
    }
    Some(OutsideApprover {
        service: AuthzenService {
            evaluation_url: evaluation_url?,
            request_url,
            token: sendable(table, token.ok()?)?,
            allowed,
        },
        acts_as: acts_as?,
        tools,
        arguments,
        decides,
        window,
    })
}

fn acts_as(table: &Table<'_>) -> Option<model::ParticipantId> {
    let name = table.text("as")?;
    participant_id(name, table.place("as"), table.problems())
}

fn tools(table: &Table<'_>) -> Vec<NamePattern> {
    let mut tools = Vec::new();
    for ListedText { text, location } in table.texts("tools").unwrap_or_default() {
        match NamePattern::parse(text) {
            Ok(pattern) => tools.push(pattern),
            Err(error) => {
                let message = format!("`{}`: {error}", table.full("tools"));
                let problem = Problem::new("config_value", message).at(location);
                table.problems().note(problem);
            }
        }
    }
    tools
}

fn arguments(table: &Table<'_>) -> SentArguments {
    let listed = table.texts("arguments").unwrap_or_default();
    if listed.iter().any(|one| one.text == ALL) {
        return SentArguments::All;
    }
    for ListedText { text, location } in &listed {
        if !is_pointer(text) {
            let message = format!("`{}`: `{text}` is no JSON pointer", table.full("arguments"));
            let problem = Problem::new("config_value", message).at(location);
            let problem = problem.hint("for example \"/path\", or \"*\" for all arguments");
            table.problems().note(problem);
        }
    }
    if listed.len() > APPROVER_ARGUMENTS_MAX {
        let message = format!(
            "`{}` has more than {APPROVER_ARGUMENTS_MAX} pointers",
            table.full("arguments")
        );
        table.note_value("arguments", message, "name the members that have them");
    }
    SentArguments::Listed(listed.iter().map(|one| one.text.to_owned()).collect())
}

/// Whether a text is a JSON pointer (RFC 6901) to a part of an object.
fn is_pointer(text: &str) -> bool {
    let mut after_tilde = text.split('~').skip(1);
    text.starts_with('/') && after_tilde.all(|rest| rest.starts_with(['0', '1']))
}

fn window(table: &Table<'_>) -> Duration {
    let window = table.duration("window").unwrap_or(WINDOW);
    if window < APPROVER_WINDOW_MIN {
        let message = format!("`{}` is less than 10 seconds", table.full("window"));
        table.note_value("window", message, "one request alone may take as long");
    }
    if window > APPROVER_WINDOW_MAX {
        let message = format!("`{}` is more than a day", table.full("window"));
        table.note_value("window", message, "a proposal ends with its `proposal_ttl`");
    }
    window
}

/// Checks that each approver decides as a participant that there is.
pub(crate) fn check(
    tree: &Node,
    approvers: &[TopicApprover],
    participants: &[ParticipantConfig],
    problems: &Problems,
) {
    let names = participants.iter().map(|one| one.participant.id.as_str());
    for TopicApprover { topic, approver } in approvers {
        let wanted = approver.acts_as.as_str();
        if names.clone().any(|known| known == wanted) {
            continue;
        }
        let message = format!("there is no participant `{wanted}`, as which the approver decides");
        let place = tree.place(&["topics", topic.as_str(), KEY, "as"]);
        let problem = Problem::new("config_unknown_participant", message).at(place);
        let otherwise = format!("add [participants.{wanted}]");
        problems.note(problem.suggest(wanted, names.clone(), otherwise));
    }
}
