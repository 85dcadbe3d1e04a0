//! Pages for browsers: their frame, headers, forms, cookies and sessions.
//!
//! These pages are plain HTML without scripts. A template is written with [`maud`], so a text of others
//! cannot become markup; [`HtmlPage`] makes its hidden characters visible.
//!
//! - [`HtmlPage`]: a page with its headers. [`parts`]: what several pages are made of. [`Hostile`]: a
//!   text of others, in a page that is put together from parts.
//! - [`Browser`]: what a browser says about a request. [`Cookies`]: sealed cookies. [`BrowserSessions`]:
//!   who has signed in there. [`Forms`]: sealed states that a form brings back.
//!
//! Time and randomness are arguments.

mod browser;
mod cookies;
mod forms;
mod hostile;
mod page;
pub mod parts;
mod session;

pub use browser::Browser;
pub use cookies::{Cookies, Validity};
pub use forms::{FORM_MS, Forms};
pub use hostile::Hostile;
pub use page::{HtmlPage, PALETTE, private, see_other, set_cookies, simple};
pub use session::{BrowserSession, BrowserSessions, SESSION_MS, SignedInPerson, new_browser};
