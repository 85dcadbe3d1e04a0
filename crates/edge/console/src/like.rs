//! The like of a proposed call, approved for some hours: a rule that the gateway makes of the call, read
//! as a sentence before it is put in force.

use std::sync::Arc;

use axum::http::StatusCode;
use data_encoding::HEXLOWER;
use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use review::{LeafKind, ProposalDetails, ToolEffects, leaves};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::api_client::{Problem, encoded};
use crate::arguments::text;
use crate::card::{Showing, address, card, may_have_rule};
use crate::nearest::ApprovedCalls;
use crate::outcome::Outcome;
use crate::page::{Content, Tab};
use crate::proof;
use crate::proposal;
use crate::rules::said_of_rule;
use crate::state::{At, Visit, decoded};
use crate::times;

/// The durations that the page offers, in seconds: the API takes 10 minutes to 8 hours.
const DURATIONS: [(&str, &str); 4] = [
    ("900", "15 minutes"),
    ("3600", "1 hour"),
    ("14400", "4 hours"),
    ("28800", "8 hours"),
];
/// The duration that is chosen at first.
const DURATION: &str = "3600";
/// The number of calls that stands there at first.
const USES: &str = "5";
/// The most calls of such a rule.
const USES_MAX: u32 = 20;
/// The longest conditions that the page takes, in characters.
const CONDITIONS_CHARS_MAX: usize = 4_000;
/// Arguments for which the page writes an example.
const EXAMPLES_MAX: usize = 12;
/// The longest value that an example repeats, in characters.
const EXAMPLE_CHARS_MAX: usize = 80;
/// Conditions with their meaning.
const CONDITIONS: [(&str, &str); 9] = [
    (r#"{ one_of = ["bot", "report"] }"#, "one of these values"),
    ("{ integer = [1, 100] }", "a whole number from 1 to 100"),
    ("{ decimal = [0.5, 99.95] }", "a number with a fraction"),
    (r#"{ under = "/srv/docs" }"#, "a path below a directory"),
    (
        r#"{ url = { origin = "https://api.example.com", under = "/v1" } }"#,
        "a URL of a host, below a path",
    ),
    (
        r#"{ chars = "A-Z0-9", length = [6, 8] }"#,
        "so many of these characters",
    ),
    (
        r#"{ shape = ["A-9"], length = [3, 12] }"#,
        "capitals, a dash, digits",
    ),
    (
        r#"{ count = [0, 3], each = { one_of = ["bot"] } }"#,
        "a list of so many elements",
    ),
    ("{ absent = true }", "the argument is not there"),
];

/// The wish of a person, as the form has it.
struct Wish {
    seconds: String,
    uses: String,
    /// Conditions in place of values.
    when: String,
    /// The tool's name, typed by hand.
    typed: String,
}

impl Wish {
    /// The wish that stands there at first: the values of the call as remarks, to be made conditions.
    fn about(proposal: &ProposalDetails) -> Self {
        Self {
            seconds: DURATION.to_owned(),
            uses: USES.to_owned(),
            when: examples(proposal),
            typed: String::new(),
        }
    }

    fn of(visit: &Visit) -> Self {
        let form = visit.asked.form();
        let field = |name: &str| form.get(name).to_owned();
        Self {
            seconds: field("seconds"),
            uses: field("uses"),
            when: field("when"),
            typed: field("typed"),
        }
    }

    /// The wish as the API takes it.
    ///
    /// # Errors
    /// It has no such duration or number.
    fn body(&self) -> Result<String, Problem> {
        let wrong = |why: &str| Problem::new(StatusCode::BAD_REQUEST, why);
        let known = DURATIONS.iter().any(|(value, _)| *value == self.seconds);
        let seconds = self.seconds.parse::<u64>().ok().filter(|_| known);
        let seconds = seconds.ok_or_else(|| wrong("Choose for how long."))?;
        let uses = self.uses.trim().parse::<u32>().ok();
        let uses = uses
            .filter(|uses| (1..=USES_MAX).contains(uses))
            .ok_or_else(|| wrong(&format!("Write for how many calls: 1 to {USES_MAX}.")))?;
        let said = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        let (when, tool) = (said(&self.when), said(&self.typed));
        Ok(json!({ "for_seconds": seconds, "uses": uses, "when": when, "tool": tool }).to_string())
    }
}

/// A rule that is not in force.
#[derive(Deserialize)]
struct DraftedRule {
    sentence: String,
    text: String,
}

/// Lines with the arguments of a call as conditions that fit them, each a remark as long as nothing is
/// changed. Values that are long, or not plain, have none.
fn examples(proposal: &ProposalDetails) -> String {
    let Some(arguments) = proposal.arguments() else {
        return String::new();
    };
    let is_plain = |text: &str| {
        text.len() <= EXAMPLE_CHARS_MAX
            && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
            && !text.contains(['"', '\\'])
    };
    let mut lines = Vec::new();
    for leaf in leaves(arguments.get()).take(EXAMPLES_MAX) {
        let place = leaf.place.to_string();
        // A condition is about a list as a whole.
        let is_element = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let is_of_list = place.split('/').skip(1).any(is_element);
        if is_of_list || !is_plain(&place) || !is_plain(&leaf.text) {
            continue;
        }
        let value = &leaf.text;
        let test = match leaf.kind {
            LeafKind::Text => format!("one_of = [\"{value}\"]"),
            LeafKind::Number if value.parse::<i64>().is_ok() => {
                format!("integer = [{value}, {value}]")
            }
            LeafKind::Number => format!("decimal = [{value}, {value}]"),
            LeafKind::Flag => format!("one_of = [{value}]"),
            LeafKind::Null | LeafKind::Whole => continue,
        };
        lines.push(format!("# \"{place}\" = {{ {test} }}"));
    }
    lines.join("\n")
}

/// `GET /console/p/ID/like`.
pub(crate) async fn content(visit: &Arc<Visit>, id: &str) -> Result<Content, Problem> {
    let found = proposal::found(visit, id).await?;
    let wish = Wish::about(&found);
    page(visit, found, wish).await
}

/// The page with the call in full, and the form, written apart from the tasks of the gateway.
async fn page(visit: &Arc<Visit>, found: ProposalDetails, wish: Wish) -> Result<Content, Problem> {
    let approved = ApprovedCalls::if_needed(visit, found.is_pending()).await?;
    let writing = Arc::clone(visit);
    let write = move || Ok(page_of(&writing, &found, &wish, &approved));
    let content = visit.console.write(write).await?;
    proposal::note_shown(visit).await;
    Ok(content)
}

/// The page with the call in full, and the form.
fn page_of(
    visit: &Visit,
    proposal: &ProposalDetails,
    wish: &Wish,
    approved: &ApprovedCalls,
) -> Content {
    let showing = Showing {
        all: true,
        alone: true,
        acts: false,
    };
    content_of(
        proposal,
        html! {
            h1 { "Approve calls like this one" }
            div class="cards" {
                @if may_have_rule(visit, proposal) { (wish_form(visit, proposal, wish)) }
                @else { p class="said wrong" data-testid="no-rule" { "No rule can be made of it: only of another participant's single call that waits." } }
                (card(visit, proposal, showing, approved))
            }
        },
    )
}

fn content_of(proposal: &ProposalDetails, body: Markup) -> Content {
    Content {
        tab: Tab::Inbox,
        title: "Approve calls like this one".to_owned(),
        body,
        command: format!("portmoot rules like {}", proposal.id),
    }
}

/// The form for duration, number, and conditions.
fn wish_form(visit: &Visit, proposal: &ProposalDetails, wish: &Wish) -> Markup {
    let is_typed = matches!(
        ToolEffects::of(proposal),
        ToolEffects::Destructive | ToolEffects::Unsaid
    );
    let fields = html! {
        p { "The gateway makes a rule of this call: the same participant may make the same call of the same tool, for some time and some calls, on your authority. You read it before it is in force." }
        label for="seconds" { "For" }
        select id="seconds" name="seconds" data-testid="seconds" {
            @for (value, words) in DURATIONS { option value=(value) selected[wish.seconds == value] { (words) } }
        }
        label for="uses" { "Calls, this one included: 1 to " (USES_MAX) }
        input type="number" id="uses" name="uses" min="1" max=(USES_MAX) required value=(wish.uses) data-testid="uses";
        label for="when" { "Allow other values (optional)" }
        p id="when-help" class="soft" { "Arguments stay as they are, but for those with a condition: take the " code { "#" } " from a line, and change what stands behind it." }
        textarea id="when" name="when" rows=(wish.when.lines().count().clamp(4, 14)) maxlength=(CONDITIONS_CHARS_MAX) spellcheck="false" autocapitalize="off"
            aria-describedby="when-help" data-testid="when" { (wish.when) }
        details {
            summary { "Conditions that there are" }
            dl { @for (condition, meaning) in CONDITIONS { dt { code { (condition) } } dd { (meaning) } } }
        }
        @if is_typed {
            label for="typed" class="warning" { "It may destroy something. Type " (text(proposal.what())) }
            input type="text" id="typed" name="typed" autocomplete="off" autocapitalize="off" spellcheck="false" value=(wish.typed) data-testid="typed";
        }
        div class="row" {
            button type="submit" class="main" data-testid="draft" { "Show the rule" }
            a class="button" href=(address(visit, &proposal.id)) { "Only this call" }
        }
    };
    html! { section class="card" { (form(visit, proposal, "like", &fields)) } }
}

fn form(visit: &Visit, proposal: &ProposalDetails, act: &str, content: &Markup) -> Markup {
    let action = format!("{}/{act}", address(visit, &proposal.id));
    html! {
        form method="post" action=(action) {
            (visit.token())
            (hidden("digest", &proposal.digest))
            (content)
        }
    }
}

/// `POST /console/p/ID/like` and `/rule`.
pub(crate) async fn act(visit: &Arc<Visit>, id: &str, act: &str) -> Outcome {
    let id = decoded(id);
    let found = match proposal::found(visit, &id).await {
        Ok(found) => found,
        Err(refused) => return Outcome::fail(At::inbox(), refused),
    };
    let wrong = match done(visit, &found, act).await {
        Ok(Some(outcome)) => return outcome,
        Ok(None) => None,
        Err(wrong) => Some(wrong),
    };
    let wish = Wish::of(visit);
    match page(visit, found, wish).await {
        Ok(content) => Outcome::Page { content, wrong },
        Err(refused) => Outcome::fail(At::inbox(), refused),
    }
}

/// The outcome of an act; `None` if the person wants to change what was written.
async fn done(
    visit: &Visit,
    found: &ProposalDetails,
    act: &str,
) -> Result<Option<Outcome>, Problem> {
    if visit.asked.form().get("again") == "1" {
        return Ok(None);
    }
    check_waits(visit, found)?;
    let outcome = if act == "like" {
        draft(visit, found).await?
    } else {
        put_in_force(visit, found).await?
    };
    Ok(Some(outcome))
}

/// Checks that the call waits, and that the session was shown it as it is now, with every value.
fn check_waits(visit: &Visit, found: &ProposalDetails) -> Result<(), Problem> {
    let digest = visit.asked.form().get("digest");
    let refuse = |why: &str| Err(Problem::new(StatusCode::CONFLICT, why));
    if !found.is_pending() {
        let why = format!("It is {} meanwhile: no rule was made of it.", found.state);
        return refuse(&why);
    }
    if digest != found.digest {
        return refuse("The proposal has changed since you looked at it. Look again.");
    }
    if !visit.session.was_shown(&found.id, digest) {
        return refuse("Not every value was shown in full. Look again.");
    }
    Ok(())
}

/// A mark of the text of a rule, as the session was shown it.
fn mark_of(rule: &str) -> String {
    let hash = Sha256::digest(rule.as_bytes());
    format!("rule {}", HEXLOWER.encode(&hash))
}

/// The rule that the gateway makes of the call, in words, with the form that puts it in force.
async fn draft(visit: &Visit, found: &ProposalDetails) -> Result<Outcome, Problem> {
    let wish = Wish::of(visit);
    let path = format!("/api/v1/proposals/{}/like", encoded(&found.id));
    let drafted: DraftedRule = visit.api.post(&path, wish.body()?).await?;
    let rule = drafted.text.trim().to_owned() + "\n";
    visit.session.note_compared(mark_of(&rule));
    let fields = html! {
        (hidden("rule", &rule))
        (hidden("typed", &wish.typed))
        (hidden("seconds", &wish.seconds))
        (hidden("uses", &wish.uses))
        (hidden("when", &wish.when))
        (hidden("confirmed", ""))
        div class="row" {
            button type="submit" class="main" data-arm data-testid="put-in-force" { "Put it in force" }
            button type="submit" name="again" value="1" formaction={ (address(visit, &found.id)) "/like" } data-testid="again" { "Change it" }
        }
    };
    Ok(Outcome::page(content_of(
        found,
        html! {
            section class="card" data-testid="drafted" {
                h1 { "Put this rule in force?" }
                p class="sentence" { (Hostile(&drafted.sentence)) }
                p { "This call is the first one that it approves. It ends by itself, and a rejection that it covers ends it before." }
                details { summary { "Its text" } pre tabindex="0" { @for line in drafted.text.lines() { (Hostile(line)) "\n" } } }
                (form(visit, found, "rule", &fields))
            }
        },
    )))
}

/// A rule that is in force.
#[derive(Deserialize)]
struct AddedRule {
    rule: String,
    sentence: String,
    expires: Option<String>,
}

impl AddedRule {
    /// The confirmation: what it says, its end, and where it can be ended.
    fn said(&self, visit: &Visit, topic: &str) -> Markup {
        let rules = At::Rules {
            topic: topic.to_owned(),
        };
        let more = html! {
            p {
                (text(&self.rule))
                @if let Some(end) = &self.expires { " ends by itself: " (times::day(end)) }
                " · " a href={ (visit.base) (rules.address()) } { "See it, or end it, among the rules" }
            }
        };
        said_of_rule("The rule is in force:", &self.sentence, &more)
    }
}

/// Puts a rule in force that the session was shown.
async fn put_in_force(visit: &Visit, found: &ProposalDetails) -> Result<Outcome, Problem> {
    let form = visit.asked.form();
    // Browsers send the ends of lines in their own way.
    let rule = form.get("rule").replace("\r\n", "\n") + "\n";
    if !visit.session.was_compared(&mark_of(&rule)) {
        let why = "You were not shown this rule. Look at it first.";
        return Err(Problem::new(StatusCode::CONFLICT, why));
    }
    if let Some(asked) = proof::wanted(visit, Tab::Inbox).await {
        return Ok(asked);
    }
    let path = format!("/api/v1/topics/{}/rules", encoded(&found.topic));
    let body = json!({ "rule": rule, "tool": form.some("typed") }).to_string();
    let added: AddedRule = visit.api.post(&path, body).await?;
    Ok(Outcome::Show {
        at: At::Proposal {
            id: found.id.clone(),
            all: false,
            edit: false,
        },
        said: added.said(visit, &found.topic),
    })
}
