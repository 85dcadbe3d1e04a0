//! Links to the places at which people sign in: on the sign-in page, and where a further proof is asked
//! for.

use maud::{Markup, html};

use crate::api_client::encoded;
use crate::asked::Asked;
use crate::home::ConsoleSettings;
use crate::state::Visit;

/// The page at which a further proof of who a person is ends.
pub(crate) const PROVED: &str = "/proved";

/// Buttons for the places at which people sign in.
pub(crate) fn buttons(settings: &ConsoleSettings, asked: &Asked, next: &str) -> Markup {
    // A person that was to sign in anew still is.
    let is_anew = asked.below == "/sign-in" && asked.query().some("anew").is_some();
    html! {
        @if !settings.places.is_empty() {
            div class="row" data-testid="places" {
                @for place in &settings.places {
                    a class="button" href=(address(settings, asked, &Way { place: &place.name, next, is_anew })) {
                        "Sign in at " (place.label)
                    }
                }
            }
            p class="soft" { "Or:" }
        }
    }
}

/// The link with which a person proves once more who it is, at the place at which it has signed in.
pub(crate) fn again(visit: &Visit, place: &str) -> Markup {
    let settings = visit.console.home.settings();
    let is_known = settings.places.iter().any(|known| known.name == place);
    let way = Way {
        place,
        next: PROVED,
        is_anew: true,
    };
    let to = address(&settings, &visit.asked, &way);
    html! {
        @if is_known {
            p {
                a class="button" href=(to) target="_blank" rel="noopener" data-testid="again" {
                    "Sign in again at " (settings.label(place))
                }
                " This opens another tab. Then press “Go on” here."
            }
        }
    }
}

/// A way into the console by a place.
struct Way<'w> {
    place: &'w str,
    /// The page of the console that follows.
    next: &'w str,
    /// Whether the place is to ask anew who the person is.
    is_anew: bool,
}

/// The address at which a sign-in begins: at the gateway's public name, to which the place leads back.
fn address(settings: &ConsoleSettings, asked: &Asked, way: &Way<'_>) -> String {
    let anew = if way.is_anew { "&anew=1" } else { "" };
    let (place, next) = (way.place, encoded(way.next));
    let path = format!("/console/sign-in?with={place}&next={next}{anew}");
    match &settings.public_url {
        Some(url) if url.origin() != asked.origin => url.at(&path),
        Some(_) | None => format!("{}{path}", settings.prefix()),
    }
}
