//! Commands that only look at a data directory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::home::Home;

const CONFIG: &str = "[server]\ndata_dir = \"data\"\nlisten = \"127.0.0.1:0\"\n";

/// Every entry of a directory with its mode and bytes; the directory itself comes first.
fn contents(dir: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    let mut all = vec![(String::new(), mode(dir), Vec::new())];
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
        let bytes = if path.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
        all.push((name, mode(&path), bytes));
    }
    all.sort();
    all
}

#[test]
fn commands_that_look_at_a_data_directory_do_not_take_it() {
    let home = Home::new();
    home.write("portmoot.toml", CONFIG);
    let data = home.path().join("data");
    home.run(&["token", "new", "scout", "--config", "portmoot.toml"]).expect(0);
    // What a crash leaves is repaired by the next gateway.
    let mut journal = fs::File::options().append(true).open(data.join("journal.jsonl")).unwrap();
    journal.write_all(b"{\"n\":").unwrap();
    fs::set_permissions(&data, PermissionsExt::from_mode(0o750)).unwrap();
    let before = contents(&data);
    for (command, found) in [("doctor", "required from all callers"), ("token", "scout")] {
        let more = if command == "token" { &["ls"][..] } else { &[] };
        let ran = home.run(&[&[command], more, &["--config", "portmoot.toml"]].concat()).expect(0);
        assert!(ran.stdout.contains(found), "{}", ran.stdout);
        assert!(contents(&data) == before, "{command} has changed something");
    }
    // An empty directory stays empty.
    fs::create_dir(home.path().join("empty")).unwrap();
    let args = ["doctor", "--config", "portmoot.toml", "--data-dir", "empty"];
    assert!(home.run(&args).expect(0).stdout.contains("none: connections"));
    assert_eq!(contents(&home.path().join("empty")).len(), 1);
}
