//! A proposal as the approver outside is asked about it.

use authzen::AccessQuestion;
use authzen::config::SentArguments;
use json::{Members, Span, elements, members, object};
use model::MethodFacts;
use wire::digest::CallParts;

use crate::by_rule::tool_facts::{definition_digest, is_harmless_tool};
use crate::proposals::kept::OpenedProposal;

/// The longest evaluation, in bytes.
pub(super) const APPROVER_QUESTION_BYTES_MAX: usize = 16 * 1024;

/// The question about a proposed call. `None` about anything else, and about what is too long.
/// A call with more members than its name and arguments is none: the service would decide about what
/// it does not see.
/// Nothing of the session, the room or the reviewers is in it, no argument that is not to be sent, and
/// nothing that changes: an approval covers the same question alone.
pub(super) fn question(
    topic: &str,
    opened: &OpenedProposal,
    sent: &SentArguments,
) -> Option<AccessQuestion> {
    let ([to], Some(tool)) = (opened.to.as_slice(), &opened.context) else {
        return None;
    };
    if !MethodFacts::of(&opened.method).calls_tool() {
        return None;
    }
    let params = opened.params.as_deref().unwrap_or("{}");
    let parts = CallParts::of(&opened.method, params.as_bytes()).ok()?;
    if !parts.beside.is_empty() {
        return None;
    }
    let arguments = sent_arguments(&parts.arguments, sent);
    let definition = opened.tool.as_deref();
    let digest = definition.and_then(definition_digest);
    let digest = digest.map(|digest| digest.to_string());
    let question = AccessQuestion {
        subject: object(|subject| {
            subject.text("type", "participant").text("id", &opened.by);
            subject.object("properties", |all| {
                all.text("topic", topic);
            });
        }),
        action: opened.method.clone(),
        resource: object(|resource| {
            resource
                .text("type", "tool")
                .text("id", &format!("{to}/{tool}"));
            resource.object("properties", |all| {
                all.optional_text("definition", digest.as_deref());
                // As far as the tool says of itself.
                all.bool("destructive", !definition.is_some_and(is_harmless_tool));
            });
        }),
        context: object(|context| {
            context.text("call", &opened.digest);
            if let Some(arguments) = &arguments {
                context.raw("arguments", arguments);
            }
        }),
    };
    let is_short = question.evaluation(None).len() <= APPROVER_QUESTION_BYTES_MAX;
    is_short.then_some(question)
}

/// The arguments that are sent: all of them as an object, or those that are listed, each under its
/// pointer. `None` if none is to be sent.
fn sent_arguments(arguments: &[u8], sent: &SentArguments) -> Option<Vec<u8>> {
    match sent {
        SentArguments::All => Some(arguments.to_vec()),
        SentArguments::Listed(pointers) if pointers.is_empty() => None,
        SentArguments::Listed(pointers) => Some(object(|all| {
            for pointer in pointers {
                if let Some(value) = at_pointer(arguments, pointer) {
                    all.raw(pointer, value);
                }
            }
        })),
    }
}

/// The value at a JSON pointer (RFC 6901).
fn at_pointer<'a>(value: &'a [u8], pointer: &str) -> Option<&'a [u8]> {
    let mut steps = pointer.split('/');
    // The text before the first slash is empty.
    steps.next().filter(|before| before.is_empty())?;
    steps.try_fold(value, |value, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        if json::is_object(value) {
            return members(value, Span::all(value))
                .ok()
                .as_ref()
                .and_then(|members: &Members<'a>| members.get(&step))
                .map(|member| member.raw);
        }
        let all = elements(value, Span::all(value)).ok()?;
        let is_plain = step == "0" || !step.starts_with(['0', '+']);
        let at: usize = step.parse().ok().filter(|_| is_plain)?;
        Some(all.get(at)?.of(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::opened;

    fn sent(arguments: &str, pointers: &[&str]) -> String {
        let listed = pointers.iter().map(|one| (*one).to_owned()).collect();
        let sent = sent_arguments(arguments.as_bytes(), &SentArguments::Listed(listed));
        sent.map_or_else(String::new, |raw| String::from_utf8(raw).unwrap())
    }

    #[test]
    fn only_listed_arguments_are_sent() {
        let arguments = r#"{"a":{"b":[1,{"c~/":1e2}],"d":"hush"},"é":"x"}"#;
        for (pointers, expect) in [
            (&[][..], ""),
            (
                &["/none", "/a/none", "/a/b/2", "/a/b/01", "/a/b/-", "/a/b/+0"],
                "{}",
            ),
            (&["/é"], r#"{"/é":"x"}"#),
            (
                &["/a/b/0", "/a/b/1/c~0~1"],
                r#"{"/a/b/0":1,"/a/b/1/c~0~1":1e2}"#,
            ),
        ] {
            assert_eq!(sent(arguments, pointers), expect, "{pointers:?}");
        }
        let all = sent_arguments(b"{}", &SentArguments::All);
        assert_eq!(all.as_deref(), Some(&b"{}"[..]));
    }

    #[test]
    fn only_a_call_of_one_tool_of_a_bearable_length_is_asked_about() {
        let all = SentArguments::All;
        let plain = opened();
        assert!(question("main", &plain, &all).is_some());
        let mut other = plain.clone();
        other.to.push("another".to_owned());
        assert!(question("main", &other, &all).is_none());
        let mut other = plain.clone();
        other.method = "prompts/get".to_owned();
        assert!(question("main", &other, &all).is_none());
        let mut other = plain.clone();
        other.params = Some("{".to_owned());
        assert!(question("main", &other, &all).is_none());
        // What is beside the arguments would not be shown.
        let mut other = plain.clone();
        let beside = r#"{"name":"pay","arguments":{"a":1},"_meta":{"mode":"live"}}"#;
        other.params = Some(beside.to_owned());
        assert!(question("main", &other, &all).is_none());
        let mut long = plain;
        let text = "x".repeat(APPROVER_QUESTION_BYTES_MAX);
        long.params = Some(format!(r#"{{"name":"pay","arguments":{{"a":"{text}"}}}}"#));
        assert!(question("main", &long, &all).is_none());
        assert!(question("main", &long, &SentArguments::Listed(Vec::new())).is_some());
    }
}
