//! The gateway's REST API as the chat uses it, and the proposals in it. The program that runs the
//! chat brings the connection.

use std::pin::Pin;

use model::RefusalCode;
use review::ProposalDetails;
use serde::Deserialize;
use serde_json::{Value, json};

/// The number of calls that the like of one is approved for at most: the most that the gateway takes.
const LIKE_USES: u32 = 20;

/// A grant that goes with an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// The participant that gets it.
    pub participant: String,
    /// The topic in which it holds.
    pub topic: String,
    /// The capability.
    pub capability: String,
    /// For how long, in seconds.
    pub seconds: u64,
}

/// A rule that approves the like of a proposed call, on the person's authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikeRule {
    /// The topic.
    pub topic: String,
    /// All that it says, in English.
    pub sentence: String,
    /// Its text, as TOML.
    pub text: String,
    /// The tool's own name: the person has confirmed a question that shows it.
    pub tool: Option<String>,
    /// For how long, in seconds.
    pub seconds: u64,
}

/// Why the gateway did not do something, for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct ApiRefusal {
    /// Portmoot's code, if the gateway gave one.
    pub code: Option<String>,
    /// The cause.
    pub message: String,
    /// Advice that may help.
    pub hint: Option<String>,
}

impl ApiRefusal {
    /// Whether the gateway could not write down what was asked for.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.code.as_deref() == Some(RefusalCode::LogUnavailable.as_str())
    }

    fn unreadable() -> Self {
        Self {
            code: None,
            message: "the gateway's answer cannot be read".to_owned(),
            hint: None,
        }
    }
}

/// An answer to come.
pub type ApiReply<T> = Pin<Box<dyn Future<Output = Result<T, ApiRefusal>> + Send>>;

/// A connection to the REST API below `/api/v1`, with the credentials of the person.
pub trait Api: Send + Sync {
    /// The body of `GET {segments}?{query}`.
    fn get(&self, segments: Vec<String>, query: Vec<(&'static str, String)>) -> ApiReply<String>;
    /// The body of `POST {segments}?{query}` with this JSON text.
    fn post(
        &self,
        segments: Vec<String>,
        query: Vec<(&'static str, String)>,
        body: String,
    ) -> ApiReply<String>;
}

/// A page of proposals.
#[derive(Deserialize)]
struct ProposalList {
    proposals: Vec<ProposalDetails>,
    next: Option<String>,
}

/// Rights of a participant, as `GET participants/{id}/can` returns them.
#[derive(Deserialize)]
struct Rights {
    entries: Vec<Right>,
}

#[derive(Deserialize)]
struct Right {
    server: String,
    method: String,
    name: String,
    own: String,
}

/// The pending proposals of a topic that the person may see.
pub(crate) async fn waiting(
    api: &dyn Api,
    topic: &str,
) -> Result<Vec<ProposalDetails>, ApiRefusal> {
    let mut waiting = Vec::new();
    let mut after = None;
    loop {
        let mut query = vec![("topic", topic.to_owned()), ("shown", "true".to_owned())];
        query.extend(after.map(|after| ("after", after)));
        let text = api.get(segments(&["proposals"]), query).await?;
        let list: ProposalList =
            serde_json::from_str(&text).map_err(|_| ApiRefusal::unreadable())?;
        let pending = list.proposals.into_iter();
        waiting.extend(pending.filter(ProposalDetails::is_pending));
        after = list.next;
        if after.is_none() {
            return Ok(waiting);
        }
    }
}

/// One proposal.
pub(crate) async fn proposal(api: &dyn Api, id: &str) -> Result<ProposalDetails, ApiRefusal> {
    read(&api.get(segments(&["proposals", id]), Vec::new()).await?)
}

/// Approves a proposal with an [`approval_body`]. Returns it as it is then.
pub(crate) async fn approve(
    api: &dyn Api,
    id: &str,
    body: String,
) -> Result<ProposalDetails, ApiRefusal> {
    read(
        &api.post(segments(&["proposals", id, "approve"]), Vec::new(), body)
            .await?,
    )
}

/// Claims a proposal or gives more time to decide about it (`verb`). Returns it as it is then.
pub(crate) async fn review(
    api: &dyn Api,
    id: &str,
    verb: &str,
) -> Result<ProposalDetails, ApiRefusal> {
    let path = segments(&["proposals", id, verb]);
    read(&api.post(path, Vec::new(), "{}".to_owned()).await?)
}

/// Replaces the arguments of the person's own proposal. Returns it as it is then.
pub(crate) async fn amend(
    api: &dyn Api,
    id: &str,
    arguments: &str,
) -> Result<ProposalDetails, ApiRefusal> {
    let body = format!("{{\"arguments\":{arguments}}}");
    let path = segments(&["proposals", id, "amend"]);
    read(&api.post(path, Vec::new(), body).await?)
}

/// Rejects or withdraws a proposal (`verb`), with a reason unless it is empty.
pub(crate) async fn end(
    api: &dyn Api,
    id: &str,
    verb: &str,
    reason: &str,
) -> Result<ProposalDetails, ApiRefusal> {
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    let body = json!({ "reason": reason }).to_string();
    read(
        &api.post(segments(&["proposals", id, verb]), Vec::new(), body)
            .await?,
    )
}

/// The capability with which the proposer could make the proposed request itself: under the public
/// name that MCP clients use if the call is held for one, else under the server's own name. Needs
/// the capability `portmoot/grants`.
pub(crate) async fn capability_for(
    api: &dyn Api,
    proposal: &ProposalDetails,
) -> Result<String, ApiRefusal> {
    if !proposal.steps.is_empty() {
        // A capability without a target would be one to all tools.
        return Err(ApiRefusal::unreadable());
    }
    let text = api
        .get(
            segments(&["participants", &proposal.by, "can"]),
            vec![("topic", proposal.topic.clone())],
        )
        .await?;
    let rights: Rights = serde_json::from_str(&text).map_err(|_| ApiRefusal::unreadable())?;
    // A held call came over MCP, whose capabilities are about public names; one that was made in a
    // room is about the server's own.
    let entry = rights.entries.iter().find(|right| {
        proposal.held
            && right.method == proposal.method
            && Some(right.own.as_str()) == proposal.context.as_deref()
            && proposal.to.contains(&right.server)
    });
    let target = match entry {
        Some(right) => Some(right.name.clone()),
        None => proposal.context.clone(),
    };
    Ok(match target {
        Some(target) => format!("mcp/request:{}:{target}", proposal.method),
        None => format!("mcp/request:{}", proposal.method),
    })
}

/// Grants a capability to a participant of a topic for so many seconds.
pub(crate) async fn grant(api: &dyn Api, allow: &Allow, reason: &str) -> Result<(), ApiRefusal> {
    let body = json!({
        "add": [allow.capability],
        "expires_in_seconds": allow.seconds,
        "reason": reason,
    });
    let path = segments(&["participants", &allow.participant, "grants"]);
    api.post(path, vec![("topic", allow.topic.clone())], body.to_string())
        .await
        .map(drop)
}

/// The rule that approves the like of a proposed call for so many seconds, with these conditions in
/// place of its values.
pub(crate) async fn like(
    api: &dyn Api,
    proposal: &ProposalDetails,
    seconds: u64,
    when: &str,
) -> Result<LikeRule, ApiRefusal> {
    #[derive(Deserialize)]
    struct Drafted {
        topic: String,
        sentence: String,
        text: String,
    }
    // The question before it is added shows the tool, and what its server says of it.
    let tool = proposal.context.clone();
    let body = json!({ "for_seconds": seconds, "uses": LIKE_USES, "when": when, "tool": tool });
    let path = segments(&["proposals", &proposal.id, "like"]);
    let text = api.post(path, Vec::new(), body.to_string()).await?;
    let drafted: Drafted = serde_json::from_str(&text).map_err(|_| ApiRefusal::unreadable())?;
    Ok(LikeRule {
        topic: drafted.topic,
        sentence: drafted.sentence,
        text: drafted.text,
        tool,
        seconds,
    })
}

/// Puts such a rule in force.
pub(crate) async fn add_rule(api: &dyn Api, rule: &LikeRule) -> Result<(), ApiRefusal> {
    let body = json!({ "rule": rule.text, "tool": rule.tool });
    let path = segments(&["topics", &rule.topic, "rules"]);
    api.post(path, Vec::new(), body.to_string()).await.map(drop)
}

/// The rules of a topic that the person may see.
pub(crate) async fn rules(api: &dyn Api, topic: &str) -> Result<Value, ApiRefusal> {
    let path = segments(&["topics", topic, "rules"]);
    let text = api.get(path, Vec::new()).await?;
    serde_json::from_str(&text).map_err(|_| ApiRefusal::unreadable())
}

/// The rules that are suggested to the person in a topic.
pub(crate) async fn suggestions(api: &dyn Api, topic: &str) -> Result<Value, ApiRefusal> {
    let path = segments(&["topics", topic, "rules", "offers"]);
    let text = api.get(path, Vec::new()).await?;
    serde_json::from_str(&text).map_err(|_| ApiRefusal::unreadable())
}

/// Puts a suggested rule in force (`accept`) or refuses it for good (`dismiss`).
pub(crate) async fn decide_suggestion(
    api: &dyn Api,
    topic: &str,
    digest: &str,
    verb: &str,
) -> Result<(), ApiRefusal> {
    let path = segments(&["topics", topic, "rules", "offers", digest, verb]);
    api.post(path, Vec::new(), "{}".to_owned()).await.map(drop)
}

/// Pauses or resumes a participant of a topic (`verb`), with a reason unless it is empty.
pub(crate) async fn brake(
    api: &dyn Api,
    topic: &str,
    participant: &str,
    verb: &str,
    reason: &str,
) -> Result<(), ApiRefusal> {
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    let body = json!({ "reason": reason }).to_string();
    let path = segments(&["topics", topic, "participants", participant, verb]);
    api.post(path, Vec::new(), body).await.map(drop)
}

fn segments(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

fn read(text: &str) -> Result<ProposalDetails, ApiRefusal> {
    serde_json::from_str(text).map_err(|_| ApiRefusal::unreadable())
}

#[cfg(test)]
mod tests;
