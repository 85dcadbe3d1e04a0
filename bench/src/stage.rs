//! Starts servers and the load, each on its core, and ends them again.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::flags::Flags;
use crate::table::Figures;

/// Where servers run.
pub const SERVER: u32 = 0;
/// Where load and upstreams run.
pub const LOAD: u32 = 1;
/// How `nice` puts a program first.
const FIRST: [&str; 2] = ["-n", "-20"];

/// A place to run programs in.
pub struct Stage {
    /// Where the bench's own programs are.
    bin: PathBuf,
    portmoot: String,
    /// The folder for configurations.
    pub home: PathBuf,
    /// Programs here come first on their cores: before compilers and whatever else runs, but by
    /// fair turns among themselves, so that no thread of a busy server starves another.
    favoured: bool,
}

/// A running server, ended when it is dropped.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub port: u16,
}

impl Server {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // In order first, so that a gateway ends its children.
        let _ = Command::new("kill").arg(self.pid().to_string()).status();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The absolute path of a file, or, if there is none, a name to be found on PATH.
pub fn absolute(binary: &str) -> String {
    fs::canonicalize(binary).map_or_else(|_| binary.to_owned(), |file| file.display().to_string())
}

impl Stage {
    /// A stage with the binaries that the flags name.
    ///
    /// # Panics
    /// When there is no folder for configurations.
    pub fn new(flags: &Flags) -> Self {
        let exe = std::env::current_exe().expect("the path of this program");
        let bin = exe.parent().expect("its folder").to_owned();
        let home = std::env::temp_dir().join(format!("portmoot-bench-{}", std::process::id()));
        fs::create_dir_all(&home).expect("a folder for configurations");
        let favoured = Command::new("nice").args(FIRST).arg("true").output();
        // Where it is not allowed it says so, and goes on.
        let favoured = favoured.is_ok_and(|output| output.stderr.is_empty());
        if !favoured {
            eprintln!("programs cannot come first here: figures are noisier");
        }
        Self {
            bin,
            // Servers run in another folder.
            portmoot: absolute(flags.text("--portmoot", "portmoot")),
            home,
            favoured: favoured && !flags.has("--ordinary"),
        }
    }

    /// The gateway's binary.
    pub fn portmoot(&self) -> &str {
        &self.portmoot
    }

    /// One of the bench's own programs.
    pub fn own(&self, name: &str) -> String {
        self.bin.join(name).display().to_string()
    }

    /// The command of the stdio upstream, on the load's core, as `command` and `args` of a
    /// configuration.
    pub fn stdio_echo(&self, words: &[&str]) -> (&'static str, Vec<String>) {
        let mut args = vec![
            "-c".to_owned(),
            LOAD.to_string(),
            self.own("echo"),
            "stdio".to_owned(),
        ];
        args.extend(words.iter().map(|word| (*word).to_owned()));
        ("taskset", args)
    }

    fn pinned(&self, core: u32, words: &[String]) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string()]);
        if self.favoured {
            command.arg("nice").args(FIRST);
        }
        command.args(words);
        command
    }

    /// Starts a server and waits until it listens.
    ///
    /// # Panics
    /// When it does not.
    pub fn serve(&self, core: u32, port: u16, words: &[String]) -> Server {
        self.serve_with(core, port, &[], words)
    }

    /// The same with these environment variables.
    ///
    /// # Panics
    /// When it does not listen.
    pub fn serve_with(
        &self,
        core: u32,
        port: u16,
        env: &[(String, String)],
        words: &[String],
    ) -> Server {
        let mut command = self.pinned(core, words);
        let log = fs::File::create(self.home.join(format!("{port}.log"))).expect("a log");
        command
            .current_dir(&self.home)
            .env("RUST_LOG", "error")
            .envs(env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let server = Server { child, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{words:?} does not listen; its log is in {}",
                self.home.display()
            );
            sleep(Duration::from_millis(20));
        }
        server
    }

    /// Starts one of the bench's own servers.
    pub fn own_server(
        &self,
        core: u32,
        name: &str,
        kind: &str,
        port: u16,
        rest: &[&str],
    ) -> Server {
        let mut words = vec![self.own(name), kind.to_owned(), port.to_string()];
        words.extend(rest.iter().map(|word| (*word).to_owned()));
        self.serve(core, port, &words)
    }

    /// Starts a gateway with this configuration.
    ///
    /// # Panics
    /// When the configuration cannot be written.
    pub fn gateway(&self, port: u16, servers: &str) -> Server {
        self.gateway_of(&self.portmoot, port, servers, &[])
    }

    /// The same with these environment variables.
    ///
    /// # Panics
    /// When the configuration cannot be written.
    pub fn gateway_with(&self, port: u16, config: &str, env: &[(String, String)]) -> Server {
        self.gateway_of(&self.portmoot, port, config, env)
    }

    /// The same of this binary.
    ///
    /// # Panics
    /// When the configuration cannot be written.
    pub fn gateway_of(
        &self,
        portmoot: &str,
        port: u16,
        config: &str,
        env: &[(String, String)],
    ) -> Server {
        let words = [vec![absolute(portmoot)], self.configured(port, config)].concat();
        self.serve_with(SERVER, port, env, &words)
    }

    /// The words with which a gateway serves this configuration, its data empty.
    ///
    /// # Panics
    /// When the configuration cannot be written.
    pub fn configured(&self, port: u16, config: &str) -> Vec<String> {
        let file = self.home.join(format!("{port}.toml"));
        let data = self.home.join(format!("{port}.data"));
        let _ = fs::remove_dir_all(&data);
        let head = format!(
            "[server]\nlisten = \"127.0.0.1:{port}\"\ndata_dir = {:?}\n",
            data.display().to_string()
        );
        fs::write(&file, head + config).expect("a configuration");
        ["serve", "--yes", "--config", &file.display().to_string()]
            .map(str::to_owned)
            .to_vec()
    }

    /// Runs the load to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn load(&self, words: &[String]) -> Figures {
        self.figures("load", words)
    }

    /// Runs the load against a port of this machine, for the row `what`.
    ///
    /// # Panics
    /// When an answer is wrong.
    pub fn play(&self, port: u16, what: &str, words: &str) {
        let figures = self.load(&split(&format!("--to 127.0.0.1:{port} {words}")));
        let (wrong, first) = (figures.get("wrong"), figures.first_wrong());
        assert!(
            wrong == 0.0,
            "{what}: {words}: {wrong} wrong answers: {first}"
        );
    }

    /// Runs one of the bench's own programs to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn figures(&self, name: &str, words: &[String]) -> Figures {
        let all: Vec<String> = std::iter::once(self.own(name))
            .chain(words.iter().cloned())
            .collect();
        let output = self
            .pinned(LOAD, &all)
            .stderr(Stdio::inherit())
            .output()
            .expect("the load");
        Figures::read(&String::from_utf8_lossy(&output.stdout))
    }

    /// Starts a load that nobody waits for.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn aside(&self, words: &[String]) -> Child {
        let all: Vec<String> = std::iter::once(self.own("load"))
            .chain(words.iter().cloned())
            .collect();
        self.pinned(LOAD, &all)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the load")
    }

    /// Waits until a tool answers.
    ///
    /// # Panics
    /// When it never does.
    pub fn ready(&self, port: u16, era: &str, tool: &str) {
        let begun = Instant::now();
        loop {
            let words = format!("--to 127.0.0.1:{port} --era {era} --tool {tool} -c 1 --calls 1");
            let figures = self.load(&split(&words));
            if figures.get("calls") > 0.0 && figures.get("wrong") == 0.0 {
                return;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{tool} ({era}) does not answer: {figures:?}"
            );
            sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// A text as words.
pub fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A `[servers.NAME]` table with a command.
pub fn stdio_table(name: &str, (command, args): &(&str, Vec<String>), more: &str) -> String {
    format!("[servers.{name}]\ncommand = {command:?}\nargs = {args:?}\n{more}\n")
}
