//! Parts that several pages have.

use maud::{Markup, html};

/// The sentence that says what was wrong with what the person sent.
#[must_use]
pub fn alert(wrong: Option<&str>) -> Markup {
    html! {
        @if let Some(why) = wrong {
            p class="warn" role="alert" { (why) }
        }
    }
}

/// A field of a form that the person does not see.
#[must_use]
pub fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// The field for a one-time code, with the sentence that says where the person gets one.
#[must_use]
pub fn code_field(label: &str, hint: &Markup) -> Markup {
    html! {
        label for="code" { (label) }
        input type="text" id="code" name="code" required autofocus autocomplete="one-time-code"
            autocapitalize="off" spellcheck="false" aria-describedby="hint";
        p class="soft" id="hint" { (hint) }
    }
}

/// The row with the button that sends a form.
#[must_use]
pub fn send(label: &str) -> Markup {
    html! {
        div class="row" { button class="main" type="submit" { (label) } }
    }
}

/// The row with the buttons of a question: `decision` is `allow` or `deny`. The second one sends
/// the form even if its fields are empty.
#[must_use]
pub fn decide(allow: &str, deny: &str) -> Markup {
    html! {
        div class="row" {
            button class="main" type="submit" name="decision" value="allow" { (allow) }
            button type="submit" name="decision" value="deny" formnovalidate { (deny) }
        }
    }
}

/// The sentence with which a person says that it is another one: the button sends `switch`.
#[must_use]
pub fn switch(participant: &str) -> Markup {
    html! {
        p class="soft" {
            "Not " (participant) "? "
            button class="link" type="submit" name="switch" value="1" {
                "Sign in as another participant"
            }
        }
    }
}

/// Names on one line, or a text if there are none.
#[must_use]
pub fn names(names: &[String], none: &str) -> Markup {
    html! {
        @if names.is_empty() { (none) }
        @for (at, name) in names.iter().enumerate() {
            @if at > 0 { ", " }
            code { (name) }
        }
    }
}

/// A term and what it means here, in a list of such pairs.
#[must_use]
pub fn pair(term: &str, meaning: &Markup) -> Markup {
    html! {
        dt { (term) }
        dd { (meaning) }
    }
}
