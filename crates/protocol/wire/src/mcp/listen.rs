//! Listen requests (2026-07-28, "Subscriptions"): the filter, and the acknowledgement that comes
//! first.

use std::borrow::Cow;
use std::collections::HashSet;

use json::{Members, Span};
use model::{Form, ListKind, ListenFilter, Method, Notice, Payload, Request};

use super::meta;
use crate::rpc::Id;

/// Resources that one listen request may name, repeated ones included.
pub(crate) const LISTEN_URIS_MAX: usize = 256;
/// Tasks that one listen request may name, repeated ones included.
pub(crate) const LISTEN_TASKS_MAX: usize = 256;
/// The method of the acknowledgement.
pub(crate) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The lists that a filter may name, by its members.
const LISTS: [(&str, ListKind); 3] = [
    ("toolsListChanged", ListKind::Tools),
    ("promptsListChanged", ListKind::Prompts),
    ("resourcesListChanged", ListKind::Resources),
];
const RESOURCES: &str = "resourceSubscriptions";
const TASKS: &str = "taskIds";

/// Reads the filter of a listen request. Each name occurs once, in the order of the request.
///
/// # Errors
/// The fault of the params, in words for the caller: no filter, members of another type, more names
/// than `LISTEN_URIS_MAX` or `LISTEN_TASKS_MAX`.
pub fn filter(request: &Request) -> Result<ListenFilter, String> {
    let params = request.payload.body_bytes();
    let missing = || "`params.notifications` is missing".to_owned();
    let params = json::members(params, Span::all(params)).map_err(|_| missing())?;
    let filter = params.get("notifications").ok_or_else(missing)?.raw;
    let members = json::members(filter, Span::all(filter)).map_err(|error| error.to_string())?;
    let on = |key: &str| members.get(key).is_some_and(|member| member.raw == b"true");
    Ok(ListenFilter {
        lists: LISTS
            .iter()
            .filter(|(key, _)| on(key))
            .map(|(_, list)| *list)
            .collect(),
        resources: names(&members, RESOURCES, LISTEN_URIS_MAX, "resources")?,
        tasks: names(&members, TASKS, LISTEN_TASKS_MAX, "tasks")?,
    })
}

/// Reads an array of strings; absent, it is empty.
fn names<S: From<String>>(
    members: &Members<'_>,
    key: &str,
    max: usize,
    what: &str,
) -> Result<Vec<S>, String> {
    let Some(member) = members.get(key) else {
        return Ok(Vec::new());
    };
    let wrong = || format!("`{key}` must be an array of strings");
    let spans = json::elements(member.raw, Span::all(member.raw)).map_err(|_| wrong())?;
    if spans.len() > max {
        return Err(format!("at most {max} {what} in one listen request"));
    }
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for span in spans {
        let name = json::text(span.of(member.raw))
            .map(Cow::into_owned)
            .ok_or_else(wrong)?;
        if seen.insert(name.clone()) {
            names.push(name.into());
        }
    }
    Ok(names)
}

/// The notification that lists the notifications which the gateway agrees to send.
#[must_use]
pub fn acknowledgement<S: AsRef<str>>(lists: &[ListKind], resources: &[S], tasks: &[S]) -> Notice {
    let body = json::object(|params| {
        params.object("notifications", |filter| {
            for (key, _) in LISTS.iter().filter(|(_, list)| lists.contains(list)) {
                filter.bool(key, true);
            }
            for (key, names) in [(RESOURCES, resources), (TASKS, tasks)] {
                if !names.is_empty() {
                    filter.texts(key, names);
                }
            }
        });
    });
    let payload = Payload::body(Form::Modern, body);
    Notice {
        method: Method::Known(ACKNOWLEDGED),
        latest: None,
        payload,
    }
}

/// The result that ends a listen request.
#[must_use]
pub fn ended(request: &Id) -> Vec<u8> {
    json::object(|result| {
        result
            .text("resultType", "complete")
            .object("_meta", |keys| {
                keys.raw(meta::SUBSCRIPTION_ID, request.raw());
            });
    })
}

/// The tasks that an acknowledgement agrees to; `None` if the notification is no acknowledgement.
#[must_use]
pub fn agreed_tasks(notice: &Notice) -> Option<Vec<String>> {
    if notice.method.as_str() != ACKNOWLEDGED {
        return None;
    }
    let agreed = || {
        let filter = json::at(notice.payload.body_bytes(), &["notifications"])?;
        names(
            &json::members(filter, Span::all(filter)).ok()?,
            TASKS,
            usize::MAX,
            "tasks",
        )
        .ok()
    };
    Some(agreed().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;
    use crate::mcp::{Params, relay};
    use crate::rpc::{self, Message};

    fn read(params: &Value) -> Result<ListenFilter, String> {
        let params = params.to_string();
        let id = rpc::Id::number(1);
        let message = Message::read(rpc::request(
            &id,
            "subscriptions/listen",
            Some(params.as_bytes()),
        ))
        .unwrap();
        filter(&relay::decode_request(
            &Params::read(&message).unwrap(),
            Form::Modern,
        ))
    }

    fn of(filter: &Value) -> Result<ListenFilter, String> {
        read(&json!({ "notifications": filter }))
    }

    #[test]
    fn a_filter_has_limits() {
        for (key, max) in [(RESOURCES, LISTEN_URIS_MAX), (TASKS, LISTEN_TASKS_MAX)] {
            let names = |many: usize| {
                (0..many)
                    .map(|number| number.to_string())
                    .collect::<Vec<_>>()
            };
            let ListenFilter {
                resources, tasks, ..
            } = of(&json!({ (key): names(max) })).unwrap();
            assert!(
                resources
                    .into_iter()
                    .chain(tasks)
                    .eq(names(max).into_iter().map(Into::into))
            );
            let refused = of(&json!({ (key): names(max + 1) })).unwrap_err();
            assert!(refused.starts_with(&format!("at most {max} ")), "{refused}");
            assert!(of(&json!({ (key): vec!["again"; max + 1] })).is_err());
            assert_eq!(
                of(&json!({ (key): [1] })),
                Err(format!("`{key}` must be an array of strings"))
            );
            assert_eq!(
                of(&json!({ (key): "a" })),
                Err(format!("`{key}` must be an array of strings"))
            );
        }
        let twice = of(&json!({ "taskIds": ["t", "u", "t"], "resourceSubscriptions": ["a", "a"] }))
            .unwrap();
        assert_eq!(
            (twice.tasks, twice.resources),
            (vec!["t".into(), "u".into()], vec!["a".into()])
        );
    }

    #[test]
    fn a_filter_is_required() {
        for params in [
            json!({}),
            json!({ "notifications": null }),
            json!({ "notifications": [] }),
        ] {
            assert!(read(&params).is_err(), "{params}");
        }
        assert_eq!(of(&json!({})), Ok(ListenFilter::default()));
        let lists = of(
            &json!({ "resourcesListChanged": true, "toolsListChanged": true, "promptsListChanged": 1 }),
        );
        assert_eq!(lists.unwrap().lists, [ListKind::Tools, ListKind::Resources]);
    }

    #[test]
    fn the_acknowledgement_names_what_is_agreed() {
        let text =
            |notice: &Notice| String::from_utf8(notice.payload.body_bytes().to_vec()).unwrap();
        let none: [&str; 0] = [];
        let empty = acknowledgement(&[], &none, &none);
        assert_eq!(
            (text(&empty).as_str(), agreed_tasks(&empty)),
            (r#"{"notifications":{}}"#, Some(vec![]))
        );
        let lists = [ListKind::Resources, ListKind::Tools];
        let notice = acknowledgement(&lists, &["a:\"b\""], &["t\n", "u"]);
        assert_eq!(
            text(&notice),
            r#"{"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:\"b\""],"taskIds":["t\n","u"]}}"#
        );
        assert_eq!(
            agreed_tasks(&notice),
            Some(vec!["t\n".to_owned(), "u".to_owned()])
        );
        let frame = relay::encode_notice(&notice, None);
        assert_eq!(Message::read(frame).unwrap().method(), ACKNOWLEDGED);
        let payload = Payload::body(Form::Modern, Bytes::from_static(b"{}"));
        let other = Notice {
            method: Method::Known("notifications/progress"),
            latest: None,
            payload,
        };
        assert_eq!(agreed_tasks(&other), None);
    }
}
