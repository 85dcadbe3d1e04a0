//! One call of proto-mcp's service: its deadline, its request in the topic, its answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{AwaitedCall, Call, Reply, Respell};
use http::HeaderMap;
use model::{Answer, Refusal, RefusalCode};
use platform::{Mutex, Share};
use telemetry::trace::CallerTrace;
use tokio::sync::oneshot;
use tonic::{Response, Status};
use transcode::client::Wanted;
use wire::proto::{PayloadKind, is_message};

use super::super::connection::Visit;
use super::status;
use crate::links::ClientLinks;
use crate::outlet::Visitor;
use crate::proto::{Client, Declared, Disposition, Schemas, field_of};
use crate::unread::{UNCOUNTED_BYTES_MAX, too_many};

/// The longest time that the digits of `grpc-timeout` may say.
const TIMEOUT_DIGITS_MAX: usize = 8;

/// A call that came in.
pub(super) struct Rpc {
    /// The links of all clients.
    pub(super) links: Arc<ClientLinks>,
    /// The caller's participant in its topic.
    pub(super) visit: Arc<Visit>,
    /// The gateway as the caller names it.
    pub(super) host: Option<Arc<str>>,
    /// Whether its client reads schemas by reference.
    pub(super) references: bool,
    /// Kind of the call's message.
    pub(super) kind: PayloadKind,
    /// The trace that its metadata names, if it names one.
    pub(super) trace: Option<Box<CallerTrace>>,
    /// The address from which it came.
    pub(super) address: Option<IpAddr>,
    /// Time that its caller waits.
    pub(super) timeout: Result<Option<Duration>, Status>,
    /// The longest message, in bytes.
    pub(super) bytes_max: usize,
}

impl Rpc {
    /// Answers the call. Dropping the future cancels it.
    ///
    /// # Errors
    /// The status to send instead.
    pub(super) async fn call(&self, message: Bytes) -> Result<Response<Bytes>, Status> {
        let answer = match self.timeout.clone()? {
            None => self.answer(message).await?,
            Some(wait) => tokio::time::timeout(wait, self.answer(message))
                .await
                .map_err(|_| {
                    Status::deadline_exceeded("the call took longer than its caller waits")
                })??,
        };
        let mut response = Response::new(answer);
        let len = response.get_ref().len();
        if len > UNCOUNTED_BYTES_MAX {
            // Given back with the response.
            let taken = self
                .visit
                .held
                .take(len)
                .map_err(|_| status::of_refusal(&too_many(), ""))?;
            response.extensions_mut().insert(Arc::new(taken));
        }
        Ok(response)
    }

    async fn answer(&self, message: Bytes) -> Result<Bytes, Status> {
        let method = if self.kind == PayloadKind::CallToolRequest {
            "tools/call"
        } else {
            ""
        };
        let refused = |refusal: Refusal| status::of_refusal(&refusal, method);
        if message.len() > self.bytes_max {
            let why = format!(
                "the message has {} bytes, which is beyond the limit",
                message.len()
            );
            return Err(refused(Refusal::new(RefusalCode::TooLarge, why)));
        }
        if !is_message(&message) {
            return Err(status::unreadable());
        }
        let Visitor {
            dispatch,
            participant,
        } = &self.visit.visitor;
        let joined = self.links.unary(&self.visit.visitor).map_err(refused)?;
        let visitor = Visitor {
            dispatch: Arc::clone(dispatch),
            participant: Arc::clone(participant),
        };
        let link = Arc::clone(&joined.link);
        let registry = Arc::clone(&self.links.registry);
        let declared = Declared {
            references: self.references,
            ..Declared::default()
        };
        let host = self.host.clone();
        let mut client = Client {
            visitor,
            link,
            registry,
            host,
            declared,
            sessionless: true,
            trace: self.trace.clone(),
            address: self.address,
        };
        let field = match client
            .take(None, self.kind, self.kind.field(&message))
            .await
            .map_err(refused)?
        {
            Disposition::Answered(field) => field,
            Disposition::Request(incoming, wanted) => {
                let (answered, answer) = oneshot::channel();
                let answered = Mutex::new(Some(answered));
                let held = Arc::clone(&self.visit.held);
                let reply = UnaryReply {
                    answered,
                    schemas: client.schemas(),
                    wanted,
                    held,
                };
                let call = dispatch.request(client.requester(), *incoming, Arc::new(reply));
                let answer = AwaitedCall::new(dispatch, call).answer(answer).await;
                answer.unwrap_or_else(|| Err(Status::cancelled("the call was cancelled")))?
            }
        };
        match PayloadKind::split(&field) {
            Some((PayloadKind::ErrorResponse, error)) => Err(status::of_error(&error)),
            Some((_, message)) => Ok(message),
            None => Err(Status::internal("the answer cannot be read")),
        }
    }
}

/// The reply of a call: one message, or one status.
struct UnaryReply {
    answered: Mutex<Option<oneshot::Sender<Result<Bytes, Status>>>>,
    schemas: Schemas,
    wanted: Wanted,
    held: Arc<Share>,
}

impl UnaryReply {
    fn send(&self, answer: Result<Bytes, Status>) {
        if let Some(answered) = self.answered.lock().take() {
            // A caller that has left needs none.
            let _ = answered.send(answer);
        }
    }
}

impl Reply for UnaryReply {
    fn settle(&self, call: &Call, answer: &Answer, respell: &Respell<'_>) {
        let field = field_of(&self.schemas, call, answer, respell, &self.wanted);
        let field = field.and_then(|field| {
            if self.held.has_room(field.len()) {
                Ok(field)
            } else {
                Err(too_many())
            }
        });
        self.send(
            field.map_err(|refusal| status::of_refusal(&refusal, call.request.method.as_str())),
        );
    }

    fn refuse(&self, call: &Call, refusal: &Refusal) {
        self.send(Err(status::of_refusal(
            refusal,
            call.request.method.as_str(),
        )));
    }

    fn abandon(&self, _: &Call) {
        *self.answered.lock() = None;
    }
}

/// Time that the caller waits (`grpc-timeout`).
///
/// # Errors
/// It cannot be read.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let read = || {
        let (digits, unit) = value
            .to_str()
            .ok()?
            .split_at_checked(value.len().checked_sub(1)?)?;
        let amount: u64 = digits
            .parse()
            .ok()
            .filter(|_| digits.len() <= TIMEOUT_DIGITS_MAX)?;
        Some(match unit {
            "H" => Duration::from_secs(amount * 3600),
            "M" => Duration::from_secs(amount * 60),
            "S" => Duration::from_secs(amount),
            "m" => Duration::from_millis(amount),
            "u" => Duration::from_micros(amount),
            "n" => Duration::from_nanos(amount),
            _ => return None,
        })
    };
    read()
        .map(Some)
        .ok_or_else(|| Status::invalid_argument("grpc-timeout cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_digits_and_a_unit() {
        for (text, expected) in [
            ("1S", Some(Duration::from_secs(1))),
            ("2M", Some(Duration::from_secs(120))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("250m", Some(Duration::from_millis(250))),
            ("5u", Some(Duration::from_micros(5))),
            ("7n", Some(Duration::from_nanos(7))),
            ("100000000S", None),
            ("S", None),
            ("", None),
            ("1", None),
            ("-1S", None),
        ] {
            let mut headers = HeaderMap::new();
            assert_eq!(timeout(&headers).unwrap(), None);
            headers.insert("grpc-timeout", text.parse().unwrap());
            assert_eq!(timeout(&headers).ok().flatten(), expected, "{text}");
        }
    }
}
