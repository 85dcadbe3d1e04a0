//! Places in the file system that a confined child may use: what every program needs, what its
//! operator lists, and what it never gets.

use std::path::{Component, Path, PathBuf, absolute};

use super::FileAccess;

/// Places that programs read of the system: programs, libraries, certificates, names of hosts and
/// users, the clock's zone. Of `/etc` and `/proc` only what holds no secret and shows no other
/// process.
const SYSTEM: [&str; 62] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/snap",
    "/home/linuxbrew/.linuxbrew",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/java-11-openjdk",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/random",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];
/// Directories of an installation beside its `bin`: those of node, of Python and its environments.
const INSTALLATION: [&str; 5] = ["bin", "lib", "lib64", "libexec", "pyvenv.cfg"];
/// Devices without content of their own.
const DEVICES: [&str; 5] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];
/// Places below the home directory where people and programs keep keys. A list that names one of
/// them means it; no wider one has it.
const SECRETS: [&str; 20] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".password-store",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/op",
    ".config/portmoot",
    ".local/share/keyrings",
    ".mozilla",
    ".bash_history",
];

/// Places that a child may use, as paths without links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Lists {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
}

/// The child that is confined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Of<'a> {
    /// The absolute path of its program.
    pub(crate) program: &'a Path,
    /// Its working directory, absolute.
    pub(crate) cwd: &'a Path,
    /// The home directory of the user.
    pub(crate) home: Option<&'a Path>,
}

/// Places that a child may use.
///
/// # Errors
/// A fault in the operator's lists, in words for the operator.
pub(crate) fn resolve(files: &FileAccess, of: Of<'_>) -> Result<Lists, String> {
    let guarded = Guarded::new(files, of.home);
    let mut read: Vec<PathBuf> = SYSTEM
        .iter()
        .filter_map(|path| Path::new(path).canonicalize().ok())
        .collect();
    // The program may be a link, as those of Python's environments are: the places beside the link
    // and beside what it leads to both belong to it.
    let mut by_default = installation(of.program);
    if let Ok(real) = of.program.canonicalize() {
        by_default.extend(installation(&real));
    }
    by_default.push(of.cwd.to_owned());
    for path in by_default {
        if let Ok(real) = path.canonicalize()
            && guarded.may_have_by_default(&real)
        {
            read.push(real);
        }
    }
    for path in &files.read {
        read.push(guarded.listed(&lexical(&of.cwd.join(path)))?);
    }
    let mut write = Vec::new();
    for path in &files.write {
        write.push(guarded.listed(&lexical(&of.cwd.join(path)))?);
    }
    for device in DEVICES.iter().map(PathBuf::from) {
        if device.exists() {
            write.push(device);
        }
    }
    Ok(Lists { read, write })
}

/// A program and what belongs to it.
fn installation(program: &Path) -> Vec<PathBuf> {
    let mut found = vec![program.to_owned()];
    if let Some(dir) = program.parent()
        && dir.file_name().is_some_and(|name| name == "bin")
        && let Some(root) = dir.parent()
    {
        found.extend(INSTALLATION.iter().map(|part| root.join(part)));
    }
    found
}

/// Without `.` and `..`, and without following links.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = out.pop(),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// Places that are kept from children. Each is there as it is written, and as it is without links.
struct Guarded {
    /// The gateway's own files.
    never: Vec<PathBuf>,
    /// Keys of people and programs, below the home directory.
    secrets: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl Guarded {
    fn new(files: &FileAccess, home: Option<&Path>) -> Self {
        let mut never = Vec::new();
        for path in &files.never {
            never.extend(spellings(path.clone()));
        }
        let mut secrets = Vec::new();
        if let Some(home) = home {
            for name in SECRETS {
                secrets.extend(spellings(home.join(name)));
            }
        }
        Self {
            never,
            secrets,
            home: home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned())),
        }
    }

    /// Whether a place that no operator listed can be read.
    fn may_have_by_default(&self, path: &Path) -> bool {
        let holds_home = self
            .home
            .as_ref()
            .is_some_and(|home| home.starts_with(path));
        if path == Path::new("/") || holds_home {
            return false;
        }
        let mut guarded = self.never.iter().chain(&self.secrets);
        !guarded.any(|guarded| overlap(guarded, path))
    }

    /// A place that the operator listed, without links.
    fn listed(&self, path: &Path) -> Result<PathBuf, String> {
        let shown = path.display();
        let real = path
            .canonicalize()
            .map_err(|why| format!("the sandbox lists `{shown}`: {why}"))?;
        for place in [path, &real] {
            if self.never.iter().any(|never| overlap(never, place)) {
                return Err(format!(
                    "the sandbox lists `{shown}`, where the gateway's own files are: list other directories"
                ));
            }
            let wider_than = self
                .secrets
                .iter()
                .find(|secret| secret.starts_with(place) && *secret != place);
            if let Some(secret) = wider_than {
                return Err(format!(
                    "the sandbox lists `{shown}`, in which `{}` is: list the parts that the server needs",
                    secret.display()
                ));
            }
        }
        // A link that leads to a secret place does not name it.
        if self.is_secret(&real) && !self.is_secret(path) {
            return Err(format!(
                "the sandbox lists `{shown}`, a link to `{}`: list that itself if you mean it",
                real.display()
            ));
        }
        Ok(real)
    }

    fn is_secret(&self, place: &Path) -> bool {
        self.secrets.iter().any(|secret| place.starts_with(secret))
    }
}

/// A path as it is written, and without links where that differs. What does not exist yet may exist
/// later: then its path as it is written counts.
fn spellings(path: PathBuf) -> Vec<PathBuf> {
    let path = absolute(&path).unwrap_or(path);
    let mut spellings = vec![lexical(&path)];
    if let Ok(real) = path.canonicalize()
        && real != path
    {
        spellings.push(real);
    }
    spellings
}

/// Whether one of two places is within the other.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("ann");
        for made in [
            ".ssh",
            "work/out",
            "state",
            ".nvm/v20/bin",
            ".nvm/v20/lib",
            "bin",
            ".aws/sso",
            ".config",
        ] {
            fs::create_dir_all(home.join(made)).unwrap();
        }
        for file in [".nvm/v20/bin/node", "bin/tool", ".ssh/id"] {
            fs::write(home.join(file), "").unwrap();
        }
        symlink(home.join(".ssh"), home.join("work/keys")).unwrap();
        (dir, home)
    }

    fn of(
        home: &Path,
        program: &str,
        cwd: &str,
        read: &[&str],
        write: &[&str],
    ) -> Result<Lists, String> {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let files = FileAccess {
            read: paths(read),
            write: paths(write),
            never: vec![home.join("state")],
        };
        resolve(
            &files,
            Of {
                program: &home.join(program),
                cwd: &home.join(cwd),
                home: Some(home),
            },
        )
    }

    #[test]
    fn a_child_reads_its_program_and_directory_and_nothing_that_holds_secrets() {
        let (_dir, home) = home();
        for (program, cwd, has, has_not) in [
            (
                ".nvm/v20/bin/node",
                "work",
                &[".nvm/v20/bin", ".nvm/v20/lib", "work"][..],
                &[".nvm", "", "state"][..],
            ),
            ("bin/tool", "", &["bin", "bin/tool"], &["", ".ssh"]),
            ("bin/tool", "..", &["bin/tool"], &["", ".."]),
            ("bin/tool", "state", &[], &["state"]),
            ("bin/tool", ".ssh", &[], &[".ssh"]),
            ("bin/tool", "work/keys", &[], &[".ssh"]),
        ] {
            let lists = of(&home, program, cwd, &[], &[]).unwrap();
            let reads = |part: &&str| lists.read.contains(&lexical(&home.join(part)));
            assert!(
                has.iter().all(reads),
                "{program} in {cwd}: {:?}",
                lists.read
            );
            assert!(
                !has_not.iter().any(reads),
                "{program} in {cwd}: {:?}",
                lists.read
            );
            assert!(
                lists.write.iter().all(|path| path.starts_with("/dev")),
                "{:?}",
                lists.write
            );
            for shown in [
                "/", "/etc", "/proc", "/root", "/home", "/var", "/run", "/dev", "/tmp",
            ] {
                assert!(!lists.read.contains(&PathBuf::from(shown)), "{shown}");
            }
        }
    }

    #[test]
    fn lists_name_what_they_mean() {
        let (_dir, home) = home();
        let path = |part: &str| home.join(part).display().to_string();
        for (listed, expect) in [
            ("out", None),
            (&*path("work"), None),
            (&*path(".aws"), None),
            (&*path(".aws/sso"), None),
            (&*path(".config"), Some("in which")),
            (&*path(""), Some("where the gateway's own files are")),
            ("/", Some("where the gateway's own files are")),
            (&*path("state"), Some("where the gateway's own files are")),
            (&*path("state/below"), Some("No such file")),
            ("keys", Some("a link to")),
            ("absent", Some("No such file")),
            ("../.ssh/../work/keys", Some("a link to")),
        ] {
            for write in [false, true] {
                let list = [listed];
                let (read, written) = if write {
                    (&[][..], &list[..])
                } else {
                    (&list[..], &[][..])
                };
                let found = of(&home, "bin/tool", "work", read, written);
                match expect {
                    None => assert!(found.is_ok(), "{listed}: {found:?}"),
                    Some(why) => {
                        assert!(
                            found.clone().is_err_and(|found| found.contains(why)),
                            "{listed}: {found:?}"
                        )
                    }
                }
            }
        }
    }
}
