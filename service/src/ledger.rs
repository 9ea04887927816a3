//! Charges releases to accounts in the SQLite file of Python's `fastdx.budget.Ledger`; both may
//! have it open at the same time.
//!
//! **Never a release without its charge.** A charge is confirmed only after its transaction was
//! committed with `synchronous=FULL`, so it is on disk. Nothing is drawn before the confirmation. A
//! process that is killed in between has charged and released nothing.
//!
//! **Group commit.** One thread writes. It puts all waiting charges into one transaction, so that
//! one fsync serves them all; charges that arrive meanwhile go into the next.

use std::collections::HashMap;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use tokio::sync::oneshot;
use unicode_normalization::UnicodeNormalization;

/// Maximum number of charges in one transaction.
const GROUP: usize = 4096;
/// Excess over the budget that rounding of a sum explains.
const ROUNDING: f64 = 1e-12;
/// Number of accounts whose sums are kept in memory.
const ACCOUNTS: usize = 100_000;

/// An account's name in the ledger.
pub fn account(name: &str) -> String {
    name.nfc().collect()
}

/// The reason why nothing was charged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// The charge would exceed the budget.
    Spent {
        /// The remaining budget of the account.
        left: f64,
    },
    /// The file could not be written, or read.
    Failed,
}

/// A charge, and the channel for its answer.
struct Charge {
    account: String,
    amount: f64,
    note: String,
    answer: oneshot::Sender<Result<f64, Refusal>>,
}

#[derive(Clone)]
pub struct Ledger {
    charges: Sender<Charge>,
}

impl Ledger {
    /// Opens or creates a file. A budget below the file's replaces it; a higher one is refused.
    pub fn open(path: &Path, budget: f64) -> Result<Self, String> {
        if !(budget >= 0.0 && budget.is_finite()) {
            return Err(format!("budget must be finite, at least 0, got {budget}"));
        }
        let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        // Close the file before SQLite opens it. Closing any descriptor of a file gives up all of
        // the process's locks on it, and another process would then remove the write-ahead log.
        let mode = {
            let mut own = std::fs::OpenOptions::new();
            let own = own
                .create(true)
                .append(true)
                .mode(0o600)
                .open(path)
                .map_err(|e| at(&e))?;
            own.metadata().map_err(|e| at(&e))?.permissions().mode() & 0o777
        };
        if mode & 0o077 != 0 {
            let what = format!("others can read this ledger (mode {mode:o}): chmod 600");
            return Err(at(&what));
        }
        let mut db = Connection::open(path).map_err(|e| at(&e))?;
        make(&mut db, budget).map_err(|e| at(&e))??;
        let (charges, waiting) = channel();
        std::thread::Builder::new()
            .name("ledger".into())
            .spawn(move || write(db, &waiting))
            .map_err(|e| at(&e))?;
        Ok(Ledger { charges })
    }

    /// Charges an account; returns the remaining budget once the charge is on disk.
    /// A [`Refusal`] charged nothing; if the disk failed, the charge may have been made.
    pub async fn charge(&self, account: &str, amount: f64, note: String) -> Result<f64, Refusal> {
        let (answer, answered) = oneshot::channel();
        let account = account.to_owned();
        let charge = Charge {
            account,
            amount,
            note,
            answer,
        };
        self.charges.send(charge).map_err(|_| Refusal::Failed)?;
        answered.await.unwrap_or(Err(Refusal::Failed))
    }
}

fn make(db: &mut Connection, budget: f64) -> rusqlite::Result<Result<(), String>> {
    db.busy_handler(Some(wait))?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    let t = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    t.execute_batch(
        "CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY, account TEXT NOT NULL, \
         amount REAL NOT NULL CHECK (amount >= 0), note TEXT NOT NULL, time REAL NOT NULL);\
         CREATE INDEX IF NOT EXISTS by_account ON charges (account);\
         CREATE TABLE IF NOT EXISTS terms (name TEXT PRIMARY KEY, value REAL NOT NULL);",
    )?;
    if let Some(kept) = budget_of(&t)?
        && budget > kept
    {
        return Ok(Err(format!(
            "budget must be at most the file's, {kept}, got {budget}: Python's \
             Ledger(…, raise_budget=True) raises it"
        )));
    }
    t.execute(
        "INSERT OR REPLACE INTO terms VALUES ('budget', ?)",
        [budget],
    )?;
    t.commit()?;
    Ok(Ok(()))
}

/// Waits before checking again whether another process has released the file; gives up after about
/// 30 seconds. SQLite's own waits grow, so newcomers are served first; Python's `Ledger` waits like
/// this function.
fn wait(tries: i32) -> bool {
    const LONGEST: i32 = 6000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let spread = u64::from(now.unwrap_or_default().subsec_micros() % 9000);
    std::thread::sleep(Duration::from_micros(1000 + spread));
    tries < LONGEST
}

fn budget_of(db: &Connection) -> rusqlite::Result<Option<f64>> {
    let mut found = db.prepare_cached("SELECT value FROM terms WHERE name = 'budget'")?;
    found.query_row([], |row| row.get(0)).optional()
}

/// A sum whose rounding errors are summed too (Neumaier 1974).
#[derive(Clone, Copy, Default)]
struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    fn plus(self, x: f64) -> Self {
        let total = self.total + x;
        let lost = match self.total.abs() >= x.abs() {
            true => (self.total - total) + x,
            false => (x - total) + self.total,
        };
        Sum {
            total,
            lost: self.lost + lost,
        }
    }

    fn value(self) -> f64 {
        self.total + self.lost
    }
}

/// The amounts that accounts have spent, at one version of the file.
#[derive(Default)]
struct Spent {
    /// Changes when another connection has written.
    version: i64,
    sums: HashMap<String, Sum>,
}

fn write(mut db: Connection, waiting: &Receiver<Charge>) {
    let mut spent = Spent::default();
    while let Ok(first) = waiting.recv() {
        let mut group = vec![first];
        group.extend(waiting.try_iter().take(GROUP - 1));
        match commit(&mut db, &mut spent, &group) {
            Ok(answers) => {
                for (charge, answer) in group.into_iter().zip(answers) {
                    // The client may be gone; the charge stands.
                    let _ = charge.answer.send(answer);
                }
            }
            Err(_) => {
                // The state of the file is unknown now: read it again.
                spent = Spent::default();
                for charge in group {
                    let _ = charge.answer.send(Err(Refusal::Failed));
                }
            }
        }
    }
}

fn commit(
    db: &mut Connection,
    spent: &mut Spent,
    group: &[Charge],
) -> rusqlite::Result<Vec<Result<f64, Refusal>>> {
    // Locks out other writers from reading until the charges are on disk.
    let t = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = t.pragma_query_value(None, "data_version", |row| row.get(0))?;
    if version != spent.version || spent.sums.len() > ACCOUNTS {
        *spent = Spent {
            version,
            sums: HashMap::new(),
        };
    }
    let budget = budget_of(&t)?.unwrap_or(0.0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    let mut answers = Vec::with_capacity(group.len());
    {
        let mut amounts = t.prepare_cached("SELECT amount FROM charges WHERE account = ?")?;
        let mut insert = t.prepare_cached(
            "INSERT INTO charges (account, amount, note, time) VALUES (?, ?, ?, ?)",
        )?;
        for charge in group {
            let before = match spent.sums.get(&charge.account) {
                Some(&sum) => sum,
                None => {
                    let rows = amounts.query_map([&charge.account], |row| row.get::<_, f64>(0))?;
                    let mut sum = Sum::default();
                    for amount in rows {
                        sum = sum.plus(amount?);
                    }
                    sum
                }
            };
            let after = before.plus(charge.amount);
            // NaN is refused too.
            let fits = charge.amount >= 0.0 && after.value() <= budget * (1.0 + ROUNDING);
            if fits {
                insert.execute((&charge.account, charge.amount, &charge.note, now))?;
            }
            spent
                .sums
                .insert(charge.account.clone(), if fits { after } else { before });
            answers.push(match fits {
                true => Ok((budget - after.value()).max(0.0)),
                false => Err(Refusal::Spent {
                    left: (budget - before.value()).max(0.0),
                }),
            });
        }
    }
    t.commit()?;
    Ok(answers)
}
