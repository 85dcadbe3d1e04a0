//! Actions of `update`, done over the participant and the REST API. All that comes of them returns
//! as events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use json::visible;
use participant::{CallError, CallMode, Participant};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::api::{self, Allow, Api};
use crate::clock::span;
use crate::entry::{ChatEntry, Tone};
use crate::show;
use crate::state::{Action, Approval, ChatEvent, Later};
use crate::suggested::Suggestions;

/// Time that `/tools` waits for the answer of each participant.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);
/// The first and the longest wait between two looks at a proposal that runs.
const LOOKS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// Act of the terminal itself.
#[derive(Debug)]
pub(crate) enum LocalAct {
    /// Ring the bell.
    Bell,
    /// Draw everything again.
    Redraw,
    /// Leave.
    Quit,
    /// Have a text edited; `Event::Edited` follows.
    Edit {
        /// The proposal.
        id: String,
        /// The text.
        text: String,
    },
}

/// Does what is asked for.
pub(crate) struct Performer {
    me: Participant,
    api: Arc<dyn Api>,
    topic: String,
    happened: mpsc::UnboundedSender<ChatEvent>,
    running: JoinSet<()>,
    proposal_timeout: Duration,
}

impl Performer {
    /// A performer, and the events that come of what it does.
    pub(crate) fn new(
        me: Participant,
        api: Arc<dyn Api>,
        topic: &str,
        proposal_timeout: Duration,
    ) -> (Self, mpsc::UnboundedReceiver<ChatEvent>) {
        let (happened, events) = mpsc::unbounded_channel();
        let topic = topic.to_owned();
        (
            Self {
                me,
                api,
                topic,
                happened,
                running: JoinSet::new(),
                proposal_timeout,
            },
            events,
        )
    }

    /// Whether something is still being done.
    pub(crate) fn is_busy(&mut self) -> bool {
        while self.running.try_join_next().is_some() {}
        !self.running.is_empty()
    }

    /// Waits until one thing more is done; for ever if nothing is being done.
    pub(crate) async fn done(&mut self) {
        if self.running.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Does what is asked for, or begins to. What concerns the terminal is returned.
    pub(crate) fn perform(&mut self, action: Action) -> Option<LocalAct> {
        let api = Arc::clone(&self.api);
        match action {
            Action::Bell => return Some(LocalAct::Bell),
            Action::Redraw => return Some(LocalAct::Redraw),
            Action::Quit => return Some(LocalAct::Quit),
            Action::Edit { id, text } => return Some(LocalAct::Edit { id, text }),
            Action::Say { to, text } => self.say(to, text),
            Action::Call {
                target,
                name,
                arguments,
            } => self.call(&target, &name, &arguments),
            Action::ListTools { targets, is_one } => {
                self.running.spawn(list(
                    self.me.clone(),
                    self.happened.clone(),
                    targets,
                    is_one,
                ));
            }
            Action::Refresh => {
                let topic = self.topic.clone();
                self.spawn(
                    async move { vec![ChatEvent::Inbox(api::waiting(&*api, &topic).await)] },
                );
            }
            Action::Approve(approval) => {
                let happened = self.happened.clone();
                let limit = self.proposal_timeout;
                self.running
                    .spawn(async move { approve(&*api, &happened, &approval, limit).await });
            }
            Action::Claim { id, number } => self.spawn(async move {
                let entry = match api::review(&*api, &id, "claim").await {
                    Ok(_) => note(&format!("* others see that you look at #{number}")),
                    Err(refused) => trouble(format!("! #{number} was not claimed: {refused}")),
                };
                vec![ChatEvent::Decided(vec![entry])]
            }),
            Action::Extend { id, number } => self.spawn(async move {
                let entry = match api::review(&*api, &id, "extend").await {
                    Ok(_) => note(&format!(
                        "* there are ten minutes more to decide about #{number}"
                    )),
                    Err(refused) => {
                        trouble(format!("! there is no more time for #{number}: {refused}"))
                    }
                };
                vec![ChatEvent::Decided(vec![entry])]
            }),
            Action::Amend {
                id,
                number,
                arguments,
            } => self.spawn(async move {
                let entry = match api::amend(&*api, &id, &arguments).await {
                    Ok(_) => note(&format!(
                        "* #{number} is amended: approvals of it before are void"
                    )),
                    Err(refused) => trouble(format!("! #{number} was not amended: {refused}")),
                };
                vec![ChatEvent::Decided(vec![entry])]
            }),
            Action::End {
                id,
                number,
                withdraw,
                reason,
            } => {
                let verb = if withdraw { "withdraw" } else { "reject" };
                self.spawn(async move {
                    let entry = match api::end(&*api, &id, verb, &reason).await {
                        Ok(proposal) => ChatEntry::new(
                            Tone::Outcome,
                            format!("= #{number} is {}", visible::line(&proposal.state)),
                        ),
                        Err(refused) => trouble(format!("! #{number} was not decided: {refused}")),
                    };
                    vec![ChatEvent::Decided(vec![entry])]
                });
            }
            Action::Brake {
                participant,
                resumes,
                reason,
            } => {
                let topic = self.topic.clone();
                self.spawn(async move {
                    let who = visible::line(&participant);
                    let (verb, done) = if resumes {
                        ("resume", "resumed")
                    } else {
                        ("pause", "paused")
                    };
                    let entry = match api::brake(&*api, &topic, &participant, verb, &reason).await {
                        Ok(()) => note(&format!("* {who} is {done}")),
                        Err(refused) if !resumes && refused.is_unwritten() => trouble(format!(
                            "! {who} is paused until the gateway ends: {refused}"
                        )),
                        Err(refused) => trouble(format!("! {who} is not {done}: {refused}")),
                    };
                    vec![ChatEvent::Outcome(vec![entry])]
                });
            }
            Action::FindLike {
                proposal,
                seconds,
                when,
            } => self.spawn(async move {
                let found = api::like(&*api, &proposal, seconds, &when).await;
                vec![ChatEvent::Like {
                    id: proposal.id,
                    digest: proposal.digest,
                    found,
                }]
            }),
            Action::FindSuggestions => {
                let topic = self.topic.clone();
                self.spawn(async move {
                    let answer = api::suggestions(&*api, &topic).await;
                    let found = answer.map(|answer| Suggestions::read(&answer));
                    vec![ChatEvent::Suggestions(found)]
                });
            }
            Action::ReadRules { asked } => {
                let topic = self.topic.clone();
                self.spawn(async move {
                    let found = api::rules(&*api, &topic).await;
                    vec![ChatEvent::Rules { asked, found }]
                });
            }
            Action::DecideSuggestion { digest, accept } => {
                let topic = self.topic.clone();
                self.spawn(async move {
                    let (verb, done) = if accept {
                        ("accept", "= the suggested rule is in force: portmoot rules ls")
                    } else {
                        (
                            "dismiss",
                            "= the suggested rule is refused: the approvals that it rests on suggest none any more",
                        )
                    };
                    let done = match api::decide_suggestion(&*api, &topic, &digest, verb).await {
                        Ok(()) => Ok(done.to_owned()),
                        Err(refused) => {
                            let why = visible::line(&refused.to_string());
                            Err(format!("! the suggested rule was not decided: {why}"))
                        }
                    };
                    vec![ChatEvent::SuggestionDecided { digest, done }]
                });
            }
            Action::FindCapability { proposal, seconds } => self.spawn(async move {
                let found = api::capability_for(&*api, &proposal).await;
                vec![ChatEvent::Capability {
                    id: proposal.id,
                    digest: proposal.digest,
                    seconds,
                    found,
                }]
            }),
        }
        None
    }

    fn spawn(&mut self, work: impl Future<Output = Vec<ChatEvent>> + Send + 'static) {
        let happened = self.happened.clone();
        self.running.spawn(async move {
            work.await
                .into_iter()
                .for_each(|event| send(&happened, event))
        });
    }

    fn outcome(&self, entry: ChatEntry) {
        send(&self.happened, ChatEvent::Outcome(vec![entry]));
    }

    fn say(&self, to: Option<String>, text: String) {
        let sent = match &to {
            None => self.me.chat(&text),
            Some(to) => self.me.chat_to(&[to.as_str()], &text),
        };
        match sent {
            Ok(_) => send(&self.happened, ChatEvent::Sent { to, text }),
            Err(why) => self.outcome(show::not_sent(&why)),
        }
    }

    fn call(&mut self, target: &str, name: &str, arguments: &RawValue) {
        let params = format!(
            "{{\"name\":{},\"arguments\":{arguments}}}",
            Value::from(name)
        );
        let Ok(params) = RawValue::from_string(params) else {
            return;
        };
        match self.me.call_mode(target, "tools/call", &params) {
            Err(why) => self.outcome(show::not_sent(&why)),
            Ok(None) => self.outcome(note("You have no capability to call or propose this.")),
            Ok(Some(CallMode::Request)) => {
                let me = self.me.clone();
                let target = target.to_owned();
                self.spawn(async move {
                    vec![answered(&me.request(&target, "tools/call", &params).await)]
                });
            }
            Ok(Some(CallMode::Propose)) => {
                match self.me.propose(&[target], "tools/call", &params) {
                    Err(why) => self.outcome(show::not_sent(&why)),
                    Ok(mut proposal) => {
                        self.outcome(note(&format!(
                            "Created proposal {}; a reviewer must approve it.",
                            proposal.id()
                        )));
                        let limit = self.proposal_timeout;
                        self.spawn(async move { vec![answered(&proposal.outcome(limit).await)] });
                    }
                }
            }
        }
    }
}

/// A closed receiver means that the chat is over.
fn send(happened: &mpsc::UnboundedSender<ChatEvent>, event: ChatEvent) {
    let _ = happened.send(event);
}

fn note(text: &str) -> ChatEntry {
    ChatEntry::new(Tone::Note, text)
}

fn trouble(text: String) -> ChatEntry {
    ChatEntry::new(Tone::Trouble, visible::lines(&text))
}

fn answered(outcome: &Result<Box<RawValue>, CallError>) -> ChatEvent {
    ChatEvent::Outcome(vec![match outcome {
        Ok(result) => show::result(result),
        Err(why) => show::failed(why),
    }])
}

/// Gives the leave for later calls that goes with an approval. Returns what is said of it.
async fn give_leave(api: &dyn Api, approval: &Approval, later: &Later) -> ChatEntry {
    let number = approval.number;
    let done = match later {
        Later::Grant(allow) => {
            let reason = format!("allowed with proposal {}", approval.id);
            let granted = api::grant(api, allow, &reason).await;
            granted.map(|()| {
                let time = span(allow.seconds * 1_000);
                let Allow {
                    participant,
                    capability,
                    ..
                } = allow;
                format!("* {participant} may do this without asking for {time}: {capability}")
            })
        }
        Later::Rule(rule) => {
            let added = api::add_rule(api, rule).await;
            added.map(|()| {
                let time = span(rule.seconds * 1_000);
                format!("* the like is approved for {time}: {}", rule.sentence)
            })
        }
    };
    match done {
        Ok(words) => note(&visible::line(&words)),
        Err(refused) => trouble(format!(
            "! #{number} is approved, but nothing was allowed for later: {refused}"
        )),
    }
}

/// Approves, gives the leave that goes with it, and waits for the outcome.
async fn approve(
    api: &dyn Api,
    happened: &mpsc::UnboundedSender<ChatEvent>,
    approval: &Approval,
    limit: Duration,
) {
    let Approval {
        id,
        number,
        digest,
        arguments,
        note: words,
        later,
    } = approval;
    let body = review::approval_body(digest, arguments.as_deref(), words.as_deref());
    let mut proposal = match api::approve(api, id, body).await {
        Ok(proposal) => proposal,
        Err(refused) => {
            let entry = trouble(format!("! #{number} was not approved: {refused}"));
            return send(happened, ChatEvent::Decided(vec![entry]));
        }
    };
    send(
        happened,
        ChatEvent::Decided(vec![note(&format!("* #{number} is approved and runs"))]),
    );
    if let Some(later) = later {
        let entry = give_leave(api, approval, later).await;
        send(happened, ChatEvent::Outcome(vec![entry]));
    }
    let (end, [mut wait, longest]) = (Instant::now() + limit, LOOKS);
    while !proposal.is_over() && Instant::now() < end {
        sleep(wait).await;
        wait = (wait * 2).min(longest);
        match api::proposal(api, id).await {
            Ok(now) => proposal = now,
            // The gateway may be starting again.
            Err(why) => tracing::debug!(%why, "a proposal cannot be looked at"),
        }
    }
    let entry = if proposal.is_over() {
        show::outcome(*number, &proposal)
    } else {
        note(&format!("* #{number} still runs"))
    };
    send(happened, ChatEvent::Decided(vec![entry]));
}

/// Lists the tools of participants.
async fn list(
    me: Participant,
    happened: mpsc::UnboundedSender<ChatEvent>,
    targets: Vec<String>,
    is_one: bool,
) {
    let mut asking = JoinSet::new();
    for target in targets {
        let me = me.clone();
        asking.spawn(async move {
            let answer = timeout(LIST_TIMEOUT, me.request(&target, "tools/list", &())).await;
            (target, answer.unwrap_or(Err(CallError::Timeout)))
        });
    }
    let mut found: BTreeMap<String, Vec<ChatEntry>> = BTreeMap::new();
    for (owner, answer) in asking.join_all().await {
        match answer {
            Ok(result) => {
                let (names, lines): (Vec<String>, Vec<String>) =
                    show::tools(&owner, &result).into_iter().unzip();
                let entries = lines
                    .into_iter()
                    .map(|line| ChatEntry::new(Tone::Outcome, line))
                    .collect();
                found.insert(owner.clone(), entries);
                send(&happened, ChatEvent::Tools { owner, names });
            }
            Err(why) if is_one => drop(found.insert(owner, vec![show::failed(&why)])),
            // Other participants may serve no tools, or refuse to list them.
            Err(_) => {}
        }
    }
    let mut entries: Vec<ChatEntry> = found.into_values().flatten().collect();
    if entries.is_empty() {
        entries.push(ChatEntry::new(
            Tone::Outcome,
            "No participant lists tools for you.",
        ));
    }
    send(&happened, ChatEvent::Outcome(entries));
}
