use proptest::prelude::*;

use super::reader::DEPTH;
use super::*;

const LIMITS: Limits = Limits {
    bytes: 4096,
    names: 100,
};

fn fields(paths: &[&str]) -> Fields {
    Fields::new(paths, None).unwrap()
}

fn block(text: &str, fields: &Fields) -> Result<Block> {
    Block::of_lines(text.as_bytes(), (1, 0), fields, &LIMITS)
}

/// Returns the texts of a block with their columns, or the error message.
fn found(text: &str, paths: &[&str]) -> std::result::Result<Vec<(String, usize)>, String> {
    let block = block(text, &fields(paths)).map_err(|e| format!("line {}: {e}", e.line))?;
    let columns = (0..block.len()).filter_map(|i| Some(block.place(i)?.1));
    let texts = block.texts().into_iter().map(str::to_owned);
    Ok(texts.zip(columns).collect())
}

/// Feeds a document in parts of `size` bytes. Returns its texts, and the document with the texts in
/// capitals.
fn document(data: &[u8], fields: Fields, size: usize) -> Result<(Vec<String>, Vec<u8>)> {
    let mut document = Document::new(fields, LIMITS);
    let (mut texts, mut out) = (Vec::new(), Vec::new());
    let mut take = |block: Block| {
        let new: Vec<String> = block.texts().iter().map(|t| t.to_uppercase()).collect();
        out.extend(block.replaced(&new).unwrap());
        texts.extend(block.texts().into_iter().map(str::to_owned));
    };
    for part in data.chunks(size) {
        take(document.feed(part)?);
    }
    take(document.end()?);
    Ok((texts, out))
}

#[test]
fn strings_are_found_and_replaced() {
    let text = "{\"id\": 1.50, \"text\" : \"a \\\"b\\\" \\u00e9\\ud83d\\ude00\", \"n\":[1,{\"text\":\"no\"}]}\r\n \n\
                {\"text\":\"\",\"id\":-0e+7}";
    let block = block(text, &fields(&["text"])).unwrap();
    assert_eq!(block.texts(), ["a \"b\" é😀", ""]);
    assert_eq!(block.others(), ["id", "n"]);
    assert_eq!(
        (block.place(0), block.place(1)),
        (Some((1, 0)), Some((3, 0)))
    );
    assert!(block.place(2).is_none());
    assert!(block.replaced(&["x"]).is_none());
    assert!(block.replaced(&["x"; 3]).is_none());
    let new = block.replaced(&["\"\\\n\u{1}é", "x"]).unwrap();
    assert_eq!(
        String::from_utf8(new).unwrap(),
        "{\"id\": 1.50, \"text\" : \"\\\"\\\\\\n\\u0001é\", \"n\":[1,{\"text\":\"no\"}]}\r\n \n\
         {\"text\":\"x\",\"id\":-0e+7}"
    );
}

#[test]
fn fields_within_others() {
    let paths = ["user.name", "items[].text", "tags"];
    let text = r#"{"user":{"name":"u","age":3},"items":[{"text":"a"},{"text":null,"more":{"x":1}}],"tags":["s",["t"],null]}"#;
    let texts = [("u", 0), ("a", 1), ("s", 2), ("t", 2)].map(|(t, c)| (t.to_owned(), c));
    assert_eq!(found(text, &paths).unwrap(), texts);
    let others = block(text, &fields(&paths)).unwrap();
    assert_eq!(others.others(), ["user.age", "items[].more"]);
    let few = Limits { names: 1, ..LIMITS };
    let few = Block::of_lines(text.as_bytes(), (1, 0), &fields(&paths), &few);
    assert_eq!(few.unwrap().others(), ["user.age"]);
    let empty = r#"{"tags":null,"items":[],"user":null}"#;
    assert_eq!(found(empty, &paths), Ok(Vec::new()));
}

#[test]
fn paths_are_parted() {
    use Step::{Field, Items};
    assert_eq!(
        steps("a.b[].c"),
        [Field("a"), Field("b"), Items, Field("c")]
    );
    assert_eq!(steps("a[][]"), [Field("a"), Items, Items]);
    for name in ["a..b", "a", "", "[]", ".", "a.[]"] {
        assert_eq!(steps(name), [Field(name)]);
    }
    let twice = Fields::new(&["t"], Some("t")).unwrap_err();
    assert_eq!(twice.to_string(), "--account-column 't' is asked for twice");
    assert!(Fields::new(&["t", "t"], None).is_err());
    assert!(Fields::new(&["t", "t[]"], None).is_ok());
    assert_eq!(found(r#"{"":"a"}"#, &[""]).unwrap().len(), 1);
}

#[test]
fn every_object_on_the_way_has_the_next_field() {
    type Strs<'a> = &'a [&'a str];
    type Case<'a> = (Strs<'a>, Strs<'a>, &'a [(&'a str, &'a str)]);
    let cases: &[Case<'_>] = &[
        (
            &["m[].t"],
            &[
                r#"{"m":[]}"#,
                r#"{"m":[null,{"t":null},{"t":[]}]}"#,
                r#"{"m":[{"t":"a"},{"t":["b"]}]}"#,
                r#"{"m[].t":"a"}"#,
            ],
            &[
                (r#"{"m":[{"x":"a"}]}"#, "is not there (item 1)"),
                (r#"{"m":[{}]}"#, "is not there (item 1)"),
                (r#"{"m":[{"t":"a"},{"x":"b"}]}"#, "is not there (item 2)"),
                (r#"{"m":[{"t":"a"}],"m":[{"x":"b"}]}"#, "(item 1)"),
                (
                    r#"{"m":[[{"t":"a"}]]}"#,
                    "'m[]' holds a list, not a dict (item 1)",
                ),
                (r#"{"x":[{"t":"a"}]}"#, "field 'm[].t' is not there"),
                (r#"{"m[].t":"a","m":[{"u":"a"}]}"#, "is not there (item 1)"),
            ],
        ),
        (
            &["m[][].u.t", "m[][].n"],
            &[
                r#"{"m":[[],[{"u":{"t":"a"},"n":"b"}],null]}"#,
                r#"{"m":[[{"u":null,"n":"b"}]]}"#,
            ],
            &[
                (
                    r#"{"m":[[{"u":{"t":"a"},"n":"b"}],[{"u":{"t":"a"}}]]}"#,
                    "'m[][].n' is not there (item 2, in it item 1)",
                ),
                (r#"{"m":[[{"u":{},"n":"b"}]]}"#, "'m[][].u.t' is not there"),
            ],
        ),
        // Text, or objects with text, and a list of either.
        (
            &["c", "c.t"],
            &[
                r#"{"c":"a"}"#,
                r#"{"c":{"t":"a"}}"#,
                r#"{"c":["a",{"t":"b"}]}"#,
            ],
            &[
                (r#"{"c":{"x":"a"}}"#, "field 'c.t' is not there"),
                (r#"{"c":["a",{"x":"b"}]}"#, "(item 2)"),
            ],
        ),
    ];
    for (paths, good, bad) in cases {
        for line in *good {
            assert!(found(line, paths).is_ok(), "{line}");
        }
        for (line, message) in *bad {
            let lines = [good[0], line, good[0]].join("\n");
            let told = found(&lines, paths).unwrap_err();
            assert!(
                told.starts_with("line 2: ") && told.contains(message),
                "{told}"
            );
        }
    }
}

#[test]
fn a_record_has_so_many_texts_at_most() {
    let few = Limits {
        bytes: 96,
        names: 9,
    };
    let fields = fields(&["t"]);
    let read = |text: &str| Block::of_lines(text.as_bytes(), (1, 0), &fields, &few);
    let lines = "{\"t\":[\"a\",\"\",\"b\"]}\n{\"t\":[[\"\"],\"c\"]}\n";
    assert_eq!(read(lines).unwrap().len(), 5);
    let error = read("{\"t\":[\"a\",\"\",\"b\",\"\"]}").unwrap_err();
    assert!(error.is_limit() && error.problem == Problem::ManyTexts { most: 3 });
}

#[test]
fn one_account_pays_for_a_record() {
    let fields = Fields::new(&["t"], Some("m[].who")).unwrap();
    let payers = |who: &str| {
        let text = format!("{{\"t\":[\"a\",\"b\"],\"m\":{who}}}");
        let found = block(&text, &fields).map_err(|e| e.problem)?;
        Ok(found.payers().join(" "))
    };
    let field = || "m[].who".to_owned();
    assert_eq!(
        payers(r#"[{"who":"ann"},{"who":"\u0061nn"}]"#),
        Ok("ann ann".into())
    );
    assert_eq!(payers(r#"[{"who":7}]"#), Ok("7 7".into()));
    assert_eq!(payers(r#"[{"who":-0},{"who":0}]"#), Ok("0 0".into()));
    let none = Err(Problem::NoAccount { field: field() });
    for who in [
        "[]",
        "null",
        "[null]",
        "[{}]",
        r#"[{"who":""}]"#,
        r#"[{"who":1.5}]"#,
        r#"[{"who":"\ud800"}]"#,
        r#"[{"who":"ann"},{"who":null}]"#,
        r#"[{"who":["ann"]}]"#,
        r#"[{"who":true}]"#,
        r#"[{"who":1e2}]"#,
    ] {
        assert_eq!(payers(who), none, "{who}");
    }
    let several = Err(Problem::SeveralAccounts {
        field: field(),
        names: 2,
    });
    assert_eq!(payers(r#"[{"who":"ann"},{"who":"bob"}]"#), several);
}

#[test]
fn wrong_lines_are_refused_and_placed() {
    for line in [
        "",
        " ",
        "{\"text\":\"a\"}",
        "{\"t\\u0065xt\":\"a\"}",
        "{\"text\":null}",
        "{\"text\":[\"a\",[]]}",
        "{\"text\":\"\\/\\b\\f\"}",
        "{\"text\":\"a\",\"x\":\"\\ud800\"}",
        "{\"text\":\"a\",\"\\ud800\":1}",
        "{\"text\":\"a\",\"x\":1e5}",
        "{\"text\":\"a\",\"x\":123456789012345678901234567890.5e99999}",
        "{\"text\":\"a\",\"text\":\"b\"}",
        "{\"text\":\"\u{7f}\"}",
    ] {
        assert!(found(line, &["text"]).is_ok(), "{line}");
    }
    for (line, message) in [
        ("{", "not JSON at character 1: EOF"),
        ("{}", "none of its 0 fields is called 'text'"),
        ("[]", "not a JSON object"),
        ("1", "not a JSON object"),
        ("[1", "not JSON at character 2"),
        ("{\"text\":\"a\"", "not JSON at character 11"),
        (
            "{\"text\":\"a}",
            "not JSON at character 11: EOF while parsing a string",
        ),
        ("{\"text\":\"é\"}}", "not JSON at character 12: trailing"),
        (
            "{\"text\":\"é\",}",
            "not JSON at character 12: trailing comma",
        ),
        (
            "{\"text\":\"a\" \"b\":1}",
            "not JSON at character 12: expected `,` or `}`",
        ),
        ("{\"text\" \"a\"}", "not JSON at character 8: expected `:`"),
        (
            "{text:\"a\"}",
            "not JSON at character 1: key must be a string",
        ),
        ("{\"text\":1}", "field 'text' holds a number, not text"),
        ("{\"text\":{}}", "field 'text' holds a dict, not text"),
        ("{\"text\":true}", "field 'text' holds a bool, not text"),
        (
            "{\"text\":\"\\x\"}",
            "not JSON at character 10: invalid escape",
        ),
        (
            "{\"text\":\"\\ud8é\\u\"}",
            "not JSON at character 13: invalid escape",
        ),
        ("{\"text\":\"\\u12g4\"}", "invalid escape"),
        (
            "{\"text\":\"\\ud800\"}",
            "field 'text' holds a text with half of a surrogate pair",
        ),
        (
            "{\"text\":[\"\\ude00\"]}",
            "half of a surrogate pair (item 1)",
        ),
        ("{\"text\":\"\\ud800\\u0041\"}", "half of a surrogate pair"),
        (
            "{\"text\":\"\t\"}",
            "not JSON at character 9: control character",
        ),
        ("{\"text\":\"a\"}{}", "not JSON at character 12: trailing"),
        (
            "{\"text\":\"a\",\"x\":01}",
            "not JSON at character 17: invalid number",
        ),
        ("{\"text\":\"a\",\"x\":1.}", "invalid number"),
        ("{\"text\":\"a\",\"x\":.5}", "expected value"),
        ("{\"text\":\"a\",\"x\":-}", "invalid number"),
        (
            "{\"text\":\"a\",\"x\":[NaN]}",
            "a number that JSON does not have",
        ),
        (
            "{\"text\":\"a\",\"x\":-Infinity}",
            "a number that JSON does not have",
        ),
        ("{\"text\":NaN}", "a number that JSON does not have"),
        ("{\"text\":\"a\",\"x\":1e}", "invalid number"),
        ("{\"text\":\"a\",\"x\":+1}", "expected value"),
        ("{\"text\":\"a\",\"x\":nul}", "expected ident"),
        ("{\"text\":\"a\",\"x\":[1,]}", "not JSON"),
        ("{\"text\":\"a\",\"x\":{\"y\"}}", "expected `:`"),
        ("{\"text\":\"a\",\"x\":\"\\u12\"}", "invalid escape"),
        ("{\"text\":nulll}", "not JSON"),
        ("{\"text\":\"a\",\"x\":}", "expected value"),
        (
            "\u{a0}{\"text\":\"a\"}",
            "not JSON at character 0: expected value",
        ),
        (
            "{\"text\":\"a\"}\u{b}",
            "not JSON at character 12: trailing",
        ),
    ] {
        let told = found(&format!("{{\"text\":\"a\"}}\n{line}\n"), &["text"]);
        let told = told.unwrap_err();
        assert!(
            told.starts_with("line 2: ") && told.contains(message),
            "{line}: {told}"
        );
    }
    let error = Block::of_lines(b"{}\n\xff", (7, 100), &fields(&["t"]), &LIMITS).unwrap_err();
    assert_eq!(
        (error.line, error.problem),
        (8, Problem::NotUtf8 { byte: 103 })
    );
}

#[test]
fn no_message_holds_content() {
    let secret = "Xanthippe";
    for line in [
        format!("{{\"{secret}\":1}}"),
        format!("{{\"t\":{{\"{secret}\":1}}}}"),
        format!("{{\"t\":\"{secret}"),
        format!("\"{secret}\""),
        format!("{{\"t\":\"{secret}\\ud800\"}}"),
        secret.to_string(),
    ] {
        let error = block(&line, &fields(&["t"])).unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(!told.contains(secret), "{told}");
    }
    let error = block("{\"a'\":1,\"\\ud800\":2,\"a'\":3}", &fields(&["t"])).unwrap_err();
    assert_eq!(error.content().unwrap().reveal(), r#"'a\'', '\\ud800'"#);
}

#[test]
fn depth_is_bounded_where_it_is_looked_into() {
    let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let other = |n| format!("{{\"text\":\"a\",\"x\":{}}}", deep(n));
    let text = |n| format!("{{\"text\":{}}}", deep(n));
    assert!(found(&other(100_000), &["text"]).is_ok());
    assert!(found(&text(DEPTH - 1), &["text"]).is_ok());
    for n in [DEPTH, 100_000] {
        assert!(
            found(&text(n), &["text"])
                .unwrap_err()
                .contains("more than 100 deep")
        );
    }
    let told = found(&"[".repeat(100_000), &["text"]).unwrap_err();
    assert!(told.contains("not JSON at character 100000"), "{told}");
}

#[test]
fn documents_are_read_in_parts() {
    for (text, texts) in [
        ("[]", vec![]),
        (" [ ]\n", vec![]),
        ("{\"t\":\"a\"}", vec!["a"]),
        ("{\"t\":\"a\"} {\"t\":\n\"b\"}\n", vec!["a", "b"]),
        (
            "\u{feff}[{\"t\":\"é\\u00e9\", \"n\" : -0.50e+1},\r\n {\"t\":[\"b\",\"c\"]}\n ] \n",
            vec!["éé", "b", "c"],
        ),
        (
            "{\"t\":\"a\",\"x\":[true,false,null,\"\\ud800\",12]}{\"t\":null}",
            vec!["a"],
        ),
    ] {
        let rest = text.trim_start_matches('\u{feff}');
        for size in 1..=text.len() {
            let (found, out) = document(text.as_bytes(), fields(&["t"]), size).unwrap();
            assert_eq!(found, texts, "{text}");
            if texts.iter().all(|t| t.len() == 1) {
                let new = rest.replace("\"a\"", "\"A\"").replace("\"b\"", "\"B\"");
                assert_eq!(String::from_utf8(out).unwrap(), new);
            }
        }
    }
    for (text, line, message) in [
        ("", 1, "no record: empty"),
        ("\n\"x\"", 2, "neither an array of records nor a record"),
        ("[{\"t\":\"a\"},\n\"x\"]", 2, "not a JSON object"),
        ("[{\"t\":\"a\"},\n5 ]", 2, "not a JSON object"),
        ("[{\"t\":\"a\"}\n  ", 2, "not JSON: the array does not end"),
        ("[{\"t\":\"a\"},", 1, "not JSON: the array does not end"),
        ("[", 1, "not JSON: the array does not end"),
        ("[{\"t\":\"a\"},]", 1, "not a JSON object"),
        (
            "[{\"t\":\"a\"} {\"t\":\"b\"}]",
            1,
            "not JSON at character 11: expected `,` or `]`",
        ),
        (
            "[{\"t\":\"a\"}]\n\nx",
            3,
            "not JSON: something follows the end",
        ),
        (
            "{\"t\":\"a\"}\n {\"t\":\"b\",\n  \"u\"}",
            3,
            "not JSON at character 5: expected `:`",
        ),
        (
            "{\"t\":\"a\"}x",
            1,
            "not JSON at character 9: expected value",
        ),
        (
            "[{\"t\":\"a",
            1,
            "not JSON at character 8: EOF while parsing a string",
        ),
        (
            "[{\"t\":\"a\"},\n{\"u\":1}]",
            2,
            "none of its 1 fields is called 't'",
        ),
        ("[{\"t\":\n5}]", 2, "field 't' holds a number, not text"),
        (
            "[{\"t\":\"a\",\"u\":NaN}]",
            1,
            "a number that JSON does not have",
        ),
    ] {
        for size in 1..=text.len().max(1) {
            let error = document(text.as_bytes(), fields(&["t"]), size).unwrap_err();
            assert_eq!((error.line, &*error.to_string()), (line, message), "{text}");
        }
    }
    for (data, byte) in [
        (&b"[{\"t\":\"a\"},\n\"\xc3\"]"[..], 13),
        (b"[\n\xe2\x82", 2),
    ] {
        for size in 1..=data.len() {
            let error = document(data, fields(&["t"]), size).unwrap_err();
            assert_eq!((error.line, error.problem), (2, Problem::NotUtf8 { byte }));
        }
    }
}

#[test]
fn records_of_a_document_are_bounded() {
    let record = |n: usize| format!("[ {{\"t\":\"{}\"}} ]", "a".repeat(n - 8));
    for size in [1, 100, 4000, 4096, 10_000] {
        assert!(document(record(4096).as_bytes(), fields(&["t"]), size).is_ok());
        for text in [
            record(4097),
            record(30_000),
            "[ {\"t\":\"".to_owned() + &"a".repeat(9000),
        ] {
            let error = document(text.as_bytes(), fields(&["t"]), size).unwrap_err();
            let cut = text.len() == 9008 && size == 10_000;
            assert!(
                error.problem == Problem::LongRecord { most: 4096 } || cut,
                "{error}"
            );
        }
        for end in ["", "{\"t\":\"a\"}]"] {
            let spaces = format!("[{}{end}", " ".repeat(20_000));
            let error = document(spaces.as_bytes(), fields(&["t"]), size).unwrap_err();
            assert!(error.is_limit() && error.problem == Problem::LongWhiteSpace { most: 4096 });
        }
    }
    // Only an incomplete record is kept.
    let mut document = Document::new(fields(&["t"]), LIMITS);
    for part in [&b"["[..], b"{\"t\":\"abc\"}, {\"t", b"\":\"d\"},"] {
        document.feed(part).unwrap();
        assert!(document.pending() < 5);
    }
}

#[test]
fn long_lines() {
    for length in 0..200 {
        let text = "é".repeat(length);
        let lines = format!("{{\"text\":\"{text}\\n\"}}\n{{\"text\":\"{text}\"}}\n");
        let texts = vec![(format!("{text}\n"), 0), (text, 0)];
        assert_eq!(found(&lines, &["text"]), Ok(texts));
    }
}

proptest! {
    /// Every written text is read back unchanged, whatever it contains.
    #[test]
    fn quoted_texts_are_found(texts in proptest::collection::vec("\\PC{0,40}|[\0-\x7f]{0,70}|.{0,5}", 0..6)) {
        let mut lines = Vec::new();
        for text in &texts {
            lines.extend(b"{\"text\": ");
            writer::quote(text, &mut lines);
            lines.extend(b", \"stars\": 4.50}\n");
        }
        let lines = String::from_utf8(lines).unwrap();
        let block = block(&lines, &fields(&["text"])).unwrap();
        prop_assert_eq!(block.texts(), &texts[..]);
        prop_assert_eq!(block.replaced(&texts).unwrap(), lines.as_bytes());
    }

    /// Every block is read or refused. `serde_json` itself accepts everything that is not refused,
    /// and parts of any size give the same document.
    #[test]
    fn any_text_is_read_or_refused(
        text in "([{}\\[\\],:\"\\\\un0-9a-f e.+\n-]|text|\"text\":|null|\\{\"text\":\"|\\PC){0,60}",
        size in 1_usize..20,
    ) {
        if let Ok(block) = block(&text, &fields(&["text"])) {
            prop_assert_eq!(block.texts().len(), block.len());
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok());
            }
        }
        let whole = document(text.as_bytes(), fields(&["text"]), text.len().max(1));
        let parts = document(text.as_bytes(), fields(&["text"]), size);
        prop_assert_eq!(whole, parts);
    }
}
