//! Finds the strings of one record: `serde_json` skips over every value and returns it as borrowed
//! text, and the reader looks into those that are requested.
//!
//! A value is borrowed as a [`RawValue`] before it is examined. Its syntax is then known to be
//! valid, and later problems concern its content. `serde_json` skips over values without recursion.
//! Recursion happens only along requested paths, and [`DEPTH`] limits it.

use std::collections::BTreeMap;

use memchr::{memchr, memchr_iter};
use serde::de::Deserializer as _;
use serde::de::{Deserialize as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::error::{Hint, RecordError, quoted};
use super::paths::{Fields, Node, steps};
use super::{FoundStrings, Limits, Text};
use crate::Hidden;

/// Maximum nesting of lists and objects on the path to a text.
pub(super) const DEPTH: usize = 100;

/// A problem at a byte of the block; its line is not known yet.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) error: RecordError,
    /// Whether a rule of JSON is broken: `placed` counts the characters before.
    pub(super) is_not_json: bool,
    /// Whether the problem is that the block ends: more input may solve it.
    pub(super) is_cut: bool,
}

impl Wrong {
    pub(super) fn new(at: usize, problem: impl Into<String>) -> Box<Wrong> {
        Box::new(Wrong {
            at,
            error: RecordError::new(problem),
            is_not_json: false,
            is_cut: false,
        })
    }

    /// The problem of a broken JSON rule.
    pub(super) fn not_json(at: usize, reason: &str) -> Box<Wrong> {
        let mut wrong = Wrong::new(at, reason);
        wrong.is_not_json = true;
        wrong
    }

    /// The problem of a limit.
    pub(super) fn too_long(at: usize, problem: String) -> Box<Wrong> {
        let mut wrong = Wrong::new(at, problem);
        wrong.error.hint = Hint::Limit;
        wrong
    }
}

/// The content of a string in quotes; none if it has half of a surrogate pair, which is copied in values that are not
/// requested.
fn unescaped(quoted: &str) -> Option<String> {
    serde_json::from_str(quoted).ok()
}

fn no_account(field: &str) -> String {
    format!("no account: field {field} is missing or holds no name")
}

/// The number of bytes of leading white space.
pub(super) fn white(text: &[u8]) -> usize {
    let is_white = |b: &&u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
    text.iter().take_while(is_white).count()
}

/// Finds the strings of records in a block of text.
pub(super) struct Reader<'a> {
    block: &'a str,
    fields: &'a Fields,
    limits: &'a Limits,
    pub(super) found: FoundStrings,
    /// The path to the current object.
    path: String,
    /// The likely index of the next name among the names of unrequested fields: records are
    /// similar.
    next: usize,
    /// For each node: the object in which its field was last found.
    met: Vec<usize>,
    /// Number of objects so far.
    objects: usize,
    /// Maximum number of texts found by the end of the record.
    most: usize,
    /// The record's different accounts; `None` for a position without a name.
    payers: Vec<Option<String>>,
    /// The end of the record's last value.
    reached: usize,
    /// The problem, which `serde_json` passes on only as a failure.
    wrong: Option<Box<Wrong>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &'a str, fields: &'a Fields, limits: &'a Limits) -> Self {
        Reader {
            block,
            fields,
            limits,
            found: FoundStrings::default(),
            path: String::new(),
            next: 0,
            met: vec![0; fields.nodes],
            objects: 0,
            most: 0,
            payers: Vec::new(),
            reached: 0,
            wrong: None,
        }
    }

    /// Reads the record that starts at `start` and ends before `end`; returns where it ends. After
    /// an error, the findings of this record are dropped.
    pub(super) fn record(&mut self, start: usize, end: usize) -> Result<usize, Box<Wrong>> {
        let (texts, unescaped) = (self.found.texts.len(), self.found.unescaped.len());
        let read = self.whole_record(start, end);
        if read.is_err() {
            self.found.texts.truncate(texts);
            self.found.unescaped.truncate(unescaped);
        }
        read
    }

    fn whole_record(&mut self, start: usize, end: usize) -> Result<usize, Box<Wrong>> {
        let block = self.block;
        let text = &block[start..end];
        let mut json = Deserializer::from_str(text);
        if !text.starts_with('{') {
            return Err(match IgnoredAny::deserialize(&mut json) {
                Ok(_) => Wrong::new(start, "not a JSON object"),
                Err(error) => self.not_json(&error, start, text),
            });
        }
        self.most = self.found.texts.len() + self.limits.texts();
        self.payers.clear();
        self.path.clear();
        self.next = 0;
        self.reached = start + 1;
        let (fields, object) = (self.fields, self.next_object());
        let visitor = Object {
            reader: &mut *self,
            node: &fields.root,
            object,
            depth: 0,
        };
        if let Err(error) = json.deserialize_map(visitor) {
            let wrong = self.wrong.take();
            return Err(wrong.unwrap_or_else(|| self.not_json(&error, start, text)));
        }
        let met = |way: &Vec<usize>| way.iter().any(|&node| self.met[node] == object);
        if !fields.roots.iter().all(met) {
            let lacking = (0..fields.roots.len()).filter(|&column| !met(&fields.roots[column]));
            return Err(self.missing(lacking, text));
        }
        self.pay(start)?;
        let closing = white(&block.as_bytes()[self.reached..end]);
        Ok(self.reached + closing + 1)
    }

    /// Counts an object; returns its number for `met`.
    fn next_object(&mut self) -> usize {
        self.objects += 1;
        self.objects
    }

    /// The position of a part in the block.
    fn start_of(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.block.as_ptr().addr()
    }

    /// Reads a field: its name, with quotes, and its value.
    fn field(
        &mut self,
        (node, object, depth): (&'a Node, usize, usize),
        key: &'a str,
        value: &'a str,
    ) -> Result<(), Box<Wrong>> {
        let mut name = &key[1..key.len() - 1];
        let unescaped = memchr(b'\\', name.as_bytes()).and_then(|_| unescaped(key));
        // No requested name has half of a surrogate pair; other names are recorded as written.
        if let Some(unescaped) = &unescaped {
            name = unescaped;
        }
        match node.fields.iter().find(|(known, _)| known == name) {
            Some((_, child)) => {
                let way = self.path.len();
                self.path.push_str(name);
                self.path.push('.');
                self.value(child, value, depth + 1)?;
                self.met[child.number] = object;
                self.path.truncate(way);
            }
            None => self.note(name),
        }
        Ok(())
    }

    /// Records the name of a field that was not requested.
    fn note(&mut self, name: &str) {
        let way = &self.path;
        let known = |other: &String| other.strip_prefix(&**way) == Some(name);
        let others = &mut self.found.others;
        let at = match others.get(self.next).is_some_and(known) {
            true => self.next,
            false => others.iter().position(known).unwrap_or(others.len()),
        };
        if at == others.len() && at < self.limits.names {
            others.push(format!("{way}{name}"));
        }
        self.next = at + 1;
    }

    /// Reads a value at which, or below which, a field is requested.
    fn value(&mut self, node: &'a Node, value: &'a str, depth: usize) -> Result<(), Box<Wrong>> {
        if node.column.is_some_and(|c| self.fields.is_account(c)) {
            self.payer(value);
            return Ok(());
        }
        let may_be_list = node.items.is_some() || node.column.is_some();
        match (value.as_bytes().first(), node.column) {
            (Some(b'"'), Some(column)) => self.text(node, column, value),
            (Some(b'{'), _) if !node.fields.is_empty() => self.object(node, value, depth),
            (Some(b'['), _) if may_be_list => self.list(node, value, depth),
            (Some(b'n'), _) => {
                if node.has_account {
                    self.add_payer(None);
                }
                Ok(())
            }
            (first, _) => {
                let held = match first {
                    Some(b'"') => "a str",
                    Some(b'{') => "a dict",
                    Some(b'[') => "a list",
                    Some(b't' | b'f') => "a bool",
                    _ => "a number",
                };
                let wanted = match node {
                    _ if node.column.is_some() => "text",
                    _ if !node.fields.is_empty() => "a dict",
                    _ => "a list",
                };
                let field = quoted(&node.name);
                let problem = format!("field {field} holds {held}, not {wanted}");
                Err(Wrong::new(self.start_of(value), problem))
            }
        }
    }

    fn text(&mut self, node: &Node, column: usize, value: &str) -> Result<(), Box<Wrong>> {
        let start = self.start_of(value);
        let found = &mut self.found;
        if found.texts.len() == self.most {
            let most = self.limits.texts();
            let problem = format!("a record of more than {most} texts");
            return Err(Wrong::too_long(start, problem));
        }
        let inner = &value[1..value.len() - 1];
        let mut place_of = None;
        if memchr(b'\\', inner.as_bytes()).is_some() {
            let Some(text) = unescaped(value) else {
                let field = quoted(&node.name);
                let problem = format!("field {field} holds a text with half of a surrogate pair");
                return Err(Wrong::new(start, problem));
            };
            let from = found.unescaped.len();
            found.unescaped.push_str(&text);
            place_of = Some(from..found.unescaped.len());
        }
        found.texts.push(Text {
            place: start..start + value.len(),
            unescaped: place_of,
            column,
        });
        Ok(())
    }

    fn deep(&self, node: &Node, value: &str, depth: usize) -> Result<(), Box<Wrong>> {
        if depth < DEPTH {
            return Ok(());
        }
        let field = quoted(&node.name);
        let problem = format!(
            "field {field} holds lists and objects more than {DEPTH} deep within each other"
        );
        Err(Wrong::new(self.start_of(value), problem))
    }

    fn object(&mut self, node: &'a Node, value: &'a str, depth: usize) -> Result<(), Box<Wrong>> {
        self.deep(node, value, depth)?;
        let object = self.next_object();
        let visitor = Object {
            reader: &mut *self,
            node,
            object,
            depth,
        };
        let read = Deserializer::from_str(value).deserialize_map(visitor);
        self.within(read, value)?;
        let there = |(_, field): &&(String, Node)| self.met[field.number] == object;
        if node.fields.iter().all(|field| there(&field)) {
            return Ok(());
        }
        let mut lacking = Vec::new();
        for (_, field) in node.fields.iter().filter(|field| !there(field)) {
            field.columns(&mut lacking);
        }
        Err(self.missing(lacking.into_iter(), value))
    }

    fn list(&mut self, node: &'a Node, value: &'a str, depth: usize) -> Result<(), Box<Wrong>> {
        self.deep(node, value, depth)?;
        // A point follows the path.
        self.path.pop();
        let way = self.path.len();
        self.path.push_str("[].");
        let visitor = List {
            reader: &mut *self,
            // A text column may hold lists of texts.
            node: node.items.as_deref().unwrap_or(node),
            depth,
        };
        let read = Deserializer::from_str(value).deserialize_seq(visitor);
        self.within(read, value)?;
        self.path.truncate(way);
        self.path.push('.');
        Ok(())
    }

    /// Returns the problem within a value.
    fn within(&mut self, read: serde_json::Result<()>, value: &str) -> Result<(), Box<Wrong>> {
        let Err(error) = read else { return Ok(()) };
        let wrong = self.wrong.take();
        Err(wrong.unwrap_or_else(|| self.not_json(&error, self.start_of(value), value)))
    }

    fn payer(&mut self, value: &str) {
        let name = match value.as_bytes().first() {
            Some(b'"') => unescaped(value).filter(|name| !name.is_empty()),
            Some(b'-' | b'0'..=b'9') if !value.contains(['.', 'e', 'E']) => {
                Some(if value == "-0" { "0" } else { value }.to_owned())
            }
            _ => None,
        };
        self.add_payer(name);
    }

    fn add_payer(&mut self, payer: Option<String>) {
        if !self.payers.contains(&payer) {
            self.payers.push(payer);
        }
    }

    /// Records the account of a record's texts: every value on the path to the account must name
    /// the same one.
    fn pay(&mut self, start: usize) -> Result<(), Box<Wrong>> {
        let Some(field) = self.fields.account() else {
            return Ok(());
        };
        let field = quoted(field);
        let problem = match (self.payers.len(), self.payers.contains(&None)) {
            (1, false) => {
                let texts = self.found.texts.len();
                let name = self.payers.pop().flatten().unwrap_or_default();
                self.found.payers.push((texts, name));
                return Ok(());
            }
            (0, _) | (_, true) => no_account(&field),
            (names, false) => format!("several accounts: field {field} holds {names} names"),
        };
        Err(Wrong::new(start, problem))
    }

    /// The first column that an object lacks; the account comes before all columns.
    fn missing(&self, columns: impl Iterator<Item = usize>, object: &str) -> Box<Wrong> {
        let (accounts, texts): (Vec<usize>, Vec<usize>) =
            columns.partition(|&column| self.fields.is_account(column));
        let at = self.start_of(object);
        if let ([_, ..], Some(field)) = (&*accounts, self.fields.account()) {
            return Wrong::new(at, no_account(&quoted(field)));
        }
        let first = texts.into_iter().min().unwrap_or_default();
        let column = self.fields.columns().get(first);
        let column = column.map_or("", String::as_str);
        let shown = quoted(column);
        let names =
            BTreeMap::<String, IgnoredAny>::deserialize(&mut Deserializer::from_str(object));
        let problem = match &names {
            _ if steps(column).len() > 1 => format!("field {shown} is not there"),
            Ok(names) => format!("none of its {} fields is called {shown}", names.len()),
            // A name has half of a surrogate pair.
            Err(_) => format!("no field is called {shown}"),
        };
        let names = names.unwrap_or_default().into_keys();
        let names: Vec<String> = names.map(|name| quoted(&name)).collect();
        let mut wrong = Wrong::new(at, problem);
        wrong.error.content = Some(Hidden::new(names.join(", ")));
        wrong
    }

    /// The problem that `serde_json` found in a text that starts at a byte of the block.
    fn not_json(&self, error: &serde_json::Error, start: usize, text: &str) -> Box<Wrong> {
        // `serde_json` counts lines and columns (in bytes) from 1; the column is that of the last
        // byte it read.
        let ends = memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
        let line = std::iter::once(0).chain(ends).nth(error.line() - 1);
        let reached = (line.unwrap_or(0) + error.column()).min(text.len());
        let message = error.to_string();
        // At an end or a control character, it has not read that byte.
        let is_unread = error.is_eof() || message.starts_with("control character");
        // Where it expects hexadecimal digits, it counts the bytes of other characters.
        let most = reached - usize::from(!is_unread && reached > 0);
        let whole = (0..=most).rev().find(|&at| text.is_char_boundary(at));
        let at = whole.unwrap_or(0);
        let rest = &text[at..];
        let constants = ["NaN", "Infinity", "-Infinity"];
        let constant = constants.iter().find(|name| rest.starts_with(*name));
        let is_cut = error.is_eof()
            || reached == text.len()
            || constants.iter().any(|name| name.starts_with(rest));
        let mut wrong = match constant {
            Some(name) => {
                let mut wrong = Wrong::new(start + at, "a number that JSON does not have");
                wrong.error.content = Some(Hidden::new(*name));
                wrong
            }
            None => {
                let reason = message.split(" at line ").next().unwrap_or_default();
                Wrong::not_json(start + at, reason)
            }
        };
        wrong.is_cut = is_cut;
        wrong
    }
}

/// Reads the fields of an object.
struct Object<'r, 'a> {
    reader: &'r mut Reader<'a>,
    node: &'a Node,
    object: usize,
    depth: usize,
}

impl<'a> Visitor<'a> for Object<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let place = (self.node, self.object, self.depth);
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let value = value.get();
            if let Err(wrong) = self.reader.field(place, key.get(), value) {
                self.reader.wrong = Some(wrong);
                return Err(A::Error::custom("a wrong value"));
            }
            if self.depth == 0 {
                self.reader.reached = self.reader.start_of(value) + value.len();
            }
        }
        Ok(())
    }
}

/// Reads the items of a list.
struct List<'r, 'a> {
    reader: &'r mut Reader<'a>,
    node: &'a Node,
    depth: usize,
}

impl<'a> Visitor<'a> for List<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let mut count = 0;
        while let Some(item) = list.next_element::<&RawValue>()? {
            count += 1;
            if let Err(mut wrong) = self.reader.value(self.node, item.get(), self.depth + 1) {
                wrong.error.items.insert(0, count);
                self.reader.wrong = Some(wrong);
                return Err(A::Error::custom("a wrong item"));
            }
        }
        Ok(())
    }
}
