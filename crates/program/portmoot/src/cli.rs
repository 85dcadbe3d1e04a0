//! Command-line grammar and help texts.

mod cluster;
mod options;
mod proposals;
mod rules;
mod setup;
mod subcommands;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use cluster::ClusterCommand;
pub(crate) use options::{CheckArgs, ConfigArgs, GatewayArgs, RunningArgs, TokensArgs, WatchArgs};
pub(crate) use proposals::{ProposalsArgs, ProposalsCommand};
pub(crate) use rules::RulesCommand;
pub(crate) use setup::{
    AddArgs, ChangeArgs, ClientFileArgs, ConnectArgs, DisconnectArgs, ImportArgs, InitArgs,
    OwnFileArgs, RmArgs, SearchArgs,
};
pub(crate) use subcommands::{
    AuditCommand, AuthCommand, ClientsCommand, ConfigCommand, ConsentsCommand, LoginArgs,
    LoginCommand, NotificationsCommand, ParticipantsCommand, PinsCommand, PromptsCommand,
    ProtoCommand, ProtoStyle, ResourcesCommand, SecretCommand, SecretPlace, ServersCommand,
    TokenCommand, ToolsCommand,
};

/// Many MCP servers behind one endpoint, each caller with its own capabilities
#[derive(Debug, Parser)]
#[command(name = "portmoot", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Results go to stdout, messages to stderr. NO_COLOR is honoured.

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused by policy, 4 needs authentication,
5 not found, 6 held as a proposal.";

/// The commands by what they are for, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Set up",
        &[
            "init",
            "add",
            "rm",
            "secret",
            "import",
            "connect",
            "disconnect",
            "search",
        ],
    ),
    (
        "Run",
        &[
            "serve", "start", "stop", "stdio", "status", "cluster", "doctor", "config",
        ],
    ),
    (
        "Servers",
        &[
            "servers",
            "logs",
            "pins",
            "tools",
            "resources",
            "prompts",
            "tokens",
            "proto",
        ],
    ),
    (
        "Agents and people",
        &[
            "proposals",
            "rules",
            "notifications",
            "console",
            "chat",
            "participants",
            "token",
            "audit",
        ],
    ),
    (
        "Sign-ins at this gateway",
        &["login", "clients", "consents", "auth"],
    ),
    ("This program", &["version", "completions", "man"]),
];

/// The whole grammar, with the commands in groups.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let groups = grouped(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The commands in their groups, each with the first line of its help.
fn grouped(command: &clap::Command) -> String {
    let width = command
        .get_subcommands()
        .map(|one| one.get_name().len())
        .max()
        .unwrap_or_default();
    let line = |name: &&str| {
        let about = command
            .find_subcommand(name)
            .and_then(clap::Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        format!("  {name:width$}  {about}\n")
    };
    let group = |(title, names): &(&str, &[&str])| {
        let lines: String = names.iter().map(line).collect();
        format!("{title}:\n{lines}")
    };
    GROUPS.iter().map(group).collect::<Vec<_>>().join("\n")
}

/// Output options, accepted by every command.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Printing")]
pub(crate) struct OutputArgs {
    /// Print results and errors as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print results and errors only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Log more; give it twice to log everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print without colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

/// The commands.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Write a first configuration file
    ///
    /// Finds the MCP clients that are there, asks which of their servers to import, and writes a
    /// file with comments.
    Init(InitArgs),
    /// Add a server to the configuration file: portmoot add NAME -- COMMAND, portmoot add NAME URL,
    /// or portmoot add NAME --openapi FILE
    ///
    /// Comments, order and all else in the file stay. A running gateway takes the change over
    /// within seconds.
    Add(AddArgs),
    /// Remove an MCP server from the configuration file
    ///
    /// The comments right above its section go with it; all else in the file stays.
    Rm(RmArgs),
    /// Keep secrets that the configuration names: { secret = "NAME" }
    ///
    /// They are in the keyring of the system or, where there is none, in files of the data
    /// directory, sealed with the key of `key_file` or `key_command`. A running gateway takes a
    /// change over within seconds, and restarts the servers that use it.
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Copy the servers of an MCP client into the configuration file
    ///
    /// Clients: claude-code, claude-desktop, cline, codex, continue, cursor, gemini-cli, goose,
    /// lm-studio, vscode, windsurf, zed. The client's file stays as it is. Secrets are copied with
    /// their values, so that the servers work at once; with --hide-secrets they become ${NAME}.
    Import(ImportArgs),
    /// Connect an MCP client to the gateway: write an entry into its file
    ///
    /// The change is shown, and made after your consent. A copy of the file is kept:
    /// `portmoot disconnect` restores it byte for byte. Clients: claude-code, claude-desktop,
    /// cline, codex, continue, cursor, gemini-cli, goose, lm-studio, vscode, windsurf, zed.
    Connect(ConnectArgs),
    /// Undo the connection of an MCP client
    ///
    /// If no other program has changed the client's file since, it is restored byte for byte; else
    /// only the gateway's entry is taken out, and one of its name that was there before is put back.
    /// Without an earlier `connect`, every entry that leads to the gateway is taken out.
    Disconnect(DisconnectArgs),
    /// Search the MCP registry for servers
    Search(SearchArgs),
    /// Run the gateway
    ///
    /// Without any configuration, it listens on 127.0.0.1:7070 and offers a small demo server.
    Serve(ServeArgs),
    /// Run the gateway in the background, until `portmoot stop`
    ///
    /// It is `portmoot serve` without a terminal; its log is the file gateway.log in the data
    /// directory.
    Start(ServeArgs),
    /// Stop the gateway that runs with the data directory
    ///
    /// Open calls may finish first, for a bounded time.
    Stop(ConfigArgs),
    /// Serve one MCP client on stdin and stdout
    ///
    /// It connects the client to the gateway of --url, else to the one that is running with the
    /// data directory. If none is running, or --config or --mcp-config is given without --data-dir,
    /// the command runs a gateway of its own, which stores nothing on disk unless --data-dir is
    /// given.
    Stdio(StdioArgs),
    /// Show the running gateway: address, version, servers, open proposals
    ///
    /// Exit code 1 when it is not ready.
    Status {
        #[command(flatten)]
        watch: WatchArgs,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Look at the nodes of a cluster; go on after a loss; take a node out
    ///
    /// Reads [cluster] of the configuration, and speaks with the nodes over NATS. No gateway needs to
    /// run here.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Show the MCP servers behind the gateway
    #[command(subcommand)]
    Servers(ServersCommand),
    /// What servers say about their tools: pinned, changed, approved
    #[command(subcommand)]
    Pins(PinsCommand),
    /// Print what a server has written to stderr, and why it does not run
    ///
    /// The running gateway keeps the last 1,000 lines of each server, at most 256 KiB. Needs the
    /// capability portmoot/servers. What it prints to stdout and is no message is among them.
    /// Control characters are printed as escapes; with --json, each line is one object. The
    /// gateway's own log is on its stderr.
    Logs {
        /// Configured name of the server; all servers without it
        server: Option<String>,
        /// Wait for further lines until interrupted
        #[arg(long, short, requires = "server")]
        follow: bool,
        /// Number of earlier lines to print
        #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 100)]
        lines: usize,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// List, show and call tools
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// List and read resources
    #[command(subcommand)]
    Resources(ResourcesCommand),
    /// List and get prompts
    #[command(subcommand)]
    Prompts(PromptsCommand),
    /// Open the console in the browser: the inbox of proposals, and what happens
    ///
    /// Works with a running gateway. Prints the address with a one-time code, which is good once for
    /// a minute, and opens it. The browser is signed in as the participant of --token, else as the
    /// operator, until the token is revoked, for twelve hours at most.
    Console {
        /// Print the address, and do not open it in a browser
        #[arg(long)]
        no_browser: bool,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Take part in a topic from the terminal
    ///
    /// At a terminal it fills the screen: talk, the calls of others, and an inbox of the proposals
    /// that wait for a decision; F1 lists the keys. Without a terminal, or with --lines, it reads
    /// and prints lines: each one that does not begin with / is sent to all participants, and /help
    /// lists the commands. Needs the capability chat to send. With --json, every received envelope
    /// is printed unchanged. What is approved runs once, on your authority.
    Chat {
        /// Topic to join
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        /// Print lines instead of filling the screen
        #[arg(long)]
        lines: bool,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// List participants, show what they may do, grant and revoke their capabilities
    #[command(subcommand)]
    Participants(ParticipantsCommand),
    /// Review proposals: list, show, approve, reject, withdraw
    ///
    /// Works with a running gateway. A token can see and decide proposals for operations that it
    /// may perform itself. Without a command, at a terminal, it shows those that wait one after the
    /// other and asks for a letter: a approves, r rejects with a reason, e edits the arguments
    /// first. What the tool's annotations do not call harmless is asked about once more. Without a
    /// terminal it lists them.
    Proposals(ProposalsArgs),
    /// Show the rules by which proposals are decided, and why they decide one or do not
    ///
    /// Rules are written by hand, in the file that a topic names, or learned from what you approve.
    #[command(subcommand)]
    Rules(RulesCommand),
    /// Try a route by which reviewers are notified of proposals that wait
    #[command(subcommand)]
    Notifications(NotificationsCommand),
    /// Issue, rotate and revoke tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Find out why an access token is refused, and what clients find that want to sign in
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Let a participant sign in at the page to which a client leads
    #[command(subcommand)]
    Login(LoginCommand),
    /// List the clients that have signed in, and end their sign-ins
    #[command(subcommand)]
    Clients(ClientsCommand),
    /// List the consents that participants have given to clients, and withdraw them
    #[command(subcommand)]
    Consents(ConsentsCommand),
    /// Search the audit log, and verify that it was not changed
    ///
    /// Reads the data directory, also while a gateway runs.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Check the installation and suggest fixes
    ///
    /// Starts no server. Secrets that the configuration names are read and not shown: their
    /// commands run, unless they are in a file that you did not name. If a gateway runs with the
    /// data directory, the states of its servers are checked too.
    Doctor(CheckArgs),
    /// Check and show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Count what the list of tools costs, on the wire and in a model's context
    ///
    /// Tokens are of cl100k_base, as a stand-in: other models count otherwise.
    Tokens(TokensArgs),
    /// Turn tool schemas into protobuf
    #[command(subcommand)]
    Proto(ProtoCommand),
    /// Print the version and the revisions of MCP that it speaks
    Version,
    /// Print a shell completion script
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print names of what a running gateway has, for the scripts of `completions`
    #[command(hide = true)]
    Names {
        /// What is named
        #[arg(value_enum)]
        kind: NameKind,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Print the manual page, or write all manual pages to a directory
    Man {
        /// Write one page per command to this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Kinds of things whose names `names` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NameKind {
    /// Servers of the gateway
    Servers,
    /// Tools of the main topic
    Tools,
    /// Proposals that wait
    Proposals,
    /// Participants
    Participants,
    /// Participants with issued tokens
    Tokens,
}

/// `serve`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on
    #[arg(
        long,
        value_name = "ADDR",
        env = "PORTMOOT_LISTEN",
        hide_env_values = true
    )]
    pub(crate) listen: Option<String>,
    /// Consent without being asked to a portmoot.toml that was found in this directory
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Try something out: with a data directory of its own, without the tokens of earlier runs,
    /// which is removed at the end
    #[arg(long = "try", conflicts_with = "data_dir")]
    pub(crate) tries: bool,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// `stdio`.
#[derive(Debug, Clone, Args)]
pub(crate) struct StdioArgs {
    /// Topic to join
    #[arg(long, default_value = config::MAIN_TOPIC)]
    pub(crate) topic: String,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut named: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let command = Cli::command();
        let mut all: Vec<&str> = command
            .get_subcommands()
            .filter(|one| !one.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        named.sort_unstable();
        all.sort_unstable();
        assert_eq!(named, all);
    }
}
