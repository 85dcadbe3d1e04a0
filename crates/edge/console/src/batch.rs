//! Several proposals that are decided together: calls of one tool, asked for by one participant. Each
//! is decided by itself, in the way in which a single one is.

use axum::http::StatusCode;
use data_encoding::HEXLOWER;
use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use review::ProposalDetails;
use sha2::{Digest as _, Sha256};

use crate::api_client::Problem;
use crate::arguments::{Room, text};
use crate::call::{ProposedCall, calls};
use crate::card::{CHOSEN, address, rejection};
use crate::confirm::{self, Question};
use crate::decide::{Approval, approved, rejected};
use crate::nearest::ApprovedCalls;
use crate::outcome::Outcome;
use crate::page::{Content, Tab};
use crate::proposal;
use crate::state::{At, Visit};

/// The most proposals that are decided together.
pub const BATCH_MAX: usize = 16;

/// Proposals of one participant for one tool.
struct Group<'p> {
    form: String,
    members: Vec<&'p ProposalDetails>,
}

/// Proposals of the inbox that can be decided together: groups of at least two.
pub(crate) struct Groups<'p>(Vec<Group<'p>>);

impl<'p> Groups<'p> {
    pub(crate) fn of(cards: &'p [ProposalDetails]) -> Self {
        let mut all: Vec<Group<'p>> = Vec::new();
        for card in cards {
            let Some(form) = form_of(card) else { continue };
            match all.iter_mut().find(|group| group.form == form) {
                Some(group) => group.members.push(card),
                None => all.push(Group {
                    form,
                    members: vec![card],
                }),
            }
        }
        all.retain(|group| group.members.len() > 1);
        Self(all)
    }

    /// The form for which a proposal can be chosen, if there is another one of its like.
    pub(crate) fn form_of(&self, proposal: &ProposalDetails) -> Option<&str> {
        let form = form_of(proposal)?;
        let group = self.0.iter().find(|group| group.form == form)?;
        Some(&group.form)
    }
}

/// The id of the form in which a proposal is decided with its like; a plan has no like.
fn form_of(proposal: &ProposalDetails) -> Option<String> {
    if !proposal.steps.is_empty() {
        return None;
    }
    let to = proposal.to.join("\0");
    let context = proposal.context.as_deref().unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [
        &*proposal.topic,
        &*proposal.by,
        &*to,
        &*proposal.method,
        context,
    ] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    let short = hash.get(..8).unwrap_or_default();
    Some(format!("b-{}", HEXLOWER.encode(short)))
}

/// The forms that decide about what is chosen at the cards, one for each group.
pub(crate) fn forms(visit: &Visit, groups: &Groups<'_>) -> Markup {
    html! { @for group in &groups.0 { (form(visit, group)) } }
}

fn form(visit: &Visit, group: &Group<'_>) -> Markup {
    let mut room = Room::new(false);
    let first = group.members.first();
    let first = first.and_then(|one| {
        calls(one, &mut room, &ApprovedCalls::default())
            .into_iter()
            .next()
    });
    let by = group.members.first().map_or("", |one| &one.by);
    let title = format!("t-{}", group.form);
    html! {
        section class="card" data-testid="batch" aria-labelledby=(title) {
            h2 id=(title) { "Together: " (group.members.len()) " calls that " span class="who" { (Hostile(by)) } " asks for, of " @if let Some(call) = &first { (call.target()) } }
            p class="soft" { "Choose them at their cards, " (BATCH_MAX) " at most. Each is decided by itself, as it was shown." }
            // The first button is the one that Enter in the line for the agent presses.
            form method="post" id=(group.form) action={ (visit.base) "/batch/reject" } class="actions" {
                (visit.token())
                (hidden("confirmed", ""))
                div class="reject" { (rejection("Reject the chosen")) }
                button type="submit" class="main" formaction={ (visit.base) "/batch/approve" } data-arm data-testid="approve-chosen" { "Approve the chosen" }
            }
        }
    }
}

/// A proposal that the person has chosen, as it is now.
struct Chosen<'f> {
    id: &'f str,
    /// The digest of what was chosen.
    digest: &'f str,
    found: Result<ProposalDetails, Problem>,
}

/// `POST /console/batch/ACT`.
pub(crate) async fn decide(visit: &Visit, act: &str) -> Outcome {
    let is_approval = match act {
        "approve" => true,
        "reject" => false,
        _ => return Outcome::no_page(At::inbox()),
    };
    let chosen = match chosen(visit).await {
        Ok(chosen) => chosen,
        Err(refused) => return Outcome::fail(At::inbox(), refused),
    };
    if is_approval && !confirm::is_confirmed(visit) {
        return question(visit, &chosen);
    }
    let mut ends = Vec::new();
    for one in &chosen {
        ends.push(decided(visit, one, is_approval).await);
    }
    Outcome::page(report(visit, &chosen, &ends))
}

/// The proposals that the form names, if they may be decided together.
async fn chosen(visit: &Visit) -> Result<Vec<Chosen<'_>>, Problem> {
    let refuse = |why: &str| Err(Problem::new(StatusCode::BAD_REQUEST, why));
    let pairs = visit.asked.form().pairs().into_iter();
    let named: Vec<(&str, &str)> = pairs
        .filter_map(|(name, digest)| Some((name.strip_prefix(CHOSEN)?, digest)))
        .collect();
    if named.is_empty() {
        return refuse("Choose what to decide about, at its card.");
    }
    if named.len() > BATCH_MAX {
        let why = format!("At most {BATCH_MAX} are decided together. Choose fewer.");
        return refuse(&why);
    }
    let mut all = Vec::new();
    for (id, digest) in named {
        let found = proposal::found(visit, id).await;
        all.push(Chosen { id, digest, found });
    }
    let mut forms = all.iter().filter_map(|one| one.found.as_ref().ok());
    let first = forms.next().map(form_of);
    let is_of_first = |one: &ProposalDetails| {
        let form = form_of(one);
        form.is_some() && Some(form) == first
    };
    if first == Some(None) || !forms.all(is_of_first) {
        return refuse("These are of different tools or proposers. Decide about them one by one.");
    }
    Ok(all)
}

/// Decides about one of them, as a form of its own would.
async fn decided(
    visit: &Visit,
    chosen: &Chosen<'_>,
    is_approval: bool,
) -> Result<ProposalDetails, Problem> {
    let found = chosen.found.as_ref().map_err(Problem::clone)?;
    if is_approval {
        let approval = Approval {
            digest: chosen.digest,
            arguments: None,
            typed: "",
            note: None,
        };
        return approved(visit, found, &approval).await;
    }
    if found.digest != chosen.digest {
        let why = "The proposal has changed since you looked at it. Look again.";
        return Err(Problem::new(StatusCode::CONFLICT, why));
    }
    rejected(visit, chosen.id).await
}

/// The question before an approval without a script: all that would run.
fn question(visit: &Visit, chosen: &[Chosen<'_>]) -> Outcome {
    let mut room = Room::new(false);
    let found = chosen.iter().filter_map(|one| one.found.as_ref().ok());
    let asked: Vec<(&str, Vec<ProposedCall>)> = found
        .map(|one| (&*one.id, calls(one, &mut room, &ApprovedCalls::default())))
        .collect();
    let about = html! {
        p { "Each runs once, on your authority." }
        ol class="steps" {
            @for (id, calls) in &asked {
                li data-testid="asked" {
                    @for call in calls { h2 { (call.target()) } (call.marks()) (call.asked(visit)) }
                    p { a href=(address(visit, id)) { "Its page" } }
                }
            }
        }
    };
    confirm::ask(
        visit,
        Question {
            tab: Tab::Inbox,
            title: html! { "Approve these " (asked.len()) " calls?" },
            about,
            yes: "Yes, approve them",
            back: At::inbox().address(),
        },
    )
}

/// The page that says what happened to each.
fn report(
    visit: &Visit,
    chosen: &[Chosen<'_>],
    ends: &[Result<ProposalDetails, Problem>],
) -> Content {
    let failed = ends.iter().filter(|end| end.is_err()).count();
    let body = html! {
        h1 { "Decided together" }
        p data-testid="summary" role="status" { (ends.len() - failed) " of " (ends.len()) " were decided." }
        ol class="steps" {
            @for (one, end) in chosen.iter().zip(ends) { li data-testid="decided" { (line(visit, one, end)) } }
        }
        p { a class="button" href=(visit.base) { "Back to the inbox" } }
    };
    Content {
        tab: Tab::Inbox,
        title: "Decided together".to_owned(),
        body,
        command: "portmoot proposals ls --all".to_owned(),
    }
}

fn line(visit: &Visit, chosen: &Chosen<'_>, end: &Result<ProposalDetails, Problem>) -> Markup {
    let what = chosen.found.as_ref().map_or("", ProposalDetails::what);
    html! {
        h2 { a href=(address(visit, chosen.id)) { @if what.is_empty() { (Hostile(chosen.id)) } @else { (text(what)) } } }
        @match end {
            Ok(decided) => { p { strong { (Hostile(&decided.state)) } } }
            Err(why) => { p class="said wrong" { (Hostile(&why.message)) @if let Some(hint) = &why.hint { " " (Hostile(hint)) } } }
        }
    }
}
