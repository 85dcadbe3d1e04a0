//! The state of a chat, and the closed lists of what can happen to it and what it asks for.

use std::collections::BTreeMap;

use crossterm::event::KeyEvent;
use participant::{Event as TopicEvent, ParticipantInfo};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::{Allow, ApiRefusal, LikeRule};
use crate::card::{self, Around, CardLine, CardPart};
use crate::clock::Zone;
use crate::complete::Candidates;
use crate::entry::{ChatEntry, Tone};
use crate::in_force::KnownRules;
use crate::inbox::{Inbox, InboxItem};
use crate::layout::Areas;
use crate::rows::TerminalRow;
use crate::suggested::Suggestions;
use crate::talk::{Talk, cut, entry_rows};
use crate::typing::Typing;
use review::ProposalDetails;

/// Time that a notice stays above the line, in milliseconds.
const NOTICE_MS: u64 = 8_000;
/// Columns that the time and the indentation of a card take in plain lines.
const LINES_GUTTER: usize = 10;

/// Something that happened.
#[derive(Debug)]
pub enum ChatEvent {
    /// In the topic, or to the connection.
    Topic(Box<TopicEvent>),
    /// A key.
    Key(KeyEvent),
    /// A pasted text.
    Paste(String),
    /// The screen has this size now.
    Resize {
        /// Its columns.
        columns: u16,
        /// Its rows.
        rows: u16,
    },
    /// Time has passed.
    Tick,
    /// A line was typed; without a screen only.
    Line(String),
    /// The pending proposals, as an [`Action::Refresh`] found them.
    Inbox(Result<Vec<ProposalDetails>, ApiRefusal>),
    /// The capability for an [`Action::FindCapability`].
    Capability {
        /// The proposal.
        id: String,
        /// The digest of the request that the person had read.
        digest: String,
        /// For how long it is to be granted.
        seconds: u64,
        /// The capability.
        found: Result<String, ApiRefusal>,
    },
    /// The rule for an [`Action::FindLike`].
    Like {
        /// The proposal.
        id: String,
        /// The digest of the request that the person had read.
        digest: String,
        /// The rule, or why there is none.
        found: Result<LikeRule, ApiRefusal>,
    },
    /// The rules that an [`Action::FindSuggestions`] found.
    Suggestions(Result<Suggestions, ApiRefusal>),
    /// The rules of the topic, as an [`Action::ReadRules`] found them.
    Rules {
        /// Whether the person asked for them.
        asked: bool,
        /// The answer of the gateway.
        found: Result<Value, ApiRefusal>,
    },
    /// A suggested rule was decided about, or was not.
    SuggestionDecided {
        /// The digest of its text.
        digest: String,
        /// What became of it, and whether it is decided.
        done: Result<String, String>,
    },
    /// The text that an [`Action::Edit`] led to.
    Edited {
        /// The proposal.
        id: String,
        /// The text, or why there is none.
        text: Result<String, String>,
    },
    /// A message was sent.
    Sent {
        /// Its addressee; `None` is all.
        to: Option<String>,
        /// The text.
        text: String,
    },
    /// Outcomes of commands.
    Outcome(Vec<ChatEntry>),
    /// A decision was made, or not.
    Decided(Vec<ChatEntry>),
    /// The tools of a participant, for completion.
    Tools {
        /// The participant.
        owner: String,
        /// Their names.
        names: Vec<String>,
    },
}

/// Action that the chat asks for.
#[derive(Debug)]
pub enum Action {
    /// Send a message, to one participant or to all.
    Say {
        /// The addressee.
        to: Option<String>,
        /// The text.
        text: String,
    },
    /// Call a tool, or propose it.
    Call {
        /// The participant.
        target: String,
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Box<RawValue>,
    },
    /// List tools.
    ListTools {
        /// Of these participants.
        targets: Vec<String>,
        /// Whether a failure is reported.
        is_one: bool,
    },
    /// Read the pending proposals.
    Refresh,
    /// Approve a proposal.
    Approve(Box<Approval>),
    /// Have others see that the person looks at a proposal.
    Claim {
        /// The proposal.
        id: String,
        /// Its number.
        number: usize,
    },
    /// Give ten minutes more to decide about a proposal.
    Extend {
        /// The proposal.
        id: String,
        /// Its number.
        number: usize,
    },
    /// Replace the arguments of the person's own proposal.
    Amend {
        /// The proposal.
        id: String,
        /// Its number.
        number: usize,
        /// The arguments, as a JSON object.
        arguments: String,
    },
    /// Reject or withdraw a proposal.
    End {
        /// The proposal.
        id: String,
        /// Its number.
        number: usize,
        /// Whether it is withdrawn.
        withdraw: bool,
        /// The reason; empty for none.
        reason: String,
    },
    /// Pause or resume a participant of the topic.
    Brake {
        /// The participant.
        participant: String,
        /// Whether it is resumed.
        resumes: bool,
        /// The reason; empty for none.
        reason: String,
    },
    /// Find the capability that the proposer of this one needs.
    FindCapability {
        /// The proposal.
        proposal: Box<ProposalDetails>,
        /// For how long it is to be granted.
        seconds: u64,
    },
    /// Find the rule that approves the like of this proposal.
    FindLike {
        /// The proposal.
        proposal: Box<ProposalDetails>,
        /// For how long, in seconds.
        seconds: u64,
        /// Conditions in place of its values, as TOML; empty for none.
        when: String,
    },
    /// Find the rules that are suggested to the person.
    FindSuggestions,
    /// Read the rules of the topic.
    ReadRules {
        /// Whether the person asked for them.
        asked: bool,
    },
    /// Put a suggested rule in force, or refuse it for good.
    DecideSuggestion {
        /// The digest of its text.
        digest: String,
        /// Whether it is put in force.
        accept: bool,
    },
    /// Have a text edited.
    Edit {
        /// The proposal whose arguments they are.
        id: String,
        /// The text.
        text: String,
    },
    /// Ring the bell.
    Bell,
    /// Draw everything again.
    Redraw,
    /// Leave.
    Quit,
}

/// An approval that is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The proposal.
    pub id: String,
    /// Its number.
    pub number: usize,
    /// The digest of what was shown.
    pub digest: String,
    /// Arguments in place of the proposed ones.
    pub arguments: Option<String>,
    /// Note for the proposer.
    pub note: Option<String>,
    /// What goes with it for later calls, if something does.
    pub later: Option<Later>,
}

/// Leave for later calls that goes with an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Later {
    /// The proposer may make all calls of the tool.
    Grant(Allow),
    /// A rule of the person approves the like of this call.
    Rule(LikeRule),
}

/// Way in which the chat is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenMode {
    /// On a full screen.
    Screen,
    /// As lines, wrapped to so many columns if they go to a terminal.
    Lines(Option<usize>),
}

/// The state of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// In the topic.
    Connected,
    /// Lost; another attempt follows.
    Lost,
    /// Over, for this reason.
    Over(String),
}

/// Part of the screen to which the keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// The line that is typed.
    Talk,
    /// The inbox.
    Inbox,
}

/// A question to the person.
#[derive(Debug, Clone)]
pub enum Prompt {
    /// The reason of an act on a proposal.
    Reason {
        /// The proposal.
        id: String,
        /// The act.
        act: ReasonedAct,
        /// The reason so far.
        line: Typing,
    },
    /// The note that goes with an approval.
    Note {
        /// The proposal.
        id: String,
        /// The note so far.
        line: Typing,
    },
    /// Other arguments.
    Arguments {
        /// The proposal.
        id: String,
        /// The arguments so far.
        line: Typing,
    },
    /// Conditions in place of the values of a call whose like is to be approved.
    Conditions {
        /// The proposal.
        id: String,
        /// For how long, in seconds.
        seconds: u64,
        /// The conditions so far.
        line: Typing,
    },
    /// For how long to approve the like.
    Time {
        /// The proposal.
        id: String,
    },
    /// Whether to go on.
    Sure {
        /// The approval that follows.
        approval: Box<Approval>,
        /// Lines of the question.
        question: Vec<CardLine>,
    },
}

/// An act for which a reason is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonedAct {
    /// The rejection of a proposal.
    Reject,
    /// The withdrawal of a proposal of the person's own.
    Withdraw,
    /// The pause of its proposer.
    Pause,
}

/// The state of a chat.
#[derive(Debug)]
pub struct ChatState {
    /// Way in which the chat is shown.
    pub mode: ScreenMode,
    /// The topic.
    pub topic: String,
    /// The person.
    pub me: ParticipantInfo,
    /// Whether the person was paused before the latest welcome, until the change is shown.
    pub was_paused: bool,
    /// The others, by id.
    pub others: BTreeMap<String, ParticipantInfo>,
    /// The connection.
    pub connection: Connection,
    /// The zone of times.
    pub zone: Zone,
    /// The time, in Unix milliseconds.
    pub now_ms: u64,
    /// Columns and rows of the screen.
    pub size: (u16, u16),
    /// The talk.
    pub talk: Talk,
    /// The inbox.
    pub inbox: Inbox,
    /// The rules that are suggested, while they are shown in the inbox.
    pub suggestions: Option<Suggestions>,
    /// Why the inbox cannot be read.
    pub inbox_failure: Option<String>,
    /// The message that is typed.
    pub line: Typing,
    /// Part of the screen to which the keys go.
    pub focus: Focus,
    /// The question that is open.
    pub prompt: Option<Prompt>,
    /// The first row of the help, if it is open.
    pub help: Option<usize>,
    /// Whether the calls of others are shown.
    pub calls: bool,
    pub(crate) notice: Option<(u64, String)>,
    pub(crate) candidates: Candidates,
    pub(crate) earlier: Vec<String>,
    pub(crate) earlier_at: usize,
    pub(crate) welcomed: bool,
    pub(crate) refreshing: bool,
    pub(crate) stale: bool,
    pub(crate) refreshed_ms: u64,
    pub(crate) rules: KnownRules,
    pub(crate) rules_read_ms: u64,
    pub(crate) announced: Vec<Announced>,
}

/// A proposal that was announced in the topic and is not in the inbox, perhaps not yet: it is there
/// once it is on disk.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) by: String,
    pub(crate) envelope: String,
    /// Entry that is shown if the proposal is for others to decide.
    pub(crate) entry: ChatEntry,
    pub(crate) at_ms: u64,
    /// Whether the next look at the inbox tells whether it is there.
    pub(crate) is_known: bool,
}

impl ChatState {
    /// A chat that is not in its topic yet.
    #[must_use]
    pub fn new(mode: ScreenMode, topic: &str, zone: Zone) -> Self {
        Self {
            mode,
            topic: topic.to_owned(),
            me: ParticipantInfo::default(),
            was_paused: false,
            others: BTreeMap::new(),
            connection: Connection::Lost,
            zone,
            now_ms: 0,
            size: (80, 24),
            talk: Talk::default(),
            inbox: Inbox::default(),
            suggestions: None,
            inbox_failure: None,
            line: Typing::default(),
            focus: Focus::Talk,
            prompt: None,
            help: None,
            calls: mode == ScreenMode::Screen,
            notice: None,
            candidates: Candidates::default(),
            earlier: Vec::new(),
            earlier_at: 0,
            welcomed: false,
            refreshing: false,
            stale: false,
            refreshed_ms: 0,
            rules: KnownRules::default(),
            rules_read_ms: 0,
            announced: Vec::new(),
        }
    }

    /// The places of the screen's parts.
    #[must_use]
    pub fn areas(&self) -> Option<Areas> {
        Areas::of(self.size.0, self.size.1, self.inbox.items().len())
    }

    /// The notice above the line, while it is new.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        let (at_ms, text) = self.notice.as_ref()?;
        (self.now_ms < at_ms + NOTICE_MS).then_some(text.as_str())
    }

    /// Whether a participant is in the topic. The gateway always is.
    #[must_use]
    pub fn is_here(&self, id: &str) -> bool {
        id == model::GATEWAY || id == self.me.id || self.others.contains_key(id)
    }

    /// Whether a proposal is the person's own.
    #[must_use]
    pub fn is_own(&self, proposal: &ProposalDetails) -> bool {
        proposal.by == self.me.id
    }

    /// The lines of a proposal's card, and how many of them must be seen before an approval.
    #[must_use]
    pub fn card(&self, item: &InboxItem) -> (Vec<CardLine>, usize) {
        let is_here = |id: &str| self.is_here(id);
        let around = Around {
            now_ms: self.now_ms,
            zone: self.zone,
            is_here: &is_here,
        };
        let whose = if self.is_own(&item.proposal) {
            "your proposal"
        } else {
            "proposal"
        };
        card::lines(&format!("{whose} #{}", item.number), &item.proposal, around)
    }

    /// The rows of the open card on the screen, and how many of them must be seen before an
    /// approval.
    #[must_use]
    pub fn card_rows(&self, columns: usize) -> (Vec<(CardPart, TerminalRow)>, usize) {
        let Some(item) = self.inbox.selected() else {
            return (Vec::new(), 0);
        };
        let (lines, must_see) = self.card(item);
        let (first, rest) = lines.split_at_checked(must_see).unwrap_or((&lines, &[]));
        let mut rows = card::rows(first, Some(columns));
        let must_see = rows.len();
        rows.extend(card::rows(rest, Some(columns)));
        (rows, must_see)
    }

    /// Lines of a card as the text of an entry.
    pub(crate) fn lines_text(&self, lines: &[CardLine]) -> String {
        let columns = match self.mode {
            ScreenMode::Screen => None,
            ScreenMode::Lines(columns) => {
                columns.map(|columns| columns.saturating_sub(LINES_GUTTER))
            }
        };
        card::text(lines, columns)
    }

    /// Adds an entry to the talk, now unless it has a time.
    pub(crate) fn push(&mut self, entry: ChatEntry) {
        let mut entry = ChatEntry {
            at_ms: if entry.at_ms == 0 {
                self.now_ms
            } else {
                entry.at_ms
            },
            ..entry
        };
        let mut rows = 0;
        if self.mode == ScreenMode::Screen {
            entry.text = cut(entry.text);
            let columns = self
                .areas()
                .map_or(0, |areas| usize::from(areas.main.width));
            rows = entry_rows(&entry, columns, self.zone).len();
        }
        self.talk.push(entry, rows);
    }

    /// Tells the person something that answers what was typed: above the line, or as a line.
    pub(crate) fn tell(&mut self, text: impl Into<String>) {
        match self.mode {
            ScreenMode::Screen => self.notice = Some((self.now_ms, text.into())),
            ScreenMode::Lines(_) => self.push(ChatEntry::new(Tone::Note, text)),
        }
    }

    /// Asks for the rules of the topic, for notices about them too.
    pub(crate) fn read_rules(&mut self, asked: bool) -> Action {
        self.rules_read_ms = self.now_ms;
        Action::ReadRules { asked }
    }

    /// Takes the notice away that something is being made, now that it is there.
    pub(crate) fn drop_progress(&mut self) {
        self.notice.take_if(|(_, text)| text.ends_with("..."));
    }

    /// Asks for the pending proposals again, one question at a time.
    pub(crate) fn refresh(&mut self) -> Vec<Action> {
        if self.refreshing {
            self.stale = true;
            return Vec::new();
        }
        (self.refreshing, self.stale, self.refreshed_ms) = (true, false, self.now_ms);
        vec![Action::Refresh]
    }
}
