//! Calls of the built-in tools: one implementation for calls of MCP clients and for requests in the
//! room.
//!
//! The topic judges which MCP callers may use a tool; of a request in the room it judges only the
//! kind.

use std::sync::{Arc, LazyLock};

use model::method::CALL_TOOL;
use model::{Capabilities, Form, GATEWAY, KindRef, OperationId, Refusal, RefusalCode, Target};
use serde::Serialize;
use serde_json::value::RawValue;
use topic::BuiltinTool;
use upstream::{Manifest, tasks::answers};
use wire::mcp::ListKind;
use wire::mcp::list::{Hints, Item, render};
use wire::mcp::result::{tool_result, words};

use super::{arguments, held_tasks, messages, participants, plans, proxy, reviews, search};
use crate::delivery::{finish, spawn};
use crate::proposals::view::View;
use crate::{call::Call, dispatch::Dispatch, live::ProposalView, proposals::content::Waits};
use topic::section::BuiltIn;

const DEFINITIONS: &str = include_str!("tools.json");

static ITEMS: LazyLock<Vec<(BuiltinTool, Item)>> = LazyLock::new(|| {
    let all: Vec<Box<RawValue>> = serde_json::from_str(DEFINITIONS).unwrap_or_default();
    let read = |raw: Box<RawValue>| {
        let one_line: String = raw.get().lines().map(str::trim_start).collect();
        let item = Item::read(ListKind::Tools, one_line.into()).ok()?;
        Some((BuiltinTool::of(&item.key)?, item))
    };
    all.into_iter().filter_map(read).collect()
});

/// Serves a call of a built-in tool. What a model can do something about is a result with
/// `isError`, not a refusal.
pub(super) fn call(dispatch: &Arc<Dispatch>, call: &Arc<Call>) {
    let form = call.request.payload.form;
    let Some(tool) = named(call) else {
        return finish(dispatch, call, Err(unknown()));
    };
    let body = match tool {
        BuiltinTool::WaitForProposal => match written(dispatch, call) {
            Ok(proposal) if arguments::flag(&call.request, "wait") == Some(false) => {
                Ok(View::new(dispatch, &proposal, form).report())
            }
            Ok(proposal) => return held_tasks::wait(dispatch, call, proposal.id, Waits::Tool),
            Err(refusal) => Err(refusal),
        },
        BuiltinTool::WithdrawProposal => return spawn(dispatch, call, withdraw),
        BuiltinTool::ListProposals => Ok(result(reviews::list(dispatch, call), form)),
        BuiltinTool::ShowProposal => Ok(result(reviews::show(dispatch, call), form)),
        BuiltinTool::ApproveProposal => return later(dispatch, call, reviews::approve),
        BuiltinTool::ClaimProposal => Ok(result(reviews::claim(dispatch, call), form)),
        BuiltinTool::ExtendProposal => return later(dispatch, call, reviews::extend),
        BuiltinTool::AmendProposal => return later(dispatch, call, reviews::amend),
        BuiltinTool::ProposePlan => return later(dispatch, call, plans::propose),
        BuiltinTool::RejectProposal => return later(dispatch, call, reviews::reject),
        BuiltinTool::Say => return later(dispatch, call, messages::say),
        BuiltinTool::ReadMessages => return later(dispatch, call, messages::read),
        BuiltinTool::ListParticipants => Ok(result(participants::list(dispatch, call), form)),
        BuiltinTool::Proxy => return proxy::serve(dispatch, call),
        BuiltinTool::SearchTools => return later(dispatch, call, search::tools),
    };
    finish(dispatch, call, body);
}

/// Serves a call of a tool concurrently.
fn later<F, T: Serialize>(
    dispatch: &Arc<Dispatch>,
    call: &Arc<Call>,
    serve: impl FnOnce(Arc<Dispatch>, Arc<Call>) -> F,
) where
    F: Future<Output = Result<T, Refusal>> + Send + 'static,
{
    let form = call.request.payload.form;
    spawn(dispatch, call, |dispatch, call| {
        let served = serve(dispatch, call);
        async move { Ok(result(served.await, form)) }
    });
}

async fn withdraw(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Vec<u8>, Refusal> {
    let id = own(&dispatch, &call)?;
    let reason = arguments::text(&call.request, "reason");
    let proposal = held_tasks::withdraw(&dispatch, &call, id, reason).await?;
    let form = call.request.payload.form;
    Ok(words(
        &View::new(&dispatch, &proposal, form).verdict(),
        false,
        form,
    ))
}

/// The tools that the sender of a request could call in the room, as a list result.
pub(super) fn list_in_room(dispatch: &Dispatch, call: &Call) -> Vec<u8> {
    let capabilities = dispatch.with(|topic| reviews::held(topic, call));
    let items = definitions().filter(|(tool, _)| is_for(dispatch, &capabilities, *tool));
    render(
        ListKind::Tools,
        items.map(|(_, item)| (item, None)),
        None,
        &[],
        Hints::Legacy,
    )
}

/// Whether the tool that a request in the room names exists for its sender.
pub(super) fn is_in_room(dispatch: &Dispatch, call: &Call) -> bool {
    let capabilities = || dispatch.with(|topic| reviews::held(topic, call));
    named(call).is_some_and(|tool| is_for(dispatch, &capabilities(), tool))
}

/// Whether a sender with these capabilities could call a tool in the room. Every room has
/// proposals; its messages are kept for readers only if that is configured.
fn is_for(dispatch: &Dispatch, capabilities: &Capabilities, tool: BuiltinTool) -> bool {
    let exists = match group(tool) {
        BuiltIn::Room => dispatch.with(|topic| topic.kept().readable),
        BuiltIn::Proposals => true,
        // In the room a participant names servers and their own tools, and sees their lists.
        BuiltIn::Proxy | BuiltIn::SearchTools => false,
    };
    let may_request = || {
        KindRef::request(CALL_TOOL.name, Some(tool.name()))
            .is_ok_and(|kind| capabilities.admits(kind, &[GATEWAY]))
    };
    exists && tool.is_for(capabilities) && (tool.serves_own() || may_request())
}

/// The refusal of a tool that does not exist, or not for this caller.
pub(super) fn unknown() -> Refusal {
    Refusal::new(RefusalCode::UnknownTarget, "there is no tool of this name")
}

/// The built-in tool that a call names.
fn named(call: &Call) -> Option<BuiltinTool> {
    match call.request.target.as_ref()? {
        Target::Tool(name) => BuiltinTool::of(name),
        Target::Prompt(_) | Target::Uri(_) | Target::Task(_) => None,
    }
}

/// The caller's own proposal that the argument `id`, or `proposal` as envelopes call it, names, if
/// the call's access token is good for it. It need not be on disk yet.
fn own(dispatch: &Dispatch, call: &Call) -> Result<OperationId, Refusal> {
    let who = &call.link.participant.id;
    let named = ["id", "proposal"]
        .iter()
        .find_map(|key| arguments::text(&call.request, key));
    let own = dispatch.with(|topic| {
        let id = reviews::named(topic, &named?)?;
        let is_theirs = topic.owns(id, who) && topic.covers_proposal(call.narrowing(), id);
        is_theirs.then_some(id)
    });
    own.ok_or_else(answers::unknown)
}

/// The caller's own proposal that a call names, once it is on disk.
fn written(dispatch: &Dispatch, call: &Call) -> Result<ProposalView, Refusal> {
    held_tasks::own(dispatch, call, Some(own(dispatch, call)?))
}

/// The result of a tool: as data and as text, or the refusal in words.
fn result<T: Serialize>(end: Result<T, Refusal>, form: Form) -> Vec<u8> {
    let data = end.and_then(|end| {
        serde_json::to_string(&end)
            .map_err(|_| Refusal::new(RefusalCode::Internal, "the result cannot be written"))
    });
    let data = match data {
        Ok(data) => data,
        Err(refusal) => return words(&format!("{}: {refusal}", refusal.code), true, form),
    };
    tool_result(&data, false, form, |result| {
        result.raw("structuredContent", data.as_bytes());
    })
}

/// The group by which a tool is configured.
fn group(tool: BuiltinTool) -> BuiltIn {
    match tool {
        BuiltinTool::ListProposals
        | BuiltinTool::ShowProposal
        | BuiltinTool::ApproveProposal
        | BuiltinTool::RejectProposal
        | BuiltinTool::ClaimProposal
        | BuiltinTool::ExtendProposal
        | BuiltinTool::AmendProposal
        | BuiltinTool::ProposePlan
        | BuiltinTool::WithdrawProposal
        | BuiltinTool::WaitForProposal => BuiltIn::Proposals,
        BuiltinTool::Say | BuiltinTool::ReadMessages | BuiltinTool::ListParticipants => {
            BuiltIn::Room
        }
        BuiltinTool::Proxy => BuiltIn::Proxy,
        BuiltinTool::SearchTools => BuiltIn::SearchTools,
    }
}

/// All tools with their definitions.
fn definitions() -> impl Iterator<Item = (BuiltinTool, &'static Item)> {
    ITEMS.iter().map(|(tool, item)| (*tool, item))
}

/// Lists of the gateway's own participant with these groups.
pub fn manifest(groups: &[BuiltIn]) -> Manifest {
    let mut manifest = Manifest::default();
    let chosen = definitions().filter(|(tool, _)| groups.contains(&group(*tool)));
    manifest.tools.items = chosen.map(|(_, item)| item.clone()).collect();
    manifest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_data_and_text() {
        let read = |form| -> serde_json::Value {
            serde_json::from_slice(&result(Ok(json!({ "a": "\"" })), form)).unwrap()
        };
        let legacy = json!({
            "content": [{ "type": "text", "text": "{\"a\":\"\\\"\"}" }],
            "structuredContent": { "a": "\"" },
            "isError": false,
        });
        assert_eq!(read(Form::Legacy), legacy);
        let mut modern = legacy;
        modern["resultType"] = "complete".into();
        assert_eq!(read(Form::Modern), modern);
    }

    #[test]
    fn every_tool_has_a_definition() {
        let defined: Vec<BuiltinTool> = definitions().map(|(tool, _)| tool).collect();
        assert_eq!(defined, BuiltinTool::ALL);
        for (_, item) in definitions() {
            assert!(!item.raw.contains(&b'\n'));
            let tool: serde_json::Value = serde_json::from_slice(&item.raw).unwrap();
            for part in ["inputSchema", "outputSchema"] {
                let schema = &tool[part];
                if part == "inputSchema" || !schema.is_null() {
                    assert_eq!(schema["type"], "object", "{}", item.key);
                    jsonschema::validator_for(schema).unwrap();
                }
            }
            for hint in [
                "readOnlyHint",
                "destructiveHint",
                "idempotentHint",
                "openWorldHint",
            ] {
                assert!(
                    tool["annotations"][hint].is_boolean(),
                    "{} {hint}",
                    item.key
                );
            }
        }
    }

    #[test]
    fn only_configured_groups_are_listed() {
        let names = |groups: &[BuiltIn]| -> Vec<String> {
            manifest(groups)
                .tools
                .items
                .into_iter()
                .map(|item| item.key)
                .collect()
        };
        assert!(names(&[]).is_empty());
        assert_eq!(
            names(&[BuiltIn::Proxy, BuiltIn::SearchTools]),
            ["proxy", "search_tools"]
        );
        assert_eq!(
            names(&[BuiltIn::Room]),
            ["say", "read_messages", "list_participants"]
        );
        assert_eq!(
            names(&[BuiltIn::Room, BuiltIn::Proposals]).len(),
            BuiltinTool::ALL.len() - 2
        );
    }
}
