//! Operation `batch`: several operations one after the other, each admitted on its own (appendix
//! A.1).

use std::sync::{Arc, Weak};

use model::{Answer, ParticipantId, Payload, Refusal, Request};
use platform::Mutex;
use tokio::sync::oneshot;
use wire::mcp::proxy::{
    BatchResult, NAME, NOT_IN_A_BATCH, ProxyCall as Called, ProxyRequest, ProxySubject, batched,
    operated, operation_params,
};
use wire::mcp::{result::words, task};

use super::look;
use super::reply::Wrapped;
use super::unwrapped::request_with;
use crate::call::{Call, Reply};
use crate::link::{Passed, Questioned, Respell, Undelivered};
use crate::live::Event;
use crate::{dispatch::Dispatch, incoming::Incoming, questions};

/// The results of one batch, in bytes together. What is longer is left out, and the operation says
/// so.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Carries out the operations in order. If the call is cancelled, the operation under way is
/// cancelled too and no other begins.
pub(super) fn run(
    dispatch: Arc<Dispatch>,
    call: Arc<Call>,
    operations: Vec<Vec<u8>>,
) -> impl Future<Output = Result<Vec<u8>, Refusal>> + Send {
    // While the call is delivered: it may be cancelled before the operations begin.
    let _ = call.cancelled();
    carry_out_all(dispatch, call, operations)
}

async fn carry_out_all(
    dispatch: Arc<Dispatch>,
    call: Arc<Call>,
    operations: Vec<Vec<u8>>,
) -> Result<Vec<u8>, Refusal> {
    let cancelled = call.cancelled();
    let form = call.request.payload.form;
    let mut results = Vec::with_capacity(operations.len());
    let mut bytes = 0;
    for operation in operations {
        let ended = tokio::select! {
            // In this order: an operation that is polled has begun.
            biased;
            () = cancelled.notified() => break,
            ended = one(&dispatch, &call, &operation) => ended?,
        };
        let result = within(ended, &mut bytes, form);
        results.push(BatchResult { operation, result });
    }
    Ok(batched(&results, form))
}

/// A result, or if there is no room for it a text that says so.
fn within(result: Vec<u8>, bytes: &mut usize, form: model::Form) -> Vec<u8> {
    *bytes = bytes.saturating_add(result.len());
    if *bytes <= BATCH_BYTES_MAX {
        return result;
    }
    *bytes -= result.len();
    words(
        "the operation was carried out; its result is too long for a batch: call it on its own",
        true,
        form,
    )
}

/// The end of one operation, as a result of the tool.
async fn one(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    operation: &[u8],
) -> Result<Vec<u8>, Refusal> {
    let form = call.request.payload.form;
    let fault = |why: &str| {
        Ok(words(
            &format!("Error calling tool '{NAME}': {why}"),
            true,
            form,
        ))
    };
    match ProxyRequest::read(operation) {
        Err(why) => Ok(words(&why, true, form)),
        Ok(ProxyRequest::Batch(_)) => fault("a batch cannot be part of a batch"),
        Ok(ProxyRequest::Call(called))
            if called.subject == ProxySubject::Tool && called.path == NAME =>
        {
            fault("a batch cannot call 'proxy': make its operations part of the batch")
        }
        Ok(ProxyRequest::Call(called)) => carry_out(dispatch, call, called).await,
        Ok(ProxyRequest::Look(of)) => look::up(Arc::clone(dispatch), Arc::clone(call), of).await,
    }
}

/// Makes a call as a request of the batch's caller. Dropped before its end, it cancels the call.
async fn carry_out(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    called: Called,
) -> Result<Vec<u8>, Refusal> {
    let form = call.request.payload.form;
    let params = operation_params(&called, call.request.payload.body_bytes())
        .map_err(|error| Refusal::new(model::RefusalCode::Malformed, error.to_string()))?;
    let request = request_with(&called, Payload::body(form, params), &call.request);
    // What its caller cannot have in a batch is not offered to the server.
    let request = Request {
        progress: None,
        ..task::plain(&request).unwrap_or(request)
    };
    let (ended, end) = oneshot::channel();
    let reply = Operation::new(dispatch, call, ended);
    let reply = Wrapped::new(Arc::new(reply), called.subject, called.path);
    let incoming = Incoming {
        client: call.client.clone(),
        ..Incoming::plain(request, None)
    };
    let inner = dispatch.request(call.requester(), incoming, Arc::new(reply));
    let open = Open {
        dispatch,
        inner: &inner,
    };
    let end = end.await;
    // Now, as an operation that asked its caller something has ended while its call is open.
    drop(open);
    Ok(end.unwrap_or_else(|_| words("the operation was cancelled", true, form)))
}

/// An operation under way.
struct Open<'o> {
    dispatch: &'o Arc<Dispatch>,
    inner: &'o Call,
}

impl Drop for Open<'_> {
    /// Mostly it is over, and the topic ignores this.
    fn drop(&mut self) {
        self.dispatch.abandon(self.inner);
    }
}

/// The reply of one operation: its end goes to the batch, what comes before to the caller of the
/// batch. The batch is another call, with an order of its own: what goes to its caller goes into its
/// mailbox, by a step from inside an effect of the operation.
struct Operation {
    dispatch: Weak<Dispatch>,
    batch: Arc<Call>,
    end: Arc<OperationEnd>,
}

/// Where the result of an operation goes.
struct OperationEnd(Mutex<Option<oneshot::Sender<Vec<u8>>>>);

impl OperationEnd {
    fn send(&self, result: Vec<u8>) {
        if let Some(ended) = self.0.lock().take() {
            // A batch that has ended waits for nothing.
            let _ = ended.send(result);
        }
    }

    /// The operation has no result.
    fn cancel(&self) {
        drop(self.0.lock().take());
    }
}

impl Operation {
    fn new(dispatch: &Arc<Dispatch>, batch: &Arc<Call>, ended: oneshot::Sender<Vec<u8>>) -> Self {
        Self {
            dispatch: Arc::downgrade(dispatch),
            batch: Arc::clone(batch),
            end: Arc::new(OperationEnd(Mutex::new(Some(ended)))),
        }
    }
}

impl Reply for Operation {
    fn settle(&self, call: &Call, answer: &Answer, _: &Respell<'_>) {
        self.end.send(operated(
            answer,
            call.request.method.as_str(),
            call.link.form,
        ));
    }

    fn refuse(&self, call: &Call, refusal: &Refusal) {
        let result = words(&refusal.to_string(), true, call.link.form);
        self.end.send(result);
    }

    fn abandon(&self, _: &Call) {
        self.end.cancel();
    }

    fn notify(&self, _: &Call, notice: &Passed<'_>) -> Result<(), Undelivered> {
        if let Some(dispatch) = self.dispatch.upgrade() {
            dispatch.take(Event::Notice {
                server: &ParticipantId::gateway(),
                subject: topic::Subject::Call(self.batch.id),
                level: None,
                notice: Arc::new(notice.notice.clone()),
            });
        }
        Ok(())
    }

    /// The question is one about this operation, and is withdrawn with it; it only uses the way of
    /// the batch. A batch that is over asks nothing.
    fn ask(&self, call: &Call, question: &Questioned<'_>) -> Result<(), Undelivered> {
        let Some(dispatch) = self.dispatch.upgrade() else {
            return Err(Undelivered::OtherForm);
        };
        let Questioned {
            operation, number, ..
        } = *question;
        let request = question.request.clone();
        let delivered = call.delivered.get();
        let server = delivered.map(|delivered| delivered.server.clone());
        let end = Arc::clone(&self.end);
        dispatch.proceed(self.batch.id, move |dispatch, batch| {
            let link = batch.link.id;
            let respell = |own: &str| dispatch.respelled(link, server.as_ref()?, own);
            let question = Questioned {
                operation,
                number,
                request: &request,
                respell: &respell,
            };
            let Err(why) = batch.reply().ask(&question) else {
                return;
            };
            // Its end cancels the call at the server.
            match why {
                Undelivered::OtherForm => end.send(words(NOT_IN_A_BATCH, true, batch.link.form)),
                Undelivered::Overrun => end.cancel(),
            }
            questions::unasked(dispatch, operation, link, why);
        });
        Ok(())
    }

    fn withdraw_question(&self, _: &Call, number: u64) {
        let withdrawal = Withdrawal {
            batch: Arc::clone(&self.batch),
            number,
        };
        if let Some(dispatch) = self.dispatch.upgrade() {
            dispatch.proceed(self.batch.id, move |_, _| drop(withdrawal));
        }
    }
}

/// Withdraws a question from the caller of a batch when it is dropped: in the mailbox of the batch,
/// or, if the batch is over, at once.
struct Withdrawal {
    batch: Arc<Call>,
    /// The number by which its client would answer.
    number: u64,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.batch.reply().withdraw_question(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use model::{Form, Method, OperationId};

    use super::*;
    use crate::link::NoOutlet;
    use crate::mailboxes::tests::Scene;

    /// Counts the questions to a caller.
    #[derive(Default)]
    struct Asked(AtomicUsize);

    impl Reply for Asked {
        fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {}

        fn refuse(&self, _: &Call, _: &Refusal) {}

        fn ask(&self, _: &Call, _: &Questioned<'_>) -> Result<(), Undelivered> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_batch_that_is_over_asks_nothing() {
        let scene = Scene::new();
        let link = scene.join(Arc::new(NoOutlet));
        let asked = Arc::<Asked>::default();
        let batch = scene.call(&link, Arc::<Asked>::clone(&asked));
        let (ended, _end) = oneshot::channel();
        let operation = Operation::new(&scene.dispatch, &batch, ended);
        let request = Request {
            method: Method::Known("roots/list"),
            target: None,
            progress: None,
            payload: Payload::body(Form::Legacy, "{}"),
        };
        let question = Questioned {
            operation: OperationId(7),
            number: 7,
            request: &request,
            respell: &|_| None,
        };
        operation.ask(&batch, &question).unwrap();
        assert_eq!(asked.0.load(Ordering::Relaxed), 1);
        scene.answer(batch.id);
        operation.ask(&batch, &question).unwrap();
        assert_eq!(asked.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn results_of_a_batch_are_bounded_together() {
        let mut bytes = 0;
        let full = within(vec![b'x'; BATCH_BYTES_MAX], &mut bytes, Form::Legacy);
        assert_eq!(full.len(), BATCH_BYTES_MAX);
        let longer = within(b"y".to_vec(), &mut bytes, Form::Legacy);
        assert!(
            String::from_utf8(longer)
                .unwrap()
                .contains("too long for a batch")
        );
        assert_eq!(within(Vec::new(), &mut bytes, Form::Legacy), b"");
    }
}
