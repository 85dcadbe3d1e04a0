//! Interest of callers in notifications: what a request announces, and the listen requests of
//! modern callers (2026-07-28, "Subscriptions").
//!
//! The topic knows who is interested in what. Here servers are asked to notify, and are released
//! from it.

use std::{pin::pin, sync::Arc, time::Duration};

use model::{Form, LinkId, ListenFilter, LogLevel, ParticipantId, Refusal, RefusalCode, Request};
use strum::VariantNames;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use topic::{Interest, PublicTarget, Subject};
use upstream::{Session, Subscription, tasks::ServerTask};
use wire::mcp::{listen, relay};

use crate::live::{Event, Server};
use crate::tasks::task_id::TaskId;
use crate::{call::Call, delivery, dispatch::Dispatch, link::Link, tasks::relay as tasks};

/// Time that the acknowledgement of a listen request waits for the servers of its resources, and
/// then for those of its tasks.
const FOLLOW_WAIT: Duration = Duration::from_secs(5);

/// The interest that a request announces.
///
/// # Errors
/// The refusal of a request that cannot be read or names too much. A door need not answer with it:
/// it may send the request on without interest, and the gateway refuses it in the same words once
/// it is admitted.
pub fn interest(request: &Request) -> Result<Interest, Refusal> {
    match (request.payload.form, request.method.as_str()) {
        (Form::Legacy, "resources/subscribe") => Ok(Interest::Subscribe),
        (Form::Legacy, "resources/unsubscribe") => Ok(Interest::Unsubscribe),
        (Form::Legacy, "logging/setLevel") => {
            let name = relay::param_text(request, "level").unwrap_or_default();
            name.parse().map(Interest::Level).map_err(|_| {
                Refusal::new(RefusalCode::Malformed, format!("unknown log level: {name}"))
                    .hint(format!("use one of {}", LogLevel::VARIANTS.join(", ")))
            })
        }
        (Form::Modern, "subscriptions/listen") => {
            let filter = listen::filter(request);
            filter
                .map(|filter| Interest::Listen(Box::new(filter)))
                .map_err(|why| Refusal::new(RefusalCode::Malformed, why))
        }
        (Form::Legacy | Form::Modern, _) => Ok(Interest::None),
    }
}

/// Serves a listen request: asks the servers of its resources and tasks to notify, then
/// acknowledges what its caller gets. A slow server delays that for a bounded time only. The
/// request stays open until its caller ends it.
pub(crate) fn serve(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    if let Err(refusal) = interest(&call.request) {
        return delivery::fail(dispatch, call, refusal);
    }
    // The topic has left out the resources that the caller may not subscribe to, and passes on no
    // notifications about tasks that it may not have.
    let Some(filter) = dispatch.with(|topic| topic.listening(call.id).cloned()) else {
        let refusal = Refusal::new(
            RefusalCode::Unsupported,
            "a listen request is not possible here",
        );
        return delivery::fail(dispatch, call, refusal);
    };
    let dispatch = Arc::clone(dispatch);
    let call = Arc::clone(call);
    tokio::spawn(async move { begin(&dispatch, &call, &filter).await });
}

async fn begin(dispatch: &Arc<Dispatch>, call: &Call, filter: &ListenFilter) {
    let mut following = pin!(follow(dispatch, call, &filter.resources));
    let followed = timeout(FOLLOW_WAIT, &mut following).await.is_ok();
    let agreed = watch(dispatch, call, &filter.tasks).await;
    let notice = listen::acknowledgement(&filter.lists, &filter.resources, &agreed);
    let server = &ParticipantId::gateway();
    let subject = Subject::Call(call.id);
    dispatch.take(Event::Notice {
        server,
        subject,
        level: None,
        notice: Arc::new(notice),
    });
    // A slow server is subscribed to all the same: its notifications come later.
    if !followed {
        following.await;
    }
    if !dispatch.with(|topic| topic.is_open(call.id)) {
        // It ended while servers were asked, and they were released too early.
        release(dispatch, call, filter);
    }
}

/// Subscribes to resources at their servers.
async fn follow(dispatch: &Dispatch, call: &Call, resources: &[Arc<str>]) {
    for public in resources {
        // Each server may take its time, and the caller may have gone meanwhile.
        if !dispatch.with(|topic| topic.is_open(call.id)) {
            return;
        }
        let Some((server, own)) = dispatch.route(call.link.id, PublicTarget::Uri(public)) else {
            continue;
        };
        let done = match server.upstream.session(&call.caller()).await {
            Ok(session) => session
                .subscribe(call.link.id, call.link.participant.id.account(), &own)
                .await
                .map(drop),
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = done {
            tracing::debug!(server = %server.id, %refusal, "could not subscribe to a resource");
        }
    }
}

/// Subscribes to tasks at their servers, and returns those whose servers have agreed in time.
async fn watch(dispatch: &Arc<Dispatch>, call: &Call, tasks: &[Arc<str>]) -> Vec<Arc<str>> {
    let deadline = Instant::now() + FOLLOW_WAIT;
    let mut asked = JoinSet::new();
    let mut agreed = Vec::new();
    for (at, public) in tasks.iter().enumerate() {
        let Some(task) = tasks::held(dispatch, call.requester(), public) else {
            continue;
        };
        // A server of 2025-11-25 notifies unasked, if at all.
        if task.origin.form == Form::Legacy {
            agreed.push(at);
            continue;
        }
        let Some(session) = session_of(dispatch, call, &task) else {
            continue;
        };
        let link = Arc::clone(&call.link);
        // All are asked before the first answer is awaited: one stream carries them.
        asked.spawn(async move {
            let account = link.participant.id.account();
            session
                .watch_task(link.id, account, &task.origin.own)
                .await
                .then_some(at)
        });
    }
    // A slow server does not delay the answers of the others.
    while let Ok(Some(answer)) = timeout_at(deadline, asked.join_next()).await {
        agreed.extend(answer.ok().flatten());
    }
    agreed.sort_unstable();
    agreed
        .into_iter()
        .filter_map(|at| tasks.get(at).cloned())
        .collect()
}

fn session_of(dispatch: &Dispatch, call: &Call, task: &ServerTask) -> Option<Arc<Session>> {
    // Number 0: any session of its server knows the task, so the caller's own can ask.
    if task.origin.instance != 0 {
        return task.session();
    }
    let server = dispatch.server(&task.origin.server)?;
    server.upstream.open_session(&call.caller())
}

/// Ends at the servers what a listen request asked for, as far as nothing else on its link does.
fn release(dispatch: &Dispatch, call: &Call, filter: &ListenFilter) {
    for public in &filter.resources {
        if let Some((server, own)) = dispatch.route(call.link.id, PublicTarget::Uri(public)) {
            unsubscribe(dispatch, &call.link, &Server::Upstream(server), &own);
        }
    }
    unwatch(dispatch, &call.link, &filter.tasks);
    if dispatch.with(|topic| topic.handle(call.link.id).is_none()) {
        // Without its link no resource can be looked up.
        release_link(dispatch, call.link.id);
    }
}

/// Ends a link's subscriptions at the servers, and the sessions that it used last.
pub(crate) fn release_link(dispatch: &Dispatch, link: LinkId) {
    dispatch
        .servers()
        .iter()
        .for_each(|server| server.upstream.release(link));
}

/// Ends a link's subscription to a resource at its server, unless the link has subscribed again.
pub(crate) fn unsubscribe(dispatch: &Dispatch, link: &Arc<Link>, server: &Server, own: &str) {
    if let Some(server) = server.upstream()
        && !dispatch.with(|topic| topic.follows(link.id, &server.id, own))
    {
        server
            .upstream
            .unsubscribe(link.id, &Subscription::Resource(own.to_owned()));
    }
}

/// Ends a link's subscriptions to tasks at their servers, unless the link has listened to them
/// again. `tasks` are ids at the gateway.
pub(crate) fn unwatch(dispatch: &Dispatch, link: &Arc<Link>, tasks: &[Arc<str>]) {
    let sealer = &dispatch.context.sealer;
    let holder = &link.participant.id;
    for public in tasks {
        // An id that has expired meanwhile still says where the subscription was made.
        let Some(state) = TaskId::open(sealer, holder, 0, public) else {
            continue;
        };
        let Some(id) = TaskId::read(&state) else {
            continue;
        };
        let server = dispatch.server_named(id.server);
        let Some(server) =
            server.filter(|_| !dispatch.with(|topic| topic.watches(link.id, public)))
        else {
            continue;
        };
        let session = Some(id.instance).filter(|instance| *instance != 0);
        let own = Subscription::Task(id.own.to_owned());
        match session.and_then(|instance| server.upstream.session_by_instance(instance)) {
            Some(session) => session.unsubscribe(link.id, &own),
            // The successor of a session has the subscriptions.
            None => server.upstream.unsubscribe(link.id, &own),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Payload;

    use super::*;

    fn of(form: Form, method: &'static str, params: &'static str) -> Result<Interest, Refusal> {
        let method = model::Method::Known(method);
        interest(&Request {
            method,
            target: None,
            progress: None,
            payload: Payload::body(form, params),
        })
    }

    #[test]
    fn a_request_announces_its_interest() {
        let check = |form, method, params, expected| {
            assert_eq!(
                of(form, method, params).unwrap(),
                expected,
                "{form:?} {method}"
            );
        };
        let legacy = Form::Legacy;
        let modern = Form::Modern;
        check(
            legacy,
            "resources/subscribe",
            r#"{"uri":"a:b"}"#,
            Interest::Subscribe,
        );
        check(
            legacy,
            "resources/unsubscribe",
            r#"{"uri":"a:b"}"#,
            Interest::Unsubscribe,
        );
        check(
            legacy,
            "logging/setLevel",
            r#"{"level":"alert"}"#,
            Interest::Level(LogLevel::Alert),
        );
        check(legacy, "subscriptions/listen", "{}", Interest::None);
        check(
            modern,
            "resources/subscribe",
            r#"{"uri":"a:b"}"#,
            Interest::None,
        );
        check(modern, "tools/call", r#"{"name":"a"}"#, Interest::None);
        let params = r#"{"notifications":{"promptsListChanged":true,"resourceSubscriptions":["a:b"],"taskIds":["t"]}}"#;
        let lists = vec![model::ListKind::Prompts];
        let filter = ListenFilter {
            lists,
            resources: vec!["a:b".into()],
            tasks: vec!["t".into()],
        };
        check(
            modern,
            "subscriptions/listen",
            params,
            Interest::Listen(Box::new(filter)),
        );
    }

    #[test]
    fn a_malformed_request_has_no_interest() {
        let check = |form, method, params, expected: &str| {
            let refusal = of(form, method, params).unwrap_err();
            assert_eq!(
                (refusal.code, &*refusal.message),
                (RefusalCode::Malformed, expected),
                "{params}"
            );
        };
        check(
            Form::Legacy,
            "logging/setLevel",
            r#"{"level":"loud"}"#,
            "unknown log level: loud",
        );
        check(
            Form::Legacy,
            "logging/setLevel",
            "{}",
            "unknown log level: ",
        );
        check(
            Form::Modern,
            "subscriptions/listen",
            "{}",
            "`params.notifications` is missing",
        );
    }
}
