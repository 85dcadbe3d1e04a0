//! What open consoles cost: calls at a steady rate, by turns without a console, with five that show
//! their first page, and with five that show one page each.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::flags::Flags;
use crate::stage::{Server, Stage, split};
use crate::table::{Figures, median};
use crate::wires::token;

const PORT: u16 = 19_050;
/// The pages that are open by turns.
const VARIANTS: [(&str, [&str; PAGES]); 3] = [
    ("none", [""; PAGES]),
    ("five on the inbox", ["/"; PAGES]),
    (
        "inbox, overview, topic, servers, calls",
        ["/", "/overview", "/topic", "/servers", "/calls"],
    ),
];
/// The number of open pages.
const PAGES: usize = 5;
/// The page whose stream is never read, by its place.
const DEAF: usize = 2;
/// The people before them; a session has four streams at most.
const PEOPLE: [&str; 2] = ["ann", "bob"];
/// The most that open consoles may add to the CPU time of a call, as a factor.
const AIM: f64 = 1.02;

/// A person that is signed in.
struct SignedIn {
    host: String,
    cookie: String,
}

/// One open page: its stream, and what reads it.
struct OpenPage {
    stream: TcpStream,
    reader: Option<JoinHandle<()>>,
}

/// The number of bytes that pages have received.
type Received = Arc<AtomicU64>;

/// Measures and prints; whether open consoles stayed within the aim.
pub fn run(stage: &Stage, flags: &Flags) -> bool {
    let gateway = gateway(stage);
    let people = PEOPLE.map(|name| sign_in(stage, &gateway, name));
    let secs = flags.get("--secs", 30.0);
    let mut seen: [Seen; VARIANTS.len()] = Default::default();
    for _ in 0..flags.get("--rounds", 10) {
        for ((_, pages), seen) in VARIANTS.iter().zip(&mut seen) {
            let opened = open_pages(&people, pages, &seen.received);
            seen.rounds.push(calls(stage, &gateway, secs));
            opened.into_iter().for_each(OpenPage::close);
        }
    }
    print(&seen, secs);
    let [none, open @ ..] = &seen;
    let most = AIM * median(&none.rounds, "cpu_us");
    open.iter().all(|one| median(&one.rounds, "cpu_us") <= most)
}

/// The figures of one variant, and the bytes that its pages were sent.
#[derive(Default)]
struct Seen {
    rounds: Vec<Figures>,
    received: Received,
}

fn print(seen: &[Seen], secs: f64) {
    let without = median(&seen[0].rounds, "cpu_us");
    println!(
        "| consoles | CPU us/call | ratio (aim {AIM}) | calls/s | wrong | p50 us | p99 us | KiB/s to pages that read |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for ((label, _), Seen { rounds, received }) in VARIANTS.iter().zip(seen) {
        let of = |name| median(rounds, name);
        let kib = received.load(Ordering::Relaxed) as f64 / 1_024.0;
        println!(
            "| {label} | {:.2} | {:.3} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} |",
            of("cpu_us"),
            of("cpu_us") / without,
            of("calls_per_s"),
            of("wrong"),
            of("p50_us"),
            of("p99_us"),
            kib / secs / rounds.len() as f64
        );
    }
}

fn gateway(stage: &Stage) -> Server {
    let mut config = "[servers.demo]\ntype = \"demo\"\n".to_owned();
    let mut env = Vec::new();
    for name in PEOPLE {
        config += &format!(
            "[participants.{name}]\ntoken_env = \"T_{name}\"\n\
             capabilities = [\"mcp/*\", \"portmoot/*\", \"chat\"]\n"
        );
        env.push((format!("T_{name}"), token(name)));
    }
    let gateway = stage.gateway_with(PORT, &config, &env);
    let words = format!("demo_echo --bearer {}", token(PEOPLE[0]));
    stage.ready(gateway.port, "legacy", &words);
    gateway
}

/// Five hundred calls a second.
fn calls(stage: &Stage, gateway: &Server, secs: f64) -> Figures {
    let words = format!(
        "--to 127.0.0.1:{} --era legacy --tool demo_echo -c 8 --rate 500 --warmup 1 --secs {secs} \
         --pid {} --bearer {}",
        gateway.port,
        gateway.pid(),
        token(PEOPLE[0])
    );
    stage.load(&split(&words))
}

/// Signs in by the link that the command prints.
fn sign_in(stage: &Stage, gateway: &Server, name: &str) -> SignedIn {
    let url = format!("http://127.0.0.1:{}", gateway.port);
    let token = token(name);
    let output = Command::new(stage.portmoot())
        .args(["console", "--no-browser", "--url", &url, "--token", &token])
        .output()
        .expect("the program");
    let link = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let (page, code) = link
        .split_once('#')
        .unwrap_or_else(|| panic!("no link: {output:?}"));
    let host = page
        .trim_start_matches("http://")
        .trim_end_matches("/console");
    let body = format!("code={code}");
    let mut stream = TcpStream::connect(("127.0.0.1", gateway.port)).expect("the gateway");
    let request = format!(
        "POST /console/login HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n\
         content-type: application/x-www-form-urlencoded\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let cookie = answer
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .and_then(|cookie| cookie.split(';').next())
        .unwrap_or_else(|| panic!("no cookie: {answer}"));
    SignedIn {
        host: host.to_owned(),
        cookie: cookie.to_owned(),
    }
}

/// Opens the streams of pages, by turns of the people; an empty path is no page.
fn open_pages(people: &[SignedIn], pages: &[&str], received: &Received) -> Vec<OpenPage> {
    let people = people.iter().cycle();
    let pages = pages.iter().zip(people).enumerate();
    pages
        .filter(|(_, (page, _))| !page.is_empty())
        .map(|(at, (page, person))| open_page(page, person, (at != DEAF).then_some(received)))
        .collect()
}

/// Opens the stream of one page, and waits until it begins. Without a count of what it receives, the
/// stream is not read further.
fn open_page(page: &str, person: &SignedIn, received: Option<&Received>) -> OpenPage {
    let SignedIn { host, cookie } = person;
    let mut stream = TcpStream::connect(("127.0.0.1", PORT)).expect("the gateway");
    let request = format!(
        "GET /console/feed?at={page} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n\
         accept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("a request");
    let mut reading = BufReader::new(stream.try_clone().expect("its other half"));
    let mut status = String::new();
    reading.read_line(&mut status).expect("an answer");
    assert!(status.contains(" 200 "), "{page}: {status}");
    let reader = received.map(|received| {
        let received = Arc::clone(received);
        thread::spawn(move || read_all(reading, &received))
    });
    OpenPage { stream, reader }
}

fn read_all(mut reading: BufReader<TcpStream>, received: &AtomicU64) {
    let mut some = [0; 16_384];
    while let Ok(len @ 1..) = reading.read(&mut some) {
        received.fetch_add(len as u64, Ordering::Relaxed);
    }
}

impl OpenPage {
    fn close(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader {
            let _ = reader.join();
        }
    }
}
