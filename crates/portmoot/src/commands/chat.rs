//! `chat`: a person takes part in a topic from the terminal. Lines are said to everybody, commands begin with `/`.

mod board;
mod command;
mod complete;
mod input;
mod show;

use std::collections::BTreeMap;
use std::time::Duration;

use client::participant::{CallError, CallMode, ConnectError, Event, Mode};
use client::{Participant, ParticipantSpec};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cli::{RunningArgs, TalkArgs};
use crate::commands::reach::address;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use board::Board;
use command::{HELP, Typed};
use input::{Input, Paper};

/// How long `/tools` waits for each participant.
const LIST_PATIENCE: Duration = Duration::from_secs(3);

/// What a command that takes its time has found.
#[derive(Default)]
struct Found {
    /// Ready to be shown.
    lines: Vec<String>,
    /// The proposal that it settled.
    settled: Option<String>,
}

struct Chat {
    me: Participant,
    board: Board,
    paper: Paper,
    /// Commands whose answers are awaited.
    under_way: JoinSet<Found>,
    json: bool,
    patience: Duration,
}

pub(crate) async fn run(
    topic: &str,
    gateway: &RunningArgs,
    talk: TalkArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let url = address(gateway, output)?;
    let spec = ParticipantSpec::new(&url, gateway.token.as_deref(), topic).receiving(Mode::All);
    let patience = spec.proposal_timeout;
    let me = Participant::connect(spec).await.map_err(failure)?;
    let mut events = me.events();
    let (mut input, paper) = Input::open(output)?;
    let board = Board::new(input.names());
    let mut chat = Chat { me, board, paper, under_way: JoinSet::new(), json: talk.json, patience };
    chat.note(&format!("You are {} in {topic}. /help says what else there is.", chat.me.you().id));
    let mut typing = true;
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Event::Disconnected { why, is_final: true }) => {
                    chat.note(&show::away(&why, true));
                    input.leave().await;
                    return Err(match chat.me.connected().await {
                        Err(why) => failure(why),
                        Ok(()) => failure(ConnectError::Closed),
                    });
                }
                Some(event) => chat.hear(&event),
                None => break,
            },
            line = input.next(), if typing => match line.as_deref().map(command::read) {
                Some(Typed::Quit) => break,
                Some(typed) => {
                    chat.act(typed);
                    input.go_on();
                }
                None => typing = false,
            },
            Some(found) = chat.under_way.join_next() => {
                let Found { lines, settled } = found.unwrap_or_default();
                settled.iter().for_each(|id| chat.board.close(id));
                lines.iter().for_each(|line| chat.paper.result(line));
            }
            // The input has ended, and everything that was asked is answered.
            else => break,
        }
        if !typing && chat.under_way.is_empty() {
            break;
        }
    }
    chat.me.close().await;
    Ok(Exit::Ok)
}

impl Chat {
    fn note(&mut self, text: &str) {
        self.paper.talk(text);
    }

    fn hear(&mut self, event: &Event) {
        self.board.hear(event);
        self.board.meet(self.me.others().into_iter().map(|seen| seen.id));
        if self.json {
            if let Some(frame) = show::frame(event) {
                self.paper.result(&frame);
            }
            return;
        }
        match show::said(event) {
            Some(text) => self.paper.result(&text),
            None => {
                if let Some(text) = show::noticed(event, |id| self.board.number(id)) {
                    self.note(&text);
                }
            }
        }
    }

    fn act(&mut self, typed: Typed<'_>) {
        match typed {
            Typed::Nothing | Typed::Quit => {}
            Typed::Say(text) => {
                if let Err(why) = self.me.chat(text) {
                    self.note(&show::not_sent(&why));
                }
            }
            Typed::Help => self.note(HELP),
            Typed::Who => {
                let me = self.me.you();
                let all = std::iter::once(&me).chain(&self.me.others()).map(show::person).collect::<Vec<_>>();
                all.iter().for_each(|line| self.paper.result(line));
            }
            Typed::Proposals => {
                let open = self.board.open();
                if open.is_empty() {
                    self.note("No open proposals have been heard since you came.");
                }
                open.iter().for_each(|(number, proposed)| {
                    self.paper.result(&show::proposal(*number, proposed));
                });
            }
            Typed::Tools(target) => self.list(target),
            Typed::Call { target, name, arguments } => self.call(target, name, &arguments),
            Typed::Approve(which) => self.approve(which),
            Typed::Reject { which, reason } => self.reject(which, reason),
            Typed::Wrong(why) => self.note(why),
        }
    }

    /// Asks everybody, or one, for their tools.
    fn list(&mut self, target: Option<&str>) {
        let whom: Vec<String> = match target {
            Some(target) => vec![target.to_owned()],
            None => self.me.others().into_iter().map(|seen| seen.id).collect(),
        };
        let (me, names, is_one) = (self.me.clone(), self.board.names(), target.is_some());
        self.under_way.spawn(async move {
            let mut asking = JoinSet::new();
            for target in whom {
                let me = me.clone();
                asking.spawn(async move {
                    let answer = timeout(LIST_PATIENCE, me.request(&target, "tools/list", &())).await;
                    (target, answer.unwrap_or(Err(CallError::Timeout)))
                });
            }
            let mut found = BTreeMap::new();
            for (target, answer) in asking.join_all().await {
                match answer {
                    Ok(result) => {
                        let listed = show::tools(&target, &result);
                        complete::learn(&names, &target, listed.iter().map(|(name, _)| name.clone()));
                        found.insert(target, listed.into_iter().map(|(_, line)| line).collect());
                    }
                    Err(why) if is_one => drop(found.insert(target, vec![show::failed(&why)])),
                    // Not everybody serves tools, or lets everybody list them.
                    Err(_) => {}
                }
            }
            let mut lines: Vec<String> = found.into_values().flat_map(|lines: Vec<String>| lines).collect();
            if lines.is_empty() {
                lines.push("Nobody here lists tools to you.".to_owned());
            }
            Found { lines, settled: None }
        });
    }

    fn call(&mut self, target: &str, name: &str, arguments: &RawValue) {
        let params = format!("{{\"name\":{},\"arguments\":{arguments}}}", Value::from(name));
        let Ok(params) = RawValue::from_string(params) else { return };
        match self.me.call_mode(target, "tools/call", &params) {
            Err(why) => self.note(&show::not_sent(&why)),
            Ok(None) => self.note("Your capabilities allow neither to call this nor to propose it."),
            Ok(Some(CallMode::Request)) => {
                let (me, target) = (self.me.clone(), target.to_owned());
                self.under_way
                    .spawn(async move { outcome(&me.request(&target, "tools/call", &params).await, None) });
            }
            Ok(Some(CallMode::Propose)) => match self.me.propose(&[target], "tools/call", &params) {
                Err(why) => self.note(&show::not_sent(&why)),
                Ok(mut proposal) => {
                    self.note(&format!("Proposed as {}; somebody has to approve it.", proposal.id()));
                    let patience = self.patience;
                    self.under_way.spawn(async move { outcome(&proposal.outcome(patience).await, None) });
                }
            },
        }
    }

    fn approve(&mut self, which: &str) {
        let Some(proposed) = self.board.find(which).cloned() else { return self.note(NO_PROPOSAL) };
        let me = self.me.clone();
        self.under_way.spawn(async move { outcome(&me.fulfil(&proposed, None).await, Some(proposed.id())) });
    }

    fn reject(&mut self, which: &str, reason: &str) {
        let Some(id) = self.board.find(which).map(|proposed| proposed.id().to_owned()) else {
            return self.note(NO_PROPOSAL);
        };
        let (me, reason) = (self.me.clone(), reason.to_owned());
        self.under_way.spawn(async move { outcome(&me.reject(&id, &reason).await, Some(&id)) });
    }
}

const NO_PROPOSAL: &str = "There is no such open proposal: /proposals lists those that were heard.";

/// What became of a call, which settles a proposal if it was made at all.
fn outcome(outcome: &Result<Box<RawValue>, CallError>, about: Option<&str>) -> Found {
    let line = match outcome {
        Ok(result) => show::result(result),
        Err(why) => show::failed(why),
    };
    let is_made = matches!(outcome, Ok(_) | Err(CallError::Answered(_)));
    Found { lines: vec![line], settled: about.filter(|_| is_made).map(str::to_owned) }
}

fn failure(why: ConnectError) -> Failure {
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
        Exit::Unauthenticated => failure
            .hint("give a token: --token TOKEN, or PORTMOOT_TOKEN; its operator issues one: portmoot token new NAME"),
        _ => failure,
    }
}
