//! State of the console, a request of a person to it, and the addresses of its pages.

use std::sync::Arc;

use api::ConsoleCodes;
use axum::Router;
use axum::http::StatusCode;
use maud::Markup;
use platform::Limiter;
use tokio::sync::Semaphore;

use crate::api_client::{ApiClient, Problem, encoded};
use crate::asked::{Asked, Form};
use crate::filters::{Filters, OF_AUDIT, OF_CALLS};
use crate::home::ConsoleHome;
use crate::passes::Passes;
use crate::places::Places;
use crate::samples::Samples;
use crate::session::{Session, Sessions};
use crate::used::UsedSignIns;

/// Time between looks of a stream at its page, in milliseconds; four times as long where a look costs
/// more.
pub const FEED_LOOK_MS: u64 = 500;
/// Pages with proposals that are written at the same time; others wait.
pub const PAGES_WRITTEN_MAX: usize = 2;

/// The console of one gateway.
pub(crate) struct Console {
    pub(crate) home: Arc<dyn ConsoleHome>,
    /// The API's own handlers.
    pub(crate) api: Router,
    pub(crate) codes: Arc<ConsoleCodes>,
    pub(crate) sessions: Sessions,
    pub(crate) tries: Limiter,
    /// Sign-ins elsewhere that have begun, by address.
    pub(crate) starts: Limiter,
    pub(crate) used: UsedSignIns,
    pub(crate) passes: Passes,
    pub(crate) feeds: Places,
    pub(crate) samples: Samples,
    /// Permits to write a page with proposals.
    pub(crate) writers: Semaphore,
}

/// A request of a browser in which a person has signed in.
pub(crate) struct Visit {
    pub(crate) console: Arc<Console>,
    pub(crate) asked: Asked,
    pub(crate) session: Arc<Session>,
    pub(crate) api: ApiClient,
    /// The console's path, with the prefix of the public URL.
    pub(crate) base: String,
}

/// A page, by its address below the console's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum At {
    /// `all` is the proposal of which every value is shown.
    Inbox {
        all: String,
    },
    /// Proposals that have ended.
    Past,
    Proposal {
        id: String,
        all: bool,
        edit: bool,
    },
    /// The form for a rule that approves the like of a proposal.
    Like {
        id: String,
    },
    Overview,
    People {
        topic: String,
    },
    Servers,
    Server {
        name: String,
    },
    /// Definitions of a server that differ from what is pinned.
    Definitions {
        name: String,
    },
    Tools {
        query: String,
    },
    Tool {
        name: String,
        all: bool,
    },
    Rules {
        topic: String,
    },
    /// Tools of a topic that rules and approvals cover, or do not.
    Coverage {
        topic: String,
    },
    /// Entries of the audit log.
    Audit {
        filters: Filters,
    },
    /// Calls, as the audit log has them.
    Calls {
        filters: Filters,
    },
    /// What happened to one call, from the place of its first entry in the log on.
    Call {
        id: String,
        place: String,
    },
    Access,
    /// What one participant may do, of all topics or of one.
    Rights {
        name: String,
        topic: String,
    },
    Unknown,
}

impl At {
    /// The inbox, without a proposal of which every value is shown.
    pub(crate) fn inbox() -> Self {
        Self::Inbox { all: String::new() }
    }

    /// Whether people decide on the page.
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self, Self::Inbox { .. } | Self::Proposal { .. })
    }

    /// Time between looks of a stream at the page, in milliseconds; `None` if it does not change by
    /// itself, or costs too much for that.
    pub(crate) fn look_ms(&self) -> Option<u64> {
        match self {
            Self::Inbox { .. } | Self::Proposal { .. } => Some(FEED_LOOK_MS),
            // An older page does not change, and a check of the whole log costs too much.
            Self::Audit { filters } | Self::Calls { filters } => (filters.get("after").is_empty()
                && filters.get("verify").is_empty())
            .then_some(4 * FEED_LOOK_MS),
            // Without its place much of the log is looked through.
            Self::Call { place, .. } => (!place.is_empty()).then_some(4 * FEED_LOOK_MS),
            // All of its pictures are drawn anew.
            Self::Overview => Some(20 * FEED_LOOK_MS),
            Self::People { .. } | Self::Servers | Self::Server { .. } | Self::Access => {
                Some(4 * FEED_LOOK_MS)
            }
            // Nothing changes under the eyes of a person that compares.
            Self::Definitions { .. }
            | Self::Past
            | Self::Like { .. }
            | Self::Tools { .. }
            | Self::Tool { .. }
            | Self::Rules { .. }
            | Self::Coverage { .. }
            | Self::Rights { .. }
            | Self::Unknown => None,
        }
    }

    /// Reads a path below the console's, and a query. The path of an act is that of its page.
    pub(crate) fn read(path: &str, query: &Form) -> Self {
        let named = |name: &str| query.get(name).to_owned();
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match segments.as_slice() {
            [] => Self::Inbox { all: named("all") },
            ["login" | "logout" | "keys" | "entered"] | ["batch", _] => Self::inbox(),
            ["past"] => Self::Past,
            ["p", id, "like" | "rule"] => Self::Like { id: decoded(id) },
            ["p", id] | ["p", id, _] => Self::Proposal {
                id: decoded(id),
                all: query.some("all").is_some(),
                edit: query.some("edit").is_some(),
            },
            ["overview"] => Self::Overview,
            ["topic"] | ["topic", _] => Self::People {
                topic: named("topic"),
            },
            ["servers"] => Self::Servers,
            ["servers", name, "definitions" | "approve"] => Self::Definitions {
                name: decoded(name),
            },
            ["servers", name] | ["servers", name, _] => Self::Server {
                name: decoded(name),
            },
            ["tools"] => Self::Tools { query: named("q") },
            ["tools", name] | ["tools", name, _] => Self::Tool {
                name: decoded(name),
                all: query.some("all").is_some(),
            },
            ["rules", "coverage"] => Self::Coverage {
                topic: named("topic"),
            },
            ["audit"] => Self::Audit {
                filters: Filters::read(&OF_AUDIT, query),
            },
            ["calls"] => Self::Calls {
                filters: Filters::read(&OF_CALLS, query),
            },
            ["calls", id] => Self::Call {
                id: decoded(id),
                place: named("place"),
            },
            ["access"] | ["sessions", _] => Self::Access,
            ["access", name] | ["access", name, _] => Self::Rights {
                name: decoded(name),
                topic: named("topic"),
            },
            ["rules"] | ["rules", _] => Self::Rules {
                topic: named("topic"),
            },
            _ => Self::Unknown,
        }
    }

    /// Its address below the console's path.
    pub(crate) fn address(&self) -> String {
        let with = |path: &str, name: &str, value: &str| match value {
            "" => path.to_owned(),
            value => format!("{path}?{name}={}", encoded(value)),
        };
        match self {
            Self::Inbox { all } => with("", "all", all),
            Self::Past => "/past".to_owned(),
            Self::Proposal { id, all, edit } => {
                let query = match (all, edit) {
                    (false, false) => "",
                    (true, false) => "?all=1",
                    (false, true) => "?edit=1",
                    (true, true) => "?all=1&edit=1",
                };
                format!("/p/{}{query}", encoded(id))
            }
            Self::Like { id } => format!("/p/{}/like", encoded(id)),
            Self::Overview => "/overview".to_owned(),
            Self::People { topic } => with("/topic", "topic", topic),
            Self::Servers => "/servers".to_owned(),
            Self::Server { name } => format!("/servers/{}", encoded(name)),
            Self::Definitions { name } => format!("/servers/{}/definitions", encoded(name)),
            Self::Tools { query } => with("/tools", "q", query),
            Self::Tool { name, all } => {
                let query = if *all { "?all=1" } else { "" };
                format!("/tools/{}{query}", encoded(name))
            }
            Self::Rules { topic } => with("/rules", "topic", topic),
            Self::Coverage { topic } => with("/rules/coverage", "topic", topic),
            Self::Audit { filters } => format!("/audit{}", filters.query(&[], &[])),
            Self::Calls { filters } => format!("/calls{}", filters.query(&[], &[])),
            Self::Call { id, place } => with(&format!("/calls/{}", encoded(id)), "place", place),
            Self::Access => "/access".to_owned(),
            Self::Rights { name, topic } => {
                with(&format!("/access/{}", encoded(name)), "topic", topic)
            }
            Self::Unknown => "/-".to_owned(),
        }
    }
}

/// A segment of a path as text.
pub(crate) fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

impl Console {
    /// Whether a browser asks under a name to which the cookies of this participant's sessions may go:
    /// over TLS any of the gateway's, on plain loopback the participant's own.
    pub(crate) fn is_own_name(&self, asked: &Asked, participant: &str) -> bool {
        let plain = asked.plain_host.as_deref();
        plain.is_none_or(|host| host.eq_ignore_ascii_case(&self.codes.host(participant)))
    }

    /// Does the work of writing a page apart from the tasks of the gateway, which go on meanwhile.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let _permit = self.writers.acquire().await;
        let failed = || {
            let why = "the page could not be written";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, why)
        };
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|_| Err(failed()))
    }
}

impl Visit {
    /// The page of the request.
    pub(crate) fn at(&self) -> At {
        At::read(&self.asked.below, &self.asked.query())
    }

    /// Now, in Unix milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.console.home.now_ms()
    }

    /// The field that every form has.
    pub(crate) fn token(&self) -> Markup {
        html::parts::hidden("token", &self.session.form_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_at_its_address_and_an_act_at_that_of_its_page() {
        for (path, address) in [
            ("", ""),
            ("?all=7", "?all=7"),
            ("/past", "/past"),
            ("/p/7", "/p/7"),
            ("/p/7?all=1&edit=1", "/p/7?all=1&edit=1"),
            ("/p/7/approve", "/p/7"),
            ("/p/7/like", "/p/7/like"),
            ("/p/7/rule", "/p/7/like"),
            ("/overview", "/overview"),
            ("/topic?topic=a%2Fb", "/topic?topic=a%2Fb"),
            ("/topic/say", "/topic"),
            ("/servers/a%2Fb/restart", "/servers/a%2Fb"),
            ("/servers/a%2Fb/definitions", "/servers/a%2Fb/definitions"),
            ("/servers/a%2Fb/approve", "/servers/a%2Fb/definitions"),
            ("/servers/a%2Fb/sign-in", "/servers/a%2Fb"),
            ("/tools?q=x", "/tools?q=x"),
            ("/tools/a_b/call", "/tools/a_b"),
            ("/rules/accept", "/rules"),
            ("/rules/coverage?topic=a", "/rules/coverage?topic=a"),
            ("/access", "/access"),
            ("/sessions/end", "/access"),
            ("/access/a%2Fb/grant", "/access/a%2Fb"),
            (
                "/audit?kinds=chat&x=1&verify=1",
                "/audit?kinds=chat&verify=1",
            ),
            (
                "/calls?outcome=held&after=1-2",
                "/calls?outcome=held&after=1-2",
            ),
            ("/calls/a%2Fb?place=1-2", "/calls/a%2Fb?place=1-2"),
            ("/batch/approve", ""),
            ("/logout", ""),
            ("/nowhere", "/-"),
        ] {
            let (below, query) = path.split_once('?').unwrap_or((path, ""));
            let at = At::read(below, &Form::parse(query.as_bytes()));
            assert_eq!(at.address(), address, "{path}");
        }
    }
}
