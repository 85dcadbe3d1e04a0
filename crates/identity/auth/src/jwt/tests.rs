use std::sync::LazyLock;

use base64::engine::general_purpose::STANDARD;
use model::RefusalCode;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

use super::*;

/// A key of these tests alone.
const RSA: &str = "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDJ8WQ68WLs0NQM1pdlZOJGDGDVSq6Qr49FfpQSurTwo3Tj47/O\
     cHy3ahd/CFCRH/6KxnQZ+IGNd1yWl6RnObkTNT4+Igfudvxf0xFlZ7jWDe3Q27QOtfeqMXxyI77wlawvi8otLvX+YW3BbrgKWl50\
     9rE+/J+IdxiQFtYx+ieHtq5nfXdizFNC0RsYmOwTDeckjVY/Y/K8kp+C7ikf9D2m9GiEGyy0khtvIHDBaXxeVm1MhlcUuJmo9759\
     ujq0LpMEIf0A7bcpmK2KqA1P/VQtdpUTZIGYWKtEkladvb/B0az/Yc+IusdLHlfrJMG2y1HOJkBVxNzTOkV61ge478m3AgMBAAEC\
     ggEAEe6U+2Tu5199zOwLQo4sR5MW0CnTCXcFbmLYjDc3FP02xnu1TwQPFwxdLMMUwGZKaJFJwvqdqm20c4zgpOfrxsheEA9ei+7V\
     5z5rV4lX0O4otXik6v9+kAbX6ZzB+kQYJ5qup8d5QY7uO5R01DqFE7bKM3EkS25j6HuWppZzhynpvIZjkZ5VUfdfK8BmMkZXdYq4\
     SfZzpQmGbudYMaUohbOpFx24B7vDvp8L74fUm5KRiFP79jXqoFvryV1s9eC5uf6M9wCePdmb/13cp4cHlMCpewsraeupJxGu9v1i\
     CR9MLPEJNdofNI3w/XdnO6SC8csK9kPq9BTPZh7702c+PQKBgQDnrrM42N7ZStRh2egD0dlB1OvBD5vKCwYlyif5z13NYN0UJEq4\
     ubbPGdVVqKpjHQmgRProW/YyKQdcTaUrhq8+iW14MViT3v6a5Z2YBwKCliytO/OQB4jndARBGO5144ov7YkyKrNjrDhzmp/lHHyV\
     4XWra+1+ApbQUVb7RDVkdQKBgQDfI5ehL6R0p5vlQGGu+Ncid8OjdBDZBzCahPxVDwbp6ZJx4SGhVfJwGiLO9/Cw+yDOZdCHMY+2\
     hAcp+lxw2CBlGQ6ct5UVSDBfGbVnCYQbWY9bCtvioIjkzA2htRhxXwBdlZZFZGSOuSGxwIW19Ju8G++FLGdLz7P/sJKmB7e/+wKB\
     gQDlNTQASKZoKRzm1dMxfDnJZGH89Xk2MSPa3R4hiiMOHgd6dtEp4inWyIMDpMM1HTQ5yCTHHrv6MhcjHXoMDspvPzz7DS7J1HLl\
     Qcdg8YZtNS9sD4TOeHXcLi5LTOQV45ACDKmP5SjmsiqDTHVmEIG9MnncpwElimA0JlS8b2W3RQKBgDhKjVT/ZNh89AoYfMwcQIGU\
     fwk8HYfylWNVyyZWHSNjZitOZSKDQR7gqQlXaSPspnELJFkGur+LfRcs7qcVDs8STCpi8bwlsvY60RWGRAp2RIDuM1xvrTky9Pln\
     axwmoDv7oaYt1mRe9c4WyGSHqcYBsiIBeqmYY0tMqyIxbjyDAoGBAJcVk5CIxayTx+YV/z47l9ORndv/+mimLkXfb9ACkPPBOtmv\
     SELIrN3Ms3E5mIpYloNrLimTKbOo9mWll6tj3ENNOiTZ5Ud5XjityU0nS6w30OTdHvGl3XNfMptyNMtiFwcQgYmXGEF9KGzCDx/o\
     zrmg5E/VUVgrAJ9isDETB46e";
const ISSUER: &str = "https://idp.example/realms/x";
const NOW_MS: u64 = 1_800_000_000_000;
const NOW: u64 = NOW_MS / 1000;

struct Signers {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    keys: Value,
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

static SIGNERS: LazyLock<Signers> = LazyLock::new(|| {
    let random = SystemRandom::new();
    let rsa = RsaKeyPair::from_pkcs8(&STANDARD.decode(RSA).unwrap()).unwrap();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random)
        .unwrap();
    let ed = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).unwrap().as_ref())
        .unwrap();
    let components = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(rsa.public());
    let point = ec.public_key().as_ref();
    let keys = json!([
        // A zero before the modulus, as some write it.
        {"kty": "RSA", "kid": "r", "use": "sig", "n": b64(&[&[0], &*components.n].concat()), "e": b64(&components.e)},
        {"kty": "EC", "kid": "e", "crv": "P-256", "alg": "ES256", "x": b64(&point[1..33]), "y": b64(&point[33..])},
        {"kty": "OKP", "kid": "d", "crv": "Ed25519", "x": b64(ed.public_key().as_ref())},
        {"kty": "oct", "kid": "o", "k": "AAAA"},
        {"kty": "RSA", "kid": "x", "use": "enc", "n": b64(&components.n), "e": b64(&components.e)},
    ]);
    Signers { rsa, ec, ed, keys }
});

fn keys() -> KeySet {
    KeySet::read(json!({"keys": SIGNERS.keys}).to_string().as_bytes()).unwrap()
}

/// A token with this head and these claims, signed as the head says.
fn token(head: &Value, claims: &Value) -> String {
    let signed = format!(
        "{}.{}",
        b64(head.to_string().as_bytes()),
        b64(claims.to_string().as_bytes())
    );
    let random = SystemRandom::new();
    let rsa = |padding| {
        let mut signature = vec![0; SIGNERS.rsa.public().modulus_len()];
        SIGNERS
            .rsa
            .sign(padding, &random, signed.as_bytes(), &mut signature)
            .unwrap();
        signature
    };
    let signature = match head["alg"].as_str().unwrap_or_default() {
        "RS256" => rsa(&RSA_PKCS1_SHA256 as &dyn ring::signature::RsaEncoding),
        "PS256" => rsa(&RSA_PSS_SHA256),
        "ES256" => SIGNERS
            .ec
            .sign(&random, signed.as_bytes())
            .unwrap()
            .as_ref()
            .to_vec(),
        "EdDSA" => SIGNERS.ed.sign(signed.as_bytes()).as_ref().to_vec(),
        "HS256" => {
            // The attack of RFC 8725, section 2.1: the public key as the shared one.
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SIGNERS.rsa.public().as_ref());
            ring::hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
        }
        _ => Vec::new(),
    };
    format!("{signed}.{}", b64(&signature))
}

fn head(alg: &str, kid: &str) -> Value {
    json!({"alg": alg, "typ": "at+jwt", "kid": kid})
}

fn claims() -> Value {
    json!({"iss": ISSUER, "sub": "ann", "aud": "https://gw.example/mcp", "exp": NOW + 300, "iat": NOW,
           "scope": "mcp:read mcp:write", "groups": ["ops"], "realm_access": {"roles": ["a", "b"]}})
}

/// The object with these members changed; null removes.
fn with(mut object: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(name);
        } else {
            object[name] = value.clone();
        }
    }
    object
}

fn rules() -> Rules {
    Rules {
        issuer: ISSUER.to_owned(),
        algorithms: Algorithm::DEFAULT.to_vec(),
        types: vec!["at+jwt".to_owned()],
        skew_secs: 30,
    }
}

fn check_by(token: &str, rules: &Rules) -> Result<Claims, TokenFault> {
    let jwt = Jwt::read(token)?;
    jwt.check_head(rules)?;
    jwt.check_signature(&keys())?;
    let claims = jwt.claims(rules, NOW_MS)?;
    claims.check_audience(["https://gw.example/mcp"])?;
    Ok(claims)
}

#[test]
fn good_tokens_of_every_kind_of_key_are_accepted() {
    for (alg, kid) in [
        ("RS256", "r"),
        ("PS256", "r"),
        ("ES256", "e"),
        ("EdDSA", "d"),
    ] {
        let claims = check_by(&token(&head(alg, kid), &claims()), &rules()).unwrap();
        assert_eq!(claims.subject, "ann", "{alg}");
        assert_eq!(claims.scopes, ["mcp:read", "mcp:write"]);
        assert_eq!(claims.expires_ms, Some((NOW + 300) * 1000));
        assert_eq!(
            (claims.texts("groups"), claims.texts("realm_access.roles")),
            (vec!["ops".into()], vec!["a".into(), "b".into()])
        );
    }
    // Without a key id the only key that fits.
    let nameless = with(head("EdDSA", ""), json!({"kid": null}));
    assert!(check_by(&token(&nameless, &claims()), &rules()).is_ok());
}

#[test]
fn bad_tokens_are_refused_with_their_fault() {
    use TokenFault as F;
    let good = || head("RS256", "r");
    let long = "a".repeat(ACCESS_TOKEN_BYTES_MAX);
    for (what, head, claims, fault) in [
        (
            "expired",
            good(),
            with(claims(), json!({"exp": NOW - 30})),
            F::Expired,
        ),
        (
            "expired within the skew, at its end",
            good(),
            with(claims(), json!({"exp": NOW - 31})),
            F::Expired,
        ),
        (
            "not yet",
            good(),
            with(claims(), json!({"nbf": NOW + 31})),
            F::NotYet,
        ),
        (
            "issued later",
            good(),
            with(claims(), json!({"iat": NOW + 31})),
            F::NotYet,
        ),
        (
            "never expires",
            good(),
            with(claims(), json!({"exp": null})),
            F::NoExpiry,
        ),
        (
            "exp is a text",
            good(),
            with(claims(), json!({"exp": "soon"})),
            F::Malformed,
        ),
        (
            "exp is not a time",
            good(),
            with(claims(), json!({"exp": 1e300})),
            F::Malformed,
        ),
        (
            "wrong aud",
            good(),
            with(claims(), json!({"aud": "https://gw.example/mcp/ops"})),
            F::Foreign,
        ),
        (
            "aud below",
            good(),
            with(claims(), json!({"aud": "https://gw.example/mcp/"})),
            F::Bound,
        ),
        (
            "no aud",
            good(),
            with(claims(), json!({"aud": null})),
            F::NoAudience,
        ),
        (
            "empty aud",
            good(),
            with(claims(), json!({"aud": []})),
            F::NoAudience,
        ),
        (
            "foreign iss",
            good(),
            with(claims(), json!({"iss": "https://idp.example/realms/x/"})),
            F::Issuer,
        ),
        (
            "no iss",
            good(),
            with(claims(), json!({"iss": null})),
            F::Issuer,
        ),
        (
            "unknown kid",
            head_of("RS256", "zz"),
            claims(),
            F::UnknownKey,
        ),
        (
            "a key for encryption",
            head_of("RS256", "x"),
            claims(),
            F::UnknownKey,
        ),
        (
            "a key of another kind",
            head_of("RS256", "e"),
            claims(),
            F::UnknownKey,
        ),
        ("alg none", head_of("none", "r"), claims(), F::Algorithm),
        (
            "HS256 with the public key",
            head_of("HS256", "r"),
            claims(),
            F::Algorithm,
        ),
        (
            "an algorithm that is not the issuer's",
            head_of("RS512", "r"),
            claims(),
            F::Algorithm,
        ),
        (
            "ID token",
            with(good(), json!({"typ": "JWT"})),
            with(claims(), json!({"nonce": "n"})),
            F::Type,
        ),
        (
            "no typ",
            with(good(), json!({"typ": null})),
            claims(),
            F::Type,
        ),
        (
            "logout token",
            with(good(), json!({"typ": "logout+jwt"})),
            claims(),
            F::Type,
        ),
        (
            "ID-JAG",
            with(good(), json!({"typ": "oauth-id-jag+jwt"})),
            claims(),
            F::Type,
        ),
        (
            "a DPoP proof",
            with(good(), json!({"typ": "application/DPoP+jwt"})),
            claims(),
            F::Type,
        ),
        (
            "critical",
            with(good(), json!({"crit": ["x"]})),
            claims(),
            F::Critical,
        ),
        (
            "unencoded",
            with(good(), json!({"b64": false})),
            claims(),
            F::Critical,
        ),
        (
            "bound",
            good(),
            with(claims(), json!({"cnf": {"jkt": "x"}})),
            F::Bound,
        ),
        (
            "no subject",
            good(),
            with(claims(), json!({"sub": null})),
            F::NoSubject,
        ),
        (
            "empty subject",
            good(),
            with(claims(), json!({"sub": ""})),
            F::NoSubject,
        ),
        (
            "oversized",
            good(),
            with(claims(), json!({"pad": long})),
            F::TooLong,
        ),
    ] {
        let found = check_by(&token(&head, &claims), &rules());
        // One slash at the end is the same audience.
        if what == "aud below" {
            assert!(found.is_ok(), "{what}");
        } else {
            assert_eq!(found.map(|_| ()), Err(fault), "{what}");
        }
    }
    fn head_of(alg: &str, kid: &str) -> Value {
        head(alg, kid)
    }
}

#[test]
fn a_changed_or_broken_token_is_refused() {
    let good = token(&head("RS256", "r"), &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let other = b64(with(claims(), json!({"sub": "bob"})).to_string().as_bytes());
    for (text, fault) in [
        (
            format!("{}.{other}.{}", parts[0], parts[2]),
            TokenFault::Signature,
        ),
        (format!("{}.{}.", parts[0], parts[1]), TokenFault::Signature),
        (
            format!("{}.{}.AAAA", parts[0], parts[1]),
            TokenFault::Signature,
        ),
        (format!("{}.{}", parts[0], parts[1]), TokenFault::Malformed),
        (format!("{good}.x"), TokenFault::Malformed),
        (format!("{good}="), TokenFault::Malformed),
        (format!(" {good}"), TokenFault::Malformed),
        ("..".to_owned(), TokenFault::Malformed),
        ("e30.e30.".to_owned(), TokenFault::Malformed),
        ("W10.e30.".to_owned(), TokenFault::Malformed),
        (String::new(), TokenFault::Malformed),
    ] {
        assert_eq!(check_by(&text, &rules()).map(|_| ()), Err(fault), "{text}");
    }
    assert!(is_jwt(&good) && !is_jwt("pm_abc") && !is_jwt("a.b") && !is_jwt("a.b.c.d"));
}

#[test]
fn other_types_are_accepted_where_an_issuer_has_them() {
    let rules = Rules {
        types: vec!["at+jwt".to_owned(), "jwt".to_owned()],
        ..rules()
    };
    let plain = with(head("RS256", "r"), json!({"typ": "JWT"}));
    assert!(check_by(&token(&plain, &claims()), &rules).is_ok());
    assert!(
        check_by(
            &token(&with(plain.clone(), json!({"typ": null})), &claims()),
            &rules
        )
        .is_ok()
    );
    let full = with(plain.clone(), json!({"typ": "application/at+jwt"}));
    assert!(
        check_by(
            &token(&full, &with(claims(), json!({"nonce": "n"}))),
            &rules
        )
        .is_ok()
    );
    let of_id = with(claims(), json!({"token_use": "ID"}));
    assert_eq!(
        check_by(&token(&full, &of_id), &rules).map(|_| ()),
        Err(TokenFault::Type)
    );
    for claim in OF_ID_TOKENS {
        let found = check_by(&token(&plain, &with(claims(), json!({claim: "n"}))), &rules);
        assert_eq!(found.map(|_| ()), Err(TokenFault::Type), "{claim}");
    }
    // For the client that has it alone: an access token of that client if it says what it is good
    // for.
    let own = match &claims()["aud"] {
        Value::Array(all) => all[0].clone(),
        one => one.clone(),
    };
    for (changes, is_access) in [
        (json!({"aud": own, "azp": own, "scope": null}), false),
        (json!({"aud": [own], "azp": own, "scope": null}), false),
        (json!({"aud": [own], "azp": own, "scope": "read"}), true),
        (
            json!({"aud": own, "azp": own, "scope": null, "client_id": own}),
            true,
        ),
        (json!({"aud": own, "azp": "another", "scope": null}), true),
        (json!({"aud": "6f8c", "scope": null}), false),
        (json!({"aud": ["6f8c", "a1b2"], "scope": null}), false),
        (json!({"aud": "6f8c", "scope": "read"}), true),
        (
            json!({"aud": "6f8c", "appid": "another", "scope": null}),
            true,
        ),
        (json!({"aud": "api://6f8c", "scope": null}), true),
        (json!({"token_use": "id"}), false),
        (json!({"token_use": "access"}), true),
        (json!({"typ": "ID"}), false),
        (json!({"typ": "Refresh"}), false),
        (json!({"typ": "Bearer"}), true),
        (
            json!({"aud": [own, "another"], "azp": own, "scope": null}),
            true,
        ),
    ] {
        let found = check_by(&token(&plain, &with(claims(), changes.clone())), &rules);
        // Some are for others, and refused for that.
        assert_eq!(
            found.map(|_| ()) != Err(TokenFault::Type),
            is_access,
            "{changes}"
        );
    }
}

#[test]
fn clocks_may_differ_by_the_skew_and_no_more() {
    let at = |exp: u64, now_ms: u64| {
        let claims = with(claims(), json!({"exp": exp, "iat": null}));
        let text = token(&head("EdDSA", "d"), &claims);
        Jwt::read(&text)
            .unwrap()
            .claims(&rules(), now_ms)
            .map(|_| ())
    };
    assert_eq!(at(NOW, (NOW + 30) * 1000 - 1), Ok(()));
    assert_eq!(at(NOW, (NOW + 30) * 1000), Err(TokenFault::Expired));
}

#[test]
fn answers_about_opaque_tokens_are_checked() {
    use TokenFault as F;
    let active = || json!({"active": true, "client_id": "c", "sub": "ann", "aud": "a", "exp": NOW + 1, "scope": "x y"});
    for (what, answer, of_client, expect) in [
        ("good", active(), false, Ok(("ann", "a"))),
        (
            "inactive",
            json!({"active": false}),
            false,
            Err(F::Inactive),
        ),
        (
            "no active",
            with(active(), json!({"active": null})),
            false,
            Err(F::Inactive),
        ),
        (
            "active as a text",
            with(active(), json!({"active": "true"})),
            false,
            Err(F::Inactive),
        ),
        (
            "a machine",
            with(active(), json!({"sub": null})),
            false,
            Ok(("c", "a")),
        ),
        (
            "a person by username",
            with(active(), json!({"sub": null, "username": "bob"})),
            false,
            Ok(("bob", "a")),
        ),
        (
            "sub before username",
            with(active(), json!({"username": "bob"})),
            false,
            Ok(("ann", "a")),
        ),
        (
            "an empty username",
            with(active(), json!({"sub": null, "username": ""})),
            false,
            Err(F::NoSubject),
        ),
        (
            "a username that is a list",
            with(active(), json!({"sub": null, "username": ["b"]})),
            false,
            Err(F::NoSubject),
        ),
        (
            "an empty sub",
            with(active(), json!({"sub": ""})),
            false,
            Err(F::NoSubject),
        ),
        (
            "a person without name",
            with(active(), json!({"sub": null, "email": "b@x"})),
            false,
            Err(F::Nameless),
        ),
        (
            "foreign iss",
            with(active(), json!({"iss": "x"})),
            false,
            Err(F::Issuer),
        ),
        (
            "own iss",
            with(active(), json!({"iss": ISSUER})),
            false,
            Ok(("ann", "a")),
        ),
        (
            "expired",
            with(active(), json!({"exp": NOW - 60})),
            false,
            Err(F::Expired),
        ),
        (
            "no exp",
            with(active(), json!({"exp": null})),
            false,
            Ok(("ann", "a")),
        ),
        (
            "bound",
            with(active(), json!({"token_type": "DPoP"})),
            false,
            Err(F::Bound),
        ),
        (
            "no aud, of the client",
            with(active(), json!({"aud": null})),
            true,
            Ok(("ann", "c")),
        ),
        (
            "no subject",
            json!({"active": true}),
            false,
            Err(F::NoSubject),
        ),
    ] {
        let found = Claims::of_answer(
            answer.as_object().unwrap().clone(),
            ISSUER,
            of_client,
            (30, NOW_MS),
        );
        let found = found
            .as_ref()
            .map(|one| (one.subject.as_str(), one.audiences[0].as_str()));
        assert_eq!(found, expect.as_ref().map(|one| *one), "{what}");
    }
    let named_by = |changes: Value| {
        let answer = with(active(), changes).as_object().unwrap().clone();
        Claims::of_answer(answer, ISSUER, false, (30, NOW_MS))
            .unwrap()
            .named_by
            .name()
    };
    assert_eq!(named_by(json!({})), "sub");
    assert_eq!(named_by(json!({"sub": null, "username": "c"})), "username");
    assert_eq!(named_by(json!({"sub": null})), "client_id");
    let answer = with(active(), json!({"aud": null}));
    let none = Claims::of_answer(
        answer.as_object().unwrap().clone(),
        ISSUER,
        false,
        (30, NOW_MS),
    )
    .unwrap();
    assert_eq!(none.check_audience(["a"]), Err(F::NoAudience));
}

#[test]
fn audiences_are_compared_as_urls_and_no_further() {
    for (one, other, same) in [
        ("https://gw.example/mcp", "https://gw.example/mcp/", true),
        ("HTTPS://GW.example/mcp", "https://gw.example/mcp", true),
        ("https://gw.example", "https://gw.example/", true),
        ("api://portmoot", "api://portmoot", true),
        ("https://gw.example/MCP", "https://gw.example/mcp", false),
        ("https://gw.example/mcp//", "https://gw.example/mcp", false),
        (
            "https://gw.example/mcp/ops",
            "https://gw.example/mcp",
            false,
        ),
        (
            "https://gw.example:443/mcp",
            "https://gw.example/mcp",
            false,
        ),
        ("http://gw.example/mcp", "https://gw.example/mcp", false),
        ("portmoot", "Portmoot", false),
        ("portmoot", "portmoot/", false),
        ("", "https://", false),
    ] {
        assert_eq!(is_same_audience(one, other), same, "{one} {other}");
        assert_eq!(is_same_audience(other, one), same, "{other} {one}");
    }
}

#[test]
fn key_sets_have_bounds() {
    let set = |keys: Value| {
        KeySet::read(json!({"keys": keys}).to_string().as_bytes()).map(|set| set.len())
    };
    let key = &SIGNERS.keys[2];
    assert_eq!(set(SIGNERS.keys.clone()), Ok(3));
    assert_eq!(set(json!(vec![key; JWKS_KEYS_MAX])), Ok(JWKS_KEYS_MAX));
    assert_eq!(
        set(json!(vec![key; JWKS_KEYS_MAX + 1])),
        Err(KeySetError::TooMany)
    );
    assert_eq!(set(json!([])), Err(KeySetError::Empty));
    assert_eq!(
        set(
            json!([{"kty": "oct", "k": "AAAA"}, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, 1])
        ),
        Err(KeySetError::Empty)
    );
    assert_eq!(KeySet::read(b"{}"), Err(KeySetError::Malformed));
    let long = json!({"keys": [key], "pad": "a".repeat(JWKS_BYTES_MAX)}).to_string();
    assert_eq!(KeySet::read(long.as_bytes()), Err(KeySetError::TooLong));
    // Two keys of one kind, and a token that names none.
    let two = KeySet::read(
        json!({"keys": [key, with(key.clone(), json!({"kid": "d2"}))]})
            .to_string()
            .as_bytes(),
    )
    .unwrap();
    let nameless = token(&with(head("EdDSA", ""), json!({"kid": null})), &claims());
    assert_eq!(
        Jwt::read(&nameless).unwrap().check_signature(&two),
        Err(TokenFault::AmbiguousKey)
    );
}

#[test]
fn groups_that_are_elsewhere_are_unknown() {
    let claims = with(
        claims(),
        json!({"groups": null, "_claim_names": {"groups": "src1"}}),
    );
    let claims = check_by(&token(&head("EdDSA", "d"), &claims), &rules()).unwrap();
    assert!(claims.is_elsewhere("groups") && !claims.is_elsewhere("sub"));
}

#[test]
fn faults_have_codes_and_plain_words() {
    for (fault, code) in [
        (TokenFault::Expired, RefusalCode::TokenExpired),
        (TokenFault::Foreign, RefusalCode::TokenForeign),
        (TokenFault::NoAudience, RefusalCode::TokenForeign),
        (TokenFault::UnknownKey, RefusalCode::TokenUnknownKey),
        (TokenFault::Issuer, RefusalCode::IssuerUnknown),
        (TokenFault::Signature, RefusalCode::Unauthenticated),
    ] {
        let refusal = fault.refusal();
        assert_eq!(refusal.code, code);
        assert!(
            code.is_unauthenticated() && !refusal.message.contains(['"', '\\']),
            "{refusal}"
        );
    }
}
