//! Converts keyword arguments, and Specs as data, to a [`Spec`] and the parts that are in memory.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::arguments::{count, exclude, numbers, real, square_with, strings, type_of};
use super::cover::PyCover;
use super::errors::wrong_type;
use super::language_model::model_of;
use super::space::Space;
use crate::cover::Cover;
use crate::law::base::BaseMeasure;
use crate::mechanism::finite_law::Rows;
use crate::policy::{
    CoverSource, Exclude, IndexSource, KEYS, Kind, Language, Parts, Public, Reference, Spaces,
    Spec, Type, fingerprint_of_rows,
};
use crate::support::parallel::Control;
use crate::text::Consistent;
use crate::words::space::MetricSpace;
use crate::{Error, Result};

/// A Spec from Python, with the parts that are in memory.
pub(super) struct Described<'py> {
    pub(super) spec: Spec,
    pub(super) parts: Parts,
    pub(super) space: Option<Space>,
    pub(super) progress: Option<Bound<'py, PyAny>>,
}

impl<'py> Described<'py> {
    fn new(spec: Spec) -> Self {
        Described {
            spec,
            parts: Parts::default(),
            space: None,
            progress: None,
        }
    }

    /// Parses the keyword arguments of a constructor; None is the default of each.
    pub(super) fn of_arguments(
        kind: &str,
        space: Option<&Bound<'py, PyAny>>,
        arguments: &Bound<'py, PyDict>,
    ) -> PyResult<Self> {
        let mut new = Described::new(Spec {
            mechanism: kind.parse()?,
            exclude: Exclude::None,
            ..Spec::default()
        });
        // A path beside the space says where the space came from.
        if let Some(index) = arguments
            .get_item("index")?
            .filter(|index| !index.is_none())
        {
            new.spec.index = Some(IndexSource::file(index.extract::<PathBuf>()?));
        }
        if let Some(space) = space {
            new.hold_space(space)?;
        }
        for (name, value) in arguments {
            let name = name.extract::<PyBackedStr>()?;
            if &*name == "index" || (value.is_none() && &*name != "oov") {
                continue;
            }
            match &*name {
                "progress" => new.progress = Some(value),
                "law" => new.hold_law(&value)?,
                "language" => new.hold_language(&value)?,
                "cover" => new.spec.cover = Some(cover("cover", &value, &mut new.parts.cover)?),
                "remap" => new.spec.remap = Some(cover("remap", &value, &mut new.parts.remap)?),
                name => new.set(name, &value)?,
            }
        }
        Ok(new)
    }

    /// Parses a Spec as JSON, with the parts in memory by name: space, cover, remap, law, language; also progress,
    /// and known_keys for tests.
    pub(super) fn of_json(spec: &str, held: &Bound<'py, PyDict>) -> PyResult<Self> {
        let mut new = Described::new(parsed(spec)?);
        let given = |name: &str| -> PyResult<Option<Bound<'py, PyAny>>> {
            Ok(held.get_item(name)?.filter(|value| !value.is_none()))
        };
        if let Some(space) = given("space")? {
            let source = new.spec.index.clone();
            new.hold_space(&space)?;
            new.spec.index = source.or(new.spec.index);
        }
        for (name, part) in [
            ("cover", &mut new.parts.cover),
            ("remap", &mut new.parts.remap),
        ] {
            if let Some(given) = given(name)? {
                *part = Some(given.cast::<PyCover>()?.get().inner.clone());
            }
        }
        if let Some(law) = given("law")? {
            let meant = new.spec.law.take();
            new.hold_law(&law)?;
            if let (Some(meant), Some(found)) = (&meant, &new.spec.law)
                && let (Some(print), Some(got)) = (meant.fingerprint, found.fingerprint)
                && print != got
            {
                let expected = format!("the one with the fingerprint {print:016x}");
                let got = format!("one with {got:016x}");
                return Err(Error::parameter("law", expected, got).into());
            }
            new.spec.law = meant.or(new.spec.law.take());
        }
        if let Some(language) = given("language")? {
            let meant = new.spec.language.take();
            new.hold_language(&language)?;
            if let (Some(Language::Stored(meant)), Some(Language::Stored(given))) =
                (meant, &mut new.spec.language)
            {
                given.fingerprint = meant.fingerprint.or(given.fingerprint);
            }
        }
        new.progress = given("progress")?;
        new.parts.known_keys = given("known_keys")?.is_some();
        Ok(new)
    }

    fn hold_space(&mut self, space: &Bound<'py, PyAny>) -> PyResult<()> {
        let space: Space = space.extract()?;
        self.parts.index = Some(space.index.clone());
        let origin = || match &space.origin {
            Some(origin) => origin.described(),
            None => IndexSource::held(None),
        };
        self.spec.index.get_or_insert_with(origin);
        self.space = Some(space);
        Ok(())
    }

    /// The space, opened if it is not there.
    fn open_space(&mut self) -> Result<Arc<dyn MetricSpace>> {
        let (spec, parts) = (&self.spec, &mut self.parts);
        let held = parts.index.as_ref();
        let index = Spaces::default().open(spec.mechanism, spec, held, &Control::new())?;
        Ok(parts.index.insert(index).space())
    }

    fn hold_law(&mut self, law: &Bound<'py, PyAny>) -> PyResult<()> {
        let words = match &self.parts.index {
            Some(index) => index.space().vocabulary().len(),
            None => {
                return Err(wrong_type(
                    "space is missing: whose words the law is of".into(),
                ));
            }
        };
        let (rows, fingerprint) = rows_of(law, words)?;
        self.parts.law = Some(rows);
        self.spec.law = Some(Reference::held(fingerprint));
        Ok(())
    }

    /// `"uniform"`, `"frequency"`, `"rank"`, `"english"`, the path of a file, a model, or a weight a word.
    fn hold_language(&mut self, given: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(name) = given.extract::<PyBackedStr>() {
            return Ok(self.spec.set("language", &Value::from(&*name))?);
        }
        if let Ok(path) = given.extract::<PathBuf>() {
            self.spec.language = Some(Language::Stored(Reference::file(path)));
            return Ok(());
        }
        let public = match model_of(given, || self.open_space())? {
            Some(model) => Some(Public::History(model)),
            None => {
                let measure = BaseMeasure::new(&numbers("language", given)?);
                let measure = measure.map_err(|error| error.renamed("weights", "language"))?;
                measure.map(|measure| Public::Fixed(Arc::new(measure)))
            }
        };
        self.spec.language = Some(match &public {
            None => Language::Uniform,
            Some(public) => Language::Stored(Reference::held(public.fingerprint())),
        });
        self.parts.language = public;
        Ok(())
    }

    fn set(&mut self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let message = format!("got an unexpected keyword argument '{name}'");
            return Err(PyTypeError::new_err(message));
        };
        let name = key.name;
        let value = match key.of_type {
            Type::Exclude => {
                self.spec.exclude = exclude(value)?;
                return Ok(());
            }
            Type::Real => return Ok(self.spec.set_real(name, real(name, value)?)?),
            Type::Count => Value::from(count(name, value)? as u64),
            Type::Flag | Type::Consistent => match value.extract::<bool>() {
                Ok(flag) => Value::from(flag),
                Err(_) => Value::from(value.str()?.to_string()),
            },
            Type::Words => {
                let words = strings(name, value)?;
                Value::from_iter(words.iter().map(|word| &**word))
            }
            Type::Figure => figure(name, value)?,
            _ => {
                let text = value.cast::<PyString>().map_err(|_| {
                    let got = type_of(value);
                    wrong_type(format!("{name} must be a str, not {got}"))
                })?;
                Value::from(&*PyBackedStr::try_from(text.clone())?)
            }
        };
        Ok(self.spec.set(name, &value)?)
    }
}

/// Returns the rows of a law and its fingerprint (none for a function). The law is an array, or
/// a function of a word's id.
fn rows_of(law: &Bound<'_, PyAny>, words: usize) -> PyResult<(Arc<Rows>, Option<u64>)> {
    if law.is_callable() {
        let function = law.clone().unbind();
        let rows: Arc<Rows> = Arc::new(move |id: u32, out: &mut [f64]| {
            Python::attach(|py| row_of(function.bind(py), id, out)).map_err(|e| {
                // The function's own message may contain anything.
                let kind = Python::attach(|py| e.get_type(py).qualname().map(|q| q.to_string()));
                let expected = format!("a function of a word's id that returns {words} numbers");
                let got = format!("{} for word {id}", kind.unwrap_or_default());
                Error::parameter("law", expected, got)
            })
        });
        return Ok((rows, None));
    }
    let law = square_with("law", law, words, |numbers| Ok(numbers.to_vec()))?;
    let rows: Arc<Rows> = Arc::new(move |id: u32, out: &mut [f64]| {
        out.copy_from_slice(&law[id as usize * words..][..words]);
        Ok(())
    });
    let print = fingerprint_of_rows(&rows, words)?;
    Ok((rows, Some(print)))
}

fn row_of(function: &Bound<'_, PyAny>, id: u32, out: &mut [f64]) -> PyResult<()> {
    let row = numbers("law", &function.call1((id,))?)?;
    if row.len() != out.len() {
        return Err(wrong_type(format!("{} numbers", row.len())));
    }
    out.copy_from_slice(&row);
    Ok(())
}

/// A Cover, `"none"`, the path of a file, or k for the k nearest outputs.
fn cover(
    name: &'static str,
    given: &Bound<'_, PyAny>,
    part: &mut Option<Arc<Cover>>,
) -> PyResult<CoverSource> {
    if let Ok(cover) = given.cast::<PyCover>() {
        let inner = cover.get().inner.clone();
        let reference = Reference::held(Some(inner.fingerprint()));
        *part = Some(inner);
        return Ok(CoverSource::Stored(reference));
    }
    if given
        .extract::<PyBackedStr>()
        .is_ok_and(|text| &*text == "none")
    {
        return Ok(CoverSource::None);
    }
    if !given.is_instance_of::<PyString>()
        && let Ok(path) = given.extract::<PathBuf>()
    {
        return Ok(CoverSource::Stored(Reference::file(path)));
    }
    Ok(CoverSource::Count(count(name, given)?))
}

/// A Number or a Date in a Spec's form: ε, a table, or an object that holds one.
fn figure(name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let json = match value.getattr("_of_mechanism") {
        Ok(held) => held.call0()?.extract::<String>()?,
        Err(_) if value.is_instance_of::<PyDict>() => {
            let json = value.py().import("json")?;
            json.call_method1("dumps", (value,))?.extract::<String>()?
        }
        Err(_) => return Ok(Value::from(real(name, value)?)),
    };
    serde_json::from_str(&json).map_err(|error| {
        let expected = "a table of its settings";
        Error::parameter(name, expected, error.to_string()).into()
    })
}

pub(super) fn parsed(json: &str) -> Result<Spec> {
    let map = serde_json::from_str(json).map_err(|error| {
        Error::parameter("spec", "a table of the keys of a Spec", error.to_string())
    })?;
    Spec::from_map(&map)
}

/// Makes on a thread of its own all that mechanisms of the recommended policy share: the words,
/// their search and the base measure. A program that needs them soon goes on meanwhile.
#[pyfunction]
pub(super) fn prepare_recommended() {
    let prepare = || {
        let (mut spaces, control) = (Spaces::default(), Control::new());
        let made = Spec::recommended().build(Parts::default(), &mut spaces, &control)?;
        made.text.privatize("word").map(drop)
    };
    // The thread knows nothing of Python, so the interpreter may end before it. Without a thread, or
    // after an error, whoever makes the mechanism does the work and gets the error.
    let _ = std::thread::Builder::new().spawn(prepare);
}

/// The Spec of a file, JSON or TOML, as JSON.
#[pyfunction]
pub(super) fn read_spec(path: PathBuf) -> PyResult<String> {
    Ok(Spec::read(&path)?.to_json())
}

/// The policies of a TOML file: the name of the default one, and each as (name, Spec as JSON,
/// spans_only, allow_unchanged).
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(super) fn read_policies(
    path: PathBuf,
) -> PyResult<(Option<String>, Vec<(String, String, bool, bool)>)> {
    let read = crate::policy::Policies::read(&path)?;
    let each = read.policies.into_iter().map(|(name, policy)| {
        let spec = policy.spec.to_json();
        (name, spec, policy.spans_only, policy.allow_unchanged)
    });
    Ok((read.default, each.collect()))
}

/// The name of each key of a Spec, and the mechanisms that accept it (none for all).
#[pyfunction]
pub(super) fn spec_keys() -> Vec<(&'static str, Vec<&'static str>)> {
    let keys = KEYS.iter().map(|key| {
        let of = key.of.iter().map(|kind: &Kind| kind.name());
        (key.name, of.collect())
    });
    keys.collect()
}

/// `consistent` in Python's form.
pub(super) fn shown_consistent<'py>(
    py: Python<'py>,
    consistent: Consistent,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match consistent {
        Consistent::Call => "call".into_pyobject(py)?.into_any(),
        on => (on == Consistent::Text)
            .into_pyobject(py)?
            .to_owned()
            .into_any(),
    })
}
