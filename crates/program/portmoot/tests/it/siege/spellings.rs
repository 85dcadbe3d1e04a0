//! Spellings of names and URIs, bodies that two readers understand differently, and heads: the
//! material of the attacks.

/// Spellings of a forbidden name, as JSON values.
pub(super) fn names() -> Vec<String> {
    let texts = [
        "vault_wipe",
        "wipe",
        "Vault_Wipe",
        "VAULT_WIPE",
        "vault_WIPE",
        " vault_wipe",
        "vault_wipe ",
        "vault_wipe\\t",
        "vault_wipe\\n",
        "vault_wipe\\r\\n",
        "\\u0000vault_wipe",
        "vault_wipe\\u0000",
        "vault_echo\\u0000vault_wipe",
        "vault_echo\\nvault_wipe",
        "vault_echo,vault_wipe",
        "vault_echo vault_wipe",
        "vault_echo;vault_wipe",
        "vault_echo/../vault_wipe",
        "vault_echo/../wipe",
        "../wipe",
        "./vault_wipe",
        "vault/wipe",
        "vault.wipe",
        "vault:wipe",
        "vault-wipe",
        "vault__wipe",
        "vault_vault_wipe",
        "_wipe",
        "__wipe",
        "vault_",
        "vault",
        "vault_wip\\u0065",
        "\\u0076ault_wipe",
        "v\\u0061ult\\u005fwipe",
        "vault\\uff3fwipe",
        "vault_w\\u0456pe",
        "vault_wi\\u200bpe",
        "\\ufeffvault_wipe",
        "\\u202evault_wipe",
        "vault_wipe\\u0301",
        "vault%5fwipe",
        "vault_%77ipe",
        "vault&#95;wipe",
        "vault_echo%00wipe",
        "*",
        "vault_*",
        "vault_?ipe",
        "vault_wip[e]",
        "",
        "\\u0000",
        "vault_wipe:vault_echo",
        "vault_echo:vault_wipe",
        "tools/call:vault_wipe",
        "mcp/request:tools/call:vault_wipe",
        "vault_wipe?x=vault_echo",
        "vault_wipe#vault_echo",
        "vault_echo\\u2028vault_wipe",
        "\\ud800vault_wipe",
        "vault_wipe\\udfff",
        "${VAULT_WIPE}",
        "vault_echo\\\"},\\\"name\\\":\\\"vault_wipe",
        "portmoot_vault_wipe",
        "proxy_wipe",
        "vault_wipe\\u00a0",
    ];
    let mut all: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    let shapes = [
        "null",
        "true",
        "0",
        "[\"vault_wipe\"]",
        "{\"name\":\"vault_wipe\"}",
        "[]",
        "{}",
        "1e400",
        "-0",
    ];
    all.extend(shapes.map(str::to_owned));
    all.push(format!("\"{}vault_wipe\"", "x".repeat(70)));
    all.push(format!("\"vault_wipe{}\"", "x".repeat(70_000)));
    all
}

/// Spellings of a forbidden URI, as JSON strings without quotes. Each leads out of `file:///notes/`
/// for some reader.
pub(super) fn uris() -> Vec<String> {
    let mut all: Vec<String> = [
        "file:///private/a",
        "file:///",
        "file:///notes",
        "file:///notesx/a",
        "file:///Notes/a",
        "FILE:///notes/../private/a",
        "file:/notes/a",
        "file:////notes/a",
        "file://localhost/notes/a",
        "file://evil/notes/a",
        "file:notes/a",
        "/notes/a",
        "notes/a",
        "http://127.0.0.1/notes/a",
        " file:///notes/a",
        "file:///notes/a ",
        "file:///notes/a#/../../private",
        "\\tfile:///notes/a",
        "fi\\tle:///notes/a",
        "file:\\n///notes/a",
        "file:///notes/\\ud83d\\ude00/../../private",
        "file:///notes/*",
        "file:///notes/{path}",
        "file:///notes/${HOME}",
        "file:///notes/~root",
        "file:///notes//etc/passwd",
        "file:///notes/a?x=/../../private",
        "file:///notes/a;/../../private",
        "file:///notes/a\\u0000.txt",
        "file:///notes/../private/a#file:///notes/",
        "\\u0066ile:///private/a",
        "file:///notes/./../private",
    ]
    .map(str::to_owned)
    .to_vec();
    let dots = [
        "..",
        "%2e%2e",
        "%2E.",
        ".%2e",
        "%252e%252e",
        "..;",
        ".\\t.",
        "..\\u0000",
        "\\uff0e\\uff0e",
        "%c0%ae%c0%ae",
        "\\u2025",
        "..%00",
        "..%20",
        ".. ",
    ];
    let slashes = [
        "/",
        "\\\\",
        "%2f",
        "%2F",
        "%5c",
        "%252f",
        "\\u2215",
        "\\uff0f",
        "/\\u200b/",
    ];
    for dot in dots {
        for slash in slashes {
            all.push(format!("file:///notes/{dot}{slash}private"));
        }
    }
    all
}

/// Bodies that two readers may understand differently; `{M}` is the metadata of the modern era.
pub(super) fn bodies() -> Vec<Vec<u8>> {
    let call = |inner: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{inner}}}"#)
    };
    let good = r#"{"name":"vault_echo","arguments":{}}"#;
    let bad = r#"{"name":"vault_wipe","arguments":{}}"#;
    let wipe = call(bad);
    let mut all: Vec<Vec<u8>> = [
        call(r#"{"name":"vault_echo","name":"vault_wipe","arguments":{}}"#),
        call(r#"{"name":"vault_wipe","name":"vault_echo","arguments":{}}"#),
        call(r#"{"name":"vault_echo","n\u0061me":"vault_wipe","arguments":{}}"#),
        call(r#"{"\u006eame":"vault_wipe","name":"vault_echo","arguments":{}}"#),
        call(r#"{"name":"vault_echo","NAME":"vault_wipe"}"#),
        call(r#"{"name":"vault_echo","name ":"vault_wipe"}"#),
        call(r#"{"name":"vault_echo","name\u0000":"vault_wipe"}"#),
        call(&format!(r#"[{bad}]"#)),
        call(&format!("{good},\"params\":{bad}")),
        call(&format!("{bad},\"params\":{good}")),
        call(&format!("{good},\"par\\u0061ms\":{bad}")),
        call(&format!("{good},\"method\":\"tools/call\"")),
        call(&format!("{good},\"method\":\"resources/read\"")),
        call(&format!("{good},\"id\":2")),
        call(&format!("{good},\"jsonrpc\":\"2.0\"")),
        call(&format!("{good},\"result\":{{}}")),
        call(&format!("{good},\"error\":{{\"code\":1,\"message\":\"\"}}")),
        wipe.replace("tools/call", "tools\\u002fcall"),
        wipe.replace("tools/call", "tools\\/call"),
        wipe.replace("tools/call", "TOOLS/CALL"),
        wipe.replace("tools/call", "tools/call "),
        wipe.replace("tools/call", " tools/call"),
        wipe.replace("tools/call", "tools//call"),
        wipe.replace("tools/call", "tools/./call"),
        wipe.replace("tools/call", "tools/call\\u0000"),
        wipe.replace("tools/call", "tools/list\\ntools/call"),
        wipe.replace("tools/call", "mcp/request:tools/call"),
        wipe.replace("tools/call", "tools/call:vault_echo"),
        wipe.replace("tools/call", "notifications/tools/call"),
        wipe.replace("tools/call", "prompts/get"),
        wipe.replace("\"method\":\"tools/call\"", "\"method\":[\"tools/call\"]"),
        wipe.replace("\"id\":1", "\"id\":null"),
        wipe.replace("\"id\":1", "\"id\":{}"),
        wipe.replace("\"id\":1", "\"id\":[1]"),
        wipe.replace("\"id\":1", "\"id\":1.5"),
        wipe.replace("\"id\":1", "\"id\":true"),
        wipe.replace("\"id\":1", "\"id\":\"\""),
        wipe.replace("\"id\":1,", ""),
        wipe.replace("\"jsonrpc\":\"2.0\",", ""),
        wipe.replace("2.0", "1.0"),
        wipe.replace("\"2.0\"", "2.0"),
        format!("[{wipe}]"),
        format!("[{},{wipe}]", call(good)),
        format!("[[{wipe}]]"),
        format!("{wipe}{wipe}"),
        format!("{}\n{wipe}", call(good)),
        format!("{}\r\n\r\n{wipe}", call(good)),
        format!("{}\u{0}{wipe}", call(good)),
        format!("{},{wipe}", call(good)),
        format!("\u{feff}{wipe}"),
        format!("/* */{wipe}"),
        format!("{wipe}// vault_echo"),
        wipe.replace('"', "'"),
        wipe.replace(":{}", ":{},"),
        wipe.replace(":{}", ":NaN"),
        wipe.replace(":{}", ":{\"a\":01}"),
        wipe.replace(":{}", ":{\"a\":\"\\x41\"}"),
        wipe.replace(":{}", ":{\"a\":\"\t\"}"),
        wipe.replace(":{}", ":{\"a\":\"\\ud800\"}"),
        format!("\"{}\"", wipe.replace('"', "\\\"")),
        String::new(),
        " ".into(),
        "null".into(),
        "[]".into(),
        "{}".into(),
        "1".into(),
        format!("{}{wipe}{}", "[".repeat(5_000), "]".repeat(5_000)),
        call(&format!("{}{}", r#"{"name":"vault_wipe","arguments":"#.to_owned() + &"{\"a\":".repeat(5_000), "1".to_owned() + &"}".repeat(5_001))),
        call(r#"{"name":"vault_wipe","_meta":{"progressToken":{}}}"#),
        call(r#"{"name":"vault_wipe","task":{"ttl":1}}"#),
        call(r#"{"name":"vault_echo","arguments":{},"task":{"ttl":1},"task":{"ttl":2}}"#),
        call(r#"{"name":"vault_wipe","requestState":"x","inputResponses":{}}"#),
        call(r#"{"name":"proxy","arguments":{"action":"call","type":"tool","path":"vault_wipe","args":{}}}"#),
        call(r#"{"name":"proxy","arguments":{"action":"call","type":"tool","path":"vault_echo","path":"vault_wipe"}}"#),
        call(r#"{"name":"proxy","arguments":{"action":"call","type":"resource","path":"file:///private/a"}}"#),
        call(r#"{"name":"proxy","arguments":{"action":"call","type":"resource","path":"file:///notes/../private"}}"#),
        call(r#"{"name":"proxy","arguments":{"action":"call","type":"prompt","path":"vault_secret"}}"#),
        call(r#"{"name":"proxy","arguments":{"action":"call","type":"tool","path":"proxy","args":{"action":"call","type":"tool","path":"vault_wipe"}}}"#),
        call(r#"{"name":"proxy","arguments":{"action":"info","type":"tool","path":"vault_wipe"}}"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"vault_secret"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"secret"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"vault_secret"},"argument":{"name":"a","value":""}}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"file:///{+path}"},"argument":{"name":"path","value":"../"}}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"1"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#.into(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#.into(),
    ]
    .map(String::into_bytes)
    .to_vec();
    let utf16 = |big: bool| {
        wipe.encode_utf16()
            .flat_map(|unit| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            })
            .collect()
    };
    all.extend([utf16(true), utf16(false)]);
    for broken in [
        &b"\xff"[..],
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf5\x80\x80\x80",
        b"\x80",
    ] {
        all.push(
            [
                wipe.as_bytes().split_at(40).0,
                broken,
                wipe.as_bytes().split_at(40).1,
            ]
            .concat(),
        );
    }
    all
}

/// The heads of a POST: each is wrong, or says something else than the body.
pub(super) fn heads() -> Vec<String> {
    let all = [
        "mcp-name: vault_echo",
        "mcp-name: vault_wipe\r\nmcp-name: vault_echo",
        "mcp-name: vault_echo\r\nmcp-name: vault_wipe",
        "Mcp-Name : vault_echo",
        "mcp-name: =?base64?dmF1bHRfZWNobw==?=",
        "mcp-name: =?base64?dmF1bHRfd2lwZQ==?=",
        "mcp-name: =?base64?dmF1bHRfd2lwZQ?=",
        "mcp-name: =?utf-8?q?vault_echo?=",
        "mcp-name:",
        "mcp-name: \tvault_echo ",
        "mcp-method: tools/list",
        "mcp-method: tools/call\r\nmcp-method: tools/list",
        "mcp-method: TOOLS/CALL",
        "mcp-method: ping\r\nmcp-name: vault_echo",
        "x-mcp-name: vault_echo",
        "x-http-method-override: GET",
        "x-original-url: /api/v1/tokens",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-host: localhost",
        "forwarded: for=127.0.0.1",
        "authorization: Bearer token-of-the-participant-boss",
        "authorization: bearer",
        "authorization: Basic Ym9zczo=",
        "cookie: token=token-of-the-participant-boss",
        "proxy-authorization: Bearer token-of-the-participant-boss",
        "mcp-session-id: *",
        "mcp-session-id: ../x",
        "mcp-session-id: a,b",
        "mcp-session-id: %00",
        "last-event-id: 0-0",
        "content-encoding: gzip",
        "content-encoding: deflate",
        "content-type: application/json;charset=utf-7",
        "content-type: multipart/form-data",
        "content-type: application/x-www-form-urlencoded",
        "accept: text/html",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: identity",
        "expect: 100-continue",
        "upgrade: h2c",
        "connection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABkAAQAAP__",
        "te: trailers",
        "trailer: mcp-name",
        "origin: http://evil.example",
        "origin: null",
        "origin: http://127.0.0.1.evil.example",
        "origin: file://",
        "origin: http://[::1]:1@evil.example",
        "sec-fetch-site: cross-site",
        "mcp-protocol-version: 2026-07-28\r\nmcp-protocol-version: 2025-11-25",
        "mcp-protocol-version: 9999-99-99",
        "traceparent: 00-0-0-0",
        "baggage: a=\u{1}",
        "range: bytes=0-1",
        "if-none-match: *",
        "max-forwards: 0",
        "via: 1.0 x",
    ];
    all.map(str::to_owned).to_vec()
}
