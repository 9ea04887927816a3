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

/// Lines of "given => what is said".
fn cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.trim().lines();
    lines.map(|line| line.trim().split_once(" => ").unwrap())
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
    assert_eq!(twice, "--account-column 't' is asked for twice");
    assert!(Fields::new(&["t", "t"], None).is_err());
    assert!(Fields::new(&["t", "t[]"], None).is_ok());
    assert_eq!(found(r#"{"":"a"}"#, &[""]).unwrap().len(), 1);
}

/// `tests/python/texts/test_json_reader.py` compares accepted records with Python's reader.
#[test]
fn an_object_without_the_next_field_is_placed() {
    // Columns, a record, and what is said.
    let table = r#"
    m[].t {"m":[{"x":"a"}]} => is not there (item 1)
    m[].t {"m":[{"t":"a"},{"x":"b"}]} => is not there (item 2)
    m[].t {"m":[{"t":"a"}],"m":[{"x":"b"}]} => (item 1)
    m[].t {"m":[[{"t":"a"}]]} => 'm[]' holds a list, not a dict (item 1)
    m[].t {"x":[{"t":"a"}]} => field 'm[].t' is not there
    m[][].u.t,m[][].n {"m":[[{"u":{"t":"a"},"n":"b"}],[{"u":{"t":"a"}}]]} => 'm[][].n' is not there (item 2, in it item 1)
    m[][].u.t,m[][].n {"m":[[{"u":{},"n":"b"}]]} => 'm[][].u.t' is not there
    c,c.t {"c":["a",{"x":"b"}]} => 'c.t' is not there (item 2)
    "#;
    for (given, message) in cases(table) {
        let (paths, record) = given.split_once(' ').unwrap();
        let paths: Vec<&str> = paths.split(',').collect();
        let told = found(&format!("\n{record}\n"), &paths).unwrap_err();
        assert!(
            told.starts_with("line 2: ") && told.contains(message),
            "{told}"
        );
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
    assert_eq!(error.hint, Hint::Limit);
    assert_eq!(error.problem, "a record of more than 3 texts");
}

#[test]
fn one_account_pays_for_a_record() {
    let fields = Fields::new(&["t"], Some("m[].who")).unwrap();
    let payers = |who: &str| {
        let text = format!("{{\"t\":[\"a\",\"b\"],\"m\":{who}}}");
        let found = block(&text, &fields).map_err(|e| e.problem)?;
        Ok(found.payers().join(" "))
    };
    assert_eq!(
        payers(r#"[{"who":"ann"},{"who":"\u0061nn"}]"#),
        Ok("ann ann".into())
    );
    assert_eq!(payers(r#"[{"who":7}]"#), Ok("7 7".into()));
    assert_eq!(payers(r#"[{"who":-0},{"who":0}]"#), Ok("0 0".into()));
    let none = Err("no account: field 'm[].who' is missing or holds no name".to_owned());
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
    let several = Err("several accounts: field 'm[].who' holds 2 names".to_owned());
    assert_eq!(payers(r#"[{"who":"ann"},{"who":"bob"}]"#), several);
}

#[test]
fn wrong_lines_are_refused_and_placed() {
    let table = r#"
    { => not JSON at character 1: EOF
    {} => none of its 0 fields is called 'text'
    [] => not a JSON object
    1 => not a JSON object
    [1 => not JSON at character 2
    {"text":"a" => not JSON at character 11
    {"text":"a} => not JSON at character 11: EOF while parsing a string
    {"text":"é"}} => not JSON at character 12: trailing
    {"text":"é",} => not JSON at character 12: key must be a string
    {text:"a"} => not JSON at character 1: key must be a string
    {"text":1} => field 'text' holds a number, not text
    {"text":"\ud8é\u"} => not JSON at character 13: invalid escape
    {"text":"\ud800"} => field 'text' holds a text with half of a surrogate pair
    {"text":["\ude00"]} => half of a surrogate pair (item 1)
    {"text":"TAB"} => not JSON at character 9: control character
    {"text":"a"}{} => not JSON at character 12: trailing
    {"text":"a","x":01} => not JSON at character 17: invalid number
    {"text":"a","x":-Infinity} => a number that JSON does not have
    {"text":NaN} => a number that JSON does not have
    {"text":"a"}VT => not JSON at character 12: trailing
    "#;
    for (line, message) in cases(table) {
        let line = line.replace("TAB", "\t").replace("VT", "\u{b}");
        let told = found(&format!("{{\"text\":\"a\"}}\n{line}\n"), &["text"]);
        let told = told.unwrap_err();
        assert!(
            told.starts_with("line 2: ") && told.contains(message),
            "{line}: {told}"
        );
    }
    let error = Block::of_lines(b"{}\n\xff", (7, 100), &fields(&["t"]), &LIMITS).unwrap_err();
    assert_eq!((error.line, error.hint), (8, Hint::Encoding));
    assert_eq!(error.problem, "byte 103 is not UTF-8");
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
    let error = block("{\"b\":1,\"a'\":2,\"b\":3}", &fields(&["t"])).unwrap_err();
    assert_eq!(error.content.unwrap().reveal(), r#"'a\'', 'b'"#);
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
    let text = "\u{feff}[{\"t\":\"a\", \"n\" : -0.50e+1},\r\n {\"t\":[\"b\",\"é\"]}\n ] \n";
    let more = "{\"t\":\"a\"}{\"t\":\n[\"b\",\"é\"]}\n";
    for size in 1..=text.len() {
        for text in [text, more] {
            let (found, out) = document(text.as_bytes(), fields(&["t"]), size).unwrap();
            assert_eq!(found, ["a", "b", "é"], "{text}");
            let new = text
                .trim_start_matches('\u{feff}')
                .replace("\"a\"", "\"A\"");
            let new = new.replace("\"b\"", "\"B\"").replace('é', "É");
            assert_eq!(String::from_utf8(out).unwrap(), new);
        }
    }
    // Lines end at slashes here.
    let table = r#"
    / => 2 no record: empty
    /"x" => 2 neither an array of records nor a record
    [{"t":"a"},/"x"] => 2 not a JSON object
    [{"t":"a"},/5 ] => 2 not a JSON object
    [{"t":"a"}/   => 2 not JSON: the array does not end
    [{"t":"a"}, => 1 not JSON: the array does not end
    [ => 1 not JSON: the array does not end
    [{"t":"a"},] => 1 not JSON at character 11: expected value
    [{"t":"a"} {"t":"b"}] => 1 not JSON at character 11: expected `,` or `]`
    [{"t":"a"}]//x => 3 not JSON: something follows the end
    {"t":"a"}/ {"t":"b",/  "u"} => 3 not JSON at character 5: expected `:`
    {"t":"a"}x => 1 not JSON at character 9: expected value
    [{"t":"a => 1 not JSON at character 8: EOF while parsing a string
    [{"t":"a"},/{"u":1}] => 2 none of its 1 fields is called 't'
    [{"t":/5}] => 2 field 't' holds a number, not text
    [{"t":"a","u":NaN}] => 1 a number that JSON does not have
    "#;
    for (text, told) in cases(table) {
        let text = text.replace('/', "\n");
        for size in 1..=text.len() {
            let error = document(text.as_bytes(), fields(&["t"]), size).unwrap_err();
            assert_eq!(format!("{} {error}", error.line), told, "{text}");
        }
    }
    let error = document(b"", fields(&["t"]), 1).unwrap_err();
    assert_eq!(error.to_string(), "no record: empty");
    for (data, byte) in [
        (&b"[{\"t\":\"a\"},\n\"\xc3\"]"[..], 13),
        (b"[\n\xe2\x82", 2),
    ] {
        for size in 1..=data.len() {
            let error = document(data, fields(&["t"]), size).unwrap_err();
            assert_eq!((error.line, error.hint), (2, Hint::Encoding));
            assert_eq!(error.problem, format!("byte {byte} is not UTF-8"));
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
            let long = "not JSON, or a record of more than 4096 bytes";
            assert!(error.problem == long || cut, "{error}");
        }
        for end in ["", "{\"t\":\"a\"}]"] {
            let spaces = format!("[{}{end}", " ".repeat(20_000));
            let error = document(spaces.as_bytes(), fields(&["t"]), size).unwrap_err();
            assert_eq!(error.hint, Hint::Limit);
            assert_eq!(error.problem, "white space of more than 4096 bytes");
        }
    }
    // Only an incomplete record is kept.
    let mut document = Document::new(fields(&["t"]), LIMITS);
    for part in [&b"["[..], b"{\"t\":\"abc\"}, {\"t", b"\":\"d\"},"] {
        document.feed(part).unwrap();
        assert!(document.pending() < 5);
    }
}

proptest! {
    /// Every written text is read back unchanged, whatever it contains.
    #[test]
    fn quoted_texts_are_found(texts in proptest::collection::vec("\\PC{0,40}|[\0-\x7f]{0,70}|.{0,5}", 0..6)) {
        let mut lines = Vec::new();
        for text in &texts {
            lines.extend(b"{\"text\": ");
            serde_json::to_writer(&mut lines, text).unwrap();
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
