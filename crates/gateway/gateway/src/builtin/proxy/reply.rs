//! The reply of a call by the tool: its answer becomes a result of the tool, everything else
//! passes.

use std::sync::Arc;

use model::{Answer, ListKind, Refusal, RefusalCode};
use wire::mcp::{proxy, result::words};

use crate::call::{Call, Reply};
use crate::delivery::own_answer;
use crate::link::{Passed, Questioned, Respell, Undelivered};

/// A caller's reply, with what it called.
pub(super) struct Wrapped {
    reply: Arc<dyn Reply>,
    subject: proxy::ProxySubject,
    path: String,
}

impl Wrapped {
    pub(super) fn new(reply: Arc<dyn Reply>, subject: proxy::ProxySubject, path: String) -> Self {
        Self {
            reply,
            subject,
            path,
        }
    }
}

impl Reply for Wrapped {
    fn settle(&self, call: &Call, answer: &Answer, respell: &Respell<'_>) {
        let form = call.link.form;
        let method = call.request.method.as_str();
        match proxy::answered(self.subject, &self.path, answer, method, form, respell) {
            Some(result) => self
                .reply
                .settle(call, &own_answer(form, result), &|_| None),
            None => self.reply.settle(call, answer, respell),
        }
    }

    fn refuse(&self, call: &Call, refusal: &Refusal) {
        let text = match refusal.code {
            RefusalCode::UnknownTarget => self.subject.unknown(&self.path),
            // The client can do something about a state that is no good.
            RefusalCode::Malformed if call.is_retry => return self.reply.refuse(call, refusal),
            code => format!("{code}: {refusal}"),
        };
        let form = call.link.form;
        self.reply
            .settle(call, &own_answer(form, words(&text, true, form)), &|_| None);
    }

    fn abandon(&self, call: &Call) {
        self.reply.abandon(call);
    }

    fn notify(&self, call: &Call, notice: &Passed<'_>) -> Result<(), Undelivered> {
        self.reply.notify(call, notice)
    }

    fn ask(&self, call: &Call, question: &Questioned<'_>) -> Result<(), Undelivered> {
        self.reply.ask(call, question)
    }

    fn withdraw_question(&self, call: &Call, number: u64) {
        self.reply.withdraw_question(call, number);
    }

    fn list_changed(&self, call: &Call, list: ListKind) -> Result<(), Undelivered> {
        self.reply.list_changed(call, list)
    }
}
