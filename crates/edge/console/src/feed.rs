//! The stream of events that keeps a page up to date: it looks at the page again and again, and sends
//! what has changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use sha2::{Digest as _, Sha256};

use crate::api_client::Problem;
use crate::asked::Form;
use crate::kept::Kept;
use crate::pace::Pace;
use crate::page::{problem, respond};
use crate::pages::LastAnswer;
use crate::places::Place;
use crate::sign_in::unsure;
use crate::state::{At, FEED_LOOK_MS, Visit};
use crate::{inbox, overview, pages};

/// Looks without a change after which a comment says that the stream is there.
const QUIET_LOOKS: u32 = 30;

/// One stream.
struct Feed {
    visit: Arc<Visit>,
    at: At,
    /// Whether the page is hidden: then it learns how many proposals wait, and nothing else.
    is_hidden: bool,
    answer: LastAnswer,
    seen: [u8; 32],
    count: Option<usize>,
    /// The fault that the page tells of, as markup; empty if there is none.
    trouble: String,
    quiet: u32,
    pace: Pace,
    has_ended: bool,
    /// Time until the next look.
    pause: Duration,
    place: Place,
}

/// `GET /console/feed?at=...`.
pub(crate) fn open(visit: Arc<Visit>) -> Response {
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
        answer: LastAnswer::default(),
        seen: [0; 32],
        count: None,
        trouble: String::new(),
        quiet: 0,
        pace: Pace::default(),
        has_ended: false,
        pause: Duration::ZERO,
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
            tokio::select! {
                () = tokio::time::sleep(self.pause) => {}
                () = self.visit.console.home.stopped() => return None,
            }
            let before = Instant::now();
            let kept = self.visit.keep().await;
            let session = &self.visit.session;
            if !session.is_open(self.visit.now_ms()) || kept == Kept::Over {
                return Some(self.end("over"));
            }
            if !self.place.is_in(&session.feeds) {
                return Some(self.end("enough"));
            }
            let event = self.look(kept).await;
            let look = Duration::from_millis(self.at.look_ms().unwrap_or(FEED_LOOK_MS));
            let took = before.elapsed();
            self.pause = self.pace.pause(look, took, self.at.is_urgent());
            if event.is_some() {
                self.quiet = 0;
                return event;
            }
            self.quiet += 1;
            if self.quiet >= QUIET_LOOKS {
                self.quiet = 0;
                return Some(":\n\n".to_owned());
            }
        }
    }

    /// Changes since the last look, as events.
    async fn look(&mut self, kept: Kept) -> Option<String> {
        if kept == Kept::Unsure {
            return self.tell(problem(&unsure()).into_string());
        }
        // For the pictures of the overview, which takes its own; without the right to see metrics there
        // are none.
        if self.is_hidden || self.at != At::Overview {
            let _ = overview::sample(&self.visit).await;
        }
        let (mut events, trouble) = match self.changes().await {
            Ok(events) => (events, String::new()),
            Err(refused) if refused.ends_session() => return Some(self.end("over")),
            // The page stays as it was, and says so.
            Err(refused) => (String::new(), problem(&refused).into_string()),
        };
        events += &self.tell(trouble).unwrap_or_default();
        (!events.is_empty()).then_some(events)
    }

    /// Has the page tell of this fault, if it does not yet.
    fn tell(&mut self, trouble: String) -> Option<String> {
        if self.trouble == trouble {
            return None;
        }
        let news = event("trouble", &trouble);
        self.trouble = trouble;
        Some(news)
    }

    async fn changes(&mut self) -> Result<String, Problem> {
        let mut events = String::new();
        if !self.is_hidden && self.at.look_ms().is_some() {
            let news = pages::news(&self.visit, &self.at, &mut self.answer).await?;
            if news.is_none() && matches!(self.at, At::Inbox { .. }) && self.count.is_some() {
                return Ok(events);
            }
            let body = news.map(|content| content.body.into_string());
            let body = body.filter(|body| self.is_new(body));
            self.pace.note(body.is_some());
            if let Some(body) = body {
                events += &event("page", &body);
            }
        }
        let count = inbox::count(&self.visit).await?;
        if self.count.replace(count) != Some(count) {
            events += &event("count", &count.to_string());
        }
        Ok(events)
    }

    /// Takes a page; whether it is another one than the last.
    fn is_new(&mut self, body: &str) -> bool {
        let seen: [u8; 32] = Sha256::digest(body.as_bytes()).into();
        std::mem::replace(&mut self.seen, seen) != seen
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
