//! A world driven by tokio's clock.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use platform::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::world::{
    Faults, Happened, LogAnswer, LogCommand, NodeNumber, SubscriptionNumber, Ticket, World,
};
use crate::bus::{Bus, BusError, BusSubscription, Waiting};
use crate::log::{
    Append, Appended, FRAME_BYTES_MAX, Log, LogError, Ongoing, Page, Record, Sequence,
};
use crate::subject::{SubjectName, SubjectPattern};

/// A simulated log and bus for nodes on one runtime. With a paused clock and one thread, all that
/// happens follows from the seed.
#[derive(Debug, Clone)]
pub struct Simulated(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    changed: Notify,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    world: World,
    answers: HashMap<Ticket, oneshot::Sender<LogAnswer>>,
    subscriptions: HashMap<SubscriptionNumber, Arc<Waiting>>,
}

/// A node of a simulated log and bus.
#[derive(Debug, Clone)]
pub struct SimulatedNode {
    shared: Arc<Shared>,
    number: NodeNumber,
}

impl Simulated {
    /// A world that lives as long as this, its copies and nodes. Must be called in a runtime.
    #[must_use]
    pub fn new(seed: u64, faults: Faults) -> Self {
        let shared = Arc::new(Shared {
            start: Instant::now(),
            changed: Notify::new(),
            state: Mutex::new(State {
                world: World::new(seed, faults),
                answers: HashMap::new(),
                subscriptions: HashMap::new(),
            }),
        });
        tokio::spawn(drive(Arc::downgrade(&shared)));
        Self(shared)
    }

    /// A node.
    #[must_use]
    pub fn node(&self, number: NodeNumber) -> SimulatedNode {
        SimulatedNode {
            shared: Arc::clone(&self.0),
            number,
        }
    }

    /// Changes or looks at the world.
    pub fn world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.0.state.lock().world)
    }
}

/// Lets the world's time come, until it is gone.
async fn drive(shared: Weak<Shared>) {
    loop {
        let Some(world) = shared.upgrade() else {
            return;
        };
        let due = world.advance();
        let Some(due) = due else {
            world.changed.notified().await;
            continue;
        };
        tokio::select! {
            () = tokio::time::sleep_until(due) => {}
            () = world.changed.notified() => {}
        }
    }
}

impl Shared {
    /// Hands out the news, and returns when the next ones are due.
    fn advance(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        state.forget();
        for news in state.world.advance(self.start.elapsed()) {
            match news {
                Happened::Answered(ticket, answer) => {
                    if let Some(asker) = state.answers.remove(&ticket) {
                        let _is_gone = asker.send(answer);
                    }
                }
                Happened::Arrived(number, message) => {
                    if let Some(waiting) = state.subscriptions.get(&number) {
                        waiting.push(message);
                    }
                }
            }
        }
        state.world.due().map(|due| self.start + due)
    }
}

impl State {
    /// Ends the subscriptions that were dropped.
    fn forget(&mut self) {
        let Self {
            world,
            subscriptions,
            ..
        } = self;
        subscriptions.retain(|number, waiting| {
            if waiting.has_ended() {
                world.unsubscribe(*number);
            }
            !waiting.has_ended()
        });
    }
}

impl SimulatedNode {
    async fn ask(&self, command: LogCommand) -> Option<LogAnswer> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.shared.state.lock();
            let now = self.shared.start.elapsed();
            state.world.set_now(now);
            let ticket = state.world.command(self.number, command);
            state.answers.insert(ticket, answer);
        }
        self.shared.changed.notify_one();
        answered.await.ok()
    }
}

fn gone() -> LogError {
    LogError::Unavailable("the world has ended".to_owned())
}

impl Log for SimulatedNode {
    fn append<'a>(&'a self, append: &'a Append) -> Ongoing<'a, Appended> {
        Box::pin(async move {
            match self.ask(LogCommand::Append(append.clone())).await {
                Some(LogAnswer::Appended(appended)) => appended,
                _ => Appended::Unknown(gone().to_string()),
            }
        })
    }

    fn read<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
        from: Sequence,
    ) -> Ongoing<'a, Result<Page, LogError>> {
        Box::pin(async move {
            match self.ask(LogCommand::Read(pattern.clone(), from)).await {
                Some(LogAnswer::Read(read)) => read,
                _ => Err(gone()),
            }
        })
    }

    fn purge<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
        before: Sequence,
    ) -> Ongoing<'a, Result<(), LogError>> {
        Box::pin(async move {
            match self.ask(LogCommand::Purge(pattern.clone(), before)).await {
                Some(LogAnswer::Purged(purged)) => purged,
                _ => Err(gone()),
            }
        })
    }

    fn last<'a>(
        &'a self,
        subject: &'a SubjectName,
    ) -> Ongoing<'a, Result<Option<Record>, LogError>> {
        Box::pin(async move {
            match self.ask(LogCommand::Last(subject.clone())).await {
                Some(LogAnswer::Last(last)) => last,
                _ => Err(gone()),
            }
        })
    }
}

impl Bus for SimulatedNode {
    fn publish<'a>(
        &'a self,
        subject: &'a SubjectName,
        bytes: Bytes,
    ) -> Ongoing<'a, Result<(), BusError>> {
        Box::pin(async move {
            if bytes.len() > FRAME_BYTES_MAX {
                return Err(BusError::TooLarge(bytes.len()));
            }
            let mut state = self.shared.state.lock();
            state.world.set_now(self.shared.start.elapsed());
            state.world.publish(self.number, subject, &bytes);
            drop(state);
            self.shared.changed.notify_one();
            Ok(())
        })
    }

    fn subscribe<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
    ) -> Ongoing<'a, Result<BusSubscription, BusError>> {
        Box::pin(async move {
            let (subscription, waiting) = BusSubscription::new();
            let mut state = self.shared.state.lock();
            let number = state.world.subscribe(self.number, pattern.clone());
            state.subscriptions.insert(number, waiting);
            Ok(subscription)
        })
    }
}
