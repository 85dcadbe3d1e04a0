//! Problems of configurations, as operators read them.

use super::*;

#[test]
fn every_problem_is_reported_with_its_line_and_a_hint() {
    let toml = r#"
[servers.github]
comand = "npx"
url = "http://127.0.0.1:9000/mcp"
era = "modren"
request_timeout = 30

[servers.search]
command = "search"
env = { KEY = "${GONE" }

[participants.scout]
token = "x"
token_env = "SHORT"
capabilities = ["*", { kind = "chat", from = "x" }]
topics = ["mian"]

[topics.side]
servers = ["serch"]
mcp_calls = "all"

[sever]
"#;
    insta::assert_snapshot!(problems(toml), @r#"
    unknown key `comand` in `[servers.github]` [config_unknown_key]
      at portmoot.toml:3
      hint: did you mean `command`?
    `modren` is not a value of `servers.github.era` [config_value]
      at portmoot.toml:5
      hint: did you mean `modern`?
    `servers.github.request_timeout` must be a duration with its unit, such as "500ms", "30s", "5m", "2h" or "7d", not 30 [config_value]
      at portmoot.toml:6
    `servers.search.env.KEY`: `${` is never closed [config_variable]
      at portmoot.toml:10
      hint: write ${NAME}, or $${ for a literal ${
    `participants.scout.token`: a token must not be in the configuration file [config_token]
      at portmoot.toml:13
      hint: use `token_env`, `token_file` or `token_sha256`, or name a secret: token = { command = [...] }
    `participants.scout.token_env`: the token has fewer than 16 characters [config_token]
      at portmoot.toml:14
      hint: issue one with: portmoot token new NAME
    `participants.scout.capabilities`: `*` is not a capability: `*` cannot span namespaces: write `mcp/*`, `name/*`, or the exact word [config_capability]
      at portmoot.toml:15
      hint: for example "mcp/request:tools/call:read_*" or "chat"
    `participants.scout.capabilities`: unknown key `from` in a capability: it has `kind` and `to` [config_capability]
      at portmoot.toml:15
      hint: for example "mcp/request:tools/call:read_*" or "chat"
    `scout` may join `mian`, but there is no such topic [config_unknown_topic]
      at portmoot.toml:16
      hint: did you mean `main`?
    `topics.side.servers`: there is no server `serch` [config_unknown_server]
      at portmoot.toml:19
      hint: did you mean `search`?
    `all` is not a value of `topics.side.mcp_calls` [config_value]
      at portmoot.toml:20
      hint: one of `none`, `kinds`, `full`
    unknown key `sever` in the configuration [config_unknown_key]
      at portmoot.toml:22
      hint: did you mean `server`?
    "#);
}

#[test]
fn no_participant_may_have_the_name_of_a_server() {
    let config = good(
        "[servers.\"two words\"]\ncommand = \"x\"\n[servers.local]\ncommand = \"x\"\n\
         [servers.rules]\ncommand = \"x\"\n[servers.off]\ncommand = \"x\"\nenabled = false\n",
    );
    let known: Vec<&str> = config
        .identity
        .servers
        .iter()
        .map(|id| id.as_str())
        .collect();
    assert_eq!(known, ["two-words", "server-local", "server-rules", "off"]);
}

#[test]
fn scopes_with_wildcards_are_refused() {
    let scope = |name: &str| format!("[scopes.{name:?}]\ncapabilities = [\"mcp/*\"]\n");
    for name in ["*", "mcp:*", "*:read", "a b", ""] {
        let found = problems(&scope(name));
        assert!(
            found.contains("cannot be a scope [config_name]"),
            "{name}: {found}"
        );
    }
    check(
        &tree(&scope("mcp:all")),
        &Outside::unread(&env),
        &mut Vec::new(),
    )
    .unwrap();
}

#[test]
fn problems_have_messages() {
    for (toml, expect) in [
        (
            "[servers.a]",
            "`[servers.a]` has neither `command` nor `url` [config_missing]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nurl = 'http://x/'",
            "`[servers.a]` has both `command` and `url` [config_twice]",
        ),
        (
            "[servers.a]\ntype = 'sse'\ncommand = 'x'",
            "`[servers.a]` needs a `url` [config_missing]",
        ),
        (
            "[servers.a]\nurl = 'ftp://x/'",
            "`servers.a.url` is not an absolute http or https URL: `ftp://x/` [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://${TOKEN} /'",
            "`servers.a.url` is not an absolute http or https URL: `http://${TOKEN} /` [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nheaders = { 'a b' = 'x' }",
            "`a b` is not a valid header [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nquery = { key = 'x' }",
            "`servers.a.query` is for servers that are HTTP APIs [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nopenapi = 'http://x/'",
            "`servers.a.openapi` is for servers that are HTTP APIs [config_value]",
        ),
        (
            "[servers.a]\ntype = 'openapi'",
            "`[servers.a]` needs a `openapi` [config_missing]",
        ),
        (
            "[servers.a]\nopenapi = 'http://x/'\nurl = '/v1'",
            "`servers.a.url` is not an absolute http or https URL: `/v1` [config_value]",
        ),
        (
            "[servers.a]\nopenapi = '/no/such/file'",
            "/no/such/file cannot be read",
        ),
        (
            "[servers.a]\ncommand = 'x'\nprefix = 'a/b'",
            "`a/b` cannot be part of a tool name [config_value]",
        ),
        (
            "[servers.portmoot]\ncommand = 'x'",
            "a server cannot be called `portmoot` [config_name]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nera = 'auto'\nprotocolEra = 'auto'",
            "`era` and `protocolEra` are the same setting [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nmax_timeout = '1s'",
            "`servers.a.max_timeout` is shorter than another timeout [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nhide = ['a**']",
            "`servers.a.hide`: `a**` is no pattern: write one `*`: it matches any run of characters [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tools.x]\nname = 'y'",
            "`servers.a.tools` is a list of patterns [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool.x]\nname = 'a b'",
            "`servers.a.tool.x.name`: `a b` cannot be the name of a tool [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool]\nx = { name = 'z' }\ny = { name = 'z' }",
            "`[servers.a.tool.y]`: `x` has this `name` too [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool.x]\npreset = { a = 1 }\nhide_arguments = ['a']",
            "`[servers.a.tool.x]`: `a` has a preset, so it is hidden already [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool.x]\npreset = { a = [1, inf] }",
            "JSON has no number inf [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool.x]\npresets = { a = 1 }",
            "unknown key `presets` in `[servers.a.tool.x]` [config_unknown_key]",
        ),
        (
            "[servers.a]\ncommand = 'x'\ntools = ['@read']",
            "`servers.a.tools`: `@read` is a set, whose names have prefixes [config_value]",
        ),
        ("[sets.a]", "`[sets.a]` has no `tools` [config_value]"),
        (
            "[sets.a]\ntools = ['']",
            "`sets.a.tools`: `` is no pattern: a pattern cannot be empty [config_value]",
        ),
        (
            "[sets.read]\ntools = []\n[topics.a]\nhide = ['@raed']",
            "`topics.a.hide`: there is no set `raed` [config_unknown_set]",
        ),
        (
            "[profiles.a]\ncapabilities = ['mcp/proposal:tools/call:@b']",
            "`profiles.a.capabilities`: there is no set `b` [config_unknown_set]",
        ),
        (
            "[profiles.a]",
            "`[profiles.a]` has no `capabilities` [config_value]",
        ),
        (
            "[topics.a]\naccess = 'open'",
            "`open` is not a value of `topics.a.access` [config_value]",
        ),
        (
            "[topics.a]\nanonymous = 'a'",
            "`topics.a.anonymous`: there is no profile `a` [config_unknown_profile]",
        ),
        (
            "[participants.a]\nprofile = 'a'",
            "`participants.a.profile`: there is no profile `a` [config_unknown_profile]",
        ),
        (
            "[participants.anonymous-1]",
            "a participant cannot be called `anonymous-1` [config_name]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = {} }",
            "`servers.a.env.A` names no secret [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { comand = ['x'] } }",
            "unknown key `comand` in `servers.a.env.A` [config_unknown_key]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { command = 'op read x' } }",
            "`servers.a.env.A.command` must be a list of a program and its arguments [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { command = ['x'], file = '/x' } }",
            "`servers.a.env.A` has both `command` and `file` [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { secret = 'X', file = '/x' } }",
            "`servers.a.env.A` has both `file` and `secret` [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { caller = 'Key', secret = 'x' } }",
            "`servers.a.env.A` has both `caller` and `secret` [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { caller = '' } }",
            "`servers.a.env.A.caller` must say in at most 100 characters what the key is called [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { caller = 'One' }, B = { caller = 'Two' } }",
            "`servers.a.env.B.caller`: the server has another key of each caller [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nenv = { A = { caller = 'Key' } }",
            "`[servers.a]`: `caller` has no effect in `env` of a server with a `url`, nor in `headers` of one with a `command` [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nheaders = { A = { caller = 'Key' } }\nauth = { kind = 'oauth' }",
            "`[servers.a.auth]`: each caller enters a key for the server, and has no other account there [config_auth]",
        ),
        (
            "[participants.a]\ntoken = { caller = 'Key' }",
            "`participants.a.token`: `caller` is for values of `env` and `headers` of a server [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { secret = '../x' } }",
            "`servers.a.env.A.secret`: a name of a secret has 1 to 64 letters, digits, `_` and `-`, and begins with a letter or digit [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nheaders = { A = { file = '/x', prefix = 1 } }",
            "`servers.a.headers.A.prefix` must be a text [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nauth = { client_secret = 'x' }",
            "`servers.a.auth.client_secret`: a secret must not be in the configuration file [config_token]",
        ),
        (
            "[participants.a]\ntoken = { file = '~ann/x' }",
            "`participants.a.token.file`: `~ann` is not expanded [config_value]",
        ),
        (
            "[servers]\na = 1",
            "`servers` must be a table of tables, not 1 [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[topics.main]\n[participants.a_b]\nserves = true",
            "names of `a` and `a_b` could shadow each other: give one of them another `prefix` [config_prefix]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[topics.main]\n[participants.a]\nserves = true",
            "the name `a` is used twice: in `[servers]` and in `[participants]` [config_twice]",
        ),
        (
            "[topics.main]\n[participants.a]\nserves = true\n[participants.'a/b']\nserves = true\n[participants.'a_b']\nserves = true",
            "names of `a` and `a/b` could shadow each other: give one of them another `prefix` [config_prefix]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.b]\ncommand = 'x'\nprefix = 'a_b'",
            "names of `a` and `b` could shadow each other: give one of them another `prefix` [config_prefix]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[participants.a]\ntoken_env = 'TOKEN'",
            "the name `a` is used twice: in `[servers]` and in `[participants]` [config_twice]",
        ),
        (
            "[participants.'аса']\n[participants.aca]",
            "the names `аса` in `[participants]` and `aca` in `[participants]` look alike [config_alike]",
        ),
        (
            "[participants.'b\u{43e}ss']",
            "`bоss` is not a valid name: the name mixes scripts, so that it can look like another name [config_name]",
        ),
        (
            "[issuers.rules]\nissuer = 'https://idp.example'",
            "`rules` cannot be the name of an issuer [config_name]\n  at portmoot.toml:1\n  hint: names that begin so belong to the gateway: choose another",
        ),
        (
            "[issuers.portmoot]\nissuer = 'https://idp.example'",
            "`portmoot` cannot be the name of an issuer [config_name]",
        ),
        (
            "[issuers.Portmoot]\nissuer = 'https://idp.example'",
            "`Portmoot` cannot be the name of an issuer [config_name]",
        ),
        (
            "[issuers.System]\nissuer = 'https://idp.example'",
            "`System` cannot be the name of an issuer [config_name]",
        ),
        (
            "[issuers.corp]\nissuer = 'https://idp.example'\nconsole_scopes = ['openid']",
            "`[issuers.corp]` has `console_scopes` without `client_id` [config_missing]",
        ),
        (
            "[issuers.corp]\nissuer = 'https://idp.example'\nclient_id = 'gw'\nconsole_scopes = ['a b']",
            "`issuers.corp.console_scopes`: `a b` is no scope [config_value]",
        ),
        (
            "[issuers.corp]\nissuer = 'https://idp.example'\nclient_id = 'gw'\nconsole_scopes = []\nconsole_params = { nonce = 'x' }",
            "`issuers.corp.console_params`: the gateway sets `nonce` itself [config_value]",
        ),
        (
            "[login]\nenabled = true\n[login.client.portmoot-console]\nredirect_uris = ['http://127.0.0.1/']",
            "`portmoot-console` is the id of the gateway's own console [config_name]",
        ),
        (
            "[participants.'rules:x']\ntoken_env = 'TOKEN'",
            "`rules:x` is not a valid name: this name, or one that looks like it, belongs to the gateway [config_name]",
        ),
        (
            "[participants.Local]",
            "a participant cannot be called `Local` [config_name]",
        ),
        (
            "[participants.a]\ntoken_env = 'TOKEN'\n[participants.b]\ntoken_env = 'TOKEN'",
            "`a` and `b` have the same token [config_token_twice]",
        ),
        (
            "[participants.a]\ntoken_env = 'GONE'",
            "`participants.a.token_env`: the environment variable `GONE` is not set [config_token]",
        ),
        (
            "[participants.a]\ntoken_env = 'SHORT'",
            "`participants.a.token_env`: the token has fewer than 16 characters [config_token]",
        ),
        (
            "[participants.a]\ntoken = 'x'",
            "`participants.a.token`: a token must not be in the configuration file [config_token]",
        ),
        (
            "[participants.a]\ntoken_sha256 = 'x'",
            "`participants.a.token_sha256` must be 64 hexadecimal digits [config_token]",
        ),
        (
            "[participants.a]\ncapabilities = ['*']",
            "`*` is not a capability",
        ),
        (
            "[participants.a]\ncapabilities = [{ kind = 'chat', from = 'x' }]",
            "unknown key `from` in a capability: it has `kind` and `to` [config_capability]",
        ),
        (
            "[participants.a]\nwires = []",
            "`participants.a.wires` opens no wire: the participant could not come in [config_value]",
        ),
        (
            "[participants.a]\nwires = ['wss']",
            "`participants.a.wires`: there is no wire `wss` [config_value]",
        ),
        (
            "[participants.a]\nrate = '5/h'",
            "`participants.a.rate` is not a rate [config_value]",
        ),
        (
            "[participants.a]\ntopics = ['mian']",
            "`a` may join `mian`, but there is no such topic [config_unknown_topic]",
        ),
        (
            "[topics.main]\nservers = ['x']",
            "`topics.main.servers`: there is no server `x` [config_unknown_server]",
        ),
        (
            "[topics.main]\ntools_list = 'search'\nbuiltin = ['room']",
            "`topics.main.tools_list`: no tool would be listed [config_value]",
        ),
        (
            "[topics.main]\nbuiltin = ['proxi']",
            "`topics.main.builtin`: there is no built-in tool `proxi` [config_value]",
        ),
        (
            "[server]\nlisten = 'everywhere'",
            "`server.listen` must be an address and a port, not \"everywhere\" [config_value]",
        ),
        (
            "[server]\npublic_url = 'http://gw.example'",
            "`server.public_url` must begin with https:// (http:// is for localhost, 127.0.0.1 and [::1] only) [config_value]",
        ),
        (
            "[server.limits]\nsessions_max = 0",
            "`server.limits.sessions_max` must be more than 0 [config_value]",
        ),
        (
            "[server.limits]\nsession_max = 1",
            "unknown key `session_max` in `[server.limits]` [config_unknown_key]",
        ),
        (
            "[registry]\nhosts = ['http://registry.example']",
            "`registry.hosts`: `http://registry.example` is not HOST, HOST:PORT, or http:// with a loopback address [config_value]",
        ),
        (
            "[registry]\nhosts = ['a.example']\npins = { 'a.example' = 'x' }",
            "`registry.pins` needs the SHA-256 of a certificate [config_tls]",
        ),
        (
            "[registry]\nhosts = ['a.example']\npins = { 'b.example' = 'x' }",
            "`registry.pins`: `b.example` is not among the hosts [config_value]",
        ),
        (
            "[sever]\n",
            "unknown key `sever` in the configuration [config_unknown_key]",
        ),
        (
            "listen = 2026-07-28",
            "a date is not a valid value here [config_value]",
        ),
        ("a = \n", "[config_syntax]"),
    ] {
        let found = problems(toml);
        assert!(found.contains(expect), "{toml}\n{found}");
    }
}
