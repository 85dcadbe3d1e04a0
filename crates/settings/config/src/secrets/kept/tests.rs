//! Tests of kept secrets: where they are, what opens them, and their limits.

use std::os::unix::fs::symlink;

use super::super::keyring::tests::MemoryKeyring;
use super::super::name::{SECRET_NAME_CHARS_MAX, SecretNameError};
use super::super::value::SECRET_BYTES_MAX;
use super::*;

struct Kept {
    folder: tempfile::TempDir,
    keyring: &'static MemoryKeyring,
    secrets: KeptSecrets,
}

/// A data directory with a key, or without, and a keyring that is there or not.
fn kept(has_key: bool, has_keyring: bool) -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, [7; 32]).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let keyring = MemoryKeyring::leaked();
    *keyring.fails.lock() = (!has_keyring).then(|| KeyringError::Absent("no session".to_owned()));
    let key = has_key.then_some(KeySource::File(key));
    let secrets = KeptSecrets {
        keyring,
        ..KeptSecrets::of(Some(&folder.path().join("data")), key)
    };
    Kept {
        folder,
        keyring,
        secrets,
    }
}

fn name(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

impl Kept {
    fn get(&self, of: &str) -> Result<String, NoSecret> {
        self.secrets
            .get(&name(of), &self.secrets.sealing_key())
            .map(|secret| secret.expose().to_owned())
    }

    fn path(&self, of: &str) -> PathBuf {
        self.secrets.file(&name(of)).unwrap()
    }
}

#[test]
fn a_name_is_a_file_name_and_bounded() {
    let longest = "x".repeat(SECRET_NAME_CHARS_MAX);
    for good in ["a", "CRM_KEY", "crm-key", "0", longest.as_str()] {
        assert_eq!(
            SecretName::new(good).map(|name| name.as_str().to_owned()),
            Ok(good.to_owned())
        );
    }
    for bad in [
        "",
        "_a",
        "-a",
        ".a",
        "a.new",
        "a/b",
        "..",
        "a b",
        "ä",
        "a\n",
        &(longest.clone() + "x"),
    ] {
        assert_eq!(SecretName::new(bad), Err(SecretNameError), "{bad}");
    }
}

#[test]
fn a_secret_is_in_the_keyring_else_in_a_sealed_file_else_refused() {
    for (has_key, has_keyring, wish, expect) in [
        (false, true, None, Some(KeptIn::Keyring)),
        (true, true, None, Some(KeptIn::Keyring)),
        (true, true, Some(KeptIn::File), Some(KeptIn::File)),
        (true, false, None, Some(KeptIn::File)),
        (false, true, Some(KeptIn::File), None),
        (true, false, Some(KeptIn::Keyring), None),
        (false, false, None, None),
    ] {
        let kept = kept(has_key, has_keyring);
        let set = kept.secrets.set(&name("crm"), b"canary-value\n", wish);
        assert_eq!(set.as_ref().ok().copied(), expect, "{set:?}");
        assert_eq!(
            kept.get("crm").ok().as_deref(),
            expect.map(|_| "canary-value")
        );
        let listed = kept.secrets.list().unwrap();
        assert_eq!(
            listed.iter().map(|one| one.kept_in).collect::<Vec<_>>(),
            expect.map(Some).into_iter().collect::<Vec<_>>()
        );
        let Some(_) = expect else {
            let error = set.unwrap_err();
            let next = if has_key { "--in file" } else { "key_file" };
            assert!(error.hint().contains(next), "{error}: {}", error.hint());
            continue;
        };
        assert!(listed[0].at_ms > 0);
        // The directory alone gives nothing away.
        let bytes = fs::read(kept.path("crm")).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"canary"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (
                mode(&kept.path("crm")),
                mode(kept.secrets.folder().unwrap())
            ),
            (0o600, 0o700)
        );
        assert_eq!(
            kept.secrets.remove(&name("crm")).unwrap(),
            Some(Removed { left: None })
        );
        assert_eq!(kept.secrets.remove(&name("crm")).unwrap(), None);
        assert!(kept.keyring.items.lock().is_empty());
        let gone = kept.get("crm").unwrap_err();
        assert!(
            gone.is_unset && gone.why.contains("`crm` is not set"),
            "{gone:?}"
        );
        assert_eq!(gone.fix, "portmoot secret set crm");
    }
}

#[test]
fn a_new_value_replaces_the_one_before_wherever_it_is() {
    let kept = kept(true, true);
    for (value, wish) in [
        ("one", None),
        ("two", Some(KeptIn::File)),
        ("three", Some(KeptIn::Keyring)),
        ("four", None),
    ] {
        kept.secrets
            .set(&name("crm"), value.as_bytes(), wish)
            .unwrap();
        assert_eq!(kept.get("crm").as_deref(), Ok(value));
    }
    assert_eq!(
        kept.keyring.items.lock().len(),
        1,
        "what was replaced is forgotten"
    );
    // A refusal keeps the one before.
    *kept.keyring.fails.lock() = Some(KeyringError::Locked);
    let refused = kept.secrets.set(&name("crm"), b"five", None).unwrap_err();
    assert!(
        matches!(refused, KeepError::Keyring(KeyringError::Locked)),
        "a locked keyring is no reason for another place"
    );
    let locked = kept.get("crm").unwrap_err();
    assert!(
        !locked.is_unset && locked.fix.contains("unlock"),
        "{locked:?}"
    );
    *kept.keyring.fails.lock() = None;
    assert_eq!(kept.get("crm").as_deref(), Ok("four"));
    let left = fs::read_dir(kept.secrets.folder().unwrap())
        .unwrap()
        .count();
    assert_eq!(left, 1, "no file is left beside");
    // What the keyring cannot remove now is named.
    *kept.keyring.fails.lock() = Some(KeyringError::Locked);
    assert_eq!(
        kept.secrets.remove(&name("crm")).unwrap(),
        Some(Removed {
            left: Some(KeyringError::Locked)
        })
    );
}

#[test]
fn a_sealed_file_opens_under_its_name_with_its_key_alone() {
    let kept = kept(true, false);
    kept.secrets.set(&name("crm"), b"one", None).unwrap();
    fs::copy(kept.path("crm"), kept.path("other")).unwrap();
    let moved = kept.get("other").unwrap_err();
    assert!(
        moved.why.contains("sealed with another key, or changed"),
        "{moved:?}"
    );
    fs::write(kept.folder.path().join("key"), [8; 32]).unwrap();
    assert!(kept.get("crm").unwrap_err().why.contains("another key"));
    let without = KeptSecrets {
        key: None,
        ..kept.secrets.clone()
    };
    let refused = without
        .get(&name("crm"), &without.sealing_key())
        .err()
        .unwrap();
    assert!(
        refused.why.contains("no key") && refused.fix.contains("key_file"),
        "{refused:?}"
    );
    fs::write(kept.folder.path().join("key"), [7; 32]).unwrap();
    assert_eq!(kept.get("crm").as_deref(), Ok("one"));
    for text in [
        "",
        "{}",
        r#"{"format":2,"at_ms":1,"sealed":"x"}"#,
        r#"{"format":1,"at_ms":1,"elsewhere":"x"}"#,
    ] {
        fs::write(kept.path("crm"), text).unwrap();
        assert!(
            kept.get("crm")
                .unwrap_err()
                .why
                .contains("is no record of a secret"),
            "{text}"
        );
    }
    fs::write(kept.path("crm"), vec![b' '; RECORD_BYTES_MAX + 1]).unwrap();
    assert!(kept.get("crm").unwrap_err().why.contains("more than"));
    assert_eq!(kept.secrets.list().unwrap()[0].kept_in, None);
}

#[test]
fn links_are_not_followed_and_open_files_not_read() {
    let kept = kept(true, false);
    kept.secrets.set(&name("crm"), b"one", None).unwrap();
    let elsewhere = kept.folder.path().join("elsewhere");
    fs::rename(kept.path("crm"), &elsewhere).unwrap();
    symlink(&elsewhere, kept.path("crm")).unwrap();
    assert!(kept.get("crm").unwrap_err().why.contains("is a link"));
    // The link is replaced, and what it led to stays.
    let before = fs::read(&elsewhere).unwrap();
    kept.secrets.set(&name("crm"), b"two", None).unwrap();
    assert_eq!(
        (kept.get("crm").as_deref(), fs::read(&elsewhere).unwrap()),
        (Ok("two"), before)
    );
    fs::set_permissions(kept.path("crm"), Permissions::from_mode(0o644)).unwrap();
    assert!(kept.get("crm").unwrap_err().why.contains("others may read"));
    let folder = kept.secrets.folder().unwrap();
    fs::rename(folder, kept.folder.path().join("moved")).unwrap();
    symlink(kept.folder.path().join("moved"), folder).unwrap();
    assert!(kept.get("crm").unwrap_err().why.contains("is a link"));
    let refused = kept.secrets.set(&name("crm"), b"three", None).unwrap_err();
    assert!(matches!(refused, KeepError::Files { .. }), "{refused}");
}

#[test]
fn values_and_their_number_are_bounded() {
    let kept = kept(true, false);
    let longest = "x".repeat(SECRET_BYTES_MAX);
    kept.secrets
        .set(&name("crm"), longest.as_bytes(), None)
        .unwrap();
    assert_eq!(kept.get("crm").as_deref(), Ok(longest.as_str()));
    for bad in [(longest + "x").as_bytes(), b"", b"\n", b"a\0b", b"\xff"] {
        let refused = kept.secrets.set(&name("crm"), bad, None).unwrap_err();
        assert!(matches!(refused, KeepError::Value(_)), "{refused}");
    }
    for number in 1..SECRETS_MAX {
        fs::write(kept.path(&format!("n{number}")), "").unwrap();
    }
    kept.secrets.set(&name("crm"), b"again", None).unwrap();
    let refused = kept.secrets.set(&name("more"), b"one", None).unwrap_err();
    assert!(matches!(refused, KeepError::TooMany), "{refused}");
    kept.secrets.remove(&name("n1")).unwrap();
    kept.secrets.set(&name("more"), b"one", None).unwrap();
}
