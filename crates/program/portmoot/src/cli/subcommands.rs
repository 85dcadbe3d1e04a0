//! Subcommands of each command: `servers ls`, `token new`, ...

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::options::{CheckArgs, ConfigArgs, GatewayArgs, RunningArgs, WatchArgs};
use super::setup::OwnFileArgs;

/// `auth ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum AuthCommand {
    /// Check an access token from stdin, step by step, and show the participant that it becomes
    ///
    /// Uses the configuration, not a running gateway. The token is printed nowhere. Exit code 4
    /// when it is refused.
    Check {
        /// Topic at whose endpoint the token is presented
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Show what a client finds at the address of an MCP server, step by step
    ///
    /// Asks without a token, and fetches the metadata of the server and of its authorization
    /// servers. Exit code 1 when a step fails.
    Probe {
        /// Address of the endpoint, as it is typed into a client
        url: String,
    },
}

/// `secret ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SecretCommand {
    /// Set a secret: its value comes from a file, from stdin, or is typed and not shown
    ///
    /// A value never stands on the command line, where other users of the machine and the history
    /// of the shell would see it. At most 16 KiB of UTF-8; line ends after it do not count.
    Set {
        /// Name of the secret: letters, digits, `_` and `-`
        name: String,
        /// Read the value from this file
        #[arg(long, value_name = "FILE")]
        from_file: Option<PathBuf>,
        /// Where to keep it [default: the keyring if there is one, else a sealed file]
        #[arg(long = "in", value_name = "PLACE", value_enum)]
        place: Option<SecretPlace>,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// List the secrets: names, where they are kept, when they were set; never values
    #[command(visible_alias = "ls")]
    List(ConfigArgs),
    /// Remove a secret
    ///
    /// Servers that use it are down from then on, until it is set again.
    #[command(visible_alias = "rm")]
    Remove {
        /// Name of the secret
        name: String,
        #[command(flatten)]
        config: ConfigArgs,
    },
}

/// `notifications ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum NotificationsCommand {
    /// Send a test by a route, and say what the other side answered
    ///
    /// Uses the configuration, not a running gateway, and reads the secrets that the configuration
    /// names. The test is sent once, also in quiet hours. Exit code 1 when it did not arrive.
    Test {
        /// Name of the route: NAME of [notifications.NAME]
        route: String,
        #[command(flatten)]
        config: ConfigArgs,
    },
}

/// Where `secret set` keeps a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SecretPlace {
    /// The keyring of the system
    Keyring,
    /// A sealed file in the data directory
    File,
}

/// `servers ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ServersCommand {
    /// List servers with their states
    Ls {
        #[command(flatten)]
        watch: WatchArgs,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Show all details of a server
    Show {
        /// Configured name of the server
        name: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Start a server anew, for example after an update of its program
    ///
    /// Its sessions and its process end first; open calls are refused. Needs the capability
    /// portmoot/restart.
    Restart {
        /// Configured name of the server
        name: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// End a server until it is enabled, or the gateway starts again
    ///
    /// To disable it for good, write `enabled = false` in the configuration. Needs the capability
    /// portmoot/restart.
    Disable {
        /// Configured name of the server
        name: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Start a server that was disabled
    Enable {
        /// Configured name of the server
        name: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Sign in at a server that wants a token
    ///
    /// Opens the authorization server in a browser and waits for it to come back to this machine.
    /// The running gateway keeps the tokens, sealed with the key of `key_file`. Needs the
    /// capability portmoot/accounts, except for your own account at a server where each caller has
    /// one.
    Login {
        /// Configured name of the server
        name: String,
        #[command(flatten)]
        args: LoginArgs,
    },
    /// Sign out at a server
    ///
    /// The gateway forgets the tokens, and has the authorization server revoke them. A key that was
    /// entered is forgotten.
    Logout {
        /// Configured name of the server
        name: String,
        /// Whose account, where each caller has one; yours if it is not given
        #[arg(long = "as", value_name = "PARTICIPANT")]
        participant: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Get a one-time code that shows a connect page who you are
    ///
    /// A server at which each caller has an account sends you to a page of the gateway, and the
    /// page has to know that you are the participant whose client asked. Run this with your own
    /// token, and type the code there. It is good once, for ten minutes.
    ConnectCode(RunningArgs),
    /// Show the accounts at servers: state, issuer, scopes, expiry; never tokens
    Auth {
        /// Configured name of the server; all servers without it
        name: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}

/// How `servers login` signs in.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoginArgs {
    /// Whose account, where each caller has one; yours if it is not given
    #[arg(long = "as", value_name = "PARTICIPANT")]
    pub(crate) participant: Option<String>,
    /// Print the address, and read from stdin the one to which the browser is sent at the end: for
    /// another machine's browser
    #[arg(long, conflicts_with_all = ["device", "no_browser"])]
    pub(crate) paste: bool,
    /// Print an address and a code for a browser on any device, if the authorization server offers
    /// that
    #[arg(long, conflicts_with = "no_browser")]
    pub(crate) device: bool,
    /// Print the address without opening a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Enter a key, where the server wants one of each caller: it is read from stdin, or typed and
    /// not shown
    #[arg(long, conflicts_with_all = ["paste", "device", "no_browser", "scopes"])]
    pub(crate) key: bool,
    /// Ask for this scope, in place of those that the server names; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    #[command(flatten)]
    pub(crate) gateway: RunningArgs,
}

/// `pins ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PinsCommand {
    /// List what is pinned of servers' definitions, and what waits for an approval
    Ls(RunningArgs),
    /// Show what a server has changed
    ///
    /// For each changed tool, prompt or text of instructions: what was pinned (-), and what the
    /// server says now (+), with hidden characters visible.
    Show {
        /// Configured name of the server
        server: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Approve what a server has changed
    ///
    /// What is approved is printed. If the server has changed it again meanwhile, nothing is
    /// approved.
    Approve {
        /// Configured name of the server
        server: String,
        /// The server's own names of the tools and prompts; without any, all that wait
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Forget what is pinned of a server, which is then seen for the first time
    Reset {
        /// Configured name of the server
        server: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}

/// `tools ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools that you may call
    Ls {
        /// Only tools whose names match, such as git_*; without a *, whose names contain it
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
        /// Topic whose tools to list
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        watch: WatchArgs,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Show a tool and its schema
    Show {
        /// Public name of the tool
        name: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Call a tool
    ///
    /// When the server requests input (elicitation), the form is shown at the terminal. URLs are
    /// printed in full and never opened. A tool that must run as a task is called as one, and its
    /// result awaited. A call that needs approval is proposed and waits for the decision, 50
    /// seconds unless --wait is given. Exit code 1 when the tool returns an error, 6 when there is
    /// no decision yet.
    Call {
        /// Public name of the tool
        name: String,
        /// Arguments: key=value, of the type that the tool's schema has for the key, else text;
        /// key:=json; key=@FILE for the text of a file (@@ begins a text with @), key:=@FILE for
        /// its JSON
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        /// All arguments as one JSON object, @FILE with it, or - for stdin; KEY=VALUE arguments
        /// override its members
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
        /// Decline requests of the server for input; as without a terminal, the call then shares
        /// the gateway's session with the server
        #[arg(long)]
        no_input: bool,
        /// Write the first image, audio or file of the result to this file
        #[arg(long = "out", short = 'o', value_name = "FILE")]
        file: Option<PathBuf>,
        /// How long to wait for the decision about a call that needs approval
        #[arg(long, value_name = "TIME", default_value = "50s")]
        wait: String,
        /// Topic to call it in
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Hide tools of a server, in your configuration file
    ///
    /// Callers neither see nor call them. A running gateway takes the change over.
    Disable(ToolsOfServerArgs),
    /// Show tools of a server again, in your configuration file
    Enable(ToolsOfServerArgs),
    /// Give a tool of a server another name, in your configuration file
    ///
    /// The prefix of the server stands before it. Its own name takes the change back.
    Rename {
        /// Configured name of the server
        server: String,
        /// The server's own name of the tool
        tool: String,
        /// The new name
        name: String,
        /// Show what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        file: OwnFileArgs,
    },
}

/// Tools of a server in the configuration file.
#[derive(Debug, Clone, Args)]
pub(crate) struct ToolsOfServerArgs {
    /// Configured name of the server
    pub(crate) server: String,
    /// The server's own names of the tools, or patterns such as delete_*
    #[arg(value_name = "TOOL", required = true)]
    pub(crate) tools: Vec<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) file: OwnFileArgs,
}

/// `proto ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ProtoCommand {
    /// Convert the JSON Schemas of tools to .proto files
    ///
    /// Each tool becomes a file with the messages of its arguments and its structured result, with
    /// validation rules of buf.validate. With --out the files make a module that `buf build` and
    /// `buf lint` accept; fields keep the numbers that they have in the files of an earlier run.
    /// Without it the messages are printed.
    Convert {
        /// A result of tools/list, a list of tools, one tool, or one input schema in a file
        /// FILE.json; else a server of the gateway
        #[arg(value_name = "FILE.json|SERVER")]
        source: String,
        /// Write a buf module to this directory
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Package of the messages [default: the name of the file or server, with .v1]
        #[arg(long, value_name = "NAME")]
        package: Option<String>,
        /// How scalars are declared: lossless, or as the proto-mcp specification prints them
        #[arg(long, value_name = "STYLE", value_enum, default_value_t)]
        style: ProtoStyle,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `proto convert --style`.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum ProtoStyle {
    /// With explicit presence and integers of 64 bits
    #[default]
    Lossless,
    /// Required scalars without presence, integers of 32 bits
    Spec,
}

/// `resources ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ResourcesCommand {
    /// List the resources that you may read
    Ls {
        /// Only resources whose names or URIs match, such as file:*; without a *, that contain it
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
        /// Topic whose resources to list
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        watch: WatchArgs,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Print a resource: texts, or bytes unless stdout is a terminal
    Read {
        /// URI, as `resources ls` shows it
        uri: String,
        /// Topic to read it in
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `prompts ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PromptsCommand {
    /// List the prompts that you may get
    Ls {
        /// Only prompts whose names match, such as git_*; without a *, that contain it
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
        /// Topic whose prompts to list
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        watch: WatchArgs,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Print the messages of a prompt
    Get {
        /// Public name of the prompt
        name: String,
        /// Arguments, each a text
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        /// Topic to get it in
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `participants ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ParticipantsCommand {
    /// List the participants of your topics and their capabilities
    Ls {
        /// Only this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        #[command(flatten)]
        watch: WatchArgs,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Show what a participant may do on each wire, and the capability that says so
    ///
    /// Over MCP, and when it approves or rejects with a command or a tool, a capability means
    /// public names; in rooms, over WebSocket, it means the servers' own names. Needs the
    /// capability portmoot/grants for other participants than yourself. With ACT, exit code 3 when
    /// it may do that on no wire.
    #[command(group = clap::ArgGroup::new("tried").multiple(true))]
    Can {
        /// Participant id
        id: String,
        /// Only this: a tool's name, a kind such as mcp/request:tools/call:read_*, chat or
        /// portmoot/tokens
        act: Option<String>,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        /// Change to try on the past: a piece of a configuration file that is laid over the one in
        /// force, or a file of rules. Prints what its capabilities, profiles, pins and rules would
        /// have decided otherwise of what the participant did
        ///
        /// By the audit log and the journal in the data directory. Rules are those of the topic
        /// that --topic names, else of main.
        #[arg(long, value_name = "FILE", conflicts_with = "act", group = "tried")]
        with: Option<PathBuf>,
        /// The same for a capability that would be granted
        #[arg(
            long,
            value_name = "CAPABILITY",
            conflicts_with = "act",
            group = "tried"
        )]
        grant: Vec<String>,
        /// The same for a capability that would be revoked
        #[arg(
            long,
            value_name = "CAPABILITY",
            conflicts_with = "act",
            group = "tried"
        )]
        revoke: Vec<String>,
        /// Only what was recorded at or after this time: 30d (ago), 2026-07-28 or
        /// 2026-07-28T12:30:00Z
        #[arg(long, value_name = "TIME", requires = "tried")]
        since: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Grant capabilities to a participant, permanently or for a limited time
    ///
    /// Takes effect at once. Needs the capability portmoot/grants; you can grant only capabilities
    /// that you hold.
    Grant {
        /// Participant id
        id: String,
        /// Capability to grant, such as mcp/request:tools/call:read_*
        #[arg(value_name = "CAPABILITY", required = true)]
        capabilities: Vec<String>,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        /// Lifetime of the grant, such as 30m or 2h [default: permanent]
        #[arg(long = "for", value_name = "TIME")]
        time: Option<String>,
        /// Reason
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Let a participant call tools, by the names that `tools ls` shows
    ///
    /// It grants what a call of each tool needs over MCP, and in rooms, where servers' own names
    /// count, as far as that name is of no other server's tool there. Needs the capability
    /// portmoot/grants; you can grant only capabilities that you hold.
    Allow {
        /// Participant id
        id: String,
        /// Public name of a tool, such as demo_add
        #[arg(value_name = "TOOL", required = true)]
        tools: Vec<String>,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        /// Lifetime of the grant, such as 30m or 2h [default: permanent]
        #[arg(long = "for", value_name = "TIME")]
        time: Option<String>,
        /// Let it only propose the calls, which wait for an approval
        #[arg(long)]
        propose: bool,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Pause a participant: its calls wait for the decisions of others until it is resumed
    ///
    /// Takes effect at once, and outlasts a restart. The participant decides nothing meanwhile;
    /// what it has begun goes on. Needs the capability portmoot/pause.
    Pause {
        /// Participant id
        id: String,
        /// Topic in which it is paused
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        /// Reason
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Resume a participant that is paused
    ///
    /// Needs the capability portmoot/pause.
    Resume {
        /// Participant id
        id: String,
        /// Topic in which it is paused
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        /// Reason
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Revoke capabilities of a participant; its calls that need them are cancelled
    ///
    /// Takes effect at once. Needs the capability portmoot/grants; you can revoke only capabilities
    /// that you hold.
    Revoke {
        /// Participant id
        id: String,
        /// Capability to revoke, spelled as `participants ls` shows it
        #[arg(value_name = "CAPABILITY", required = true)]
        capabilities: Vec<String>,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        /// Reason
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}

/// `token ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TokenCommand {
    /// Issue a token and print it; it cannot be shown again
    ///
    /// Needs the capability portmoot/tokens, and all that the token's bearer may do.
    New {
        /// Id of the participant that authenticates with this token
        name: String,
        /// Capability of the participant, such as mcp/request:tools/call:read_*; repeatable
        #[arg(long = "capability", value_name = "CAPABILITY")]
        capabilities: Vec<String>,
        /// Topic that the participant may join; repeatable
        #[arg(long = "topic", value_name = "TOPIC")]
        topics: Vec<String>,
        /// Lifetime of the token, such as 12h or 90d [default: until revoked]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// List issued tokens
    Ls {
        #[command(flatten)]
        watch: WatchArgs,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Issue another token to a participant; the one before stays valid for a while
    ///
    /// The new token has the capabilities, topics and lifetime of the one before. At most two are
    /// valid at once.
    Rotate {
        /// Participant id
        name: String,
        /// How long the token before stays valid, such as 10m or 1d
        #[arg(long, value_name = "TIME", default_value = "1h")]
        overlap: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Revoke all tokens of a participant; its sessions end at once
    Revoke {
        /// Participant id
        name: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `login ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum LoginCommand {
    /// Print a one-time code, to be typed at the sign-in page
    ///
    /// It is good once, for 10 minutes, and replaces an earlier one of the participant. Needs a
    /// running gateway with sign-ins enabled, the capability portmoot/tokens, and all that the
    /// participant may do; a participant gets codes for itself without.
    Code {
        /// Participant as which the client is to act
        name: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}

/// `clients ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ClientsCommand {
    /// List the clients that have signed in
    ///
    /// Without the capability portmoot/tokens only your own.
    Ls(RunningArgs),
    /// End the sign-ins of a client; what it has open ends at once
    ///
    /// Its participants have to sign in and consent again.
    Revoke {
        /// The client: at least 8 digits of what `clients ls` shows, or its URL or configured id
        client: String,
        /// Only for this participant
        #[arg(long = "as", value_name = "NAME")]
        participant: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}

/// `consents ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ConsentsCommand {
    /// List the consents that participants have given to clients
    ///
    /// Without the capability portmoot/tokens only your own.
    Ls(RunningArgs),
    /// Withdraw the consents to a client, and end the sign-ins that they gave
    Revoke {
        /// The client: at least 8 digits of what `consents ls` shows, or its URL or configured id
        client: String,
        /// Only for this participant
        #[arg(long = "as", value_name = "NAME")]
        participant: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}

/// `audit ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum AuditCommand {
    /// List audit entries, oldest first
    Query {
        /// Only these kinds, such as chat, mcp/request:tools/call:read_* or system/*
        kinds: Option<String>,
        /// Only entries from or to this participant
        #[arg(long, value_name = "NAME")]
        participant: Option<String>,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        /// Only this verdict: admitted, refused, held, approved, amended, extended, rejected,
        /// withdrawn, expired, completed, failed or shadow
        #[arg(long, value_name = "VERDICT")]
        verdict: Option<String>,
        /// Only this operation or proposal; the beginning of its id will do
        #[arg(long, value_name = "ID")]
        operation: Option<String>,
        /// Only entries at or after this time: 2h (ago), 2026-07-28 or 2026-07-28T12:30:00Z
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only entries before this time, in the same formats
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// Only the last COUNT entries
        #[arg(long, value_name = "COUNT")]
        last: Option<usize>,
        /// Print each entry as a line of JSON, as it is in the log, for programs that read line by
        /// line
        #[arg(long)]
        jsonl: bool,
        /// Ask all nodes of the cluster: at most the last 10000 entries of each
        #[arg(long)]
        nodes: bool,
        #[command(flatten)]
        watch: WatchArgs,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Verify the hash chain of the log
    ///
    /// Reports entries that were changed, removed, moved or truncated, and prints the head of the
    /// log. Keep the head in another place and pass it with --head later: then the check also
    /// detects a log that was restored together with its head.
    Verify {
        /// Head printed by an earlier run, which the log must still contain
        #[arg(long, value_name = "SEQ:HEX")]
        head: Option<String>,
        /// Have each node of the cluster verify its own log
        #[arg(long, conflicts_with = "head")]
        nodes: bool,
        #[command(flatten)]
        config: ConfigArgs,
    },
}

/// `config ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration as serve would use it; report problems and settings without effect
    Check(CheckArgs),
    /// Print the JSON Schema of the configuration file, for editors
    ///
    /// An editor with support for TOML uses it if the first line of the file is
    /// `#:schema ./portmoot.schema.json`, and the schema is in that file.
    Schema,
    /// Print the merged configuration, with variables unexpanded
    Show {
        /// Show the file and line of every value
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        config: ConfigArgs,
    },
}
