//! Notifications of servers: decoded as they arrive, encoded for the clients that receive them.

use bytes::Bytes;
use json::Splice;
use model::{Form, Notice};

use super::{method, payload};
use crate::mcp::params::Params;
use crate::rpc::{self, Id, Message};

/// A notification as its server wrote it.
#[must_use]
pub fn decode_notice(params: &Params<'_>, form: Form) -> Notice {
    let latest = params
        .progress_token()
        .map(|token| Bytes::copy_from_slice(token.raw()));
    Notice {
        method: method(params),
        latest,
        payload: payload(params.message(), Some(params), form),
    }
}

/// The notification for a client, with its resource under the public spelling if that differs.
#[must_use]
pub fn encode_notice(notice: &Notice, public: Option<&str>) -> Bytes {
    let marks = notice.payload.marks;
    if !notice.payload.is_message() {
        return rpc::notification(notice.method.as_str(), Some(&notice.payload.bytes));
    }
    let Some(public) = public.filter(|_| !marks.target.is_empty()) else {
        return notice.payload.bytes.clone();
    };
    let mut splice = Splice::new();
    splice.replace(super::span(marks.target), json::quote(public).as_bytes());
    splice.apply(&notice.payload.bytes)
}

/// A progress notification with another token, as it is spelled.
#[must_use]
pub fn with_progress_token(notice: &Notice, token: &Bytes) -> Option<Notice> {
    let message = Message::read(notice.payload.bytes.clone()).ok()?;
    let params = Params::read(&message).ok()?;
    let mut splice = Splice::new();
    params
        .edit()
        .set_progress_token(&Id::read(token)?)
        .finish(&mut splice);
    let payload = super::read_again(message.edited(&splice), notice.payload.form);
    Some(Notice {
        latest: Some(token.clone()),
        payload,
        ..notice.clone()
    })
}

/// The level of a log message.
#[must_use]
pub fn log_level(notice: &Notice) -> Option<String> {
    if notice.method.as_str() != "notifications/message" {
        return None;
    }
    json::at(notice.payload.body_bytes(), &["level"])
        .and_then(json::text)
        .map(std::borrow::Cow::into_owned)
}

/// The resource of an update notification, by the server's own URI.
#[must_use]
pub fn updated_uri(notice: &Notice) -> Option<String> {
    if notice.method.as_str() != "notifications/resources/updated" {
        return None;
    }
    let message = Message::read(notice.payload.bytes.clone()).ok()?;
    let params = Params::read(&message).ok()?;
    params.target().map(str::to_owned)
}
