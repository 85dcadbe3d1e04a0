//! Tokens (cl100k_base) of the definitions that a model reads: the full list of tools, `proxy` and
//! `search_tools`; and how well and how fast `search_tools` finds real tools.
//!
//!     tokens --tools DIR --portmoot FILE      files with `{"server": .., "tools": [..]}` each; the gateway that counts
//!     tokens serve FILE                       a server on stdio that lists the tools of a file

use std::io::{Write as _, stdin, stdout};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use portmoot_bench::flags::Flags;
use portmoot_bench::stage::{Stage, stdio_table};
use serde_json::{Value, json};
use tiktoken_rs::{CoreBPE, cl100k_base};
use wire::mcp::search::Index;

const BUILT_IN: &str = include_str!("../../../crates/gateway/gateway/src/builtin/tools.json");
/// Where the gateways of this program listen.
const PORT: u16 = 9_400;
/// Tools of the whole gateway for the measurement of time.
const MANY: usize = 5_000;
/// Questions in plain words, each with the tools of which one must be among the first five.
const QUESTIONS: [(&str, &[&str]); 32] = [
    ("what is the weather like outside", &[]),
    (
        "draw a pie chart of our sales",
        &["antvchart_generate_pie_chart"],
    ),
    ("make a mind map", &["antvchart_generate_mind_map"]),
    ("search the web", &["brave_web_search", "firecrawl_search"]),
    (
        "find a restaurant nearby",
        &["brave_local_search", "gmaps_maps_search_places"],
    ),
    (
        "documentation of a library",
        &["context7_query-docs", "context7_resolve-library-id"],
    ),
    (
        "read a PDF or text file from disk",
        &[
            "desktopcommander_read_file",
            "filesystem_read_text_file",
            "filesystem_read_file",
        ],
    ),
    (
        "rename a file",
        &["desktopcommander_move_file", "filesystem_move_file"],
    ),
    (
        "kill a running process",
        &[
            "desktopcommander_kill_process",
            "desktopcommander_force_terminate",
        ],
    ),
    ("show the folder as a tree", &["filesystem_directory_tree"]),
    ("generate an image from a text", &["everart_generate_image"]),
    ("scrape one web page", &["firecrawl_scrape"]),
    ("watch a website for changes", &["firecrawl_monitor_create"]),
    (
        "scientific papers about a topic",
        &["firecrawl_research_search_papers"],
    ),
    (
        "open a new issue",
        &["gitlab_create_issue", "zgitlab_create_issue"],
    ),
    ("merge a merge request", &["zgitlab_merge_merge_request"]),
    (
        "approve a merge request",
        &["zgitlab_approve_merge_request"],
    ),
    ("protect a branch", &["zgitlab_protect_branch"]),
    ("retry a failed pipeline", &["zgitlab_retry_pipeline"]),
    (
        "upload a wiki page",
        &[
            "zgitlab_create_wiki_page",
            "zgitlab_create_group_wiki_page",
            "zgitlab_upload_wiki_attachment",
        ],
    ),
    ("coordinates of an address", &["gmaps_maps_geocode"]),
    ("driving directions", &["gmaps_maps_directions"]),
    (
        "how high is this mountain: elevation",
        &["gmaps_maps_elevation"],
    ),
    (
        "remember a fact about a person",
        &["memory_add_observations", "memory_create_entities"],
    ),
    (
        "take a screenshot of the page",
        &["playwright_browser_take_screenshot", "puppeteer_screenshot"],
    ),
    (
        "click a button",
        &["playwright_browser_click", "puppeteer_click"],
    ),
    (
        "fill in a form",
        &["playwright_browser_fill_form", "puppeteer_fill"],
    ),
    ("download the contents of a URL", &["pyfetch_fetch"]),
    (
        "what has changed in the working tree and is not staged",
        &["pygit_git_diff_unstaged"],
    ),
    (
        "convert a time to another timezone",
        &["pytime_convert_time"],
    ),
    ("send a message to a channel", &["slack_post_message"]),
    ("emoji reaction in slack", &["slack_add_reaction"]),
];

/// The tools of all files, one of each server in turn, under their public names.
fn tools(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("--tools DIR")
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let mut servers: Vec<_> = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "json"))
    {
        let read: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        servers.push((name, read["tools"].as_array().unwrap().clone().into_iter()));
    }
    let mut all = Vec::new();
    loop {
        let before = all.len();
        for (name, tools) in &mut servers {
            all.extend(tools.next().map(|mut tool| {
                // As the gateway names them: a prefix is not repeated.
                let (own, prefix) = (tool["name"].as_str().unwrap(), format!("{name}_"));
                if !own.starts_with(&prefix) {
                    tool["name"] = json!(prefix + own);
                }
                tool
            }));
        }
        if all.len() == before {
            return all;
        }
    }
}

/// What a host passes on to its model: name, description and schema of each tool.
fn seen<'t>(tools: impl IntoIterator<Item = &'t Value>) -> String {
    let all = tools.into_iter().map(|tool| {
        json!({ "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"] })
    });
    Value::Array(all.collect()).to_string()
}

fn raw(tools: &[Value]) -> Vec<Vec<u8>> {
    tools
        .iter()
        .map(|tool| tool.to_string().into_bytes())
        .collect()
}

fn index(tools: &[Value], raw: &[Vec<u8>]) -> Index {
    Index::new(
        tools
            .iter()
            .zip(raw)
            .map(|(tool, raw)| (tool["name"].as_str().unwrap(), Some(&**raw))),
    )
}

fn main() {
    let flags = Flags::read();
    if flags.word() == "serve" {
        return serve(flags.words().last().expect("serve FILE"));
    }
    let all = tools(Path::new(flags.text("--tools", ".")));
    let built_in: Vec<Value> = serde_json::from_str(BUILT_IN).unwrap();
    let named = |names: &[&str]| {
        seen(
            built_in
                .iter()
                .filter(|tool| names.contains(&tool["name"].as_str().unwrap())),
        )
    };
    let bpe = cl100k_base().unwrap();
    let count = |text: &str| bpe.encode_ordinary(text).len();
    let (proxy, search) = (count(&named(&["proxy"])), count(&named(&["search_tools"])));
    let both = count(&named(&["proxy", "search_tools"]));
    println!(
        "| tools | full list | `proxy` only | `search_tools` only | both |\n|---|---|---|---|---|"
    );
    let sizes = [10, 50, 100, all.len()];
    for some in sizes {
        let full = count(&seen(all.iter().take(some)));
        println!("| {some} | {full} | {proxy} | {search} | {both} |");
    }
    forms(&flags, &sizes.map(|some| &all[..some]));
    answers(&all, &bpe);
    times(&all);
}

/// A server on stdio whose tools are those of a file.
fn serve(file: &str) {
    let tools = std::fs::read_to_string(file).expect("a file of tools");
    for line in stdin().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"l","version":"1"}}"#.to_owned()
            }
            "tools/list" => format!(r#"{{"tools":{tools}}}"#),
            _ => "{}".to_owned(),
        };
        if let Some(id) = message.get("id") {
            let mut out = stdout().lock();
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).unwrap();
            out.flush().unwrap();
        }
    }
}

/// What `portmoot tokens` counts of lists of these tools: a table of forms.
fn forms(flags: &Flags, lists: &[&[Value]]) {
    let stage = Stage::new(flags);
    let counted: Vec<Value> = (PORT..)
        .zip(lists)
        .map(|(port, tools)| counted(&stage, port, tools))
        .collect();
    let head: String = counted
        .iter()
        .map(|list| format!(" {} tools: bytes | tokens |", list["tools"]))
        .collect();
    println!(
        "\n| form of the list |{head}\n|---|{}",
        "---|---|".repeat(lists.len())
    );
    let rows = |list: &Value| list["forms"].as_array().unwrap().clone();
    for (at, form) in rows(&counted[0]).iter().enumerate() {
        let cell = |list: &Value| {
            let (all, row) = (rows(list), rows(list)[at].clone());
            let full = all[0]["tokens"].as_f64().unwrap();
            let saved = |tokens: f64| format!("{tokens} ({:.1} %)", 100.0 - tokens * 100.0 / full);
            let tokens = row["tokens"].as_f64().map_or("-".to_owned(), saved);
            format!(" {} | {tokens} |", row["bytes"])
        };
        println!(
            "| {} |{}",
            form["form"].as_str().unwrap(),
            counted.iter().map(cell).collect::<String>()
        );
    }
}

/// The answer of `portmoot tokens` at a gateway with a server that lists these tools.
fn counted(stage: &Stage, port: u16, tools: &[Value]) -> Value {
    let file = stage.home.join(format!("{port}.json"));
    std::fs::write(&file, Value::Array(tools.to_vec()).to_string()).unwrap();
    let command = (
        &*stage.own("tokens"),
        vec!["serve".to_owned(), file.display().to_string()],
    );
    let _gateway = stage.gateway(port, &stdio_table("l", &command, "prefix = \"\""));
    let begun = Instant::now();
    loop {
        let mut command = Command::new(stage.portmoot());
        let asked = command
            .args([
                "tokens",
                "--json",
                "--url",
                &format!("http://127.0.0.1:{port}"),
            ])
            .output()
            .unwrap();
        let answer: Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
        if answer["tools"] == tools.len() {
            return answer;
        }
        let why = String::from_utf8_lossy(&asked.stderr);
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} tools: {answer} {why}",
            tools.len()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// How many questions find their tool, and what an answer costs.
fn answers(all: &[Value], bpe: &CoreBPE) {
    let index = index(all, &raw(all));
    let (mut first, mut five, mut asked, mut costs) = (0, 0, 0, Vec::new());
    for (question, expected) in QUESTIONS
        .iter()
        .filter(|(_, expected)| !expected.is_empty())
    {
        let found = index.find(question, 5);
        let names: Vec<&str> = found
            .iter()
            .map(|at| all[*at]["name"].as_str().unwrap())
            .collect();
        let text = seen(found.iter().map(|at| &all[*at]));
        costs.push(bpe.encode_ordinary(&text).len());
        asked += 1;
        first += usize::from(names.first().is_some_and(|name| expected.contains(name)));
        match names.iter().any(|name| expected.contains(name)) {
            true => five += 1,
            false => println!(
                "\nnot among the first five of \"{question}\": {expected:?}; found {names:?}"
            ),
        }
    }
    costs.sort_unstable();
    println!(
        "\nquestions {asked}: first {first}, among the first five {five}; an answer of five tools: {} tokens (median), {} at most",
        costs[asked / 2],
        costs[asked - 1]
    );
}

/// The time for an index and for a search, with many tools.
fn times(all: &[Value]) {
    let many: Vec<Value> = all
        .iter()
        .cycle()
        .take(MANY)
        .enumerate()
        .map(|(at, tool)| {
            let mut tool = tool.clone();
            tool["name"] = json!(format!("{}_{at}", tool["name"].as_str().unwrap()));
            tool
        })
        .collect();
    for tools in [all, &many[..]] {
        let raw = raw(tools);
        let start = Instant::now();
        let index = index(tools, &raw);
        let made = start.elapsed();
        let start = Instant::now();
        let found: usize = QUESTIONS
            .iter()
            .map(|(question, _)| index.find(question, 5).len())
            .sum();
        let each = start.elapsed() / u32::try_from(QUESTIONS.len()).unwrap();
        println!(
            "{} tools: index {made:.1?}, {} KiB; a search {each:.1?} ({found} found)",
            tools.len(),
            index.memory_bytes() / 1024
        );
    }
}
