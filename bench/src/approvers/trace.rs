//! Traces of calls: what each asks for, and what the hidden policy of its approver says.

use model::{Digest, OperationId, ParticipantId};
use rules::{Arguments, RuledTool};

/// Digest of every definition and configuration of a trace.
pub const DEFINITION: Digest = Digest([0xAB; 32]);
/// The 27th of November 2026, 12:00 UTC: the time of a trace's first call, in milliseconds.
pub const BEGUN_MS: u64 = 1_795_780_800_000;
/// Calls a day: no trace has times of its own.
pub const CALLS_A_DAY: u64 = 60;
/// A day in milliseconds.
pub const DAY_MS: u64 = 24 * 3_600_000;

/// A call of a trace.
#[derive(Debug, Clone)]
pub struct TracedCall {
    /// Its proposer.
    pub agent: String,
    /// The server of its tool.
    pub server: String,
    /// Its tool.
    pub tool: String,
    /// Its arguments as JSON, numbers spelled as in the source.
    pub arguments: String,
    /// Digest of the tool's definition.
    pub definition: Digest,
    /// Names of members beside its arguments.
    pub beside: Vec<String>,
    /// Whether the hidden policy approves it.
    pub is_approved: bool,
}

impl TracedCall {
    /// A call of a trace's one definition.
    pub fn new(agent: &str, server: &str, tool: &str, arguments: String) -> Self {
        Self {
            agent: agent.to_owned(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            arguments,
            definition: DEFINITION,
            beside: Vec::new(),
            is_approved: true,
        }
    }

    /// The call with a decision.
    #[must_use]
    pub fn decided(mut self, is_approved: bool) -> Self {
        self.is_approved = is_approved;
        self
    }

    /// Its arguments as rules read them.
    ///
    /// # Panics
    /// When they are no arguments: no trace has such a call.
    pub fn read(&self) -> Arguments {
        Arguments::read(self.arguments.as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error:?}", self.arguments))
    }

    /// Its tool as rules know it.
    pub fn ruled_tool(&self) -> RuledTool {
        RuledTool {
            to: participant(&self.server),
            method: "tools/call".into(),
            target: self.tool.as_str().into(),
        }
    }
}

/// A participant of a trace.
///
/// # Panics
/// When the name is none.
pub fn participant(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

/// When the call at a place of its trace is made, in milliseconds since 1970.
pub fn time_of(at: usize) -> u64 {
    BEGUN_MS + at as u64 * DAY_MS / CALLS_A_DAY
}

/// The operation of the call at a place of its trace.
pub fn operation_of(at: usize) -> OperationId {
    OperationId(at as u128 + 1)
}

/// Calls in their order.
#[derive(Debug)]
pub struct EvaluatedTrace {
    /// Its name in tables.
    pub name: String,
    /// The calls.
    pub calls: Vec<TracedCall>,
}

/// A small generator of numbers (xorshift), so that a seed makes a trace.
pub struct Draw(pub u64);

impl Draw {
    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// One of these, the first ones more often (as by Zipf).
    pub fn often<'t>(&mut self, values: &[&'t str]) -> &'t str {
        let mut at = 0;
        while at + 1 < values.len() && self.below(5) < 2 {
            at += 1;
        }
        values[at]
    }
}
