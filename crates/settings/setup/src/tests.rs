mod undo;

use std::path::{Path, PathBuf};

use crate::*;

/// The sample file of a client, as its page shows one, with what users add.
fn sample(client: &ClientProgram, scope: FileScope) -> (&'static str, &'static str) {
    match (client.id, scope) {
        ("claude-desktop", _) => (
            "claude_desktop_config.json",
            include_str!("tests/files/claude_desktop_config.json"),
        ),
        ("claude-code", FileScope::User) => {
            (".claude.json", include_str!("tests/files/claude.json"))
        }
        ("claude-code", FileScope::Project) => (".mcp.json", include_str!("tests/files/mcp.json")),
        ("cursor", _) => ("mcp.json", include_str!("tests/files/cursor.json")),
        ("vscode", _) => ("mcp.json", include_str!("tests/files/vscode.json")),
        ("windsurf", _) => ("mcp_config.json", include_str!("tests/files/windsurf.json")),
        ("gemini-cli", _) => ("settings.json", include_str!("tests/files/gemini.json")),
        ("codex", _) => ("config.toml", include_str!("tests/files/codex.toml")),
        ("zed", _) => ("settings.json", include_str!("tests/files/zed.json")),
        ("goose", _) => ("config.yaml", include_str!("tests/files/goose.yaml")),
        ("cline", _) => (
            "cline_mcp_settings.json",
            include_str!("tests/files/cline.json"),
        ),
        ("lm-studio", _) => ("mcp.json", include_str!("tests/files/lmstudio.json")),
        ("continue", FileScope::User) => ("config.yaml", include_str!("tests/files/continue.yaml")),
        ("continue", FileScope::Project) => ("mcp.json", include_str!("tests/files/mcp.json")),
        (other, _) => panic!("{other} has no sample"),
    }
}

fn nothing(_: &str) -> Option<String> {
    None
}

fn surroundings<'a>(os: Os, home: &'a Path) -> Surroundings<'a> {
    Surroundings {
        os,
        home,
        project: Path::new("/home/me/work"),
        env: &nothing,
    }
}

/// All files of all clients.
fn spots<'a>(at: &Surroundings<'a>) -> Vec<(&'static ClientProgram, FileScope, Spot)> {
    let scopes = |client: &'static ClientProgram| {
        [FileScope::User, FileScope::Project].map(|scope| (client, scope))
    };
    let all = CLIENTS.iter().flat_map(scopes);
    all.filter_map(|(client, scope)| Some((client, scope, client.spot(scope, at)?)))
        .collect()
}

fn gateway() -> Gateway {
    Gateway {
        command: "/usr/local/bin/portmoot".into(),
        args: vec!["stdio".into()],
        env: Vec::new(),
        url: None,
        headers: Vec::new(),
    }
}

#[test]
fn every_client_has_its_places() {
    let shown: String = [Os::Linux, Os::MacOs]
        .iter()
        .flat_map(|os| {
            let at = surroundings(*os, Path::new("/home/me"));
            spots(&at).into_iter().map(move |(client, scope, spot)| {
                format!("{os:?} {} {scope:?}: {}\n", client.id, spot.file.display())
            })
        })
        .collect();
    insta::assert_snapshot!(shown);
    for (name, id) in [
        ("VS Code", "vscode"),
        ("vs-code", "vscode"),
        ("claude", "claude-code"),
        ("LMStudio", "lm-studio"),
        ("Gemini", "gemini-cli"),
    ] {
        assert_eq!(client(name).unwrap().id, id);
    }
    assert!(client("emacs").is_none());
    for one in &CLIENTS {
        assert!(one.source.starts_with("https://"), "{}", one.id);
    }
}

#[test]
fn places_follow_the_variables_of_the_clients() {
    let env = |name: &str| match name {
        "XDG_CONFIG_HOME" => Some("/xdg".to_owned()),
        "CODEX_HOME" => Some("/codex".to_owned()),
        "CLAUDE_CONFIG_DIR" => Some("/claude".to_owned()),
        "CLINE_MCP_SETTINGS_PATH" => Some("/cline.json".to_owned()),
        _ => None,
    };
    let at = Surroundings {
        env: &env,
        ..surroundings(Os::Linux, Path::new("/home/me"))
    };
    for (id, file) in [
        ("codex", "/codex/config.toml"),
        ("claude-code", "/claude/.claude.json"),
        ("vscode", "/xdg/Code/User/mcp.json"),
        ("claude-desktop", "/xdg/Claude/claude_desktop_config.json"),
        ("zed", "/xdg/zed/settings.json"),
        ("goose", "/xdg/goose/config.yaml"),
    ] {
        assert_eq!(
            client(id).unwrap().spot(FileScope::User, &at).unwrap().file,
            PathBuf::from(file),
            "{id}"
        );
    }
}

#[test]
fn servers_of_every_client_are_imported() {
    let at = surroundings(Os::Linux, Path::new("/home/me"));
    let mut shown = String::new();
    for (client, scope, spot) in spots(&at) {
        let (_, text) = sample(client, scope);
        let entries = spot
            .table
            .entries(text)
            .unwrap_or_else(|why| panic!("{}: {why}", client.id));
        let others = spot
            .others
            .iter()
            .flat_map(|table| table.entries(text).unwrap());
        shown += &format!("# {} {scope:?}\n", client.id);
        for entry in entries.into_iter().chain(others) {
            assert!(!is_gateway(&entry, &spot.shape), "{}", entry.name);
            let imported = read(&entry, &spot.shape, at.project);
            shown += &imported
                .server
                .map(|server| section(&server))
                .unwrap_or_default();
            imported
                .notes
                .iter()
                .for_each(|note| shown += &format!("# note: {note}\n"));
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn every_client_is_connected_in_its_own_form() {
    let dir = tempfile::tempdir().unwrap();
    let at = surroundings(Os::Linux, dir.path());
    let copies = Copies::in_dir(&dir.path().join("state"));
    let url = Gateway {
        url: Some("http://127.0.0.1:7070/mcp".into()),
        headers: vec![("Authorization".into(), "Bearer ${PORTMOOT_TOKEN}".into())],
        args: vec![
            "stdio".into(),
            "--url".into(),
            "http://127.0.0.1:7070/mcp".into(),
        ],
        ..gateway()
    };
    let mut shown = String::new();
    for (client, scope, spot) in spots(&at) {
        let (name, text) = sample(client, scope);
        for (what, gateway) in [("command", gateway()), ("url", url.clone())] {
            let file = dir
                .path()
                .join(format!("{}-{scope:?}-{what}/{name}", client.id));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            let spot = Spot {
                file: file.clone(),
                ..spot.clone()
            };
            let plan = connect(client, &spot, ("portmoot", &gateway), &[], &copies).unwrap();
            plan.make().unwrap();
            assert_eq!(connected(&spot).unwrap(), ["portmoot"], "{}", client.id);
            let rows = plan.change.rows();
            let added = rows.iter().filter(|row| row.sign != ' ' && row.sign != '@');
            shown += &format!("# {} {scope:?} {what}\n", client.id);
            added.for_each(|row| shown += &format!("{}{}\n", row.sign, row.text));
            // Nothing to do a second time; byte for byte as before in the end.
            let again = connect(client, &spot, ("portmoot", &gateway), &[], &copies).unwrap();
            assert!(again.change.is_none(), "{}", client.id);
            let end = disconnect(&spot, &copies).unwrap();
            assert_eq!(end.ending, Some(Ending::Restored), "{}", client.id);
            end.make().unwrap();
            assert_eq!(
                std::fs::read_to_string(&file).unwrap(),
                text,
                "{}",
                client.id
            );
            // Without the copy, the edit alone gives the same.
            let edited = spot
                .table
                .insert(text, "portmoot", &gateway.fields("portmoot", &spot.shape))
                .unwrap();
            assert_eq!(
                spot.table.remove(&edited, "portmoot").unwrap(),
                text,
                "{}",
                client.id
            );
        }
    }
    insta::assert_snapshot!(shown);
    assert_eq!(
        std::fs::read_dir(dir.path().join("state/clients"))
            .unwrap()
            .count(),
        0
    );
}
