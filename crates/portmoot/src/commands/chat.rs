//! Command `chat`: a topic at the terminal. Lines are sent to all participants, commands begin with `/`.

mod command;
mod complete;
mod input;
mod open_proposals;
mod printer;
mod rows;
mod show;

use std::collections::BTreeMap;
use std::time::Duration;

use client::participant::{CallError, CallMode, ConnectError, Event, Mode};
use client::{Participant, ParticipantSpec};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cli::{OutputArgs, RunningArgs};
use crate::commands::target::running;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use command::{ChatCommand, HELP};
use input::Input;
use open_proposals::{Named, OpenProposals};
use printer::Printer;
use rows::Rows;

/// How long `/tools` waits for the answer of each participant.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);

/// Outcome of a command that ran in the background.
#[derive(Default)]
struct CommandOutcome {
    /// Texts to print.
    lines: Vec<Rows>,
    /// The proposal that the command settled.
    settled: Option<Named>,
}

struct Chat {
    me: Participant,
    proposals: OpenProposals,
    printer: Printer,
    /// Commands that run in the background.
    running: JoinSet<CommandOutcome>,
    json: bool,
    proposal_timeout: Duration,
}

pub(crate) async fn run(
    topic: &str,
    gateway: &RunningArgs,
    talk: OutputArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let gateway = running(gateway, output)?;
    let spec = ParticipantSpec::new(&gateway.url, gateway.token.as_deref(), topic).receiving(Mode::All);
    let spec = ParticipantSpec { tls: gateway.tls.clone(), ..spec };
    let proposal_timeout = spec.proposal_timeout;
    let me = Participant::connect(spec).await.map_err(failure)?;
    let mut events = me.events();
    let (mut input, printer) = Input::open(output)?;
    let proposals = OpenProposals::new(input.names());
    let mut chat =
        Chat { me, proposals, printer, running: JoinSet::new(), json: talk.json, proposal_timeout };
    chat.note(&format!("You are {} in topic {topic}. Type /help for a list of commands.", chat.me.you().id));
    let mut typing = true;
    loop {
        tokio::select! {
            event = async { chat.printer.room().await; events.next().await } => match event {
                Some(Event::Disconnected { why, is_final: true }) => {
                    chat.printer.message(&show::disconnected(&why, true));
                    input.leave().await;
                    return Err(match chat.me.connected().await {
                        Err(why) => failure(why),
                        Ok(()) => failure(ConnectError::Closed),
                    });
                }
                Some(event) => chat.receive(&event),
                None => break,
            },
            line = input.next(), if typing => match line.as_deref().map(command::read) {
                Some(ChatCommand::Quit) => break,
                Some(typed) => {
                    chat.act(typed);
                    input.resume();
                }
                None => typing = false,
            },
            Some(found) = chat.running.join_next() => {
                let CommandOutcome { lines, settled } = found.unwrap_or_default();
                settled.iter().for_each(|named| chat.proposals.close(named));
                lines.iter().for_each(|line| chat.printer.result(line));
            }
            // The input has ended and no command is running.
            else => break,
        }
        if !typing && chat.running.is_empty() {
            break;
        }
    }
    chat.me.close().await;
    // No line is read any more: what waits for the editor is printed without it.
    drop(input);
    Ok(Exit::Ok)
}

impl Chat {
    fn note(&mut self, text: &str) {
        self.printer.message(&Rows::new(text));
    }

    /// Shows the messages from before this connection, and the proposals among them that are still open.
    fn recall(&mut self, past: &[Event], is_cut: bool) {
        past.iter().for_each(|event| self.proposals.receive(event));
        if self.json {
            return past.iter().filter_map(show::frame).for_each(|frame| self.printer.json(&frame));
        }
        if is_cut {
            self.note("! more messages were missed than the topic keeps");
        }
        let messages: Vec<Rows> = past.iter().filter_map(show::chat_line).collect();
        if !messages.is_empty() {
            self.note("* earlier messages:");
            messages.iter().for_each(|message| self.printer.result(message));
            self.note("* end of the earlier messages");
        }
        for event in past {
            if let Event::Proposal(proposed) = event
                && let Some(number) = self.proposals.number(&Named::of(proposed))
            {
                self.printer.message(&show::proposal(number, proposed));
            }
        }
    }

    fn receive(&mut self, event: &Event) {
        if let Event::History { past, is_cut } = event {
            return self.recall(past, *is_cut);
        }
        self.proposals.receive(event);
        self.proposals.set_participants(self.me.others().into_iter().map(|seen| seen.id));
        if self.json {
            if let Some(frame) = show::frame(event) {
                self.printer.json(&frame);
            }
            return;
        }
        match show::chat_line(event) {
            Some(text) => self.printer.result(&text),
            None => {
                let number = |named: &Named| self.proposals.number(named);
                if let Some(text) = show::notice_line(event, &self.me.you().id, number) {
                    self.printer.message(&text);
                }
            }
        }
    }

    fn act(&mut self, typed: ChatCommand<'_>) {
        match typed {
            ChatCommand::Empty | ChatCommand::Quit => {}
            ChatCommand::Send(text) => {
                if let Err(why) = self.me.chat(text) {
                    self.printer.message(&show::not_sent(&why));
                }
            }
            ChatCommand::Help => HELP.lines().for_each(|line| self.note(line)),
            ChatCommand::Who => {
                let me = self.me.you();
                let all = std::iter::once(&me).chain(&self.me.others()).map(show::person).collect::<Vec<_>>();
                all.iter().for_each(|line| self.printer.result(line));
            }
            ChatCommand::Proposals => {
                let open = self.proposals.open();
                if open.is_empty() {
                    self.note("There have been no open proposals since you joined.");
                }
                open.iter().for_each(|(number, proposed)| {
                    self.printer.result(&show::proposal(*number, proposed));
                });
            }
            ChatCommand::Tools(target) => self.list(target),
            ChatCommand::Call { target, name, arguments } => self.call(target, name, &arguments),
            ChatCommand::Approve(which) => self.approve(which),
            ChatCommand::Reject { which, reason } => self.reject(which, reason),
            ChatCommand::Invalid(why) => self.note(why),
        }
    }

    /// Lists the tools of all participants, or of one.
    fn list(&mut self, target: Option<&str>) {
        let targets: Vec<String> = match target {
            Some(target) => vec![target.to_owned()],
            None => self.me.others().into_iter().map(|seen| seen.id).collect(),
        };
        let (me, names, is_one) = (self.me.clone(), self.proposals.names(), target.is_some());
        self.running.spawn(async move {
            let mut asking = JoinSet::new();
            for target in targets {
                let me = me.clone();
                asking.spawn(async move {
                    let answer = timeout(LIST_TIMEOUT, me.request(&target, "tools/list", &())).await;
                    (target, answer.unwrap_or(Err(CallError::Timeout)))
                });
            }
            let mut found = BTreeMap::new();
            for (target, answer) in asking.join_all().await {
                match answer {
                    Ok(result) => {
                        let listed = show::tools(&target, &result);
                        names.lock().set_tools(&target, listed.iter().map(|(name, _)| name.clone()));
                        found.insert(target, listed.into_iter().map(|(_, line)| line).collect());
                    }
                    Err(why) if is_one => drop(found.insert(target, vec![show::failed(&why)])),
                    // Other participants may serve no tools, or refuse to list them.
                    Err(_) => {}
                }
            }
            let mut lines: Vec<Rows> = found.into_values().flat_map(|lines: Vec<Rows>| lines).collect();
            if lines.is_empty() {
                lines.push(Rows::new("No participant lists tools for you."));
            }
            CommandOutcome { lines, settled: None }
        });
    }

    fn call(&mut self, target: &str, name: &str, arguments: &RawValue) {
        let params = format!("{{\"name\":{},\"arguments\":{arguments}}}", Value::from(name));
        let Ok(params) = RawValue::from_string(params) else { return };
        match self.me.call_mode(target, "tools/call", &params) {
            Err(why) => self.printer.message(&show::not_sent(&why)),
            Ok(None) => self.note("You have no capability to call or propose this."),
            Ok(Some(CallMode::Request)) => {
                let (me, target) = (self.me.clone(), target.to_owned());
                self.running
                    .spawn(async move { outcome(&me.request(&target, "tools/call", &params).await, None) });
            }
            Ok(Some(CallMode::Propose)) => match self.me.propose(&[target], "tools/call", &params) {
                Err(why) => self.printer.message(&show::not_sent(&why)),
                Ok(mut proposal) => {
                    self.note(&format!("Created proposal {}; a reviewer must approve it.", proposal.id()));
                    let proposal_timeout = self.proposal_timeout;
                    self.running
                        .spawn(async move { outcome(&proposal.outcome(proposal_timeout).await, None) });
                }
            },
        }
    }

    fn approve(&mut self, which: &str) {
        let Some(proposed) = self.proposals.find(which).cloned() else { return self.note(NO_PROPOSAL) };
        let me = self.me.clone();
        self.running
            .spawn(async move { outcome(&me.fulfil(&proposed, None).await, Some(Named::of(&proposed))) });
    }

    fn reject(&mut self, which: &str, reason: &str) {
        let Some(named) = self.proposals.find(which).map(Named::of) else { return self.note(NO_PROPOSAL) };
        let (me, reason) = (self.me.clone(), reason.to_owned());
        self.running.spawn(async move { outcome(&me.reject(&named.id, &reason).await, Some(named)) });
    }
}

const NO_PROPOSAL: &str = "There is no such open proposal; /proposals lists the open ones.";

/// The outcome of a call. It settles the proposal `about` if the call was answered.
fn outcome(outcome: &Result<Box<RawValue>, CallError>, about: Option<Named>) -> CommandOutcome {
    let line = match outcome {
        Ok(result) => show::result(result),
        Err(why) => show::failed(why),
    };
    let is_made = matches!(outcome, Ok(_) | Err(CallError::Answered(_)));
    CommandOutcome { lines: vec![line], settled: about.filter(|_| is_made) }
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
        Exit::Unauthenticated => failure.needs_token(),
        _ => failure,
    }
}
