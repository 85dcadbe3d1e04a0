//! State of the console, a request of a person to it, and the addresses of its pages.

use std::sync::Arc;

use api::ConsoleCodes;
use axum::Router;
use maud::Markup;
use platform::Limiter;

use crate::api_client::ApiClient;
use crate::asked::{Asked, Form};
use crate::home::ConsoleHome;
use crate::places::Places;
use crate::samples::Samples;
use crate::session::{Session, Sessions};

/// Time between looks of a stream at its page, in milliseconds; four times as long where a look costs
/// more.
pub const FEED_LOOK_MS: u64 = 500;

/// The console of one gateway.
pub(crate) struct Console {
    pub(crate) home: Arc<dyn ConsoleHome>,
    /// The API's own handlers.
    pub(crate) api: Router,
    pub(crate) codes: Arc<ConsoleCodes>,
    pub(crate) sessions: Sessions,
    pub(crate) tries: Limiter,
    pub(crate) feeds: Places,
    pub(crate) samples: Samples,
}

/// A request of a browser in which a person has signed in.
pub(crate) struct Visit {
    pub(crate) console: Arc<Console>,
    pub(crate) asked: Asked,
    pub(crate) session: Arc<Session>,
    pub(crate) api: ApiClient,
    /// The console's path, with the prefix of the public URL.
    pub(crate) base: String,
    pub(crate) now_ms: u64,
}

/// A page, by its address below the console's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum At {
    /// `all` is the proposal of which every value is shown.
    Inbox {
        all: String,
    },
    Proposal {
        id: String,
        all: bool,
        edit: bool,
    },
    Overview,
    People {
        topic: String,
    },
    Servers,
    Server {
        name: String,
    },
    Tools {
        query: String,
    },
    Tool {
        name: String,
    },
    Rules {
        topic: String,
    },
    Unknown,
}

impl At {
    /// The inbox, without a proposal of which every value is shown.
    pub(crate) fn inbox() -> Self {
        Self::Inbox { all: String::new() }
    }

    /// Time between looks of a stream at the page, in milliseconds; `None` if it does not change by
    /// itself, or costs too much for that.
    pub(crate) fn look_ms(&self) -> Option<u64> {
        match self {
            Self::Inbox { .. } | Self::Proposal { .. } => Some(FEED_LOOK_MS),
            Self::People { .. } | Self::Overview | Self::Servers | Self::Server { .. } => {
                Some(4 * FEED_LOOK_MS)
            }
            Self::Tools { .. } | Self::Tool { .. } | Self::Rules { .. } | Self::Unknown => None,
        }
    }

    /// Reads a path below the console's, and a query.
    pub(crate) fn read(path: &str, query: &Form) -> Self {
        let decoded = |text: &str| {
            percent_encoding::percent_decode_str(text)
                .decode_utf8_lossy()
                .into_owned()
        };
        let named = |name: &str| query.get(name).to_owned();
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match segments.as_slice() {
            [] | ["login"] => Self::Inbox { all: named("all") },
            ["p", id] => Self::Proposal {
                id: decoded(id),
                all: query.some("all").is_some(),
                edit: query.some("edit").is_some(),
            },
            ["overview"] => Self::Overview,
            ["topic"] => Self::People {
                topic: named("topic"),
            },
            ["servers"] => Self::Servers,
            ["servers", name] => Self::Server {
                name: decoded(name),
            },
            ["tools"] => Self::Tools { query: named("q") },
            ["tools", name] => Self::Tool {
                name: decoded(name),
            },
            ["rules"] => Self::Rules {
                topic: named("topic"),
            },
            _ => Self::Unknown,
        }
    }
}

impl Visit {
    /// Whether the session's token is still its participant's.
    pub(crate) fn is_signed_in(&self) -> bool {
        let present = self
            .console
            .home
            .participant(self.session.bearer.as_deref());
        present.as_deref() == Some(&*self.session.participant)
    }

    /// The page of the request.
    pub(crate) fn at(&self) -> At {
        At::read(&self.asked.below, &self.asked.query())
    }

    /// The field that every form has.
    pub(crate) fn token(&self) -> Markup {
        html::parts::hidden("token", &self.session.form_token)
    }
}
