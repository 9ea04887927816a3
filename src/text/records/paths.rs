//! Paths of fields, such as `user.comment` or `messages[].text`, and the tree that they form.

use super::error::quoted;

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Selects a field of an object.
    Field(&'a str),
    /// Selects the items of a list.
    Items,
}

/// Splits a path into steps; a name that is no path is one step.
pub fn steps(path: &str) -> Vec<Step<'_>> {
    let mut found = Vec::new();
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        if name.is_empty() {
            return vec![Step::Field(path)];
        }
        found.push(Step::Field(name));
        found.extend((0..(part.len() - name.len()) / 2).map(|_| Step::Items));
    }
    found
}

/// The requested fields as a tree: those of a record, and below.
///
/// A record must have all of them: each object on a path has the next field, in every item of a
/// list. `null` and empty lists end a path. In the record itself, a field whose name is the whole
/// path also counts.
#[derive(Clone, Debug)]
pub struct Fields {
    pub(super) root: Node,
    /// For every column, and then for the account: the fields of a record, by their places in the
    /// root, at which its paths start.
    pub(super) roots: Vec<Vec<usize>>,
    columns: Vec<String>,
    account: Option<String>,
}

/// The fields requested at one position of a record, and below.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) name: String,
    /// Strings here, and in lists of them, belong to this column, or are the account.
    pub(super) column: Option<usize>,
    /// Whether the account is here or below.
    pub(super) has_account: bool,
    pub(super) fields: Vec<(String, Node)>,
    /// The fields requested in the items of a list.
    pub(super) items: Option<Box<Node>>,
}

impl Fields {
    /// Creates the tree of the text fields' paths, and of the field that names a record's account.
    ///
    /// # Errors
    /// The problem, if two of them are the same.
    pub fn new<S: AsRef<str>>(columns: &[S], account: Option<&str>) -> Result<Self, String> {
        let columns: Vec<String> = columns.iter().map(|path| path.as_ref().into()).collect();
        let mut fields = Fields {
            root: Node::default(),
            roots: vec![Vec::new(); columns.len() + usize::from(account.is_some())],
            columns: columns.clone(),
            account: account.map(Into::into),
        };
        let asked = columns.iter().map(String::as_str).chain(account);
        for (column, path) in asked.enumerate() {
            let parted = steps(path);
            fields.plant(&parted, column, path)?;
            // A field's name may also be the whole path.
            if parted.len() > 1 {
                fields.plant(&[Step::Field(path)], column, path)?;
            }
        }
        Ok(fields)
    }

    fn plant(&mut self, steps: &[Step<'_>], column: usize, path: &str) -> Result<(), String> {
        let is_account = self.is_account(column);
        let mut node = &mut self.root;
        for step in steps {
            node = node.below(*step);
            node.has_account |= is_account;
        }
        if node.column.is_some_and(|other| other != column) {
            let option = match is_account {
                true => "--account-column",
                false => "--column",
            };
            return Err(format!("{option} {} is asked for twice", quoted(path)));
        }
        node.column = Some(column);
        if let Some(Step::Field(first)) = steps.first() {
            self.roots[column].extend(self.root.place_of(first));
        }
        Ok(())
    }

    /// The paths of the text fields.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The path of the field that names the account.
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    pub(super) fn is_account(&self, column: usize) -> bool {
        column == self.columns.len()
    }
}

impl Node {
    /// The place of a field among those requested here.
    pub(super) fn place_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|(known, _)| known == name)
    }

    /// The node one step below; it is created if it is missing.
    fn below(&mut self, step: Step<'_>) -> &mut Node {
        let new = |name: String| Node {
            name,
            ..Node::default()
        };
        let path = &self.name;
        match step {
            Step::Items => {
                let made = || Box::new(new(format!("{path}[]")));
                self.items.get_or_insert_with(made)
            }
            Step::Field(name) => {
                let at = self.place_of(name).unwrap_or_else(|| {
                    let node = new(self.path_to(name));
                    self.fields.push((name.to_owned(), node));
                    self.fields.len() - 1
                });
                &mut self.fields[at].1
            }
        }
    }

    /// The path to a field of an object here.
    pub(super) fn path_to(&self, name: &str) -> String {
        let point = if self.name.is_empty() { "" } else { "." };
        format!("{}{point}{name}", self.name)
    }

    pub(super) fn columns(&self, found: &mut Vec<usize>) {
        found.extend(self.column);
        let fields = self.fields.iter().map(|(_, node)| node);
        for node in fields.chain(self.items.as_deref()) {
            node.columns(found);
        }
    }
}
