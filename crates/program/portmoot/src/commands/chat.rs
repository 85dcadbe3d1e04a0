//! Command `chat`: a topic at the terminal. The crate `chat` does it; here are its arguments and
//! its way to the gateway.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use ::chat::{ChatError, ChatSettings};
use participant::{ConnectError, Mode, ParticipantSpec};

use crate::cli::{OutputArgs, RunningArgs};
use crate::commands::target::running;
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// The gateway's REST API for the chat.
struct ApiOf(Arc<Remote>);

type Query = Vec<(&'static str, String)>;

fn borrowed<'q>(
    segments: &'q [String],
    query: &'q Query,
) -> (Vec<&'q str>, Vec<(&'q str, &'q str)>) {
    let query = query
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    (segments.iter().map(String::as_str).collect(), query)
}

fn refused(failure: Failure) -> ::chat::ApiRefusal {
    ::chat::ApiRefusal {
        code: Some(failure.code),
        message: failure.message,
        hint: failure.hint,
    }
}

impl ::chat::Api for ApiOf {
    fn get(&self, segments: Vec<String>, query: Query) -> ::chat::ApiReply<String> {
        let gateway = Arc::clone(&self.0);
        Box::pin(async move {
            let (segments, query) = borrowed(&segments, &query);
            api::get(&*gateway, &segments, &query)
                .await
                .map(|answer| answer.text)
                .map_err(refused)
        })
    }

    fn post(&self, segments: Vec<String>, query: Query, body: String) -> ::chat::ApiReply<String> {
        let gateway = Arc::clone(&self.0);
        Box::pin(async move {
            let (segments, query) = borrowed(&segments, &query);
            api::post(&*gateway, &segments, &query, body)
                .await
                .map(|answer| answer.text)
                .map_err(refused)
        })
    }
}

pub(crate) async fn run(
    topic: &str,
    lines: bool,
    gateway: &RunningArgs,
    talk: OutputArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let gateway = running(gateway, output)?;
    let spec =
        ParticipantSpec::new(&gateway.url, gateway.token.as_deref(), topic).receiving(Mode::All);
    let spec = ParticipantSpec {
        tls: gateway.tls.clone(),
        ..spec
    };
    let gateway = Arc::new(gateway.endpoint()?);
    let api = Arc::new(ApiOf(Arc::clone(&gateway)));
    let colour = output.is_colourful(io::stdout().is_terminal());
    let chat = ChatSettings {
        spec,
        api,
        output: Arc::new(output),
        json: talk.json,
        lines,
        colour,
    };
    match ::chat::run(chat).await {
        Ok(()) => Ok(Exit::Ok),
        Err(ChatError::Connect(why)) => Err(failure(why, &gateway).await),
        Err(error @ ChatError::Terminal(_)) => {
            Err(Failure::new(Exit::Failed, "no_terminal", error.to_string()))
        }
    }
}

/// Why the chat cannot begin: in the words of `status`, if that cannot reach the gateway either.
async fn failure(why: ConnectError, gateway: &Remote) -> Failure {
    let is_of_way = !matches!(
        why,
        ConnectError::Unauthenticated(_) | ConnectError::Forbidden(_) | ConnectError::Replaced
    );
    if is_of_way && let Err(seen) = api::probe(gateway, "/healthz").await {
        return seen;
    }
    let (exit, code) = match &why {
        ConnectError::BadUrl(_) => (Exit::Usage, "bad_url"),
        ConnectError::Unauthenticated(_) => (Exit::Unauthenticated, "unauthenticated"),
        ConnectError::Forbidden(_) => (Exit::Refused, "forbidden"),
        ConnectError::Unreachable(_) => (Exit::Failed, "gateway_unreachable"),
        ConnectError::Http { .. } => (Exit::Failed, "gateway_status"),
        ConnectError::Broken(_) | ConnectError::Closed => (Exit::Failed, "gateway_broken"),
        ConnectError::Replaced => (Exit::Failed, "replaced"),
    };
    let failure = Failure::new(exit, code, why.to_string());
    match exit {
        Exit::Unauthenticated => failure.needs_token(),
        _ => failure,
    }
}
