//! Pages for browsers: their frame, headers, forms, cookies and sessions.
//!
//! Pages are plain HTML without scripts. A template is written with [`maud`], so a text of others
//! cannot become markup; [`HtmlPage`] makes its hidden characters visible.
//!
//! - [`HtmlPage`]: a page with its headers. [`parts`]: what several pages are made of.
//! - [`Browser`]: what a browser says about a request. [`Cookies`]: sealed cookies. [`BrowserSessions`]:
//!   who has signed in there. [`Forms`]: sealed states that a form brings back.
//!
//! Time and randomness are arguments.

mod browser;
mod cookies;
mod forms;
mod page;
pub mod parts;
mod session;

pub use browser::Browser;
pub use cookies::{Cookies, Validity};
pub use forms::{FORM_MS, Forms};
pub use page::{HtmlPage, private, see_other, simple};
pub use session::{BrowserSession, BrowserSessions, SESSION_MS, SignedInPerson, new_browser};
