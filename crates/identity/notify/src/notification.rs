//! Notifications as programs and as people read them: names and numbers alone.

use json::visible;
use wire::time::rfc3339;

use crate::{NotifyEvent, PlannedNotification};

/// Characters of a name in a notification; the rest is cut.
pub const NOTIFIED_NAME_CHARS_MAX: usize = 80;
/// The mark of a name that was cut.
const CUT: char = '…';
/// The priority of a message at ntfy: the default, and high.
const NTFY_PRIORITY: u8 = 3;
const NTFY_PRIORITY_HIGH: u8 = 4;

/// A notification that is to be sent: every name in it is safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    event: NotifyEvent,
    proposal: Option<String>,
    topic: Option<String>,
    by: Option<String>,
    tool: Option<String>,
    server: Option<String>,
    expires: Option<String>,
    waiting: usize,
    proposers: usize,
    url: Option<String>,
}

impl Notification {
    /// The notification as it is planned, with the route's link.
    #[must_use]
    pub fn of(planned: &PlannedNotification, url: Option<&str>) -> Self {
        let first = &planned.first;
        Self {
            event: planned.event,
            proposal: Some(first.id.to_string()),
            topic: Some(name(first.topic.as_str())),
            by: Some(name(first.by.as_str())),
            tool: Some(name(&first.tool)),
            server: first.server.as_deref().map(name),
            expires: Some(rfc3339(first.expires_ms)),
            waiting: planned.waiting,
            proposers: planned.accounts.len(),
            url: url.map(str::to_owned),
        }
    }

    /// A notification that says that nothing waits.
    #[must_use]
    pub fn test(url: Option<&str>) -> Self {
        Self {
            event: NotifyEvent::Test,
            proposal: None,
            topic: None,
            by: None,
            tool: None,
            server: None,
            expires: None,
            waiting: 0,
            proposers: 0,
            url: url.map(str::to_owned),
        }
    }

    /// One line for people.
    #[must_use]
    pub fn title(&self) -> String {
        let by = self.by.as_deref().unwrap_or_default();
        match self.event {
            NotifyEvent::Test => "Portmoot: a test".to_owned(),
            NotifyEvent::Summary => format!("Portmoot: {} wait", proposals(self.waiting)),
            NotifyEvent::Waiting | NotifyEvent::HalfTime => {
                let tool = self.tool.as_deref().unwrap_or_default();
                format!("Portmoot: {by} proposes {tool}")
            }
        }
    }

    /// All of it in words.
    #[must_use]
    pub fn text(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let (by, tool, topic) = (part(&self.by), part(&self.tool), part(&self.topic));
        let server = self.server.as_ref().map(|server| format!(" of {server}"));
        let server = server.unwrap_or_default();
        let first = format!("the first, {tool}{server} in topic {topic}, ends");
        let expires = part(&self.expires);
        let waits = if self.waiting == 1 { "waits" } else { "wait" };
        let all = proposals(self.waiting);
        match self.event {
            NotifyEvent::Test => {
                "This is a test of a route of notifications. No proposal waits because of it."
                    .to_owned()
            }
            NotifyEvent::Waiting => {
                format!("{all} by {by} {waits} for a decision; {first} {expires}.")
            }
            NotifyEvent::HalfTime => format!(
                "Half of the time is gone: {all} by {by} {waits} for a decision; {first} {expires}."
            ),
            NotifyEvent::Summary => format!(
                "{all} by {} participants {waits} for a decision; {first} {expires}.",
                self.proposers
            ),
        }
    }

    /// The notification as JSON, for webhooks and programs.
    #[must_use]
    pub fn json(&self) -> Vec<u8> {
        json::object(|all| {
            all.text("event", self.event.as_str())
                .optional_text("proposal", self.proposal.as_deref())
                .optional_text("topic", self.topic.as_deref())
                .optional_text("by", self.by.as_deref())
                .optional_text("tool", self.tool.as_deref())
                .optional_text("server", self.server.as_deref())
                .optional_text("expires", self.expires.as_deref());
            all.number("waiting", self.waiting);
            if self.event == NotifyEvent::Summary {
                all.number("proposers", self.proposers);
            }
            all.optional_text("url", self.url.as_deref())
                .text("title", &self.title())
                .text("text", &self.text());
        })
    }

    /// The notification for an incoming webhook of Slack: blocks of plain text alone.
    #[must_use]
    pub fn slack(&self) -> Vec<u8> {
        let (title, text) = (slack_text(&self.title()), slack_text(&self.text()));
        json::object(|all| {
            all.text("text", &title).bool("mrkdwn", false);
            all.array("blocks", |blocks| {
                for line in [&title, &text] {
                    blocks.object(|block| {
                        block.text("type", "section");
                        block.object("text", |words| plain_text(words, line));
                    });
                }
                if let Some(url) = &self.url {
                    blocks.object(|block| link_block(block, url));
                }
            });
        })
    }

    /// The notification for a topic of ntfy.
    #[must_use]
    pub fn ntfy(&self, topic: &str) -> Vec<u8> {
        let priority = match self.event {
            NotifyEvent::HalfTime => NTFY_PRIORITY_HIGH,
            NotifyEvent::Waiting | NotifyEvent::Summary | NotifyEvent::Test => NTFY_PRIORITY,
        };
        json::object(|all| {
            all.text("topic", topic)
                .text("title", &self.title())
                .text("message", &self.text())
                .number("priority", priority)
                .texts("tags", ["portmoot", self.event.as_str()]);
            all.optional_text("click", self.url.as_deref());
        })
    }
}

/// A link, and nothing that decides.
fn link_block(block: &mut json::Object<'_>, url: &str) {
    block.text("type", "actions");
    block.array("elements", |elements| {
        elements.object(|button| {
            button.text("type", "button");
            button.object("text", |words| plain_text(words, "Look at it"));
            button.text("url", url);
        });
    });
}

fn plain_text(words: &mut json::Object<'_>, text: &str) {
    words
        .text("type", "plain_text")
        .text("text", text)
        .bool("emoji", false);
}

/// A number of proposals in words.
fn proposals(count: usize) -> String {
    if count == 1 {
        "1 proposal".to_owned()
    } else {
        format!("{count} proposals")
    }
}

/// A name that others chose, on one line, cut, and without characters that hide.
fn name(text: &str) -> String {
    let mut chars = text.chars();
    let mut cut: String = chars.by_ref().take(NOTIFIED_NAME_CHARS_MAX).collect();
    if chars.next().is_some() {
        cut.push(CUT);
    }
    visible::line(&cut)
}

/// A text in which Slack finds neither links nor mentions.
fn slack_text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
