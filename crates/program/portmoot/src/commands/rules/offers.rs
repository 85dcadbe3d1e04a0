//! Commands `rules offers`, `accept`, `dismiss` and `end`: rules that were learned from decisions.

use ::chat::offers::{DIGEST_DIGITS, not_offered, offer};
use serde_json::Value;

use super::words::{items, shown, text};
use crate::remote::{Remote, api};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

pub(super) async fn list(remote: &Remote, topic: &str, output: Output) -> Result<(), Failure> {
    let answer = api::get(remote, &["topics", topic, "rules", "offers"], &[]).await?;
    if output.json {
        output.result_json_text(&answer.text);
    } else {
        output.result(&listed(&answer.read()?));
    }
    Ok(())
}

pub(super) async fn accept(
    remote: &Remote,
    topic: &str,
    digest: &str,
    output: Output,
) -> Result<(), Failure> {
    let digest = whole_digest(remote, topic, digest).await?;
    let path = ["topics", topic, "rules", "offers", &digest, "accept"];
    let answer = api::post(remote, &path, &[], "{}".to_owned()).await?;
    print_rule(&answer, output)
}

pub(super) async fn dismiss(
    remote: &Remote,
    topic: &str,
    digest: &str,
    output: Output,
) -> Result<(), Failure> {
    let digest = whole_digest(remote, topic, digest).await?;
    let path = ["topics", topic, "rules", "offers", &digest, "dismiss"];
    let answer = api::post(remote, &path, &[], "{}".to_owned()).await?;
    if output.json {
        output.result_json_text(&answer.text);
    } else {
        output.message("it is dismissed: the approvals that it rests on make no offer any more");
    }
    Ok(())
}

pub(super) async fn end(
    remote: &Remote,
    topic: &str,
    rule: &str,
    output: Output,
) -> Result<(), Failure> {
    let path = ["topics", topic, "rules", rule, "end"];
    let answer = api::post(remote, &path, &[], "{}".to_owned()).await?;
    print_rule(&answer, output)
}

/// Prints the rule that a request has changed.
pub(super) fn print_rule(answer: &api::Answer, output: Output) -> Result<(), Failure> {
    if output.json {
        output.result_json_text(&answer.text);
    } else {
        output.result(&shown(&answer.read()?));
    }
    Ok(())
}

/// The whole digest of the present offer that a text begins. A whole one is taken as it is, so that
/// one that is unknown is refused by the gateway.
async fn whole_digest(remote: &Remote, topic: &str, text: &str) -> Result<String, Failure> {
    if text.len() == 64 {
        return Ok(text.to_owned());
    }
    if text.len() < DIGEST_DIGITS {
        let why = format!("write at least {DIGEST_DIGITS} digits of the digest of an offer");
        return Err(Failure::bad_argument(why).hint("list them: portmoot rules offers"));
    }
    let answer = api::get(remote, &["topics", topic, "rules", "offers"], &[]).await?;
    let answer: Value = answer.read()?;
    let digests = items(&answer, "offers").iter();
    let mut digests = digests.filter_map(|offer| offer.get("digest")?.as_str());
    let found = digests.find(|digest| digest.starts_with(&text.to_lowercase()));
    found.map(str::to_owned).ok_or_else(|| {
        let why = format!("no offer has a digest that begins with `{text}`");
        Failure::new(Exit::NotFound, "unknown_target", why)
            .hint("offers change with what is decided: portmoot rules offers")
    })
}

fn listed(answer: &Value) -> String {
    let offers = items(answer, "offers").iter().map(|one| {
        let digest = text(one, "digest").unwrap_or_default();
        let digest: String = digest.chars().take(DIGEST_DIGITS).collect();
        format!(
            "{}\n  accept it  portmoot rules accept {digest}",
            offer(one)
        )
    });
    let parts: Vec<String> = offers.chain(not_offered(answer)).collect();
    parts.join("\n\n")
}
