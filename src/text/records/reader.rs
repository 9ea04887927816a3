//! Finds the strings of one record: `serde_json` skips over every value and returns it as borrowed
//! text, and the reader looks into those that are requested.
//!
//! The whole record is borrowed as a [`RawValue`] first. Its syntax is then known to be
//! valid, and later problems concern its content. `serde_json` skips over values without recursion.
//! Recursion happens only along requested paths, and [`DEPTH`] limits it.

use std::collections::BTreeMap;

use memchr::{memchr, memchr_iter};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{Read, RecordError, quoted};
use super::paths::{Fields, Node, steps};
use super::{FoundStrings, Limits, Text};
use crate::Hidden;

/// Maximum nesting of lists and objects on the path to a text.
pub(super) const DEPTH: usize = 100;

/// The content of a string in quotes; none if it has half of a surrogate pair, which is copied in values that are not
/// requested.
fn unescaped(quoted: &str) -> Option<String> {
    serde_json::from_str(quoted).ok()
}

fn too_deep() -> String {
    format!("lists and objects more than {DEPTH} deep within each other")
}

fn no_account(field: &str) -> String {
    format!("no account: field {field} is missing or holds no name")
}

/// The number of bytes of leading white space.
pub(super) fn white(text: &[u8]) -> usize {
    let is_white = |b: &&u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
    text.iter().take_while(is_white).count()
}

/// The fields of an object, also those that it has twice: names with quotes, and values.
struct Entries<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        from.deserialize_map(All)
    }
}

/// The parts of a value whose syntax is known to be valid.
fn parts<'a, T: Deserialize<'a>>(value: &'a str) -> Read<T> {
    serde_json::from_str(value).map_err(|error| RecordError::not_json(0, &error.to_string()))
}

/// Finds the strings of records in a block of text.
pub(super) struct Reader<'a> {
    block: &'a str,
    fields: &'a Fields,
    limits: &'a Limits,
    pub(super) found: FoundStrings,
    /// The likely index of the next name among the names of unrequested fields: records are
    /// similar.
    next: usize,
    /// Maximum number of texts found by the end of the record.
    most: usize,
    /// The record's different accounts; `None` for a position without a name.
    payers: Vec<Option<String>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &'a str, fields: &'a Fields, limits: &'a Limits) -> Self {
        Reader {
            block,
            fields,
            limits,
            found: FoundStrings::default(),
            next: 0,
            most: 0,
            payers: Vec::new(),
        }
    }

    /// Reads the record that starts at `start` and ends before `end`; returns where it ends.
    pub(super) fn record(&mut self, start: usize, end: usize) -> Read<usize> {
        let (text, fields) = (&self.block[start..end], self.fields);
        let mut json = serde_json::Deserializer::from_str(text);
        let record = <&RawValue>::deserialize(&mut json);
        let record = record.map_err(|error| self.not_json(&error, start, text))?;
        let record = record.get();
        if !record.starts_with('{') {
            return Err(RecordError::new(start, "not a JSON object"));
        }
        self.most = self.found.texts.len() + self.limits.texts();
        self.payers.clear();
        self.next = 0;
        let there = self.object(&fields.root, record, 0)?;
        let lacks = |column: &usize| !fields.roots[*column].iter().any(|&field| there[field]);
        let lacking: Vec<usize> = (0..fields.roots.len()).filter(lacks).collect();
        if !lacking.is_empty() {
            return Err(self.missing(&lacking, record));
        }
        self.pay(start)?;
        Ok(start + record.len())
    }

    /// The position of a part in the block.
    fn start_of(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.block.as_ptr().addr()
    }

    /// Reads the fields of an object; returns which of the requested ones it has.
    fn object(&mut self, node: &'a Node, object: &'a str, depth: usize) -> Read<Vec<bool>> {
        let mut there = vec![false; node.fields.len()];
        for (key, value) in parts::<Entries<'_>>(object)?.0 {
            let key = key.get();
            let mut name = &key[1..key.len() - 1];
            let unescaped = memchr(b'\\', name.as_bytes()).and_then(|_| unescaped(key));
            // No requested name has half of a surrogate pair; other names are recorded as written.
            if let Some(unescaped) = &unescaped {
                name = unescaped;
            }
            match node.place_of(name) {
                Some(at) => {
                    self.value(&node.fields[at].1, value.get(), depth + 1)?;
                    there[at] = true;
                }
                None => self.note(node.path_to(name)),
            }
        }
        Ok(there)
    }

    /// Records the path of a field that was not requested.
    fn note(&mut self, path: String) {
        let others = &mut self.found.others;
        let at = match others.get(self.next) {
            Some(other) if *other == path => self.next,
            _ => others
                .iter()
                .position(|other| *other == path)
                .unwrap_or(others.len()),
        };
        if at == others.len() && at < self.limits.names {
            others.push(path);
        }
        self.next = at + 1;
    }

    /// Reads a value at which, or below which, a field is requested.
    fn value(&mut self, node: &'a Node, value: &'a str, depth: usize) -> Read<()> {
        if node.column.is_some_and(|c| self.fields.is_account(c)) {
            self.payer(value);
            return Ok(());
        }
        let may_be_list = node.items.is_some() || node.column.is_some();
        let wrong = match (value.as_bytes().first(), node.column) {
            (Some(b'"'), Some(column)) => return self.text(node, column, value),
            (Some(b'n'), _) => {
                if node.has_account {
                    self.add_payer(None);
                }
                return Ok(());
            }
            (Some(b'{'), _) if !node.fields.is_empty() && depth < DEPTH => {
                return self.whole_object(node, value, depth);
            }
            (Some(b'['), _) if may_be_list && depth < DEPTH => {
                return self.list(node, value, depth);
            }
            (Some(b'{'), _) if !node.fields.is_empty() => too_deep(),
            (Some(b'['), _) if may_be_list => too_deep(),
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
                format!("{held}, not {wanted}")
            }
        };
        Err(self.holds(node, value, &wrong))
    }

    fn holds(&self, node: &Node, value: &str, what: &str) -> Box<RecordError> {
        let problem = format!("field {} holds {what}", quoted(&node.name));
        RecordError::new(self.start_of(value), problem)
    }

    fn text(&mut self, node: &Node, column: usize, value: &str) -> Read<()> {
        let start = self.start_of(value);
        if self.found.texts.len() == self.most {
            let most = self.limits.texts();
            let problem = format!("a record of more than {most} texts");
            return Err(RecordError::too_long(start, problem));
        }
        let mut place_of = None;
        if memchr(b'\\', value.as_bytes()).is_some() {
            let half = "a text with half of a surrogate pair";
            let text = unescaped(value).ok_or_else(|| self.holds(node, value, half))?;
            let from = self.found.unescaped.len();
            self.found.unescaped.push_str(&text);
            place_of = Some(from..self.found.unescaped.len());
        }
        self.found.texts.push(Text {
            place: start..start + value.len(),
            unescaped: place_of,
            column,
        });
        Ok(())
    }

    /// Reads an object that must have all fields requested there.
    fn whole_object(&mut self, node: &'a Node, value: &'a str, depth: usize) -> Read<()> {
        let there = self.object(node, value, depth)?;
        let mut lacking = Vec::new();
        for ((_, field), _) in node.fields.iter().zip(there).filter(|(_, there)| !there) {
            field.columns(&mut lacking);
        }
        match lacking.is_empty() {
            true => Ok(()),
            false => Err(self.missing(&lacking, value)),
        }
    }

    fn list(&mut self, node: &'a Node, value: &'a str, depth: usize) -> Read<()> {
        // A text column may hold lists of texts.
        let node = node.items.as_deref().unwrap_or(node);
        for (at, item) in parts::<Vec<&RawValue>>(value)?.iter().enumerate() {
            self.value(node, item.get(), depth + 1)
                .map_err(|mut wrong| {
                    wrong.items.insert(0, at + 1);
                    wrong
                })?;
        }
        Ok(())
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
    fn pay(&mut self, start: usize) -> Read<()> {
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
        Err(RecordError::new(start, problem))
    }

    /// The first column that an object lacks; the account comes before all columns.
    fn missing(&self, columns: &[usize], object: &str) -> Box<RecordError> {
        let at = self.start_of(object);
        let is_account = |&column: &usize| self.fields.is_account(column);
        if let (true, Some(field)) = (columns.iter().any(is_account), self.fields.account()) {
            return RecordError::new(at, no_account(&quoted(field)));
        }
        let first = columns.iter().min().copied().unwrap_or_default();
        let column = self.fields.columns().get(first);
        let column = column.map_or("", String::as_str);
        let shown = quoted(column);
        let names = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(object);
        let problem = match &names {
            _ if steps(column).len() > 1 => format!("field {shown} is not there"),
            Ok(names) => format!("none of its {} fields is called {shown}", names.len()),
            // A name has half of a surrogate pair.
            Err(_) => format!("no field is called {shown}"),
        };
        let names = names.unwrap_or_default().into_keys();
        let names: Vec<String> = names.map(|name| quoted(&name)).collect();
        let mut wrong = RecordError::new(at, problem);
        wrong.content = Some(Hidden::new(names.join(", ")));
        wrong
    }

    /// The problem that `serde_json` found in a text that starts at a byte of the block.
    fn not_json(&self, error: &serde_json::Error, start: usize, text: &str) -> Box<RecordError> {
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
                let mut wrong = RecordError::new(start + at, "a number that JSON does not have");
                wrong.content = Some(Hidden::new(*name));
                wrong
            }
            None => {
                let reason = message.split(" at line ").next().unwrap_or_default();
                RecordError::not_json(start + at, reason)
            }
        };
        wrong.is_cut = is_cut;
        wrong
    }
}
