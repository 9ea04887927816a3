//! One record found: `serde_json` passes over every value and lends it, and those that are asked for are looked into.
//!
//! A value is borrowed as a [`RawValue`] before it is looked at, so its form is beyond doubt, and what is wrong with
//! it then is what it holds. `serde_json` passes over values without recursion; here recursion goes down the
//! paths that are asked for, and [`DEPTH`] bounds it.

use memchr::{memchr, memchr_iter};
use serde::de::Deserializer as _;
use serde::de::{Deserialize as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::error::{Problem, quoted};
use super::paths::{Fields, Node, steps};
use super::writer::unescape;
use super::{Found, Limits, Text};
use crate::Hidden;

/// Lists and objects within each other, on the path to a text, up to which a record is read.
pub(super) const DEPTH: usize = 100;

/// A problem at a byte of the block.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) items: Vec<usize>,
    pub(super) problem: Problem,
    /// Whether it is that the block ends: more of it may mend that.
    pub(super) is_cut: bool,
}

impl Wrong {
    pub(super) fn new(at: usize, problem: Problem) -> Box<Wrong> {
        Box::new(Wrong {
            at,
            items: Vec::new(),
            problem,
            is_cut: false,
        })
    }

    /// A rule of JSON that is broken.
    pub(super) fn not_json(at: usize, reason: &str) -> Box<Wrong> {
        let problem = Problem::NotJson {
            // Where it is placed, characters are counted.
            character: 0,
            reason: reason.to_owned(),
        };
        Wrong::new(at, problem)
    }
}

/// How many bytes of white space there are.
pub(super) fn white(text: &[u8]) -> usize {
    let is_white = |b: &&u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
    text.iter().take_while(is_white).count()
}

/// Finds the strings of records in a block of text.
pub(super) struct Reader<'a> {
    block: &'a str,
    fields: &'a Fields,
    limits: &'a Limits,
    pub(super) found: Found,
    /// The way to the object that is read.
    path: String,
    /// Where among the other fields' names the next one is likely to be: records are alike.
    next: usize,
    /// In which object each node's field was met last.
    met: Vec<usize>,
    /// How many there were.
    objects: usize,
    /// Texts that may have been found when the record ends.
    most: usize,
    /// The different payers of the record; None for a place without a name.
    payers: Vec<Option<String>>,
    /// Where the last value of the record ends.
    reached: usize,
    /// What is wrong, where `serde_json` only hears that something is.
    wrong: Option<Box<Wrong>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &'a str, fields: &'a Fields, limits: &'a Limits) -> Self {
        Reader {
            block,
            fields,
            limits,
            found: Found::default(),
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

    /// Reads the record that starts at a byte, and ends before another: where it ends. What was found of a wrong one
    /// is forgotten.
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
                Ok(_) => Wrong::new(start, Problem::NotAnObject),
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
        if !fields.ways.iter().all(met) {
            let lacking = (0..fields.ways.len()).filter(|&column| !met(&fields.ways[column]));
            return Err(self.missing(lacking, text));
        }
        self.pay(start)?;
        let closing = white(&block.as_bytes()[self.reached..end]);
        Ok(self.reached + closing + 1)
    }

    /// Counts an object: which one it is, as in `met`.
    fn next_object(&mut self) -> usize {
        self.objects += 1;
        self.objects
    }

    /// Where a part of the block starts.
    fn start_of(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.block.as_ptr().addr()
    }

    /// Reads a field: its name, quotes and all, and its value.
    fn field(
        &mut self,
        (node, object, depth): (&'a Node, usize, usize),
        key: &'a str,
        value: &'a str,
    ) -> Result<(), Box<Wrong>> {
        let mut name = &key[1..key.len() - 1];
        let mut unescaped = String::new();
        // A half of a surrogate pair is in no name that is asked for; others are noted as they are written.
        if memchr(b'\\', name.as_bytes()).is_some() && unescape(name, &mut unescaped).is_some() {
            name = &unescaped;
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

    /// Keeps the name of a field that was not asked for.
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

    /// Reads a value at or below which something is asked for.
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
                let field = node.name.clone();
                let problem = Problem::Kind {
                    field,
                    held,
                    wanted,
                };
                Err(Wrong::new(self.start_of(value), problem))
            }
        }
    }

    fn text(&mut self, node: &Node, column: usize, value: &str) -> Result<(), Box<Wrong>> {
        let start = self.start_of(value);
        let found = &mut self.found;
        if found.texts.len() == self.most {
            let most = self.limits.texts();
            return Err(Wrong::new(start, Problem::ManyTexts { most }));
        }
        let inner = &value[1..value.len() - 1];
        let mut unescaped = None;
        if memchr(b'\\', inner.as_bytes()).is_some() {
            let from = found.unescaped.len();
            if unescape(inner, &mut found.unescaped).is_none() {
                let field = node.name.clone();
                return Err(Wrong::new(start, Problem::HalfSurrogate { field }));
            }
            unescaped = Some(from..found.unescaped.len());
        }
        found.texts.push(Text {
            place: start..start + value.len(),
            unescaped,
            column,
        });
        Ok(())
    }

    fn deep(&self, node: &Node, value: &str, depth: usize) -> Result<(), Box<Wrong>> {
        if depth < DEPTH {
            return Ok(());
        }
        let problem = Problem::Deep {
            field: node.name.clone(),
            deepest: DEPTH,
        };
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
        // Behind the way is a point.
        self.path.pop();
        let way = self.path.len();
        self.path.push_str("[].");
        let visitor = List {
            reader: &mut *self,
            // A column of text may hold lists of text.
            node: node.items.as_deref().unwrap_or(node),
            depth,
        };
        let read = Deserializer::from_str(value).deserialize_seq(visitor);
        self.within(read, value)?;
        self.path.truncate(way);
        self.path.push('.');
        Ok(())
    }

    /// What was wrong within a value.
    fn within(&mut self, read: serde_json::Result<()>, value: &str) -> Result<(), Box<Wrong>> {
        let Err(error) = read else { return Ok(()) };
        let wrong = self.wrong.take();
        Err(wrong.unwrap_or_else(|| self.not_json(&error, self.start_of(value), value)))
    }

    fn payer(&mut self, value: &str) {
        let inner = value.get(1..value.len() - 1).unwrap_or("");
        let name = match value.as_bytes().first() {
            Some(b'"') => {
                let mut name = String::new();
                let whole = unescape(inner, &mut name).is_some() && !name.is_empty();
                whole.then_some(name)
            }
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

    /// Notes who pays for a record's texts: everything on the way to the account names the same one.
    fn pay(&mut self, start: usize) -> Result<(), Box<Wrong>> {
        let Some(field) = self.fields.account() else {
            return Ok(());
        };
        let field = field.to_owned();
        let problem = match (self.payers.len(), self.payers.contains(&None)) {
            (1, false) => {
                let texts = self.found.texts.len();
                let name = self.payers.pop().flatten().unwrap_or_default();
                self.found.payers.push((texts, name));
                return Ok(());
            }
            (0, _) | (_, true) => Problem::NoAccount { field },
            (names, false) => Problem::SeveralAccounts { field, names },
        };
        Err(Wrong::new(start, problem))
    }

    /// The first of the columns that an object lacks; the account before all.
    fn missing(&self, columns: impl Iterator<Item = usize>, object: &str) -> Box<Wrong> {
        let (accounts, texts): (Vec<usize>, Vec<usize>) =
            columns.partition(|&column| self.fields.is_account(column));
        let at = self.start_of(object);
        if let ([_, ..], Some(field)) = (&*accounts, self.fields.account()) {
            let field = field.to_owned();
            return Wrong::new(at, Problem::NoAccount { field });
        }
        let first = texts.into_iter().min().unwrap_or_default();
        let column = self.fields.columns().get(first).cloned();
        let column = column.unwrap_or_default();
        let names = Deserializer::from_str(object).deserialize_map(Names);
        let names = names.unwrap_or_default();
        let problem = Problem::Missing {
            is_path: steps(&column).len() > 1,
            column,
            fields: names.len(),
            names: Hidden::new(names.join(", ")),
        };
        Wrong::new(at, problem)
    }

    /// What `serde_json` found wrong in a text that starts at a byte of the block.
    fn not_json(&self, error: &serde_json::Error, start: usize, text: &str) -> Box<Wrong> {
        // It counts lines and columns, which are bytes, from 1 on; the column is of what it read last.
        let ends = memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
        let line = std::iter::once(0).chain(ends).nth(error.line() - 1);
        let reached = (line.unwrap_or(0) + error.column()).min(text.len());
        let told = error.to_string();
        // Of an end and of a control character it has not read on.
        let is_unread = error.is_eof() || told.starts_with("control character");
        // Where it wants hexadecimal digits, it counts bytes of other characters.
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
            Some(name) => Wrong::new(start + at, Problem::NoNumber(Hidden::new(*name))),
            None => {
                let reason = told.split(" at line ").next().unwrap_or_default();
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
                wrong.items.insert(0, count);
                self.reader.wrong = Some(wrong);
                return Err(A::Error::custom("a wrong item"));
            }
        }
        Ok(())
    }
}

/// Lists the different names of an object's fields.
struct Names;

impl<'a> Visitor<'a> for Names {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let (mut names, mut seen) = (Vec::new(), std::collections::HashSet::new());
        while let Some((key, _)) = map.next_entry::<&RawValue, IgnoredAny>()? {
            let inner = &key.get()[1..key.get().len() - 1];
            let mut name = String::new();
            let name = match unescape(inner, &mut name) {
                Some(()) => name,
                None => inner.to_owned(),
            };
            let name = quoted(&name);
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
        Ok(names)
    }
}
