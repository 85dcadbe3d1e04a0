//! Signing in at an issuer: the way there and back, and further proofs.

use auth::PublicUrl;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use oauth::Trouble;
use oauth::person::{Asked, PersonError};
use serde_json::json;

use super::site::{Begun, LIFETIME_MS, Site, is_in, settled};
use crate::begun::BROWSER_SIGN_INS_MAX;
use crate::home::ConsoleHome as _;
use crate::routes::tests_support::PROOF_MS;

#[tokio::test]
async fn a_person_signs_in_at_an_issuer_and_comes_to_its_page() {
    let site = Site::new();
    let page = site.get("/console/p/8?all=1", "").await;
    let link = "href=\"/console/sign-in?with=corp&amp;next=%2Fp%2F8%3Fall%3D1\"";
    assert!(page.body.contains(link), "{}", page.body);
    let begun = site.begin("&next=%2Fp%2F8%3Fall%3D1").await;
    assert!(begun.address.starts_with("https://idp.example/authorize?"));
    let redirect = "redirect_uri=https%3A%2F%2Fgw.example%2Fconsole%2Fsigned-in%2Fcorp&";
    assert!(begun.address.contains(redirect), "{}", begun.address);
    let set = &begun.set_cookie;
    assert!(set.starts_with("__Host-pm_console-signin-"), "{set}");
    assert!(
        set.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"),
        "{set}"
    );
    // From another site, without the session's cookie: nothing happens yet.
    let answer = begun.answer("c-ann");
    let back = format!("/console/signed-in/corp?{answer}");
    let back = site.get_from("cross-site", &back, &begun.cookie).await;
    assert_eq!(
        (back.status, back.header("set-cookie")),
        (StatusCode::OK, "")
    );
    let on = back.header("refresh").strip_prefix("0; url=").unwrap();
    assert_eq!(on, format!("/console/signed-in/corp/on?{answer}"));
    assert!(back.body.contains("data-testid=\"on\""), "without a script");
    let entered = site.get(on, &begun.cookie).await;
    assert_eq!(
        entered.header("location"),
        "/console/entered?next=%2Fp%2F8%3Fall%3D1"
    );
    let cookies: Vec<&str> = entered
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|one| one.to_str().unwrap())
        .collect();
    assert!(cookies[0].contains("__Host-pm_console=") && cookies[0].contains("SameSite=Strict"));
    let name = set.split_once('=').unwrap().0;
    let over = format!("{name}=; Path=/; Max-Age=0");
    assert!(cookies[1].starts_with(&over), "{}", cookies[1]);
    let led = site
        .get(entered.header("location"), &entered.cookie())
        .await;
    assert_eq!(led.header("location"), "/console/p/8?all=1");
    let inbox = site.get("/console", &entered.cookie()).await;
    assert!(is_in(&inbox, "ann"), "{}", inbox.body);
    assert!(!inbox.body.contains("t-ann") && !inbox.body.contains("r-1"));
    let last = site.0.home.records.lock().last().cloned().unwrap();
    assert_eq!(last.2, "signed in at the console by corp");
}

#[tokio::test]
async fn tabs_of_a_browser_that_sign_in_at_once_do_not_disturb_each_other() {
    let site = Site::new();
    let mut cookies = String::new();
    let mut all = Vec::new();
    for _ in 0..BROWSER_SIGN_INS_MAX {
        let begun = site.begin_in(&cookies, "").await;
        let name = begun.cookie.split_once('=').unwrap().0;
        assert!(!cookies.contains(name), "{name}: {cookies}");
        cookies = format!("{cookies}; {}", begun.cookie);
        all.push(begun);
    }
    for begun in &all {
        let entered = site.ends(&cookies, &begun.answer("c-ann")).await;
        assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.body);
    }
    // A further one takes the place of one of them.
    let further = site.begin_in(&cookies, "").await;
    let name = further.cookie.split_once('=').unwrap().0;
    assert!(cookies.contains(name), "{name}: {cookies}");
}

#[tokio::test]
async fn another_participant_of_an_issuer_takes_over_no_browser_without_a_word() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    let begun = site.begin("&next=%2Faudit").await;
    let both = format!("{cookie}; {}", begun.cookie);
    let asked = site.ends(&both, &begun.answer("c-bob")).await;
    assert_eq!(asked.status, StatusCode::OK);
    assert!(
        asked.body.contains("data-testid=\"instead\""),
        "{}",
        asked.body
    );
    assert!(
        is_in(&site.get("/console", &cookie).await, "ann"),
        "she stays who she is"
    );
    let form = [
        ("code", &*asked.field("code")),
        ("instead", "1"),
        ("next", "/audit"),
    ];
    let entered = site.post("/console/login", &cookie, &form).await;
    assert_eq!(entered.header("location"), "/console/entered?next=%2Faudit");
    assert_eq!(site.given_up(1).await, ["r-1"], "her session has ended");
    // His goes on when his token ends.
    site.later(LIFETIME_MS);
    site.gives("r-bob", "t-bob", "r-2");
    assert!(is_in(&site.get("/console", &entered.cookie()).await, "bob"));
}

#[tokio::test]
async fn on_plain_loopback_a_person_is_led_to_its_own_name_with_its_tokens() {
    let site = Site::new();
    let public = "http://127.0.0.1:7070";
    site.0.home.settings.lock().public_url = Some(PublicUrl::parse(public).unwrap());
    // From its own name the way leads over the public one, to which the issuer leads back.
    let page = site.0.get("/console/p/8", "").await;
    let link = format!("href=\"{public}/console/sign-in?with=corp&amp;next=%2Fp%2F8\"");
    assert!(page.body.contains(&link), "{}", page.body);
    let at_public = async |path: &str, cookie: &str| {
        let request = Request::builder()
            .uri(path)
            .header("host", "127.0.0.1:7070");
        let request = request
            .header("cookie", cookie)
            .header("sec-fetch-site", "same-origin");
        site.0.send(request.body(Body::empty()).unwrap()).await
    };
    let begun = at_public("/console/sign-in?with=corp&next=%2Fp%2F8", "").await;
    let begun = Begun::of(&begun);
    let led = at_public(&begun.on("c-ann"), &begun.cookie).await;
    assert!(!led.header("set-cookie").contains("pm_console="));
    let to = led.header("refresh").strip_prefix("0; url=").unwrap();
    let (page, code) = to.split_once('#').unwrap();
    assert_eq!(page, format!("{}/console/p/8", site.0.origin("ann")));
    let entered = site.0.post("/console/login", "", &[("code", code)]).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.body);
    site.later(LIFETIME_MS);
    site.gives("r-1", "t-ann", "r-2");
    let inbox = site.0.get("/console", &entered.cookie()).await;
    assert!(is_in(&inbox, "ann"), "{}", inbox.body);
    assert_eq!(site.renewed(1).await, ["r-1"]);
    settled().await;
    // Without a script the code of a further sign-in is typed as the proof; its tokens are used from then on.
    site.0
        .answers("GET /api/v1/participants", json!({ "participants": [] }));
    let undo = "/api/v1/participants/scout/grants";
    site.0
        .answers(&format!("DELETE {undo}"), serde_json::Value::Null);
    site.later(PROOF_MS - LIFETIME_MS);
    site.gives("c-ann", "t-ann", "r-3");
    site.asked("c-ann", Asked::At(site.0.home.now_ms()));
    let begun = at_public("/console/sign-in?with=corp&next=%2Fproved&anew=1", "").await;
    let begun = Begun::of(&begun);
    let led = at_public(&begun.on("c-ann"), &begun.cookie).await;
    let code = led.header("refresh").split_once('#').unwrap().1.to_owned();
    let token = inbox.field("token");
    let form = [("token", &*token), ("confirmed", "1"), ("proof", &*code)];
    let act = "/console/access/scout/undo";
    site.0.post(act, &entered.cookie(), &form).await;
    assert_eq!(site.0.acts.lock().len(), 1);
    site.later(LIFETIME_MS);
    site.gives("r-3", "t-ann", "r-4");
    assert!(is_in(
        &site.0.get("/console", &entered.cookie()).await,
        "ann"
    ));
    assert_eq!(site.renewed(2).await, ["r-1", "r-3"]);
}

#[tokio::test]
async fn who_is_asked_again_signs_in_anew_and_goes_on_in_the_first_tab() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.0
        .answers("POST /api/v1/participants/scout/grants", json!({}));
    site.0
        .answers("GET /api/v1/participants", json!({ "participants": [] }));
    site.0.answers(
        "DELETE /api/v1/participants/scout/grants",
        serde_json::Value::Null,
    );
    let token = site.get("/console", &cookie).await.field("token");
    site.later(PROOF_MS);
    site.gives("r-1", "t-ann", "r-2");
    let form = [("token", &*token), ("confirmed", "1")];
    let act = "/console/access/scout/undo";
    let asked = site.post(act, &cookie, &form).await;
    let link = "/console/sign-in?with=corp&amp;next=%2Fproved&amp;anew=1\" target=\"_blank\" rel=\"noopener\"";
    assert!(asked.body.contains(link), "{}", asked.body);
    let not_yet = site.get("/console/proved", &cookie).await;
    assert!(not_yet.body.contains("data-enter") && !not_yet.body.contains("It is you"));
    let begun = site.begin("&next=%2Fproved&anew=1").await;
    assert_eq!(site.0.home.corp.ages.lock().last(), Some(&0));
    let both = format!("{cookie}; {}", begun.cookie);
    site.gives("c-ann", "t-ann", "r-3");
    // The place says when it asked: then.
    site.asked("c-ann", Asked::At(site.0.home.now_ms()));
    let entered = site.ends(&both, &begun.answer("c-ann")).await;
    assert_eq!(
        entered.header("location"),
        "/console/entered?next=%2Fproved"
    );
    let proved = site.get("/console/proved", &entered.cookie()).await;
    assert!(proved.body.contains("It is you"), "{}", proved.body);
    assert!(site.0.acts.lock().is_empty());
    site.post(act, &entered.cookie(), &form).await;
    assert_eq!(site.0.acts.lock().len(), 1);
    // At an issuer those of before and those of now can be one grant: they end together.
    settled().await;
    assert!(site.0.home.corp.given_up.lock().is_empty());
    site.signs_out(&entered.cookie()).await;
    assert_eq!(site.given_up(2).await, ["r-1", "r-3"]);
}

#[tokio::test]
async fn a_sign_in_proves_no_more_than_its_issuer_knows() {
    for (asked, is_proof) in [
        (Asked::At(u64::MAX), true),
        (Asked::Unknown, false),
        (Asked::At(5), false),
    ] {
        let site = Site::new();
        site.asked("c-ann", asked);
        let cookie = site.signed_in("c-ann").await;
        let proved = site.get("/console/proved", &cookie).await;
        assert_eq!(proved.body.contains("It is you"), is_proof, "{asked:?}");
    }
    // Addresses of the gateway's network are for operators.
    let site = Site::new();
    let trouble = Trouble::Metadata("`10.0.0.7` is no place".to_owned());
    site.fails("c-ann", trouble.into());
    let begun = site.begin("").await;
    let refused = site.ends(&begun.cookie, &begun.answer("c-ann")).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    assert!(!refused.body.contains("10.0.0.7") && refused.body.contains("cannot be asked now"));
    let site = Site::new();
    site.fails("c-ann", PersonError::NoTime);
    let begun = site.begin("&anew=1").await;
    let refused = site.ends(&begun.cookie, &begun.answer("c-ann")).await;
    let says = "does not say when it asked who you are";
    assert!(refused.body.contains(says), "{}", refused.body);
}
