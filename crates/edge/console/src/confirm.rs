//! The question before an act that a browser without a script has asked for by one press.

use html::parts::hidden;
use maud::{Markup, html};

use crate::outcome::Outcome;
use crate::page::{Content, Tab};
use crate::proof;
use crate::state::Visit;

/// A question.
pub(crate) struct Question<'q> {
    pub(crate) tab: Tab,
    /// The question itself.
    pub(crate) title: Markup,
    /// The thing that the act changes.
    pub(crate) about: Markup,
    /// The words of the button that says yes.
    pub(crate) yes: &'q str,
    /// The path below the console's to which a no leads.
    pub(crate) back: String,
}

/// Whether the person has confirmed the act: with a second press, or on the page of the question.
pub(crate) fn is_confirmed(visit: &Visit) -> bool {
    visit.asked.form().get("confirmed") == "1"
}

/// The page that asks, with the form that was sent.
pub(crate) fn ask(visit: &Visit, question: Question<'_>) -> Outcome {
    let fields = visit.asked.form().pairs();
    let sent = fields
        .iter()
        .filter(|(name, _)| !matches!(*name, "token" | "confirmed" | proof::FIELD));
    let body = html! {
        section class="card" data-testid="confirmation" {
            h1 { (question.title) }
            (question.about)
            form method="post" action={ (visit.base) (visit.asked.below) } {
                (visit.token())
                (hidden("confirmed", "1"))
                @for (name, value) in sent { (hidden(name, value)) }
                div class="row" {
                    button type="submit" class="main" data-testid="confirm" { (question.yes) }
                    a class="button" href={ (visit.base) (question.back) } { "Not now" }
                }
            }
        }
    };
    Outcome::page(Content {
        tab: question.tab,
        title: "Confirm".to_owned(),
        body,
        command: "portmoot --help".to_owned(),
    })
}
