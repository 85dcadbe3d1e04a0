//! Traces of calls: what each asks for, and what the hidden policy of its approver says.

use model::{Digest, OperationId, ParticipantId};
use rules::{Arguments, RuledTool};
use serde_json::Value;

/// Digest of every definition and configuration of a trace.
pub const DEFINITION: Digest = Digest([0xAB; 32]);
/// The 27th of November 2026, 12:00 UTC: the time of a trace's first call, in milliseconds.
pub const BEGUN_MS: u64 = 1_795_780_800_000;
/// The days over which a trace is played: none has times of its own.
pub const TRACE_DAYS: u64 = 20;
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
    /// Digest of the server's configuration.
    pub configuration: Digest,
    /// Names of members beside its arguments.
    pub beside: Vec<String>,
    /// Whether the hidden policy approves it.
    pub is_approved: bool,
    /// Whether its reviewer decides otherwise than the policy.
    pub is_mistaken: bool,
    /// When it is made, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The wish of an approver: of a tool and arguments, whether the call is approved.
pub type HiddenPolicy = fn(&str, &Value) -> bool;

impl TracedCall {
    /// A call of a trace's one definition.
    pub fn new(agent: &str, server: &str, tool: &str, arguments: String) -> Self {
        Self {
            agent: agent.to_owned(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            arguments,
            definition: DEFINITION,
            configuration: DEFINITION,
            beside: Vec::new(),
            is_approved: true,
            is_mistaken: false,
            at_ms: BEGUN_MS,
        }
    }

    /// The call with a decision.
    #[must_use]
    pub fn decided(mut self, is_approved: bool) -> Self {
        self.is_approved = is_approved;
        self
    }

    /// The decision of its reviewer.
    pub fn is_approved_by_hand(&self) -> bool {
        self.is_approved != self.is_mistaken
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
    /// The hidden policy.
    pub policy: HiddenPolicy,
}

impl EvaluatedTrace {
    /// A trace whose calls are made at equal intervals over some days.
    pub fn over_days(
        name: String,
        mut calls: Vec<TracedCall>,
        policy: HiddenPolicy,
        days: u64,
    ) -> Self {
        let count = calls.len().max(1) as u64;
        for (at, call) in (0..).zip(&mut calls) {
            call.at_ms = BEGUN_MS + at * days * DAY_MS / count;
        }
        Self {
            name,
            calls,
            policy,
        }
    }

    /// The time after its last call, in milliseconds since 1970.
    pub fn end_ms(&self) -> u64 {
        self.calls.last().map_or(BEGUN_MS, |call| call.at_ms + 1)
    }
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
