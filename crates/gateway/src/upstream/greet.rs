//! The beginning of a session: which era the server speaks, and the handshake.
//!
//! It must not know when or why a session is opened.

use std::sync::Arc;

use bytes::Bytes;
use client::{Link, LinkFailure, SendMeta};
use json::{ObjectEdit, Span, Splice, elements, members, quote, text};
use model::Era;
use tokio::time::timeout;
use wire::mcp::{Version, code};
use wire::rpc::{Message, Shape, notification};

use super::fault::Fault;
use super::session::inbox::Ear;
use super::session::own::{Pending, member};
use super::session::{Greeting, Session};
use super::spec::{Dial, Questions};

/// Opens the link and greets the server; `era` is what it is known to speak, nothing means find out.
pub(super) async fn open(session: &Arc<Session>, era: Option<Era>) -> Result<(), Fault> {
    let opening = &session.opening;
    let ear = || Arc::new(Ear(Arc::downgrade(session)));
    let dial =
        opening.spec.dial(opening.older).map_err(|refusal| Fault::Answer(refusal.message.into_owned()))?;
    let link = match &dial {
        Dial::Stdio(spec) => Link::stdio(spec, ear(), opening.guard.clone()).map_err(|error| {
            Fault::Link(LinkFailure::Unreachable(format!("the process cannot be started: {error}")))
        })?,
        Dial::Http(spec) => Link::http(spec, ear())?,
        Dial::Sse(spec) => Link::sse(spec, ear()).await?,
        Dial::Demo => Link::local(Arc::new(crate::demo::serve), ear()),
        Dial::Participant => match &opening.dialer {
            Some(dialer) => dialer.dial(ear())?,
            None => return Err(LinkFailure::Away.into()),
        },
    };
    let stdio = matches!(dial, Dial::Stdio(_) | Dial::Demo);
    let sse = matches!(dial, Dial::Sse(_));
    session.set_link(link);
    match era {
        Some(Era::Modern) => {
            let answer = session.result(Era::Modern, "server/discover", &[]).await?;
            session.set_greeting(discovered(&answer)?);
        }
        Some(Era::Legacy) => initialize(session, None).await?,
        None if sse => initialize(session, None).await?,
        None if stdio => probe_stdio(session).await?,
        None => probe_http(session).await?,
    }
    Ok(())
}

/// Asks a child whether it is modern; after a short time, or an error, greets it as a legacy one. A late yes still
/// counts: a server may need longer to start than the probe waits.
async fn probe_stdio(session: &Arc<Session>) -> Result<(), Fault> {
    let start = session.opening.spec.config.timeouts.start;
    let mut probe = session.ask(Era::Modern, "server/discover", &[], Some(start))?;
    match timeout(session.opening.spec.bounds.probe, probe.answer()).await {
        Ok(answer) => match judge(answer)? {
            Some(greeting) => session.set_greeting(greeting),
            None => initialize(session, None).await?,
        },
        Err(_) => {
            tracing::debug!(
                server = session.upstream(),
                "no answer to the modern probe; trying the legacy handshake"
            );
            initialize(session, Some(probe)).await?;
        }
    }
    Ok(())
}

async fn probe_http(session: &Arc<Session>) -> Result<(), Fault> {
    let patience = session.opening.spec.config.timeouts.start;
    let answer = session.ask(Era::Modern, "server/discover", &[], Some(patience))?.answer().await;
    match answer {
        // A server that is not there, or wants other credentials, has said nothing about its era.
        Err(
            fault @ Fault::Link(
                LinkFailure::Unreachable(_) | LinkFailure::Untrusted(_) | LinkFailure::Unauthorized,
            ),
        ) => {
            return Err(fault);
        }
        answer => match judge(answer).unwrap_or(None) {
            Some(greeting) => session.set_greeting(greeting),
            None => {
                // A legacy server may have given the probe a session of its own.
                if let Some(link) = session.link() {
                    link.forget_session();
                }
                initialize(session, None).await?;
            }
        },
    }
    Ok(())
}

/// What the answer to a probe says: modern with this greeting, or not modern. The end of the link is a fault.
fn judge(answer: Result<Message, Fault>) -> Result<Option<Greeting>, Fault> {
    match answer {
        Ok(message) if message.shape() == Shape::Result => Ok(discovered(&message).ok()),
        Ok(message) => Ok(modern_error(&message)),
        Err(fault @ Fault::Link(LinkFailure::Exited { .. } | LinkFailure::Closed)) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// A server that knows the modern codes is modern, even if it dislikes the probe: it has named its versions.
fn modern_error(message: &Message) -> Option<Greeting> {
    let error = message.error_object()?;
    let supported = match error.code {
        code::UNSUPPORTED_VERSION => {
            let data = Bytes::copy_from_slice(error.data?);
            versions(&member(&data, "supported")?)
        }
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY => vec![Version::NEWEST],
        _ => return None,
    };
    let modern = *supported.iter().filter(|version| version.era() == Era::Modern).max()?;
    Some(Greeting {
        era: Era::Modern,
        version: modern,
        raw: Bytes::from_static(b"{}"),
        capabilities: Bytes::from_static(b"{}"),
        both: supported.iter().any(|version| version.era() == Era::Legacy),
    })
}

/// Reads the result of `server/discover`.
fn discovered(message: &Message) -> Result<Greeting, Fault> {
    let raw = result(message)?;
    let supported = member(&raw, "supportedVersions").map(|list| versions(&list)).unwrap_or_default();
    let modern = supported.iter().filter(|version| version.era() == Era::Modern).max();
    let Some(modern) = modern else {
        return Err(Fault::Answer("no modern revision in common".to_owned()));
    };
    Ok(Greeting {
        era: Era::Modern,
        version: *modern,
        capabilities: member(&raw, "capabilities").unwrap_or_else(|| Bytes::from_static(b"{}")),
        both: supported.iter().any(|version| version.era() == Era::Legacy),
        raw,
    })
}

fn versions(list: &Bytes) -> Vec<Version> {
    let spans = elements(list, Span::all(list)).unwrap_or_default();
    spans.iter().filter_map(|span| Version::parse(&text(span.of(list))?)).collect()
}

fn result(message: &Message) -> Result<Bytes, Fault> {
    match (message.shape(), message.body_span()) {
        (Shape::Result, Some(span)) => Ok(message.frame().slice(span.start..span.end)),
        (_, _) => {
            let what = message.error_object().map(|error| format!("error {}: {}", error.code, error.message));
            Err(Fault::Answer(what.unwrap_or_else(|| "no result".to_owned())))
        }
    }
}

/// The legacy handshake. With a `probe` still open, its late success wins.
pub(super) async fn initialize(session: &Arc<Session>, probe: Option<Pending>) -> Result<(), Fault> {
    let opening = &session.opening;
    let hello = opening.hello.as_ref();
    let version = hello.map_or(Version::NEWEST_LEGACY, |hello| Version::answer_to(hello.version.as_str()));
    let capabilities = hello.map_or_else(
        || Bytes::from_static(b"{}"),
        |hello| allowed(&hello.capabilities, opening.spec.questions),
    );
    let info = hello.and_then(|hello| hello.client_info.clone()).unwrap_or_else(|| opening.identity.clone());
    let params: [(&str, &[u8]); 3] = [
        ("protocolVersion", &quote(version.as_str()).into_bytes()),
        ("capabilities", &capabilities),
        ("clientInfo", &info),
    ];
    let patience = opening.spec.config.timeouts.start;
    let mut handshake = session.ask(Era::Legacy, "initialize", &params, Some(patience))?;
    let answer = match probe {
        None => handshake.answer().await?,
        Some(mut probe) => {
            let (answer, late) = tokio::select! {
                biased;
                late = probe.answer() => (None, Some(late)),
                answer = handshake.answer() => (Some(answer?), None),
            };
            // A modern server answers both, the handshake with an error.
            let late = match (&answer, late) {
                (Some(answer), _) if answer.shape() == Shape::Result => None,
                (Some(_), _) => Some(probe.answer().await),
                (None, late) => late,
            };
            if let Some(greeting) = late.map(judge).transpose()?.flatten() {
                session.set_greeting(greeting);
                return Ok(());
            }
            match answer {
                Some(answer) => answer,
                None => handshake.answer().await?,
            }
        }
    };
    let raw = result(&answer)?;
    let said = member(&raw, "protocolVersion").and_then(|raw| text(&raw).map(|said| said.into_owned()));
    let version = said.as_deref().and_then(Version::parse).filter(|version| version.era() == Era::Legacy);
    let Some(version) = version else {
        return Err(Fault::Answer("no legacy revision in common".to_owned()));
    };
    let capabilities = member(&raw, "capabilities").unwrap_or_else(|| Bytes::from_static(b"{}"));
    session.set_greeting(Greeting { era: Era::Legacy, version, capabilities, both: false, raw });
    if let Some(link) = session.link() {
        link.set_version(version.as_str());
        link.send(notification("notifications/initialized", None), SendMeta::default())?;
        link.listen();
    }
    Ok(())
}

/// The caller's capabilities without the questions that the configuration does not allow: a server must not believe
/// that it can ask what will be refused.
fn allowed(capabilities: &Bytes, questions: Questions) -> Bytes {
    let Ok(members) = members(capabilities, Span::all(capabilities)) else {
        return Bytes::from_static(b"{}");
    };
    let mut edit = ObjectEdit::new(&members);
    for (key, allowed) in
        [("sampling", questions.sampling), ("elicitation", questions.elicitation), ("roots", questions.roots)]
    {
        if !allowed {
            edit.remove(key);
        }
    }
    let mut splice = Splice::new();
    edit.finish(&mut splice);
    splice.apply(capabilities)
}
