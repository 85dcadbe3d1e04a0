//! Refresh tokens over the wire: rotation, grace, reuse, revocation.

use super::{Site, Tokens};
use crate::support::until;

#[test]
fn tokens_are_renewed_and_each_refresh_token_has_one_successor() {
    let site = Site::start("", "");
    let (client, first) = site.signed_in("ann", &[]);
    // Several processes of one client refresh at once.
    let all: Vec<Tokens> = std::thread::scope(|scope| {
        let ask = || Tokens::of(&site.refresh(&client, &first.refresh));
        let asked: Vec<_> = (0..5).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(
        all.windows(2).all(|two| two[0].refresh == two[1].refresh),
        "one successor"
    );
    assert_ne!(all[0].refresh, first.refresh);
    let next = Tokens::of(&site.refresh(&client, &all[0].refresh));
    for access in [&first.access, &all[0].access, &next.access] {
        assert_eq!(site.initialize("/mcp", access), 200);
    }
    until("all are recorded", || {
        let counts = ["refreshed: ", "refreshed again: "].map(|why| site.audited_count(why));
        (counts == [2, 4]).then_some(())
    });
    // The first one is two generations old: its client would not use it.
    assert_eq!(
        site.refresh(&client, &first.refresh).json()["error"],
        "invalid_grant"
    );
    assert_eq!(
        site.initialize("/mcp", &next.access),
        401,
        "the family has ended"
    );
    assert_eq!(
        site.refresh(&client, &next.refresh).json()["error"],
        "invalid_grant"
    );
    site.recorded("ann", "refused", "reuse");
}

#[test]
fn without_grace_a_second_use_ends_the_family_at_once() {
    let site = Site::start("grace = \"0s\"", "");
    let (client, first) = site.signed_in("ann", &[]);
    let next = Tokens::of(&site.refresh(&client, &first.refresh));
    assert_eq!(
        site.refresh(&client, &first.refresh).json()["error"],
        "invalid_grant"
    );
    assert_eq!(
        site.refresh(&client, &next.refresh).json()["error"],
        "invalid_grant"
    );
    assert_eq!(site.initialize("/mcp", &next.access), 401);
}

#[test]
fn a_refresh_token_serves_its_client_and_resource_alone() {
    let site = Site::start("", "");
    let (client, tokens) = site.signed_in("ann", &[]);
    let other = site.register(&[super::REDIRECT]);
    assert_eq!(
        site.refresh(&other, &tokens.refresh).json()["error"],
        "invalid_grant"
    );
    let ops = format!("{}/mcp/ops", site.url());
    let wrong = [
        ("grant_type", "refresh_token"),
        ("client_id", client.as_str()),
        ("refresh_token", tokens.refresh.as_str()),
        ("resource", ops.as_str()),
    ];
    assert_eq!(
        site.form("/oauth/token", &wrong).json()["error"],
        "invalid_target"
    );
    let mut changed = tokens.refresh.clone();
    changed.pop();
    for bad in [changed.as_str(), "pm_rt_", &tokens.access] {
        assert_eq!(site.refresh(&client, bad).json()["error"], "invalid_grant");
    }
    Tokens::of(&site.refresh(&client, &tokens.refresh));
}

#[test]
fn clients_revoke_their_own_tokens() {
    let site = Site::start("", "");
    for hint in [true, false] {
        let (client, tokens) = site.signed_in("ann", &[]);
        let other = site.register(&[super::REDIRECT]);
        let token = if hint {
            &tokens.refresh
        } else {
            &tokens.access
        };
        let revoke = |client: &str, token: &str| {
            site.form("/oauth/revoke", &[("client_id", client), ("token", token)])
                .status
        };
        assert_eq!(
            revoke(&client, "unknown"),
            200,
            "no error (RFC 7009, section 2.2)"
        );
        assert_eq!(revoke(&other, token), 401);
        assert_eq!(site.initialize("/mcp", &tokens.access), 200);
        assert_eq!(revoke(&client, token), 200);
        assert_eq!(site.initialize("/mcp", &tokens.access), 401);
        assert_eq!(
            site.refresh(&client, &tokens.refresh).json()["error"],
            "invalid_grant"
        );
    }
    assert_eq!(
        site.form("/oauth/revoke", &[]).json()["error"],
        "invalid_request"
    );
}

#[test]
fn unfinished_forms_of_strangers_stop_no_sign_in() {
    let site = Site::start("", "");
    let (client, mut tokens) = site.signed_in("ann", &[]);
    let form = |length: usize, sent: usize| {
        let mut stream = std::net::TcpStream::connect(site.gateway.address()).unwrap();
        let head = format!(
            "POST /oauth/token HTTP/1.1\r\nhost: {}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n",
            site.gateway.address()
        );
        std::io::Write::write_all(&mut stream, &[head.as_bytes(), &vec![b'a'; sent]].concat())
            .unwrap();
        stream
    };
    // From one address as from all: each but its last byte.
    let open: Vec<_> = (0..262)
        .map(|_| form(65_000, 64_999))
        .chain((0..34).map(|_| form(8_000, 7_999)))
        .collect();
    for _ in 0..3 {
        tokens = Tokens::of(&site.refresh(&client, &tokens.refresh));
        site.register(&[super::REDIRECT]);
    }
    assert_eq!(site.initialize("/mcp", &tokens.access), 200);
    // None of them stays for long.
    for mut stream in open {
        stream.set_read_timeout(Some(crate::http::TIMEOUT)).unwrap();
        let read = std::io::Read::read(&mut stream, &mut [0; 64]);
        assert!(
            read.as_ref().is_ok()
                || read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
}
