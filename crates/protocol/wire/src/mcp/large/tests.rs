use model::Form;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef";

fn cut_to(result: &Value, limit: usize, links: bool) -> (Value, Kept, usize) {
    let receiver = ResultReceiver {
        limit,
        id: ID,
        links,
    };
    let Cut { result, kept } = cut(result.to_string().as_bytes(), receiver).unwrap();
    (serde_json::from_slice(&result).unwrap(), kept, result.len())
}

fn read(kept: &Kept, query: &str) -> Result<Value, String> {
    let asked = ResultRequest::of(&format!("{URI}{ID}{query}"))?;
    let bytes = kept.read(ID, &asked, Form::Legacy)?;
    assert!(bytes.len() <= LIMIT_BYTES_MIN, "{query}: {}", bytes.len());
    Ok(serde_json::from_slice(&bytes).unwrap())
}

/// All pages, as a reader gets them who follows the links.
fn whole(kept: &Kept) -> String {
    let (mut text, mut query) = (String::new(), String::new());
    loop {
        let page = read(kept, &query).unwrap();
        text += page["contents"][0]["text"].as_str().unwrap();
        match page["contents"][1]["uri"].as_str() {
            Some(next) => query = next.strip_prefix(&format!("{URI}{ID}")).unwrap().to_owned(),
            None => return text,
        }
    }
}

fn lines(count: usize) -> String {
    (1..=count)
        .map(|number| format!("line {number} of \"many\"\n"))
        .collect()
}

#[test]
fn a_long_text_becomes_its_first_page_with_words_and_a_link() {
    let long = lines(4_000);
    let result = json!({ "content": [{ "type": "text", "text": long }], "isError": true, "x": 1 });
    let (cut, kept, bytes) = cut_to(&result, LIMIT_BYTES_MIN, true);
    assert!(
        bytes <= LIMIT_BYTES_MIN && bytes > LIMIT_BYTES_MIN / 2,
        "{bytes}"
    );
    let [head, words, link] = cut["content"].as_array().unwrap().as_slice() else {
        panic!("{cut}")
    };
    let head = head["text"].as_str().unwrap();
    assert!(long.starts_with(head) && head.ends_with('\n'), "{head}");
    assert_eq!((&cut["isError"], &cut["x"]), (&json!(true), &json!(1)));
    let words = words["text"].as_str().unwrap();
    let has = [
        format!("has {} bytes", result.to_string().len()),
        format!("resource {URI}{ID}?page=2"),
        format!("{URI}{ID}?search=TEXT"),
    ];
    assert!(has.iter().all(|part| words.contains(part)), "{words}");
    assert_eq!(
        (&link["type"], &link["uri"]),
        (&json!("resource_link"), &json!(format!("{URI}{ID}")))
    );
    assert_eq!((whole(&kept), kept.bytes()), (long.clone(), long.len()));
    // Revisions before 2025-06-18 have no links.
    let (older, ..) = cut_to(&result, LIMIT_BYTES_MIN, false);
    assert_eq!(older["content"].as_array().unwrap().len(), 2, "{older}");
    let modern = kept
        .read(ID, &ResultRequest::Page(1), Form::Modern)
        .unwrap();
    let modern: Value = serde_json::from_slice(&modern).unwrap();
    assert_eq!(
        (
            &modern["resultType"],
            &modern["ttlMs"],
            &modern["cacheScope"]
        ),
        (&json!("complete"), &json!(0), &json!("private"))
    );
}

#[test]
fn structured_content_is_kept_with_the_text_unless_that_says_it() {
    let rows: Vec<_> = (0..2_000)
        .map(|number| json!({ "n": number, "s": "\u{e9}\n" }))
        .collect();
    let structured = json!({ "rows": rows });
    for (content, is_json, kept_bytes) in [
        (
            json!([{ "type": "text", "text": structured.to_string() }]),
            true,
            structured.to_string().len(),
        ),
        (
            json!([{ "type": "text", "text": serde_json::to_string_pretty(&structured).unwrap() }]),
            true,
            serde_json::to_string_pretty(&structured).unwrap().len(),
        ),
        (json!([]), true, structured.to_string().len()),
        (
            json!([{ "type": "text", "text": "2000 rows" }]),
            false,
            10 + structured.to_string().len(),
        ),
    ] {
        let result = json!({ "content": content, "structuredContent": structured });
        let (cut, kept, _) = cut_to(&result, LIMIT_BYTES_MIN, true);
        assert_eq!(cut["structuredContent"], Value::Null);
        assert_eq!(kept.bytes(), kept_bytes);
        let link = cut["content"].as_array().unwrap().last().unwrap().clone();
        let expected = if is_json {
            "application/json"
        } else {
            "text/plain"
        };
        assert_eq!(link["mimeType"], expected);
        assert_eq!(whole(&kept).len(), kept_bytes);
    }
    let (cut, ..) = cut_to(
        &json!({ "structuredContent": structured }),
        LIMIT_BYTES_MIN,
        true,
    );
    assert!(cut["content"].as_array().is_some());
}

#[test]
fn what_is_no_text_is_a_part_with_its_type_and_size() {
    let data = "QUJD".repeat(3_000);
    let image = json!({ "type": "image", "data": data, "mimeType": "image/png" });
    let blob = json!({ "type": "resource", "resource": { "uri": "u:1", "blob": data, "mimeType": "bad\"type" } });
    let small = json!({ "type": "image", "data": "QUJD", "mimeType": "image/gif" });
    let embedded =
        json!({ "type": "resource", "resource": { "uri": "u:2", "text": lines(2_000) } });
    let content = json!([image, { "type": "text", "text": "see" }, blob, small, embedded]);
    let (cut, kept, bytes) = cut_to(&json!({ "content": content }), LIMIT_BYTES_MIN, true);
    assert!(bytes <= LIMIT_BYTES_MIN, "{bytes}");
    let blocks = cut["content"].as_array().unwrap();
    assert!(
        blocks[0]["text"]
            .as_str()
            .unwrap()
            .starts_with("see\nu:2\nline 1 of"),
        "{cut}"
    );
    assert!(
        blocks[1]["text"]
            .as_str()
            .unwrap()
            .contains("Not shown: image/png, 9000 bytes"),
        "{cut}"
    );
    assert_eq!(blocks[2], small);
    let of_link = |at: usize| (blocks[at]["uri"].clone(), blocks[at]["mimeType"].clone());
    assert_eq!(
        of_link(4),
        (json!(format!("{URI}{ID}?part=1")), json!("image/png"))
    );
    assert_eq!(
        of_link(5),
        (
            json!(format!("{URI}{ID}?part=2")),
            json!("application/octet-stream")
        )
    );
    let part = kept
        .read(ID, &ResultRequest::Part(2), Form::Legacy)
        .unwrap();
    let part: Value = serde_json::from_slice(&part).unwrap();
    assert_eq!(
        (
            &part["contents"][0]["blob"],
            &part["contents"].as_array().unwrap().len()
        ),
        (&json!(data), &1)
    );
    for (query, why) in [
        ("?part=0", "there is no part 0: the result has parts 1 to 2"),
        ("?part=3", "there is no part 3: the result has parts 1 to 2"),
        ("?page=0", "there is no page 0"),
        ("?page=999", "there is no page 999"),
    ] {
        assert!(read(&kept, query).unwrap_err().starts_with(why), "{query}");
    }
    // Many parts have a number, and few a link.
    let many: Vec<_> = (0..50).map(|_| image.clone()).collect();
    let (cut, kept, bytes) = cut_to(&json!({ "content": many }), LIMIT_BYTES_MIN, true);
    assert!(
        bytes <= LIMIT_BYTES_MIN
            && cut["content"].as_array().unwrap().len() == 1 + LINKED_PARTS_MAX
    );
    assert!(
        cut.to_string().contains(&format!(
            "There are 50 such parts, up to {URI}{ID}?part=50."
        )),
        "{cut}"
    );
    assert!(
        read(&kept, "")
            .unwrap_err()
            .contains("only parts: read ?part=1 of 50")
    );
}

#[test]
fn what_is_no_result_with_content_stays_and_long_members_are_kept() {
    let receiver = ResultReceiver {
        limit: LIMIT_BYTES_MIN,
        id: ID,
        links: true,
    };
    for other in [
        json!({ "resultType": "input_required", "inputRequests": {} }),
        json!({ "task": { "taskId": "t" } }),
        json!([]),
    ] {
        assert!(
            cut(other.to_string().as_bytes(), receiver).is_none(),
            "{other}"
        );
    }
    let meta = json!({ "k": "m".repeat(LIMIT_BYTES_MIN) });
    let result = json!({ "content": [{ "type": "text", "text": "t" }], "_meta": meta, "isError": false, "resultType": "complete" });
    let (cut, kept, bytes) = cut_to(&result, LIMIT_BYTES_MIN, true);
    assert!(
        bytes <= LIMIT_BYTES_MIN && cut["_meta"] == Value::Null,
        "{cut}"
    );
    assert_eq!(
        (&cut["isError"], &cut["resultType"]),
        (&json!(false), &json!("complete"))
    );
    assert_eq!(whole(&kept), format!("t\n{}", json!({ "_meta": meta })));
    let task = json!({ "taskId": "t", "status": "completed", "result": result });
    let cut_task = |task: &Value| {
        in_task(task.to_string().as_bytes(), |result| {
            let Cut { result, kept } = super::cut(result, receiver)?;
            Some((result, kept))
        })
    };
    let (shorter, _) = cut_task(&task).unwrap();
    let shorter: Value = serde_json::from_slice(&shorter).unwrap();
    assert_eq!(
        (&shorter["taskId"], &shorter["result"]),
        (&json!("t"), &cut)
    );
    assert!(cut_task(&json!({ "taskId": "t", "status": "working" })).is_none());
    let tool =
        json!({ "name": "t", "inputSchema": {}, "outputSchema": { "type": "object" } }).to_string();
    let plain: Value = serde_json::from_slice(&unpromised(tool.as_bytes()).unwrap()).unwrap();
    assert_eq!(plain, json!({ "name": "t", "inputSchema": {} }));
    assert!(unpromised(plain.to_string().as_bytes()).is_none());
}

#[test]
fn places_of_a_text_have_their_line_their_page_and_what_is_around() {
    let result = json!({ "content": [{ "type": "text", "text": lines(4_000) }] });
    let (_, kept, _) = cut_to(&result, LIMIT_BYTES_MIN, true);
    let found = |query: &str| {
        let read = read(&kept, query).unwrap();
        read["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    let one = found("?search=LINE%203999");
    assert!(one.starts_with("1 place with `LINE 3999`\n"), "{one}");
    assert!(
        one.contains("line 3998 of \"many\"\nline 3999 of \"many\"\nline 4000 of"),
        "{one}"
    );
    let page = one
        .split(", page ")
        .nth(1)
        .unwrap()
        .split(':')
        .next()
        .unwrap();
    assert!(one.contains(&format!("\nline 3999, page {page}:")), "{one}");
    assert!(
        read(&kept, &format!("?page={page}"))
            .unwrap()
            .to_string()
            .contains("line 3999 of")
    );
    assert_eq!(found("?search=absent"), "0 places with `absent`\n");
    // More than a page has.
    let (mut query, mut places) = ("?search=9%20of".to_owned(), 0);
    loop {
        let some = found(&query);
        places += some.matches(", page ").count();
        let Some((_, next)) = some.split_once("More places: read ") else {
            break;
        };
        query = next
            .trim()
            .strip_prefix(&format!("{URI}{ID}"))
            .unwrap()
            .to_owned();
    }
    assert_eq!(places, 400);
    // One line without end.
    let row = r#"{"name":"Ann","id":7},"#;
    let result = json!({ "content": [{ "type": "text", "text": row.repeat(2_000) }] });
    let (_, kept, _) = cut_to(&result, LIMIT_BYTES_MIN, true);
    let read = read(&kept, "?search=ann&from=30000").unwrap();
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("with `ann` from byte 30000 on") && text.contains("line 1, page "),
        "{text}"
    );
    assert!(
        text.lines()
            .all(|line| line.len() < 2 * 160 + 10 + URI.len() + 100),
        "{text}"
    );
}

#[test]
fn addresses_are_read_strictly() {
    let search = |text: &str, from| {
        Ok(ResultRequest::Search {
            text: text.to_owned(),
            from,
        })
    };
    let err = |why: &str| Err(why.to_owned());
    for (query, expected) in [
        ("", Ok(ResultRequest::Page(1))),
        ("?", Ok(ResultRequest::Page(1))),
        ("?page=7", Ok(ResultRequest::Page(7))),
        ("?part=2", Ok(ResultRequest::Part(2))),
        ("?search=a%20b%26c", search("a b&c", 0)),
        ("?search=a b+c 5%", search("a b+c 5%", 0)),
        ("?search=x&from=9", search("x", 9)),
        ("?page=-1", err("`page` must be a number, not `-1`")),
        ("?page=x", err("`page` must be a number, not `x`")),
        ("?search=", err("`search` has no text")),
        ("?search=%ff", err("the text of `search` is no UTF-8")),
        (
            "?search=a&page=1",
            err("one of `page`, `part` and `search` can be read at a time"),
        ),
    ] {
        assert_eq!(
            ResultRequest::of(&format!("{URI}{ID}{query}")),
            expected,
            "{query}"
        );
    }
    assert!(
        ResultRequest::of("u?search=a&b")
            .unwrap_err()
            .contains("%26")
    );
    let long = |bytes: usize| ResultRequest::of(&format!("u?search={}", "x".repeat(bytes)));
    assert!(long(SEARCH_BYTES_MAX).is_ok() && long(SEARCH_BYTES_MAX + 1).is_err());
    assert_eq!(id_of(&format!("{URI}{ID}?page=2")), Some(ID));
    assert_eq!(id_of("portmoot:s/x"), None);
}

proptest! {
    #[test]
    fn no_result_is_longer_than_its_limit_and_nothing_is_lost(
        text in "(\\PC|[\"\\\\\n\u{0}\u{7}]){0,9000}",
        part in 0..3_usize,
        limit in LIMIT_BYTES_MIN..LIMIT_BYTES_MIN * 2,
        from in 0..20_000_usize,
    ) {
        let image = json!({ "type": "image", "data": "QUJD".repeat(400), "mimeType": "image/png" });
        let mut content = vec![json!({ "type": "text", "text": text })];
        content.extend((0..part).map(|_| image.clone()));
        let (_, kept, bytes) = cut_to(&json!({ "content": content }), limit, true);
        prop_assert!(bytes <= limit, "{bytes} > {limit}");
        let pages = (1..=kept.pages()).map(|number| kept.page(number).unwrap());
        prop_assert_eq!(pages.collect::<String>(), text.clone());
        for number in 1..=kept.pages() {
            let page = kept.read(ID, &ResultRequest::Page(number), Form::Modern).unwrap();
            prop_assert!(page.len() <= limit);
        }
        let sought: String = text.chars().skip(text.chars().count() / 2).take(2).collect();
        if !sought.is_empty() {
            let found = kept.read(ID, &ResultRequest::Search { text: sought, from }, Form::Modern).unwrap();
            prop_assert!(found.len() <= limit);
        }
    }
}
