//! JSON records, one a line: the strings of some fields found and replaced, all else copied byte for byte.
//!
//! What this finds is certain. Of a block that is not what was asked for in every line, it says no more than
//! that: whoever asked finds out what is wrong with it.

use std::ops::Range;

/// Lists and objects within each other up to which a line is read here.
const DEPTH: usize = 100;

/// The fields that are asked for, as a tree: those of a record, and below.
///
/// A record must have every one of them: each object on the way to it has the next field, in every item of a
/// list. Nothing is below `null` and an empty list. Where a column has several ways, in the record itself one
/// will do.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    root: Node,
    nodes: usize,
    /// For every column the nodes below the root that its ways begin with.
    ways: Vec<Vec<usize>>,
}

/// What is asked for at a place of a record, and below.
#[derive(Clone, Debug, Default)]
struct Node {
    number: usize,
    /// Strings here, and in lists of them, are this column.
    column: Option<usize>,
    fields: Vec<(String, Node)>,
    /// What is asked for in the items of a list.
    items: Option<Box<Node>>,
}

impl Fields {
    /// Fields by where they stand and which column each is: the steps from a record to it, names of
    /// fields, and "" for the items of a list.
    pub fn new<S: AsRef<str>>(places: &[(Vec<S>, usize)]) -> Self {
        let Fields {
            mut root,
            mut nodes,
            mut ways,
        } = Fields::default();
        for (steps, column) in places {
            let mut node = &mut root;
            let mut first = None;
            for step in steps {
                node = node.below(step.as_ref(), &mut nodes);
                first.get_or_insert(node.number);
            }
            node.column = Some(*column);
            ways.resize(ways.len().max(column + 1), Vec::new());
            ways[*column].extend(first);
        }
        Fields { root, nodes, ways }
    }
}

impl Node {
    /// The node one step below, which is made and counted where there is none.
    fn below(&mut self, step: &str, nodes: &mut usize) -> &mut Node {
        let mut new = || {
            *nodes += 1;
            Node {
                number: *nodes - 1,
                ..Node::default()
            }
        };
        if step.is_empty() {
            return self.items.get_or_insert_with(|| Box::new(new()));
        }
        let known = self.fields.iter().position(|(name, _)| name == step);
        let at = known.unwrap_or_else(|| {
            self.fields.push((step.to_owned(), new()));
            self.fields.len() - 1
        });
        &mut self.fields[at].1
    }
}

/// A string that was found.
#[derive(Clone, Debug)]
struct Text {
    /// Where it stands in the block, quotes and all.
    place: Range<usize>,
    /// Where it stands among the unescaped ones, if it has escapes.
    unescaped: Option<Range<usize>>,
    column: usize,
}

/// The strings that were found in a block, in order.
#[derive(Clone, Default)]
pub struct Strings {
    texts: Vec<Text>,
    unescaped: String,
    others: Vec<String>,
}

impl std::fmt::Debug for Strings {
    /// Without what they say.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Strings");
        debug.field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Strings {
    /// The strings of some fields in a block of records, one a line, and the names of other fields, at most
    /// `names` different ones. None if a line is no JSON object, or lacks one of the [`Fields`], or has it in
    /// another way than with texts, or more than `most` texts, or where it may be asked whether it is JSON:
    /// with numbers that are none, with halves of surrogate pairs in a name or a text, with values deep within
    /// each other.
    pub fn find(block: &str, fields: &Fields, names: usize, most: usize) -> Option<Strings> {
        let mut scan = Scan {
            block,
            at: 0,
            end: 0,
            found: Strings::default(),
            path: String::new(),
            name: String::new(),
            names,
            next: 0,
            met: vec![0; fields.nodes],
            objects: 0,
            most,
        };
        while scan.at < block.len() {
            let rest = &block.as_bytes()[scan.at..];
            scan.end = scan.at + end_of_line(rest);
            scan.white();
            if scan.at < scan.end {
                scan.next = 0;
                scan.most = scan.found.len() + most;
                (scan.sign()? == b'{').then_some(())?;
                let record = scan.fields_of(&fields.root, 0)?;
                let met = |way: &Vec<usize>| way.iter().any(|&node| scan.met[node] == record);
                fields.ways.iter().all(met).then_some(())?;
                scan.white();
                (scan.at == scan.end).then_some(())?;
            }
            scan.at = scan.end + 1;
        }
        Some(scan.found)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// What they say.
    pub fn texts<'a>(&'a self, block: &'a str) -> Vec<&'a str> {
        let text = |text: &Text| match &text.unescaped {
            Some(range) => &self.unescaped[range.clone()],
            None => &block[text.place.start + 1..text.place.end - 1],
        };
        self.texts.iter().map(text).collect()
    }

    /// At which byte each starts, and which column it belongs to.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.texts.iter().map(|t| (t.place.start, t.column))
    }

    /// Names of fields that were not asked for, by their path, in the order they came.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// The block with other strings in their places, one for each; none if there are more or fewer of them, for
    /// no string may stay.
    pub fn replaced<S: AsRef<str>>(&self, block: &str, new: &[S]) -> Option<Vec<u8>> {
        if new.len() != self.len() {
            return None;
        }
        let size: usize = new.iter().map(|text| text.as_ref().len()).sum();
        let mut out = Vec::with_capacity(block.len() + size + size / 16);
        let mut done = 0;
        for (text, new) in self.texts.iter().zip(new) {
            out.extend_from_slice(&block.as_bytes()[done..text.place.start]);
            quote(new.as_ref(), &mut out);
            done = text.place.end;
        }
        out.extend_from_slice(&block.as_bytes()[done..]);
        Some(out)
    }
}

/// Where a line ends.
fn end_of_line(rest: &[u8]) -> usize {
    let whole = |chunk: &&[u8]| !chunk.iter().fold(false, |found, &b| found | (b == b'\n'));
    let before = 64 * rest.chunks_exact(64).take_while(whole).count();
    let within = rest[before..].iter().position(|&b| b == b'\n');
    within.map_or(rest.len(), |at| before + at)
}

/// How many bytes stand for themselves in a string of JSON: up to a quote, a backslash or a control character.
#[inline]
fn plain(rest: &[u8]) -> usize {
    let special = |b: u8| (b == b'"') | (b == b'\\') | (b < b' ');
    let whole = |chunk: &&[u8]| !chunk.iter().fold(false, |found, &b| found | special(b));
    let before = 32 * rest.chunks_exact(32).take_while(whole).count();
    let within = rest[before..].iter().position(|&b| special(b));
    within.map_or(rest.len(), |at| before + at)
}

/// Writes a string as JSON, as Python's `json` does with `ensure_ascii=False`.
fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (before, after) = rest.split_at(plain(rest));
        out.extend_from_slice(before);
        let Some((&special, after)) = after.split_first() else {
            break;
        };
        match special {
            b'"' | b'\\' => out.extend([b'\\', special]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            8 => out.extend(b"\\b"),
            12 => out.extend(b"\\f"),
            _ => out.extend(format!("\\u{special:04x}").into_bytes()),
        }
        rest = after;
    }
    out.push(b'"');
}

/// A line that is being read. Every step is None where the line is not what is asked for.
struct Scan<'a> {
    block: &'a str,
    at: usize,
    /// Of the line.
    end: usize,
    found: Strings,
    /// The way to the object that is read.
    path: String,
    /// A field's name.
    name: String,
    names: usize,
    /// Where among the other fields' names the next one is likely to be: records are alike.
    next: usize,
    /// In which object each node's field was met last.
    met: Vec<usize>,
    /// How many there were.
    objects: usize,
    /// Texts that may have been found when the record ends.
    most: usize,
}

impl Scan<'_> {
    fn sign(&self) -> Option<u8> {
        (self.at < self.end).then(|| self.block.as_bytes()[self.at])
    }

    fn white(&mut self) {
        while matches!(self.sign(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Passes over a sign.
    fn over(&mut self, sign: u8) -> Option<()> {
        (self.sign()? == sign).then(|| self.at += 1)
    }

    /// Passes over white space, and what is between two items of an object or a list, or behind the last:
    /// whether another one follows.
    fn goes_on(&mut self, closing: u8) -> Option<bool> {
        self.white();
        let sign = self.sign()?;
        self.at += 1;
        match sign {
            b',' => {
                self.white();
                Some(true)
            }
            _ => (sign == closing).then_some(false),
        }
    }

    /// Whether what opens here, an object or a list, has items.
    fn opens(&mut self, closing: u8) -> Option<bool> {
        self.at += 1;
        self.white();
        let some = self.sign()? != closing;
        self.at += usize::from(!some);
        Some(some)
    }

    /// Reads an object that has all of the fields asked for.
    fn object(&mut self, node: &Node, depth: usize) -> Option<()> {
        let object = self.fields_of(node, depth)?;
        let there = |(_, field): &(String, Node)| self.met[field.number] == object;
        node.fields.iter().all(there).then_some(())
    }

    /// Reads an object: which one it is, as in `met`.
    fn fields_of(&mut self, node: &Node, depth: usize) -> Option<usize> {
        self.objects += 1;
        let object = self.objects;
        let mut more = self.opens(b'}')?;
        while more {
            self.name.clear();
            let (mut name, way) = (std::mem::take(&mut self.name), self.path.len());
            self.key(&mut name)?;
            match node.fields.iter().find(|(known, _)| *known == name) {
                Some((_, child)) => {
                    self.path.push_str(&name);
                    self.path.push('.');
                    self.value(child, depth + 1)?;
                    self.met[child.number] = object;
                    self.path.truncate(way);
                }
                None => {
                    self.note(&name);
                    self.skip(depth + 1)?;
                }
            }
            self.name = name;
            more = self.goes_on(b'}')?;
        }
        Some(object)
    }

    /// Reads a field's name, and passes over the colon.
    fn key(&mut self, name: &mut String) -> Option<()> {
        let place = self.string()?;
        match place.1 {
            true => unescape(&self.block[place.0], name)?,
            false => name.push_str(&self.block[place.0]),
        }
        self.white();
        self.over(b':')?;
        self.white();
        Some(())
    }

    /// Keeps the name of a field that was not asked for.
    fn note(&mut self, name: &str) {
        let way = &self.path;
        let known = |other: &String| other.strip_prefix(&**way) == Some(name);
        let others = &mut self.found.others;
        let at = match others.get(self.next).is_some_and(known) {
            true => self.next,
            false => others.iter().position(known).unwrap_or(others.len()),
        };
        if at == others.len() && at < self.names {
            others.push(format!("{way}{name}"));
        }
        self.next = at + 1;
    }

    fn value(&mut self, node: &Node, depth: usize) -> Option<()> {
        match (self.sign()?, node.column) {
            (b'"', Some(column)) => {
                let start = self.at;
                let (inner, escaped) = self.string()?;
                (self.found.len() < self.most).then_some(())?;
                let unescaped = match escaped {
                    true => {
                        let from = self.found.unescaped.len();
                        unescape(&self.block[inner], &mut self.found.unescaped)?;
                        Some(from..self.found.unescaped.len())
                    }
                    false => None,
                };
                self.found.texts.push(Text {
                    place: start..self.at,
                    unescaped,
                    column,
                });
                Some(())
            }
            (b'{', _) if !node.fields.is_empty() => {
                (depth < DEPTH).then_some(())?;
                self.object(node, depth)
            }
            (b'[', column) if node.items.is_some() || column.is_some() => {
                (depth < DEPTH).then_some(())?;
                self.list(node, depth)
            }
            (b'n', _) => self.word(b"null"),
            _ => None,
        }
    }

    fn list(&mut self, node: &Node, depth: usize) -> Option<()> {
        // A column of text may hold lists of text.
        let item = node.items.as_deref().unwrap_or(node);
        // Behind the way is a point.
        self.path.pop();
        let way = self.path.len();
        self.path.push_str("[].");
        let mut more = self.opens(b']')?;
        while more {
            self.value(item, depth + 1)?;
            more = self.goes_on(b']')?;
        }
        self.path.truncate(way);
        self.path.push('.');
        Some(())
    }

    /// Passes over any value.
    fn skip(&mut self, depth: usize) -> Option<()> {
        match self.sign()? {
            b'"' => self.string().map(drop),
            b'{' => {
                (depth < DEPTH).then_some(())?;
                let mut more = self.opens(b'}')?;
                while more {
                    self.string()?;
                    self.white();
                    self.over(b':')?;
                    self.white();
                    self.skip(depth + 1)?;
                    more = self.goes_on(b'}')?;
                }
                Some(())
            }
            b'[' => {
                (depth < DEPTH).then_some(())?;
                let mut more = self.opens(b']')?;
                while more {
                    self.skip(depth + 1)?;
                    more = self.goes_on(b']')?;
                }
                Some(())
            }
            b'n' => self.word(b"null"),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let line = &self.block.as_bytes()[self.at..self.end];
        line.starts_with(word).then(|| self.at += word.len())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.sign().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.over(b'-');
        if self.over(b'0').is_none() {
            self.digits()?;
        }
        if self.over(b'.').is_some() {
            self.digits()?;
        }
        if self.over(b'e').or_else(|| self.over(b'E')).is_some() {
            let _ = self.over(b'+').or_else(|| self.over(b'-'));
            self.digits()?;
        }
        Some(())
    }

    /// Passes over a string: what is between its quotes, and whether that has escapes, which are well formed.
    fn string(&mut self) -> Option<(Range<usize>, bool)> {
        self.over(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain(&self.block.as_bytes()[self.at..self.end]);
            let special = self.sign()?;
            self.at += 1;
            match special {
                b'"' => return Some((start..self.at - 1, escaped)),
                b'\\' => {
                    escaped = true;
                    let kind = self.sign()?;
                    self.at += 1;
                    match kind {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'u' => {
                            hex(self.block.as_bytes().get(self.at..self.end)?)?;
                            self.at += 4;
                        }
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
    }
}

/// The number of four hexadecimal digits.
fn hex(rest: &[u8]) -> Option<u32> {
    let digits = rest.get(..4)?.iter();
    digits
        .map(|&b| char::from(b).to_digit(16))
        .try_fold(0, |n, digit| Some(16 * n + digit?))
}

/// Appends what is between the quotes of a string whose escapes are well formed. None if it has a half of a
/// surrogate pair.
fn unescape(inner: &str, out: &mut String) -> Option<()> {
    out.reserve(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let kind = *rest.as_bytes().get(at + 1)?;
        rest = &rest[at + 2..];
        out.push(match kind {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = hex(rest.as_bytes())?;
                rest = &rest[4..];
                if (0xd800..0xdc00).contains(&code) {
                    let low = hex(rest.strip_prefix("\\u")?.as_bytes())?;
                    let low = low.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
                    code = 0x10000 + ((code - 0xd800) << 10) + low;
                    rest = &rest[6..];
                }
                char::from_u32(code)?
            }
            same => char::from(same),
        });
    }
    out.push_str(rest);
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(paths: &[&[&str]]) -> Fields {
        let steps = |path: &&[&str]| path.iter().map(ToString::to_string).collect();
        let places: Vec<(Vec<String>, usize)> = paths.iter().map(steps).zip(0..).collect();
        Fields::new(&places)
    }

    /// The texts of a block and their columns; none where it is refused.
    fn found(block: &str, paths: &[&[&str]]) -> Option<Vec<(String, usize)>> {
        let strings = Strings::find(block, &fields(paths), 100, 100)?;
        let texts = strings.texts(block).into_iter().map(str::to_owned);
        Some(
            texts
                .zip(strings.places().map(|(_, column)| column))
                .collect(),
        )
    }

    #[test]
    fn strings_are_found_and_replaced() {
        let block = "{\"id\": 1.50, \"text\" : \"a \\\"b\\\" \\u00e9\\ud83d\\ude00\", \"n\":[1,{\"text\":\"no\"}]}\r\n \n\
                     {\"text\":\"\",\"id\":-0e+7}";
        let strings = Strings::find(block, &fields(&[&["text"]]), 100, 100).unwrap();
        assert_eq!(strings.texts(block), ["a \"b\" é😀", ""]);
        assert_eq!(strings.others(), ["id", "n"]);
        let (start, column) = strings.places().next().unwrap();
        assert_eq!((&block[start..start + 3], column), ("\"a ", 0));
        assert!(strings.replaced(block, &["x"]).is_none());
        assert!(strings.replaced(block, &["x"; 3]).is_none());
        let new = strings.replaced(block, &["\"\\\n\u{1}é", "x"]).unwrap();
        assert_eq!(
            String::from_utf8(new).unwrap(),
            "{\"id\": 1.50, \"text\" : \"\\\"\\\\\\n\\u0001é\", \"n\":[1,{\"text\":\"no\"}]}\r\n \n\
             {\"text\":\"x\",\"id\":-0e+7}"
        );
    }

    #[test]
    fn fields_within_others() {
        let paths: &[&[&str]] = &[&["user", "name"], &["items", "", "text"], &["tags"]];
        let block = r#"{"user":{"name":"u","age":3},"items":[{"text":"a"},{"text":null,"more":{"x":1}}],"tags":["s",["t"],null]}"#;
        let texts = [("u", 0), ("a", 1), ("s", 2), ("t", 2)].map(|(t, c)| (t.to_owned(), c));
        assert_eq!(found(block, paths).unwrap(), texts);
        let strings = Strings::find(block, &fields(paths), 100, 100).unwrap();
        assert_eq!(strings.others(), ["user.age", "items[].more"]);
        assert_eq!(
            Strings::find(block, &fields(paths), 1, 100)
                .unwrap()
                .others()
                .len(),
            1
        );
        let empty = r#"{"tags":null,"items":[],"user":null}"#;
        assert_eq!(found(empty, paths), Some(Vec::new()));
    }

    #[test]
    fn every_object_on_the_way_has_the_next_field() {
        type Strs<'a> = &'a [&'a str];
        let cases: &[(&[Strs<'_>], Strs<'_>, Strs<'_>)] = &[
            (
                &[&["m", "", "t"]],
                &[
                    r#"{"m":[]}"#,
                    r#"{"m":[null,{"t":null},{"t":[]}]}"#,
                    r#"{"m":[{"t":"a"},{"t":["b"]}]}"#,
                ],
                &[
                    r#"{"m":[{"x":"a"}]}"#,
                    r#"{"m":[{}]}"#,
                    r#"{"m":[{"t":"a"},{"x":"b"}]}"#,
                    r#"{"m":[{"x":"a"},{"t":"b"}]}"#,
                    r#"{"m":[{"t":"a"}],"m":[{"x":"b"}]}"#,
                    r#"{"m":[[{"t":"a"}]]}"#,
                    r#"{"x":[{"t":"a"}]}"#,
                    r#"{"t":"a"}"#,
                ],
            ),
            (
                &[&["m", "", "", "u", "t"], &["m", "", "", "n"]],
                &[
                    r#"{"m":[[],[{"u":{"t":"a"},"n":"b"}],null]}"#,
                    r#"{"m":[[{"u":null,"n":"b"}]]}"#,
                ],
                &[
                    r#"{"m":[[{"u":{"t":"a"},"n":"b"}],[{"u":{"t":"a"}}]]}"#,
                    r#"{"m":[[{"u":{},"n":"b"}]]}"#,
                    r#"{"m":[[{"u":{"t":"a"},"n":"b"},{"u":{"x":"a"},"n":"b"}]]}"#,
                ],
            ),
            // Text, or objects with text; and a list of either.
            (
                &[&["c"], &["c", "t"]],
                &[
                    r#"{"c":"a"}"#,
                    r#"{"c":{"t":"a"}}"#,
                    r#"{"c":["a",{"t":"b"}]}"#,
                ],
                &[r#"{"c":{"x":"a"}}"#, r#"{"c":["a",{"x":"b"}]}"#],
            ),
        ];
        for (paths, good, bad) in cases {
            for line in *good {
                assert!(found(line, paths).is_some(), "{line}");
            }
            for line in *bad {
                assert_eq!(found(line, paths), None, "{line}");
                let lines = [good[0], line, good[0]].join("\n");
                assert_eq!(found(&lines, paths), None, "{line}");
            }
        }
        // In the record itself a column's other way will do.
        let ways = [(vec!["m", "", "t"], 0), (vec!["m[].t"], 0), (vec!["x"], 1)];
        let ways = Fields::new(&ways);
        let find = |line| Strings::find(line, &ways, 9, 9).map(|found| found.len());
        assert_eq!(find(r#"{"m[].t":"a","x":"b"}"#), Some(2));
        assert_eq!(find(r#"{"m[].t":"a","m":[{"t":"a"}],"x":"b"}"#), Some(3));
        assert_eq!(find(r#"{"m[].t":"a","m":[{"u":"a"}],"x":"b"}"#), None);
        assert_eq!(find(r#"{"m[].t":"a"}"#), None);
    }

    #[test]
    fn a_line_has_so_many_texts_at_most() {
        let fields = fields(&[&["t"]]);
        let block = "{\"t\":[\"a\",\"\",\"b\"]}\n{\"t\":[[\"\"],\"c\"]}\n";
        assert_eq!(Strings::find(block, &fields, 9, 3).unwrap().len(), 5);
        assert!(Strings::find(block, &fields, 9, 2).is_none());
    }

    #[test]
    fn what_is_not_asked_for_is_refused() {
        for line in [
            "",
            " ",
            "{\"text\":\"a\"}",
            "{\"t\\u0065xt\":\"a\"}",
            "{\"text\":null}",
            "{\"text\":[\"a\",[]]}",
            "{\"text\":\"\\/\\b\\f\"}",
            "{\"text\":\"a\",\"x\":\"\\ud800\"}",
            "{\"text\":\"a\",\"x\":1e5}",
            "{\"text\":\"a\",\"text\":\"b\"}",
            "{\"text\":\"\u{7f}\"}",
        ] {
            assert!(found(line, &[&["text"]]).is_some(), "{line}");
        }
        for line in [
            "{",
            "{}",
            "[]",
            "1",
            "{\"text\":\"a\"",
            "{\"text\":\"a}",
            "{\"text\":\"a\"}}",
            "{\"text\":\"a\",}",
            "{\"text\":\"a\" \"b\":1}",
            "{\"text\" \"a\"}",
            "{text:\"a\"}",
            "{\"text\":1}",
            "{\"text\":{}}",
            "{\"text\":true}",
            "{\"text\":\"\\x\"}",
            "{\"text\":\"\\u12g4\"}",
            "{\"text\":\"\\ud800\"}",
            "{\"text\":\"\\ude00\"}",
            "{\"text\":\"\\ud800\\u0041\"}",
            "{\"text\":\"\t\"}",
            "{\"text\":\"a\"}{}",
            "{\"text\":\"a\",\"x\":01}",
            "{\"text\":\"a\",\"x\":1.}",
            "{\"text\":\"a\",\"x\":.5}",
            "{\"text\":\"a\",\"x\":-}",
            "{\"text\":\"a\",\"x\":NaN}",
            "{\"text\":\"a\",\"x\":1e}",
            "{\"text\":\"a\",\"x\":+1}",
            "{\"text\":\"a\",\"x\":nul}",
            "{\"text\":\"a\",\"x\":[1,]}",
            "{\"text\":\"a\",\"x\":{\"y\"}}",
            "{\"text\":\"a\",\"x\":\"\\u12\"}",
            "{\"text\":\"a\",\"\\ud800\":1}",
            "{\"text\":nulll}",
            "{\"text\":\"a\",\"x\":}",
            "\u{a0}{\"text\":\"a\"}",
            "{\"text\":\"a\"}\u{b}",
        ] {
            assert_eq!(found(line, &[&["text"]]), None, "{line}");
            // One such line is enough.
            assert_eq!(
                found(&format!("{{\"text\":\"a\"}}\n{line}\n"), &[&["text"]]),
                None
            );
        }
        let deep = |n| {
            format!(
                "{{\"text\":\"a\",\"x\":{}{}}}",
                "[".repeat(n),
                "]".repeat(n)
            )
        };
        assert!(found(&deep(DEPTH - 1), &[&["text"]]).is_some());
        assert!(found(&deep(100_000), &[&["text"]]).is_none());
    }

    #[test]
    fn long_lines() {
        for length in 0..200 {
            let text = "é".repeat(length);
            let block = format!("{{\"text\":\"{text}\\n\"}}\n{{\"text\":\"{text}\"}}\n");
            let texts = vec![(format!("{text}\n"), 0), (text, 0)];
            assert_eq!(found(&block, &[&["text"]]), Some(texts));
        }
    }

    proptest! {
        /// What is written is read again as it was, whatever it holds.
        #[test]
        fn quoted_texts_are_found(texts in proptest::collection::vec("\\PC{0,40}|[\0-\x7f]{0,70}|.{0,5}", 0..6)) {
            let mut block = Vec::new();
            for text in &texts {
                block.extend(b"{\"text\": ");
                quote(text, &mut block);
                block.extend(b", \"stars\": 4.50}\n");
            }
            let block = String::from_utf8(block).unwrap();
            let strings = Strings::find(&block, &fields(&[&["text"]]), 100, 100).unwrap();
            prop_assert_eq!(strings.texts(&block), &texts[..]);
            prop_assert_eq!(strings.replaced(&block, &texts).unwrap(), block.as_bytes());
        }

        /// Whatever a block holds, nothing is read beyond it.
        #[test]
        fn any_text_is_read_or_refused(block in "([{}\\[\\],:\"\\\\un0-9a-f e.+\n-]|text|\"text\":|null|\\PC){0,60}") {
            if let Some(strings) = Strings::find(&block, &fields(&[&["text"]]), 100, 100) {
                prop_assert_eq!(strings.texts(&block).len(), strings.len());
            }
        }
    }
}
