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
    /// The number of nodes below the root.
    pub(super) nodes: usize,
    /// For every column, and then for the account: the record's nodes at which its paths start.
    pub(super) roots: Vec<Vec<usize>>,
    columns: Vec<String>,
    account: Option<String>,
}

/// The fields requested at one position of a record, and below.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) number: usize,
    /// The path to this node.
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
            nodes: 0,
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
        let mut first = None;
        for step in steps {
            node = node.below(*step, &mut self.nodes);
            node.has_account |= is_account;
            first.get_or_insert(node.number);
        }
        if node.column.is_some_and(|other| other != column) {
            let option = if is_account {
                "--account-column"
            } else {
                "--column"
            };
            return Err(format!("{option} {} is asked for twice", quoted(path)));
        }
        node.column = Some(column);
        self.roots[column].extend(first);
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
    /// The node one step below; it is created and counted if it is missing.
    fn below(&mut self, step: Step<'_>, nodes: &mut usize) -> &mut Node {
        let path = &self.name;
        let mut new = |name: String| {
            *nodes += 1;
            Node {
                number: *nodes - 1,
                name,
                ..Node::default()
            }
        };
        let step = match step {
            Step::Items => {
                let made = || Box::new(new(format!("{path}[]")));
                return self.items.get_or_insert_with(made);
            }
            Step::Field(step) => step,
        };
        let known = self.fields.iter().position(|(name, _)| name == step);
        let at = known.unwrap_or_else(|| {
            let point = if path.is_empty() { "" } else { "." };
            let node = new(format!("{path}{point}{step}"));
            self.fields.push((step.to_owned(), node));
            self.fields.len() - 1
        });
        &mut self.fields[at].1
    }

    /// Collects the columns here and below.
    pub(super) fn columns(&self, found: &mut Vec<usize>) {
        found.extend(self.column);
        let fields = self.fields.iter().map(|(_, node)| node);
        for node in fields.chain(self.items.as_deref()) {
            node.columns(found);
        }
    }
}
