//! Tools: search, a tool's schema, and a call.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::api_client::{Problem, encoded};
use crate::arguments::{Room, Rows, table, text, thousands};
use crate::confirm::{self, Question};
use crate::editing;
use crate::outcome::Outcome;
use crate::page::{Content, Tab, command};
use crate::state::{At, Visit, decoded};

/// Tools of a page; a search finds the rest.
const TOOLS_MAX: usize = 200;
/// Characters of a description in the list; its page has all of it.
const SHORT_CHARS: usize = 160;

/// Bytes of a definition that are about one token of a model.
pub(crate) const BYTES_A_TOKEN: usize = 4;
/// Servers whose costs the list names.
const COSTS_MAX: usize = 20;

#[derive(Deserialize)]
struct ToolList {
    tools: Vec<Tool>,
}

/// A tool as the API shows it.
#[derive(Deserialize)]
struct Tool {
    name: String,
    server: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Value>,
    held: bool,
}

impl Tool {
    /// About how many tokens a model reads of its definition: name, description, and schema of its
    /// arguments.
    fn tokens(&self) -> usize {
        let schema = self.input_schema.as_ref().map(Value::to_string);
        let description = self.description.as_deref().unwrap_or_default();
        let around = r#"{"name":"","description":"","inputSchema":}"#.len();
        let bytes =
            around + self.name.len() + description.len() + schema.map_or(0, |schema| schema.len());
        bytes.div_ceil(BYTES_A_TOKEN)
    }
}

/// About how many tokens the tools of each server cost a model that reads all definitions, the dearest
/// first.
fn costs(tools: &[Tool]) -> Vec<(&str, usize)> {
    let mut by_server: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in tools {
        *by_server.entry(&tool.server).or_default() += tool.tokens();
    }
    let mut all: Vec<_> = by_server.into_iter().collect();
    all.sort_by_key(|(server, tokens)| (Reverse(*tokens), *server));
    all
}

fn costs_of(tools: &[Tool]) -> Markup {
    let costs = costs(tools);
    let all: usize = costs.iter().map(|(_, tokens)| tokens).sum();
    let more = costs.len().saturating_sub(COSTS_MAX);
    html! {
        @if !costs.is_empty() {
            p data-testid="costs" {
                "A model that reads all of their definitions reads about " strong { (thousands(all)) " tokens" } ":"
                @for (at, (server, tokens)) in costs.iter().take(COSTS_MAX).enumerate() {
                    (if at == 0 { " " } else { ", " }) span class="who" { (Hostile(server)) } " " (thousands(*tokens))
                }
                @if more > 0 { ", and " (more) " more servers" }
                ". Counted, with what would save how much: " code { "portmoot tokens" }
            }
        }
    }
}

/// `GET /console/tools`.
pub(crate) async fn content(visit: &Visit, query: &str) -> Result<Content, Problem> {
    let list: ToolList = visit.api.get("/api/v1/tools").await?;
    let wanted = query.to_lowercase();
    let matches = |tool: &&Tool| {
        let described = tool.description.as_deref().unwrap_or_default();
        [&*tool.name, &*tool.server, described]
            .iter()
            .any(|text| text.to_lowercase().contains(&wanted))
    };
    let found: Vec<&Tool> = list.tools.iter().filter(matches).collect();
    let body = html! {
        h1 { "Tools" }
        form method="get" action={ (visit.base) "/tools" } role="search" class="search" {
            label for="q" { "Find a tool" }
            div class="row" {
                input type="text" id="q" name="q" value=(query) autocomplete="off" data-testid="q";
                button type="submit" { "Find" }
            }
        }
        p class="soft" { (found.len()) " of " (list.tools.len()) " tools" @if found.len() > TOOLS_MAX { "; the first " (TOOLS_MAX) " are shown" } }
        (costs_of(&list.tools))
        div class="wide" tabindex="0" role="region" aria-label="Tools" {
            table class="rows" {
                thead { tr { th { "Tool" } th { "Server" } th { "A call" } th class="number" { "Tokens, about" } th { "In the words of its server" } } }
                tbody { @for tool in found.iter().take(TOOLS_MAX) { (row(visit, tool)) } }
            }
        }
    };
    Ok(Content {
        tab: Tab::Tools,
        title: "Tools".to_owned(),
        body,
        command: "portmoot tools ls".to_owned(),
    })
}

fn row(visit: &Visit, tool: &Tool) -> Markup {
    let described = tool.description.as_deref().unwrap_or_default();
    let short: String = described.chars().take(SHORT_CHARS).collect();
    html! {
        tr data-testid="tool" {
            td { a href={ (visit.base) "/tools/" (encoded(&tool.name)) } { (text(&tool.name)) } }
            td { (Hostile(&tool.server)) }
            td { @if tool.held { "waits for approval" } @else { "runs at once" } }
            td class="number" { (thousands(tool.tokens())) }
            td { (Hostile(&short)) @if short.len() < described.len() { " " span class="soft" { "(its page has all of it)" } } }
        }
    }
}

/// `GET /console/tools/NAME`, with what a call returned; `all` leaves out nothing.
pub(crate) async fn one(
    visit: &Visit,
    name: &str,
    all: bool,
    returned: Option<&str>,
) -> Result<Content, Problem> {
    let tool: Tool = visit
        .api
        .get(&format!("/api/v1/tools/{}", encoded(name)))
        .await?;
    let written = visit.asked.form().get("arguments").to_owned();
    let mut room = Room::new(all);
    let is_error = returned.is_some_and(says_error);
    let returned = returned.map(|returned| table(returned, &mut Room::new(true)));
    let body = html! {
        h1 { (text(&tool.name)) }
        p { "At " span class="who" { (Hostile(&tool.server)) } @if tool.held { " · your call waits for the approval of another participant" } " · a model reads about " (thousands(tool.tokens())) " tokens of it" }
        @if let Some(returned) = returned {
            section class="card" data-testid="returned" {
                h2 { @if is_error { span class="bad" { "The tool reported an error" } } @else { "It returned" } }
                (returned.markup)
                (left_out(&returned, None))
            }
        }
        details class="stranger" open {
            summary { "In the words of its server" }
            @if let Some(title) = &tool.title { p { (room.words(title)) } }
            @if let Some(words) = &tool.description { p { (room.words(words)) } }
        }
        (call_form(visit, &tool, &written, &mut room))
    };
    Ok(Content {
        tab: Tab::Tools,
        title: "Tool".to_owned(),
        body,
        command: command("portmoot tools call", &tool.name),
    })
}

/// Whether the result of a call says that the tool has failed.
fn says_error(result: &str) -> bool {
    let read: Option<Value> = serde_json::from_str(result).ok();
    let said = read.and_then(|result| result.get("isError")?.as_bool());
    said.unwrap_or_default()
}

/// A note that a table leaves something out, with the address at which all is shown, if there is one.
fn left_out(rows: &Rows, all: Option<&str>) -> Markup {
    html! {
        @if let Some(missing) = &rows.missing {
            p class="soft" data-testid="left-out" {
                "Not all is shown here: " (missing.words) ". "
                @if missing.is_too_large { "It is more than a page holds; the command line prints it." }
                @else if let Some(all) = all { a href=(all) { "Show all" } }
            }
        }
    }
}

/// The form of a call: one field for each plain member of the schema, JSON for all else.
fn call_form(visit: &Visit, tool: &Tool, written: &str, room: &mut Room) -> Markup {
    let fields = fields(tool);
    let address = format!("{}/tools/{}", visit.base, encoded(&tool.name));
    let schema = tool.input_schema.as_ref();
    let schema = schema.map(|schema| table(&schema.to_string(), room));
    html! {
        section class="card" {
            h2 { "Call it" }
            form method="post" action={ (address) "/call" } {
                (visit.token())
                (hidden("confirmed", ""))
                @for field in &fields { (field.markup()) }
                @if fields.is_empty() {
                    label for="arguments" { "Arguments, as JSON" }
                    textarea id="arguments" name="arguments" rows="6" spellcheck="false" data-testid="arguments" { (if written.is_empty() { "{}" } else { written }) }
                }
                div class="row" { button type="submit" class="main" data-arm data-testid="call" { "Call" } }
            }
            @if let Some(schema) = schema {
                details { summary { "Its schema" } (schema.markup) }
                (left_out(&schema, Some(&format!("{address}?all=1"))))
            }
        }
    }
}

/// A member of a tool's arguments that a form has a field for.
struct Field {
    /// Its name, of a stranger.
    name: String,
    kind: FieldKind,
    is_required: bool,
    about: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Text,
    Number,
    Flag,
}

/// The fields of a schema whose members are all plain; none for any other one.
fn fields(tool: &Tool) -> Vec<Field> {
    let schema = tool.input_schema.as_ref();
    let members = schema.and_then(|schema| schema.get("properties")?.as_object());
    let required = schema.and_then(|schema| schema.get("required")?.as_array());
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let field = |(name, member): (&String, &Value)| {
        let kind = match member.get("type").and_then(Value::as_str)? {
            "string" => FieldKind::Text,
            "number" | "integer" => FieldKind::Number,
            "boolean" => FieldKind::Flag,
            _ => return None,
        };
        let about = member.get("description").and_then(Value::as_str);
        Some(Field {
            is_required: is_required(name),
            name: name.clone(),
            kind,
            about: about.unwrap_or_default().to_owned(),
        })
    };
    let all: Option<Vec<Field>> = members.and_then(|members| members.iter().map(field).collect());
    let mut all = all.unwrap_or_default();
    all.sort_by_key(|field| !field.is_required);
    all
}

impl Field {
    /// The name of its field in the form.
    fn key(&self) -> String {
        format!("a.{}", self.name)
    }

    fn markup(&self) -> Markup {
        html! {
            label class="line" {
                (text(&self.name)) @if self.is_required { span class="soft" { " needed" } }
                @if !self.about.is_empty() { span class="soft" { " " (Hostile(&self.about)) } }
                @match self.kind {
                    FieldKind::Flag => {
                        select name=(self.key()) required[self.is_required] {
                            option value="" { @if self.is_required { "(choose)" } @else { "(not given)" } }
                            option value="true" { "true" }
                            option value="false" { "false" }
                        }
                    }
                    FieldKind::Text => { input type="text" name=(self.key()) autocomplete="off" required[self.is_required]; }
                    FieldKind::Number => { input type="text" inputmode="decimal" name=(self.key()) autocomplete="off" required[self.is_required]; }
                }
            }
        }
    }
}

/// The arguments that a form spells.
fn arguments(tool: &Tool, visit: &Visit) -> Result<String, Problem> {
    let form = visit.asked.form();
    let fields = fields(tool);
    if fields.is_empty() {
        return editing::written(form.some("arguments").unwrap_or("{}")).map(str::to_owned);
    }
    let written = json::object(|object| {
        for field in &fields {
            let Some(value) = form.typed(&field.key()) else {
                continue;
            };
            match field.kind {
                FieldKind::Text => _ = object.text(&field.name, value),
                FieldKind::Number | FieldKind::Flag => {
                    _ = object.raw(&field.name, value.trim().as_bytes());
                }
            }
        }
    });
    let written = String::from_utf8_lossy(&written).into_owned();
    editing::written(&written).map(str::to_owned)
}

/// `POST /console/tools/NAME/call`.
pub(crate) async fn call(visit: &Visit, name: &str) -> Outcome {
    let name = decoded(name);
    let at = At::Tool {
        name: name.clone(),
        all: false,
    };
    let returned = match spelled(visit, &name).await {
        Ok(arguments) if confirm::is_confirmed(visit) => returned(visit, &name, &arguments).await,
        Ok(arguments) => return question(visit, &name, &arguments),
        Err(refused) => Err(refused),
    };
    match returned {
        Ok(Returned::Result(result)) => match one(visit, &name, false, Some(&result)).await {
            Ok(content) => Outcome::page(content),
            Err(refused) => Outcome::fail(at, refused),
        },
        Ok(Returned::Proposal(id)) => Outcome::Led(format!("/p/{}", encoded(&id))),
        Err(refused) => Outcome::fail(at, refused),
    }
}

/// The question before a call.
fn question(visit: &Visit, name: &str, arguments: &str) -> Outcome {
    let back = At::Tool {
        name: name.to_owned(),
        all: false,
    };
    confirm::ask(
        visit,
        Question {
            tab: Tab::Tools,
            title: html! { "Call " (text(name)) "?" },
            about: table(arguments, &mut Room::new(true)).markup,
            yes: "Yes, call it",
            back: back.address(),
        },
    )
}

/// The arguments that the form spells, as JSON.
async fn spelled(visit: &Visit, name: &str) -> Result<String, Problem> {
    let path = format!("/api/v1/tools/{}", encoded(name));
    let tool: Tool = visit.api.get(&path).await?;
    arguments(&tool, visit)
}

/// The end of a call.
enum Returned {
    /// Its result, as JSON.
    Result(String),
    /// The id of the proposal that it waits as.
    Proposal(String),
}

/// Calls a tool.
async fn returned(visit: &Visit, name: &str, arguments: &str) -> Result<Returned, Problem> {
    let path = format!("/api/v1/tools/{}/call", encoded(name));
    let body = format!("{{\"arguments\":{arguments}}}");
    let returned: Value = visit.api.post(&path, body).await?;
    let proposal = returned.get("proposal").and_then(Value::as_str);
    Ok(match proposal {
        Some(id) if returned.get("content").is_none() => Returned::Proposal(id.to_owned()),
        Some(_) | None => Returned::Result(returned.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, server: &str, description: &str) -> Tool {
        let schema = json!({ "type": "object" });
        serde_json::from_value(
            json!({ "name": name, "server": server, "description": description,
            "inputSchema": schema, "held": false }),
        )
        .unwrap()
    }

    #[test]
    fn the_cost_of_a_tool_follows_from_what_a_model_reads() {
        let short = tool("a", "files", "");
        // {"name":"a","description":"","inputSchema":{"type":"object"}}
        assert_eq!(short.tokens(), 61_usize.div_ceil(BYTES_A_TOKEN));
        let long = tool("a", "files", &"x".repeat(400));
        assert_eq!(long.tokens(), short.tokens() + 100);
        let mail = || tool("b", "mail", "");
        let all = [short, mail(), mail()];
        let one = all[0].tokens();
        assert_eq!(costs(&all), [("mail", 2 * one), ("files", one)]);
        assert!(costs_of(&[]).into_string().is_empty());
    }

    #[test]
    fn a_result_may_say_that_its_tool_has_failed() {
        for (result, expect) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"content":[],"isError":false}"#, false),
            (r#"{"content":[{"text":"isError: true"}]}"#, false),
            ("[]", false),
        ] {
            assert_eq!(says_error(result), expect, "{result}");
        }
    }
}
