//! The stream of events that keeps a page up to date: it looks at the page again and again, and sends
//! what has changed.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use platform::unix_ms;
use sha2::{Digest as _, Sha256};

use crate::asked::Form;
use crate::page::respond;
use crate::places::Place;
use crate::state::{At, FEED_LOOK_MS, Visit};
use crate::{inbox, overview, pages};

/// Looks without a change after which a comment says that the stream is there.
const QUIET_LOOKS: u32 = 30;

/// One stream.
struct Feed {
    visit: Visit,
    at: At,
    /// Whether the page is hidden: then it learns how many proposals wait, and nothing else.
    is_hidden: bool,
    seen: [u8; 32],
    count: Option<usize>,
    quiet: u32,
    has_ended: bool,
    place: Place,
}

/// `GET /console/feed?at=...`.
pub(crate) fn open(visit: Visit) -> Response {
    let session = &visit.session;
    let Some(place) = (visit.console.feeds).take(&session.participant, &session.feeds) else {
        return respond(StatusCode::SERVICE_UNAVAILABLE, String::new(), &[]);
    };
    let query = visit.asked.query();
    let at = query.get("at");
    let (below, page_query) = at.split_once('?').unwrap_or((at, ""));
    let feed = Feed {
        at: At::read(below, &Form::parse(page_query.as_bytes())),
        is_hidden: query.some("hidden").is_some(),
        seen: [0; 32],
        count: None,
        quiet: 0,
        has_ended: false,
        place,
        visit,
    };
    let events = unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(event)), feed))
    });
    let mut response = respond(StatusCode::OK, String::new(), &[]);
    *response.body_mut() = Body::from_stream(events);
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.place.leave(&self.visit.session.feeds);
    }
}

impl Feed {
    /// The next event, once there is one; `None` ends the stream.
    async fn next(&mut self) -> Option<String> {
        if self.has_ended {
            return None;
        }
        loop {
            let session = &self.visit.session;
            if !session.is_open(unix_ms()) || !self.visit.is_signed_in() {
                return Some(self.end("over"));
            }
            if !self.place.is_in(&session.feeds) {
                return Some(self.end("enough"));
            }
            if let Some(event) = self.look().await {
                self.quiet = 0;
                return Some(event);
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(self.at.look_ms().unwrap_or(FEED_LOOK_MS))) => {}
                () = self.visit.console.home.stopped() => return None,
            }
            self.quiet += 1;
            if self.quiet >= QUIET_LOOKS {
                self.quiet = 0;
                return Some(":\n\n".to_owned());
            }
        }
    }

    /// A change since the last look, as an event.
    async fn look(&mut self) -> Option<String> {
        self.visit.now_ms = unix_ms();
        // For the pictures of the overview; without the right to see metrics there are none.
        let _ = overview::sample(&self.visit).await;
        if self.is_hidden || self.at.look_ms().is_none() {
            let count = inbox::count(&self.visit).await;
            let is_new = self.count.replace(count) != Some(count);
            return is_new.then(|| event("count", &count.to_string()));
        }
        let body = match pages::content(&self.visit, &self.at).await {
            Ok(content) => content.body.into_string(),
            Err(refused) if refused.ends_session() => return Some(self.end("over")),
            // A page that cannot be shown now stays as it was.
            Err(_) => return None,
        };
        let seen: [u8; 32] = Sha256::digest(body.as_bytes()).into();
        if std::mem::replace(&mut self.seen, seen) != seen {
            return Some(event("page", &body));
        }
        let count = inbox::count(&self.visit).await;
        let is_new = self.count.replace(count) != Some(count);
        is_new.then(|| event("count", &count.to_string()))
    }

    fn end(&mut self, why: &str) -> String {
        self.has_ended = true;
        event(why, "")
    }
}

/// An event of a stream; its data may have several lines.
fn event(name: &str, data: &str) -> String {
    let mut text = format!("event: {name}\n");
    for line in data.split(['\n', '\r']) {
        text += "data: ";
        text += line;
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_begins_no_event_of_its_own() {
        assert_eq!(
            event("page", "a\nevent: over\r\rdata: b"),
            "event: page\ndata: a\ndata: event: over\ndata: \ndata: data: b\n\n"
        );
    }
}
