//! Twelve servers from public registries behind one gateway: nine that work, one that is not
//! installed, one that exits at its start, one whose variable is not set.

use std::path::Path;
use std::process::Command;

use harness::deps;
use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Client, Gateway};

/// The servers that work, each with a call and words of its answer.
fn calls(folder: &Path, gateway: &Gateway) -> Vec<(&'static str, Value, &'static str)> {
    let page = format!("{}/healthz", gateway.url());
    let thought = json!({ "thought": "ports", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 });
    vec![
        (
            "everything_echo",
            json!({ "message": "hello" }),
            "Echo: hello",
        ),
        (
            "filesystem_list_directory",
            json!({ "path": folder.join("files") }),
            "[FILE] note.txt",
        ),
        ("memory_read_graph", json!({}), "entities"),
        (
            "thinking_sequentialthinking",
            thought,
            "thoughtHistoryLength",
        ),
        (
            "commands_run_command",
            json!({ "command": "echo from a shell" }),
            "from a shell",
        ),
        ("obsidian_list_vaults", json!({}), "notes"),
        (
            "time_get_current_time",
            json!({ "timezone": "Asia/Tokyo" }),
            "Asia/Tokyo",
        ),
        (
            "git_status",
            json!({ "repo_path": folder.join("repository") }),
            "No commits yet",
        ),
        ("fetch_fetch", json!({ "url": page }), "alive"),
    ]
}

fn client_file(folder: &Path) -> String {
    let node = |file: &str, args: &[&str]| {
        let script = deps().npm(&format!(".bin/{file}"));
        let args: Vec<_> = [script.to_str().unwrap()]
            .iter()
            .chain(args)
            .map(|word| (*word).to_owned())
            .collect();
        json!({ "command": deps().node(), "args": args })
    };
    let python = |file: &str, args: &[&str]| json!({ "command": deps().python().with_file_name(file), "args": args });
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut memory = node("mcp-server-memory", &[]);
    memory["env"] = json!({ "MEMORY_FILE_PATH": at("memory.jsonl") });
    let mut tavily = node("tavily-mcp", &[]);
    tavily["env"] = json!({ "TAVILY_API_KEY": "${TAVILY_API_KEY}" });
    let servers = json!({
        "everything": node("mcp-server-everything", &["stdio"]),
        "filesystem": node("mcp-server-filesystem", &[&at("files")]),
        "memory": memory,
        "thinking": node("mcp-server-sequential-thinking", &[]),
        "commands": node("mcp-server-commands", &[]),
        "obsidian": node("obsidian-mcp", &["serve", "--vault", &format!("notes={}", at("vault"))]),
        "time": python("mcp-server-time", &[]),
        "git": python("mcp-server-git", &[]),
        "fetch": python("mcp-server-fetch", &["--ignore-robots-txt", "--allow-private-ips"]),
        "sqlite": python("mcp-server-sqlite", &[]),
        "brave": node("mcp-server-brave-search", &[]),
        "tavily": tavily,
    });
    json!({ "mcpServers": servers }).to_string()
}

/// The names of the servers that work, without keys of search engines.
pub(crate) const WORKING: [&str; 9] = [
    "everything",
    "filesystem",
    "memory",
    "thinking",
    "commands",
    "obsidian",
    "time",
    "git",
    "fetch",
];

/// The same with the search engines', which start with any key: eleven servers, in the file
/// `mcp.json` of a home.
pub(crate) fn eleven() -> (Home, Vec<String>) {
    let home = home();
    let mut file: Value = serde_json::from_str(&client_file(home.path())).unwrap();
    let servers = file["mcpServers"].as_object_mut().unwrap();
    servers.remove("sqlite");
    servers["brave"]["env"] = json!({ "BRAVE_API_KEY": "none" });
    servers["tavily"]["env"] = json!({ "TAVILY_API_KEY": "none" });
    let names = servers.keys().cloned().collect();
    home.write("mcp.json", &file.to_string());
    (home, names)
}

/// A folder with what the servers work on.
fn home() -> Home {
    let home = Home::new();
    home.write("files/note.txt", "a note");
    home.write("vault/.obsidian/app.json", "{}");
    let repository = home.path().join("repository");
    assert!(
        Command::new("git")
            .args(["init", "-q"])
            .arg(repository)
            .status()
            .unwrap()
            .success()
    );
    home.write("mcp.json", &client_file(home.path()));
    home
}

#[test]
fn nine_of_twelve_servers_work_and_the_causes_of_the_others_are_named() {
    let home = home();
    let gateway = Gateway::start_with(
        &home,
        &["-v", "--data-dir", "state", "--mcp-config", "mcp.json"],
    );
    for name in WORKING {
        gateway.wait_for(name, "ready");
    }
    let client = Client::plain(&gateway);
    for (tool, arguments, words) in calls(home.path(), &gateway) {
        let result = client.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(result.to_string().contains(words), "{tool}: {result}");
    }
    let causes = [
        ("sqlite", "was not found"),
        ("brave", "BRAVE_API_KEY environment variable is required"),
        ("tavily", "`TAVILY_API_KEY` is not set"),
    ];
    for (server, cause) in causes {
        for command in [
            &["servers", "ls"][..],
            &["servers", "show", server],
            &["doctor"],
        ] {
            let ran = home.run(
                &[
                    command,
                    &["--mcp-config", "mcp.json", "--data-dir", "state"],
                ]
                .concat(),
            );
            let text = format!("{}{}", ran.stdout, ran.stderr);
            // The doctor looks for the program itself.
            let is_missing =
                server == "sqlite" && text.contains("mcp-server-sqlite` is no program");
            assert!(
                text.contains(server) && (is_missing || text.contains(cause)),
                "{command:?} does not say why {server} is down:\n{text}"
            );
        }
    }
    let ready = gateway.get("/readyz", None).body;
    for (server, cause) in [
        ("sqlite", "not found"),
        ("brave", "exit code 1"),
        ("tavily", "TAVILY_API_KEY"),
    ] {
        assert!(ready.contains(server) && ready.contains(cause), "{ready}");
    }
}
