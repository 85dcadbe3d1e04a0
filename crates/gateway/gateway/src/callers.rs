//! Accounts of callers at one server: who has one, and what callers without one see of the server's
//! lists.

use std::sync::Arc;

use bytes::Bytes;
use json::Span;
use model::{ListKind, ParticipantId};
use oauth::config::{AuthorizationKind, CallerList};
use platform::Mutex;
use topic::AUTHORIZE;
use upstream::{List, Manifest};
use wire::mcp::list::Item;

/// The accounts of callers at one server, and its lists for those without one.
pub(crate) struct Callers {
    /// The accounts.
    pub(crate) accounts: Arc<oauth::AccountServer>,
    /// The tool by which a caller gets an account: all that a caller without one is listed at
    /// first.
    authorize: Arc<Manifest>,
    /// Lists of the server, as it sent them last to any caller, marked (`list = "any"`).
    seen: Mutex<Option<Arc<Manifest>>>,
}

impl Callers {
    pub(crate) fn new(accounts: Arc<oauth::AccountServer>) -> Self {
        let authorize = Arc::new(authorize(
            &accounts.site.name,
            accounts.site.config.kind == AuthorizationKind::Key,
        ));
        Self {
            accounts,
            authorize,
            seen: Mutex::default(),
        }
    }

    /// Whether a session of this caller could open without a person.
    pub(crate) fn is_connected(&self, caller: &ParticipantId) -> bool {
        self.accounts.of(Some(caller.as_str())).blocked().is_none()
    }

    /// Lists that callers without an account see.
    pub(crate) fn shown(&self) -> Arc<Manifest> {
        self.seen
            .lock()
            .clone()
            .unwrap_or_else(|| Arc::clone(&self.authorize))
    }

    /// Takes the server's lists to one caller; true if others see them.
    pub(crate) fn note(&self, manifest: &Manifest) -> bool {
        match self.accounts.site.config.list {
            CallerList::Caller => false,
            CallerList::Any => {
                let marked = Arc::new(marked(manifest, &self.accounts.site.name));
                let before = self.seen.lock().replace(Arc::clone(&marked));
                before.is_none_or(|before| before != marked)
            }
        }
    }
}

/// The lists of a server with this one tool; of one that wants a key of each caller.
fn authorize(server: &str, wants_key: bool) -> Manifest {
    let (title, wants) = if wants_key {
        (
            "Enter a key for",
            "wants a key of yours before it can be used",
        )
    } else {
        (
            "Connect an account at",
            "has to be given access to your account there before it can be used",
        )
    };
    let tool = json::object(|tool| {
        tool.text("name", AUTHORIZE)
            .text("title", &format!("{title} {server}"));
        let what = format!(
            "The server {server} {wants}. This tool answers with a link for the person to open in a browser. Afterwards the tools of \
             {server} are listed in its place."
        );
        tool.text("description", &what);
        tool.raw(
            "inputSchema",
            br#"{"type":"object","properties":{},"additionalProperties":false}"#,
        );
        tool.raw(
            "annotations",
            br#"{"destructiveHint":false,"openWorldHint":true}"#,
        );
    });
    let items = Item::read(ListKind::Tools, tool.into())
        .into_iter()
        .collect();
    Manifest {
        tools: List {
            items,
            ..List::default()
        },
        is_legacy: true,
        ..Manifest::default()
    }
}

/// The lists, with a mark at each tool: its description says that it needs an account, and `_meta`
/// does.
fn marked(manifest: &Manifest, server: &str) -> Manifest {
    let mark = |item: &Item| {
        let said = json::at(&item.raw, &["description"])
            .and_then(json::text)
            .unwrap_or_default();
        let note = format!(
            "(You have no account at {server} yet: a call answers with a link to connect one.)"
        );
        let said = json::quote(format!("{said} {note}").trim_start());
        let members = json::members(&item.raw, Span::all(&item.raw)).ok()?;
        let meta = members
            .get("_meta")
            .filter(|meta| json::is_object(meta.raw))
            .map_or(&b"{}"[..], |meta| meta.raw);
        let meta = json::edited(meta, &[("portmoot/account", Some(b"\"needed\""))]).ok()?;
        let changes = [
            ("description", Some(said.as_bytes())),
            ("_meta", Some(meta.as_slice())),
        ];
        Item::read(
            ListKind::Tools,
            Bytes::from(json::edited(&item.raw, &changes).ok()?),
        )
        .ok()
    };
    let items = manifest
        .tools
        .items
        .iter()
        .map(|item| mark(item).unwrap_or_else(|| item.clone()))
        .collect();
    Manifest {
        tools: List {
            items,
            ..manifest.tools.clone()
        },
        ..manifest.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(manifest: &Manifest) -> serde_json::Value {
        serde_json::from_slice(&manifest.tools.items[0].raw).unwrap()
    }

    #[test]
    fn a_mark_is_added_and_nothing_else_changes() {
        let raw = r#"{"name":"a","description":"Does \"it\".","inputSchema":{"type":"object"},"_meta":{"x":1}}"#;
        let items = vec![Item::read(ListKind::Tools, raw.into()).unwrap()];
        let tools = List {
            items,
            ttl_ms: Some(5),
            ..List::default()
        };
        let marked = marked(
            &Manifest {
                tools,
                ..Manifest::default()
            },
            "jira",
        );
        let seen = tool(&marked);
        assert_eq!(
            seen["description"],
            "Does \"it\". (You have no account at jira yet: a call answers with a link to connect one.)"
        );
        assert_eq!(
            (&seen["_meta"]["x"], &seen["_meta"]["portmoot/account"]),
            (&1.into(), &"needed".into())
        );
        assert_eq!(
            (&seen["name"], &seen["inputSchema"]["type"]),
            (&"a".into(), &"object".into())
        );
        assert_eq!(marked.tools.ttl_ms, Some(5));
    }

    #[test]
    fn one_tool_connects_an_account() {
        let seen = tool(&authorize("jira \"x\"", false));
        assert_eq!(
            (&seen["name"], &seen["inputSchema"]["type"]),
            (&AUTHORIZE.into(), &"object".into())
        );
        assert!(
            seen["description"].as_str().unwrap().contains("jira \"x\""),
            "{seen}"
        );
        let keyed = tool(&authorize("crm", true));
        assert!(
            keyed["description"]
                .as_str()
                .unwrap()
                .contains("crm wants a key of yours"),
            "{keyed}"
        );
    }
}
