//! Open requests of an HTTP link, the tasks that carry them out, and the state that these tasks
//! share.
//!
//! A task that is done with a request waits for the next one: that costs less than a new task for
//! each request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use foldhash::fast::RandomState;
use http::HeaderMap;
use platform::Mutex;
use tokio::{sync::oneshot, task::AbortHandle};

use super::{notes::Notes, peer::Peer};
use crate::{error::LinkError, transport::LinkInbox};

/// A request on its way to the server.
#[derive(Debug)]
pub(super) struct OutgoingRequest {
    pub(super) number: u64,
    pub(super) frame: Bytes,
    pub(super) headers: Option<Box<HeaderMap>>,
}

/// The open requests by number, and the tasks without one.
#[derive(Debug)]
pub(super) struct Requests {
    open: HashMap<u64, AbortHandle, RandomState>,
    idle: Vec<(AbortHandle, oneshot::Sender<OutgoingRequest>)>,
    idle_max: usize,
}

impl Requests {
    pub(super) fn new(idle_max: usize) -> Self {
        Self {
            open: HashMap::default(),
            idle: Vec::new(),
            idle_max,
        }
    }

    /// The number of open requests.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Opens a request: an idle task gets it, or the one that `spawn` starts.
    pub(super) fn open(
        &mut self,
        mut request: OutgoingRequest,
        spawn: impl FnOnce(OutgoingRequest) -> AbortHandle,
    ) {
        let number = request.number;
        while let Some((task, next)) = self.idle.pop() {
            match next.send(request) {
                Ok(()) => {
                    self.open.insert(number, task);
                    return;
                }
                Err(unsent) => request = unsent,
            }
        }
        self.open.insert(number, spawn(request));
    }

    /// Closes a request for the task that carried it out, and returns where its next one comes.
    /// `None` when the task is to end: the request was cancelled, or enough tasks are idle.
    pub(super) fn close(&mut self, number: u64) -> Option<oneshot::Receiver<OutgoingRequest>> {
        let task = self.open.remove(&number)?;
        if self.idle.len() >= self.idle_max {
            return None;
        }
        let (sender, next) = oneshot::channel();
        self.idle.push((task, sender));
        Some(next)
    }

    /// Ends the task of an open request. A request that is closed has no task any more, so that
    /// another request of the same task is never hit.
    pub(super) fn abort(&mut self, number: u64) {
        if let Some(task) = self.open.remove(&number) {
            task.abort();
        }
    }

    /// Ends all tasks.
    pub(super) fn abort_all(&mut self) {
        self.idle.clear();
        for (_, task) in self.open.drain() {
            task.abort();
        }
    }
}

/// State that the tasks of one link share.
pub(crate) struct LinkState {
    pub(crate) peer: Peer,
    pub(crate) inbox: Arc<dyn LinkInbox>,
    pub(super) notes: Notes,
    /// The task that reads the stream for messages that belong to no request.
    pub(crate) listener: Mutex<Option<AbortHandle>>,
    pub(super) requests: Mutex<Requests>,
    closed: AtomicBool,
}

impl LinkState {
    pub(crate) fn new(peer: Peer, inbox: Arc<dyn LinkInbox>) -> Self {
        Self {
            requests: Mutex::new(Requests::new(peer.limits.idle_connections_max)),
            peer,
            inbox,
            notes: Notes::default(),
            listener: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Ends the link: stops its tasks and reports the reason to the inbox. Does nothing when the
    /// link has ended before.
    pub(crate) fn end(&self, why: LinkError) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.requests.lock().abort_all();
        if let Some(listener) = self.listener.lock().take() {
            listener.abort();
        }
        self.inbox.closed(why);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    type SharedRequests = Arc<Mutex<Requests>>;

    /// A task that reports each request, and keeps those with an odd number open.
    async fn work(
        requests: SharedRequests,
        mut request: OutgoingRequest,
        report: mpsc::UnboundedSender<(u64, String)>,
    ) {
        loop {
            report
                .send((request.number, tokio::task::id().to_string()))
                .unwrap();
            if request.number % 2 == 1 {
                std::future::pending::<()>().await;
            }
            let next = requests.lock().close(request.number);
            let Some(next) = next else { return };
            let Ok(next) = next.await else { return };
            request = next;
        }
    }

    fn open(requests: &SharedRequests, number: u64, report: &mpsc::UnboundedSender<(u64, String)>) {
        let request = OutgoingRequest {
            number,
            frame: Bytes::new(),
            headers: None,
        };
        let shared = Arc::clone(requests);
        let report = report.clone();
        requests.lock().open(request, |request| {
            tokio::spawn(work(shared, request, report)).abort_handle()
        });
    }

    #[tokio::test]
    async fn an_idle_task_takes_the_next_request_and_an_aborted_one_none() {
        let requests = Arc::new(Mutex::new(Requests::new(1)));
        let (report, mut reports) = mpsc::unbounded_channel();
        let mut tasks = Vec::new();
        for number in [2, 4, 1, 6] {
            open(&requests, number, &report);
            let (reported, task) = reports.recv().await.unwrap();
            assert_eq!(reported, number);
            tasks.push(task);
            while requests.lock().open.contains_key(&2) || requests.lock().open.contains_key(&4) {
                tokio::task::yield_now().await;
            }
        }
        assert!(tasks[0] == tasks[1] && tasks[1] == tasks[2], "{tasks:?}");
        assert_ne!(tasks[2], tasks[3], "the third request is open");
        requests.lock().abort(1);
        // The number of a closed request: its task is idle, and stays.
        requests.lock().abort(6);
        open(&requests, 8, &report);
        assert_eq!(reports.recv().await, Some((8, tasks[3].clone())));
    }

    #[tokio::test]
    async fn tasks_beyond_the_limit_end_and_so_do_all_in_the_end() {
        let requests = Arc::new(Mutex::new(Requests::new(1)));
        let (report, mut reports) = mpsc::unbounded_channel();
        for number in [2, 4, 1] {
            open(&requests, number, &report);
        }
        for _ in 0..3 {
            reports.recv().await.unwrap();
        }
        while requests.lock().len() > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(requests.lock().idle.len(), 1);
        requests.lock().abort_all();
        drop(report);
        assert_eq!(
            (reports.recv().await, requests.lock().len()),
            (None, 0),
            "a task lives on"
        );
    }
}
