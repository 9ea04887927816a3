//! A [`Spec`] and its keys: each stands once, with its type, its mechanisms and its default.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{CoverSource, Exclude, IndexSource, Kind, Language, Reference};
use crate::numbers::{Date, Number};
use crate::support::error::Result;
use crate::support::table::{Field, Type, real_value, table, wrong};
use crate::text::{Consistent, Oov};

/// A key of a [`Spec`].
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The type of its value.
    pub of_type: Type,
    /// The mechanisms that accept it; empty for all.
    pub of: &'static [Kind],
}

impl Key {
    /// Whether a mechanism accepts the key.
    pub fn belongs_to(&self, kind: Kind) -> bool {
        self.of.is_empty() || self.of.contains(&kind)
    }
}

impl Field for Consistent {
    const TYPE: Type = Type::Consistent;

    fn read(name: &'static str, value: &Value) -> Result<Self> {
        match value {
            Value::Bool(false) => Ok(Consistent::Never),
            Value::Bool(true) => Ok(Consistent::Text),
            Value::String(name) if name == "call" => Ok(Consistent::Call),
            _ => Err(wrong(name, "true, false or \"call\"", value)),
        }
    }

    fn written(&self) -> Option<Value> {
        match self {
            Consistent::Never => None,
            Consistent::Text => Some(true.into()),
            Consistent::Call => Some("call".into()),
        }
    }
}

/// Declares [`Spec`] and [`KEYS`]: a key's documentation, the mechanisms that accept it (all where
/// none is named), its type and its default.
macro_rules! spec {
    ($($(#[$doc:meta])* [$($kind:ident)*] $key:ident: $type:ty = $default:expr;)*) => {
        table! {
            /// A description of a mechanism, its words, and its handling of text.
            ///
            /// `None` always means the mechanism's default. [`KEYS`] lists all keys with their types and
            /// mechanisms.
            Spec, "spec";
            $($(#[$doc])* $key: $type = $default;)*
        }

        /// All keys, in the order in which a [`Spec`] is written.
        pub const KEYS: &[Key] = &[$(Key {
            name: stringify!($key),
            of_type: <$type as Field>::TYPE,
            of: &[$(Kind::$kind),*],
        },)*];
    };
}

spec! {
    /// The mechanism.
    [] mechanism: Kind = Kind::Tem;
    /// ε per unit of distance. Without ε, the policy that fastdx recommends is used, if no other
    /// key describes the law (see [`Spec::recommended`]).
    [Tem MultivariateLaplace HyperbolicLaplace Mahalanobis NeighborResponse Vickrey]
    epsilon: Option<f64> = None;
    /// Tem: the distance beyond which all words have equal weights; may be infinite.
    [Tem] gamma: Option<f64> = None;
    /// Tem: γ by TEM'21's Theorem 3.
    [Tem] beta: Option<f64> = None;
    /// Tem: the public base measure of its outputs; by default uniform, as in TEM'21.
    [Tem] language: Option<Language> = None;
    /// Tem: whether `epsilon` is the value that the certificate proves, which needs less noise.
    /// FiniteLaw: whether its ε is computed; by default for up to 2,000 words.
    [Tem FiniteLaw] certified: Option<bool> = None;
    /// Certified Tem: the nominal ε, if it was found before. Saves the search.
    [Tem] nominal: Option<f64> = None;
    /// Hyperbolic noise: `volume` or `ball`.
    [HyperbolicLaplace] base: Option<String> = None;
    /// Mahalanobis, Vickrey: λ, the share of the covariance.
    [Mahalanobis Vickrey] mixing: Option<f64> = None;
    /// Vickrey: t, how much the second nearest word is preferred.
    [Vickrey] tuning: Option<f64> = None;
    /// MADLIB: `exact`, `hnsw` or `auto`.
    [MultivariateLaplace] search: Option<String> = None;
    /// MADLIB with graph search: number of candidates.
    [MultivariateLaplace] ef: Option<usize> = None;
    /// FiniteLaw: a .npy file of its law, float64, (V, V).
    [FiniteLaw] law: Option<Reference> = None;
    /// Words and metric; by default the mechanism's built-in ones.
    [] index: Option<IndexSource> = None;
    /// Whether opening an index file verifies every checksum; by default it does.
    [] verify: Option<bool> = None;
    /// The cover of Tem and NeighborResponse; by default the one in the index, if any.
    [Tem NeighborResponse] cover: Option<CoverSource> = None;
    /// With a number as `cover`: the weight of similar frequencies
    /// ([`Cover::balanced`](crate::Cover::balanced)).
    [Tem NeighborResponse] balance: Option<f64> = None;
    /// Post-processing: each output is replaced by one of its outputs in this cover.
    [] remap: Option<CoverSource> = None;
    /// Words that are never released.
    [] exclude: Exclude = Exclude::Offensive;
    /// Handling of unknown words.
    [] oov: Oov = Oov::default();
    /// Words that are released unchanged, UNPROTECTED.
    [] skip: BTreeSet<String> = BTreeSet::new();
    /// Whether equal words get the same replacement.
    [] consistent: Consistent = Consistent::Never;
    /// The mechanism for numbers in texts; by default they are treated as words.
    [] numbers: Option<Number> = None;
    /// The mechanism for dates in texts; by default they are treated as words.
    [] dates: Option<Date> = None;
    /// Every call takes a multiple of this number of seconds.
    [] pad: Option<f64> = None;
    /// Maximum bytes of cached lists and laws.
    [] cache_bytes: Option<usize> = None;
    /// Maximum threads of a call.
    [] threads: Option<usize> = None;
    /// For tests only: makes the output reproducible, and hence unprotected.
    [] seed: Option<u64> = None;
}

impl Spec {
    /// Sets a number that JSON may not be able to represent.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    pub fn set_real(&mut self, name: &str, number: f64) -> Result<()> {
        self.set(name, &real_value(number))
    }
}
