//! Spellings of forbidden addresses, names that resolve differently a moment later, redirects, and
//! limits.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A network in which names resolve to lists in turn, and every connection goes to one listener, if
/// there is one.
#[derive(Default)]
struct Stub {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    listener: Option<SocketAddr>,
    resolved: Mutex<Vec<String>>,
    dialed: Mutex<Vec<SocketAddr>>,
}

impl Stub {
    fn new(answers: &[&[&str]], listener: Option<SocketAddr>) -> Arc<Self> {
        let list = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let answers = Mutex::new(answers.iter().map(list).collect());
        Arc::new(Self {
            answers,
            listener,
            ..Self::default()
        })
    }

    fn dialed(&self) -> Vec<String> {
        self.dialed
            .lock()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

impl Network for Stub {
    fn resolve<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<IpAddr>> {
        self.resolved.lock().unwrap().push(name.to_owned());
        let next = self.answers.lock().unwrap().pop_front();
        Box::pin(async move { next.ok_or_else(|| io::Error::other("no such name")) })
    }

    fn connect(&self, to: SocketAddr) -> Pending<'_, TcpStream> {
        self.dialed.lock().unwrap().push(to);
        Box::pin(async move {
            match self.listener {
                Some(listener) => TcpStream::connect(listener).await,
                None => Err(io::Error::other("nothing is dialed here")),
            }
        })
    }
}

fn dialer(stub: &Arc<Stub>) -> Dialer {
    Dialer::over(Arc::<Stub>::clone(stub), ClientTls::of_machine())
}

fn reach(configured: &str, allowed: &[&str]) -> AllowedAddresses {
    let allowed: Vec<Subnet> = allowed.iter().map(|range| range.parse().unwrap()).collect();
    AllowedAddresses::of(&Url::parse(configured).unwrap(), &allowed)
}

/// Serves each connection the next of these answers, and counts the requests.
async fn listen(answers: &[&str]) -> (SocketAddr, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let served = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 4096];
            let count = stream.read(&mut buffer).await.unwrap();
            asked.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        asked
    });
    (address, served)
}

#[tokio::test]
async fn no_spelling_of_an_address_inside_is_dialed() {
    let literal = [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://127.0.1/",
        "https://0177.0.0.1/",
        "https://0x7f.0.0.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://017700000001/",
        "https://127.0.0.1./",
        "https://127.255.255.254:8443/",
        "https://%31%32%37.0.0.1/",
        "https://①②⑦.0.0.1/",
        "https://0/",
        "https://0.0.0.0/",
        "https://0.1.2.3/",
        "https://10.0.0.1/",
        "https://10.255.255.255/",
        "https://012.0.0.1/",
        "https://100.64.0.1/",
        "https://100.127.255.255/",
        "https://169.254.169.254/latest/meta-data/",
        "https://0xa9fea9fe/",
        "https://2852039166/",
        "https://0251.0376.0251.0376/",
        "https://172.16.0.1/",
        "https://172.31.255.255/",
        "https://192.0.0.8/",
        "https://192.0.2.1/",
        "https://192.88.99.1/",
        "https://192.168.1.1/",
        "https://198.18.0.1/",
        "https://198.19.255.255/",
        "https://198.51.100.7/",
        "https://203.0.113.9/",
        "https://224.0.0.1/",
        "https://239.255.255.250/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://[::]/",
        "https://[::1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::127.0.0.1]/",
        "https://[::10.1.2.3]/",
        "https://[64:ff9b::127.0.0.1]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[64:ff9b:1::1]/",
        "https://[2002:7f00:1::]/",
        "https://[2002:a9fe:a9fe::1]/",
        "https://[2002:c0a8:101::1]/",
        "https://[2001::1]/",
        "https://[2001:db8::1]/",
        "https://[3fff::1]/",
        "https://[fe80::1]/",
        "https://[fec0::1]/",
        "https://[fc00::1]/",
        "https://[fd00:ec2::254]/",
        "https://[ff02::1]/",
        "https://[100::1]/",
        "https://[5f00::1]/",
        "https://localhost/",
        "https://LOCALHOST/",
        "https://localhost./",
        "https://a.b.localhost/",
        "https://localhost.localdomain/",
        "https://metadata/",
        "https://metadata.google.internal/",
        "https://METADATA.google.internal./",
        "https://metadata.azure.internal/",
        "https://instance-data/",
        "https://abcdef.onion/",
    ];
    for url in literal {
        let stub = Stub::new(&[&["127.0.0.1"]], None);
        let failed = dialer(&stub)
            .fetch(FetchRequest::get(url).unwrap(), &AllowedAddresses::public())
            .await
            .err();
        assert!(
            matches!(failed, Some(DialError::Forbidden { .. })),
            "{url}: {failed:?}"
        );
        assert_eq!(
            (stub.dialed(), stub.resolved.lock().unwrap().len()),
            (Vec::new(), 0),
            "{url}"
        );
    }
    // The same addresses behind a name, also beside a public one.
    for url in literal {
        let address = match Url::parse(url).unwrap().host().unwrap() {
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
            Host::Domain(_) => continue,
        };
        for answers in [vec![address.as_str()], vec!["1.1.1.1", address.as_str()]] {
            let stub = Stub::new(&[&answers], None);
            let fetch = FetchRequest::get("https://rebound.example/").unwrap();
            let failed = dialer(&stub)
                .fetch(fetch, &AllowedAddresses::public())
                .await
                .err();
            assert!(
                matches!(failed, Some(DialError::Forbidden { .. })),
                "{answers:?}: {failed:?}"
            );
            assert_eq!(stub.dialed(), [""; 0], "{answers:?}");
        }
    }
}

#[test]
fn texts_that_hide_their_host_are_no_urls() {
    for (text, why) in [
        ("https://ann:secret@idp.example/", "credentials"),
        ("https://idp.example@127.0.0.1/", "credentials"),
        ("https://idp.example\\@127.0.0.1/", "backslashes"),
        ("https:\\\\127.0.0.1/", "backslashes"),
        ("https://idp.example/\r\nHost: x", "control"),
        ("https://idp\t.example/", "control"),
        ("https://idp.example/ x", "blanks"),
        ("https://idp.example/#a", "fragment"),
        ("file:///etc/passwd", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("gopher://127.0.0.1/", "scheme"),
        ("data:text/html,x", "scheme"),
        ("https://", "absolute"),
        ("//idp.example/", "absolute"),
        ("/oauth/token", "absolute"),
        ("https://[fe80::1%25eth0]/", "absolute"),
        ("https://1.2.3.256/", "absolute"),
        ("", "absolute"),
    ] {
        let failed = parse_url(text).unwrap_err().to_string();
        assert!(failed.contains(why), "{text}: {failed}");
    }
    let long = format!("https://idp.example/{}", "a".repeat(URL_BYTES_MAX - 20));
    assert!(parse_url(&long).is_ok());
    assert!(
        parse_url(&format!("{long}a"))
            .unwrap_err()
            .to_string()
            .contains("too long")
    );
}

#[tokio::test]
async fn an_address_is_within_reach_by_its_class_or_range() {
    for (configured, allowed, url, expect) in [
        (
            "https://mcp.example/mcp",
            &[][..],
            "https://1.1.1.1/",
            "dialed",
        ),
        (
            "https://mcp.example/mcp",
            &[],
            "https://[2606:4700::1111]/",
            "dialed",
        ),
        (
            "https://mcp.example/mcp",
            &[],
            "https://[64:ff9b::1.1.1.1]/",
            "dialed",
        ),
        ("https://mcp.example/mcp", &[], "http://1.1.1.1/", "plain"),
        (
            "https://mcp.example/mcp",
            &[],
            "https://10.1.2.3/",
            "forbidden",
        ),
        (
            "https://mcp.example/mcp",
            &["10.1.0.0/16"],
            "https://10.1.2.3/",
            "dialed",
        ),
        (
            "https://mcp.example/mcp",
            &["10.1.0.0/16"],
            "https://[::ffff:10.1.2.3]/",
            "dialed",
        ),
        (
            "https://mcp.example/mcp",
            &["10.1.0.0/16"],
            "https://10.2.0.1/",
            "forbidden",
        ),
        (
            "https://mcp.example/mcp",
            &["10.1.0.0/16"],
            "http://10.1.2.3/",
            "plain",
        ),
        (
            "https://mcp.example/mcp",
            &["fd00::/8"],
            "https://[fd12::1]/",
            "dialed",
        ),
        (
            "https://mcp.example/mcp",
            &["127.0.0.1"],
            "https://localhost/",
            "dialed",
        ),
        (
            "https://mcp.example/mcp",
            &["127.0.0.1"],
            "https://127.0.0.2/",
            "forbidden",
        ),
        (
            "http://localhost:3000/mcp",
            &[],
            "http://127.0.0.1:9/",
            "dialed",
        ),
        (
            "http://localhost:3000/mcp",
            &[],
            "http://localhost:9/",
            "dialed",
        ),
        (
            "http://localhost:3000/mcp",
            &[],
            "http://10.0.0.1/",
            "forbidden",
        ),
        (
            "http://localhost:3000/mcp",
            &[],
            "https://1.1.1.1/",
            "dialed",
        ),
        ("http://localhost:3000/mcp", &[], "http://1.1.1.1/", "plain"),
        (
            "http://127.0.0.1:3000/mcp",
            &[],
            "https://169.254.169.254/",
            "forbidden",
        ),
        (
            "http://127.0.0.1:3000/mcp",
            &[],
            "https://metadata.google.internal/",
            "forbidden",
        ),
        (
            "https://127.0.0.1:3000/mcp",
            &[],
            "http://127.0.0.1:9/",
            "plain",
        ),
        ("http://10.0.0.9/mcp", &[], "http://192.168.7.7/", "dialed"),
        ("http://10.0.0.9/mcp", &[], "http://127.0.0.1/", "forbidden"),
        (
            "http://169.254.1.1/mcp",
            &[],
            "http://169.254.169.254/",
            "forbidden",
        ),
        (
            "http://0.0.0.0:3000/mcp",
            &[],
            "http://0.0.0.0/",
            "forbidden",
        ),
    ] {
        let stub = Stub::new(&[&["127.0.0.1"]], None);
        let failed = dialer(&stub)
            .fetch(FetchRequest::get(url).unwrap(), &reach(configured, allowed))
            .await
            .err();
        let found = match failed {
            Some(DialError::Forbidden { .. }) => "forbidden",
            Some(DialError::Plain(_)) => "plain",
            Some(DialError::Unreachable { .. }) => "dialed",
            other => panic!("{url}: {other:?}"),
        };
        assert_eq!(found, expect, "{configured} {allowed:?} {url}");
        assert_eq!(
            stub.dialed().len(),
            usize::from(expect == "dialed"),
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_resolved_once() {
    let (listener, served) = listen(&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"]).await;
    let stub = Stub::new(&[&["10.1.0.1"], &["127.0.0.1"]], Some(listener));
    let fetch = FetchRequest::get("http://rebound.example:81/a?b=c").unwrap();
    let fetched = dialer(&stub)
        .fetch(fetch, &reach("http://10.0.0.1/", &[]))
        .await
        .unwrap();
    assert_eq!((fetched.status.as_u16(), &*fetched.body), (200, &b"{}"[..]));
    assert_eq!(
        (stub.dialed(), stub.resolved.lock().unwrap().len()),
        (vec!["10.1.0.1:81".to_owned()], 1)
    );
    let asked = served.await.unwrap().remove(0);
    assert!(asked.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{asked}");
    assert!(
        asked.contains("host: rebound.example:81\r\n") && !asked.contains("cookie"),
        "{asked}"
    );
}

#[tokio::test]
async fn redirects_stay_within_their_origin_and_are_checked_again() {
    let to = |location: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
    };
    let done = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let inside = &["10.0.0.1"][..];
    for (locations, answers, follow, expect) in [
        (
            &["/b", "/c", "http://idp.example/d"][..],
            &[inside; 4][..],
            Redirects::SameOrigin,
            Some(4),
        ),
        (
            &["/b", "/c", "/d", "/e"],
            &[inside; 5],
            Redirects::SameOrigin,
            None,
        ),
        (&["/b"], &[inside; 2], Redirects::None, None),
        (
            &["http://169.254.169.254/"],
            &[inside; 2],
            Redirects::SameOrigin,
            None,
        ),
        (
            &["http://other.example/"],
            &[inside; 2],
            Redirects::SameOrigin,
            None,
        ),
        (
            &["http://idp.example:8080/"],
            &[inside; 2],
            Redirects::SameOrigin,
            None,
        ),
        (
            &["https://idp.example/"],
            &[inside; 2],
            Redirects::SameOrigin,
            None,
        ),
        (
            &["http://ann:x@idp.example/"],
            &[inside; 2],
            Redirects::SameOrigin,
            None,
        ),
        (
            &["/b"],
            &[inside, &["169.254.169.254"]],
            Redirects::SameOrigin,
            None,
        ),
    ] {
        let mut texts: Vec<String> = locations.iter().map(|location| to(location)).collect();
        texts.push(done.to_owned());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (listener, served) = listen(&texts).await;
        let stub = Stub::new(answers, Some(listener));
        let fetch = FetchRequest::get("http://idp.example/a")
            .unwrap()
            .redirects(follow);
        let fetched = dialer(&stub)
            .fetch(fetch, &reach("http://10.0.0.9/", &[]))
            .await;
        assert_eq!(
            fetched.as_ref().ok().map(|_| stub.dialed().len()),
            expect,
            "{locations:?}"
        );
        assert!(
            stub.dialed().iter().all(|address| address == "10.0.0.1:80"),
            "{locations:?}"
        );
        if let Err(error) = fetched {
            assert!(!error.is_transient(), "{locations:?}: {error}");
        }
        served.abort();
    }
}

#[tokio::test]
async fn an_answer_is_bounded_in_bytes_and_time() {
    let local = reach("http://127.0.0.1/", &[]);
    for (bytes, fits) in [(BODY_BYTES_MAX, true), (BODY_BYTES_MAX + 1, false)] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n{}",
            "x".repeat(bytes)
        );
        let (listener, served) = listen(&[&answer]).await;
        let dialer = Dialer::new(ClientTls::of_machine());
        let fetched = dialer
            .fetch(
                FetchRequest::get(&format!("http://{listener}/")).unwrap(),
                &local,
            )
            .await;
        assert_eq!(
            fetched
                .as_ref()
                .is_ok_and(|fetched| fetched.body.len() == bytes),
            fits
        );
        assert_eq!(matches!(fetched, Err(DialError::TooLong { .. })), !fits);
        served.abort();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = FetchRequest::get(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    tokio::time::pause();
    let began = Instant::now();
    let failed = Dialer::new(ClientTls::of_machine())
        .fetch(silent, &local)
        .await
        .err();
    assert!(matches!(failed, Some(DialError::TimedOut(_))), "{failed:?}");
    assert_eq!(began.elapsed().as_secs(), FETCH_LIMIT.as_secs());
}

#[tokio::test]
async fn a_name_without_or_with_too_many_addresses_is_refused() {
    let many: Vec<String> = (0..=ADDRESSES_MAX)
        .map(|last| format!("1.1.1.{last}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (answers, reached) in [(&many[..], false), (&many[1..], true), (&[][..], false)] {
        let stub = Stub::new(&[answers], None);
        let fetch = FetchRequest::get("https://idp.example/").unwrap();
        let failed = dialer(&stub)
            .fetch(fetch, &AllowedAddresses::public())
            .await
            .err();
        assert_eq!(
            matches!(failed, Some(DialError::Unreachable { .. })),
            reached,
            "{failed:?}"
        );
        assert_eq!(stub.dialed().is_empty(), !reached);
    }
}
