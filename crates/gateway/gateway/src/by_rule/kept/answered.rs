//! Answered calls that rules ask for, in the journal, and how each is written as JSON.

use model::OperationId;
use rules::{AnsweredCall, Constant, Pointer};
use serde::{Deserialize, Serialize};

use super::decided::participant;
use crate::as_text;

/// A call that was answered without an error, for rules that ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenAnswer", into = "WrittenAnswer")]
pub(crate) struct AnsweredBefore {
    /// Its topic.
    pub(crate) topic: String,
    /// The call.
    pub(crate) call: AnsweredCall,
}

#[derive(Serialize, Deserialize)]
struct WrittenAnswer {
    topic: String,
    #[serde(with = "as_text")]
    operation: OperationId,
    proposer: String,
    to: String,
    method: String,
    target: String,
    /// Members, each with its value as canonical JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<(String, String)>,
    at_ms: u64,
}

impl From<AnsweredBefore> for WrittenAnswer {
    fn from(AnsweredBefore { topic, call }: AnsweredBefore) -> Self {
        let values = call.values.iter();
        Self {
            topic,
            operation: call.operation,
            values: values
                .map(|(pointer, value)| (pointer.as_str().to_owned(), value.as_str().to_owned()))
                .collect(),
            proposer: call.proposer.to_string(),
            to: call.to.to_string(),
            method: call.method.into(),
            target: call.target.into(),
            at_ms: call.at_ms,
        }
    }
}

impl TryFrom<WrittenAnswer> for AnsweredBefore {
    type Error = String;

    fn try_from(written: WrittenAnswer) -> Result<Self, String> {
        let mut values = Vec::new();
        for (pointer, value) in &written.values {
            let pointer = Pointer::parse(pointer).map_err(|error| error.to_string())?;
            let value = Constant::parse(value).map_err(|error| error.to_string())?;
            values.push((pointer, value));
        }
        Ok(Self {
            topic: written.topic,
            call: AnsweredCall {
                operation: written.operation,
                proposer: participant(&written.proposer)?,
                to: participant(&written.to)?,
                method: written.method.into(),
                target: written.target.into(),
                values,
                at_ms: written.at_ms,
            },
        })
    }
}
