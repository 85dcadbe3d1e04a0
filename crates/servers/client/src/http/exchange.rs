//! HTTP exchanges: one POST to its answer, and the stream for messages that belong to no request;
//! in the HTTP+SSE transport of 2024-11-05 one event stream down, and POSTs up to an endpoint that
//! the stream names.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::notes::Note;
use super::peer::{HttpReply, HttpSpec, Peer};
use super::requests::{LinkState, OutgoingRequest};
use super::stream::{Events, ResumePoint, StreamEnd, drain, is_message, read};
use crate::error::{LinkError, SendError};
use crate::transport::{Flow, LinkInbox, SendMeta};

/// Attempts in a row to resume a stream that bring nothing new.
const RESUME_MAX: u32 = 5;
/// The longest wait between two attempts to open the stream that belongs to no request.
const LISTEN_WAIT_MAX: Duration = Duration::from_secs(30);

/// The longest wait for the reply to one notification or answer before the next one is sent.
const IN_ORDER: Duration = Duration::from_secs(2);

/// Carries out this request, then others, for as long as the link has a use for the task.
pub(super) async fn run(link: Arc<LinkState>, mut request: OutgoingRequest) {
    loop {
        let number = request.number;
        let outcome = answer(&link, request).await;
        let next = link.requests.lock().close(number);
        if let Err(error) = outcome {
            link.inbox.failed(number, error);
        }
        let Some(next) = next else { return };
        let Ok(next) = next.await else { return };
        request = next;
    }
}

/// Sends a request and hands its answer to the inbox.
async fn answer(link: &LinkState, request: OutgoingRequest) -> Result<(), LinkError> {
    let OutgoingRequest {
        number,
        frame,
        headers,
    } = request;
    let reply = link.peer.post(frame, headers.as_deref()).await?;
    if reply.is_stream() {
        // Boxed, so that the tasks of plain answers stay small.
        return Box::pin(follow(link, number, reply)).await;
    }
    let body = link.peer.collect(reply.body).await?;
    let is_empty = body.is_empty();
    if !is_empty && link.inbox.frame(body, Some(number)) == Flow::Settled {
        return Ok(());
    }
    let why = if is_empty {
        "the answer has no body"
    } else {
        "no answer in the body"
    };
    Err(LinkError::Malformed(why.to_owned()))
}

/// Reads an answer that is an event stream, and resumes the stream when it breaks.
async fn follow(link: &LinkState, number: u64, mut reply: HttpReply) -> Result<(), LinkError> {
    let mut resume_point = ResumePoint::default();
    let mut barren = 0;
    loop {
        let before = resume_point.last_id.clone();
        match read(
            reply.body,
            link.peer.limits.frame_bytes_max,
            &mut resume_point,
            |frame| link.inbox.frame(frame, Some(number)),
        )
        .await
        {
            StreamEnd::Settled(rest) => {
                drain(rest).await;
                return Ok(());
            }
            StreamEnd::TooLarge => return Err(LinkError::TooLarge),
            StreamEnd::Ended => {}
        }
        // A server may close the connection before the stream is complete; one whose events have
        // ids can be resumed.
        if resume_point.last_id.is_none() {
            return Err(LinkError::Broken(
                "the stream ended without an answer".to_owned(),
            ));
        }
        barren = if resume_point.last_id == before {
            barren + 1
        } else {
            0
        };
        reply = loop {
            if barren >= RESUME_MAX {
                return Err(LinkError::Broken(
                    "the stream could not be resumed".to_owned(),
                ));
            }
            sleep(resume_point.wait()).await;
            match link.peer.open_stream(resume_point.last_id.as_deref()).await {
                Ok(reply) => break reply,
                Err(LinkError::SessionGone | LinkError::SessionReplaced) => {
                    return Err(LinkError::Broken("the session ended".to_owned()));
                }
                // Not the fault itself: the server may have run the request.
                Err(LinkError::Unauthorized) => {
                    return Err(LinkError::Broken("HTTP status 401".to_owned()));
                }
                Err(LinkError::Account(fault)) if fault.is_lasting() => {
                    return Err(LinkError::Broken(fault.to_string()));
                }
                Err(_) => barren += 1,
            }
        };
    }
}

/// Sends a request of an HTTP+SSE link. Servers reply with 202, and with the answer on the stream.
pub(super) fn request(
    link: &Arc<LinkState>,
    frame: Bytes,
    meta: SendMeta,
) -> Result<(), SendError> {
    link.notes.count(link.peer.limits.requests_max)?;
    tokio::spawn(post(Arc::clone(link), frame, meta));
    Ok(())
}

/// Sends a notification or an answer, after those that were sent before it. Servers reply with 202,
/// 204, or 200 with or without a body.
pub(super) fn note(link: &Arc<LinkState>, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
    link.notes.count(link.peer.limits.requests_max)?;
    if link.notes.push(Note::Message(frame, meta)) {
        tokio::spawn(post_notes(Arc::clone(link)));
    }
    Ok(())
}

/// Waits until the notes that were sent before have arrived, or have taken too long.
pub(super) async fn flush(link: &Arc<LinkState>) {
    let (reached, at) = oneshot::channel();
    if link.notes.push(Note::Reached(reached)) {
        tokio::spawn(post_notes(Arc::clone(link)));
    }
    let _ = at.await;
}

/// Posts the notes that wait, one after the other: a notification must not arrive after the answer
/// that followed it.
async fn post_notes(link: Arc<LinkState>) {
    while let Some(note) = link.notes.next() {
        match note {
            Note::Message(frame, meta) => {
                let posting = tokio::spawn(post(Arc::clone(&link), frame, meta));
                // A server that is slow to take one does not hold back the rest for longer.
                let _ = timeout(IN_ORDER, posting).await;
            }
            Note::Reached(reached) => _ = reached.send(()),
        }
    }
}

async fn post(link: Arc<LinkState>, frame: Bytes, meta: SendMeta) {
    let sent = timeout(link.peer.limits.head, async {
        let reply = link.peer.post(frame, meta.headers.as_deref()).await?;
        if !reply.is_stream() {
            link.peer.collect(reply.body).await?;
        }
        Ok(())
    });
    let outcome = sent.await.unwrap_or(Err(LinkError::Timeout));
    link.notes.uncount();
    match (outcome, meta.request) {
        (Ok(()), _) => {}
        (Err(error), Some(request)) => link.inbox.failed(request, error),
        (Err(LinkError::SessionGone), None) => link.inbox.session_gone(),
        (Err(error), None) => {
            tracing::debug!(server = &*link.peer.name, %error, "the server did not accept a notification");
        }
    }
}

/// Keeps the stream that belongs to no request open, until the server says that it has none or that
/// the session is gone. Drops `listening` once the server has answered for the first time.
pub(super) async fn listen(link: Arc<LinkState>, listening: oneshot::Sender<()>) {
    let mut listening = Some(listening);
    let mut resume_point = ResumePoint::default();
    let mut was_open = false;
    let mut misses = 0_u32;
    loop {
        let opened = link.peer.open_stream(resume_point.last_id.as_deref()).await;
        drop(listening.take());
        match opened {
            Ok(reply) => {
                was_open = true;
                misses = 0;
                let max = link.peer.limits.frame_bytes_max;
                let each = |frame| {
                    link.inbox.frame(frame, None);
                    Flow::Open
                };
                let _ = read(reply.body, max, &mut resume_point, each).await;
            }
            Err(LinkError::SessionGone) if was_open => {
                return link.inbox.session_gone();
            }
            // The stream is optional; a server without it answers 405, some 404 or 400.
            Err(
                LinkError::SessionGone
                | LinkError::SessionReplaced
                | LinkError::Unauthorized
                | LinkError::Malformed(_),
            ) => return,
            Err(LinkError::Http { status, .. })
                if !was_open || status == StatusCode::METHOD_NOT_ALLOWED.as_u16() =>
            {
                return;
            }
            Err(error) => {
                misses += 1;
                link.inbox.stream_refused(&error);
                tracing::debug!(server = &*link.peer.name, %error, "the event stream cannot be opened");
            }
        }
        sleep((resume_point.wait() * 2_u32.saturating_pow(misses.min(5))).min(LISTEN_WAIT_MAX))
            .await;
    }
}

/// Opens the stream of an HTTP+SSE server, waits for the endpoint that it names, and reads on.
pub(super) async fn open_sse(
    spec: &HttpSpec,
    inbox: Arc<dyn LinkInbox>,
) -> Result<Arc<LinkState>, LinkError> {
    let state = Arc::new(LinkState::new(Peer::new(spec)?, inbox));
    open_stream(&state).await?;
    Ok(state)
}

/// Opens the stream, in place of the one before.
pub(super) async fn open_stream(state: &Arc<LinkState>) -> Result<(), LinkError> {
    let peer = &state.peer;
    peer.redirect_to_configured();
    let reply = peer.open_stream(None).await?;
    let base = reply.at;
    let mut events = Events::new(reply.body, peer.limits.frame_bytes_max);
    let endpoint = timeout(peer.limits.head, endpoint(&mut events));
    let endpoint = endpoint.await.map_err(|_| LinkError::Timeout)??;
    if !peer.redirect(&base, endpoint.trim()) {
        return Err(LinkError::Malformed(
            "the endpoint is on another origin".to_owned(),
        ));
    }
    let reader = tokio::spawn(read_sse(Arc::clone(state), events));
    if let Some(before) = state.listener.lock().replace(reader.abort_handle()) {
        before.abort();
    }
    Ok(())
}

/// Reads events up to the one that names the endpoint.
async fn endpoint(events: &mut Events) -> Result<String, LinkError> {
    loop {
        let event = events.next().await?.map_err(|_| LinkError::TooLarge)?;
        if event.event.as_deref() == Some("endpoint") {
            return String::from_utf8(event.data.to_vec())
                .map_err(|_| LinkError::Malformed("the endpoint is not UTF-8".to_owned()));
        }
    }
}

/// Hands messages to the inbox until the stream ends.
async fn read_sse(state: Arc<LinkState>, mut events: Events) {
    let why = loop {
        match events.next().await {
            Ok(Ok(event)) if is_message(&event) => {
                state.inbox.frame(event.data, None);
            }
            Ok(Ok(_)) => {}
            // The request that it may answer is not known; its caller waits no longer than its own
            // time limit.
            Ok(Err(_)) => tracing::warn!(server = &*state.peer.name, "an event is too long"),
            Err(error) => break error,
        }
    };
    state.end(why);
}
