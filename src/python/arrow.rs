//! Columns of text in Arrow arrays from any library: read in place, and written anew with the same
//! nulls, nesting and type.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{GenericStringBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeListArray, GenericListArray, OffsetSizeTrait,
    PrimitiveArray, StructArray,
};
use arrow_schema::{DataType, Field, FieldRef};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::capsules::{InputColumn, PyArrowArray, PyArrowChunks};
use super::errors::wrong_type;
use super::mechanism::PyMechanism;
use super::text::dict_of;
use crate::support::parallel::Control;
use crate::text::{Counts, Replacements, TextPrivatizer};
use crate::{Error, Result};

/// Bytes of text, or number of rows, that are privatised at a time: the memory used beside input
/// and output.
const BLOCK: usize = 4 << 20;
const ROWS: usize = 1 << 16;
/// Bytes of a chunk with 32-bit offsets that are processed at a time: outputs may be longer.
const CHUNK: usize = 1 << 30;

/// A field with its output type. JSON is text to Arrow, but its names and syntax are no words.
fn field_becomes(field: &Field, path: &[String]) -> std::result::Result<FieldRef, String> {
    let extension = field.extension_type_name().unwrap_or_default();
    if extension.to_ascii_lowercase().ends_with("json") {
        return Err("JSON, which would not be valid then: take its texts out first".into());
    }
    let kind = becomes(field.data_type(), path)?;
    Ok(Arc::new(field.clone().with_data_type(kind)))
}

/// The output type of a column of text: its own type, except that dictionaries get indices of at
/// least 32 bits. `Err` names a type that is no text.
fn becomes(kind: &DataType, path: &[String]) -> std::result::Result<DataType, String> {
    use DataType as D;
    let text = |kind: &D| matches!(kind, D::Utf8 | D::LargeUtf8 | D::Utf8View);
    match kind {
        D::List(field) => Ok(D::List(field_becomes(field, path)?)),
        D::LargeList(field) => Ok(D::LargeList(field_becomes(field, path)?)),
        D::FixedSizeList(field, size) => Ok(D::FixedSizeList(field_becomes(field, path)?, *size)),
        D::Struct(fields) => {
            let Some((name, rest)) = path.split_first() else {
                return Err(format!("a struct of {} fields: name one", fields.len()));
            };
            let Some((at, field)) = fields.find(name) else {
                return Err(format!("a struct without a field {name:?}"));
            };
            // Fields of the same name would otherwise be released unchanged.
            if fields.iter().filter(|field| field.name() == name).count() > 1 {
                return Err(format!("a struct with several fields {name:?}"));
            }
            let mut new: Vec<FieldRef> = fields.iter().cloned().collect();
            new[at] = field_becomes(field, rest)?;
            Ok(D::Struct(new.into()))
        }
        _ if !path.is_empty() => Err(format!("{kind}, which has no field {:?}", path[0])),
        D::Dictionary(index, value) if text(value) => {
            let index = match **index {
                D::Int64 | D::UInt32 | D::UInt64 => index.clone(),
                _ => Box::new(D::Int32),
            };
            Ok(D::Dictionary(index, value.clone()))
        }
        D::Null => Ok(D::Null),
        kind if text(kind) => Ok(kind.clone()),
        _ => Err(format!("{kind}, not text")),
    }
}

/// One call on a column: counts, and the data that its chunks share.
struct Column<'a> {
    text: &'a TextPrivatizer,
    control: &'a Control,
    kept: Replacements,
    counts: Counts,
    /// Number of texts done.
    done: usize,
}

impl Column<'_> {
    fn array(&mut self, array: &dyn Array, path: &[String]) -> Result<ArrayRef> {
        use DataType as D;
        match array.data_type() {
            D::Utf8 => self.strings::<i32>(array.as_string::<i32>().iter(), array.len()),
            D::LargeUtf8 => self.strings::<i64>(array.as_string::<i64>().iter(), array.len()),
            D::Utf8View => self.views(array.as_string_view().iter()),
            D::Dictionary(..) => self.dictionary(array),
            D::List(_) => self.list(array.as_list::<i32>(), path),
            D::LargeList(_) => self.list(array.as_list::<i64>(), path),
            D::FixedSizeList(..) => {
                let list = array.as_fixed_size_list();
                let size = list.value_length();
                let length = array.len() * size as usize;
                let values = list.values().slice(list.value_offset(0) as usize, length);
                let values = self.array(&values, path)?;
                let field = item(array.data_type(), &values);
                let nulls = array.nulls().cloned();
                Ok(Arc::new(FixedSizeListArray::new(
                    field, size, values, nulls,
                )))
            }
            D::Struct(fields) => {
                let (name, rest) = path
                    .split_first()
                    .unwrap_or_else(|| unreachable!("checked"));
                let at = fields.find(name).map_or(0, |found| found.0);
                let array = array.as_struct();
                let mut columns = array.columns().to_vec();
                columns[at] = self.array(&columns[at], rest)?;
                let mut fields: Vec<FieldRef> = fields.iter().cloned().collect();
                let kind = columns[at].data_type().clone();
                fields[at] = Arc::new(fields[at].as_ref().clone().with_data_type(kind));
                let nulls = array.nulls().cloned();
                Ok(Arc::new(StructArray::new(fields.into(), columns, nulls)))
            }
            // Only nulls: nothing to protect.
            _ => Ok(array.slice(0, array.len())),
        }
    }

    /// Privatises the texts of some rows in order, one block at a time.
    fn each<'s>(
        &mut self,
        mut values: impl Iterator<Item = Option<&'s str>>,
        mut push: impl FnMut(Option<&str>) -> Result<()>,
    ) -> Result<()> {
        loop {
            let (mut rows, mut texts, mut size) = (Vec::new(), Vec::new(), 0);
            while size < BLOCK && rows.len() < ROWS {
                let Some(value) = values.next() else { break };
                rows.push(value.is_some());
                if let Some(text) = value {
                    size += text.len();
                    texts.push(text);
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
            let done = self.done;
            let (out, counts) = self
                .text
                .privatize_texts_with(&texts, &mut self.kept, self.control)
                .map_err(|e| e.after_texts(done))?;
            self.done += texts.len();
            self.counts += counts;
            let mut out = out.into_iter();
            for present in rows {
                let text = if present { out.next() } else { None };
                push(text.as_deref())?;
            }
        }
    }

    fn strings<'s, O: OffsetSizeTrait>(
        &mut self,
        values: impl Iterator<Item = Option<&'s str>>,
        rows: usize,
    ) -> Result<ArrayRef> {
        let mut builder = GenericStringBuilder::<O>::with_capacity(rows, 0);
        let mut size = 0usize;
        self.each(values, |text| {
            size += text.map_or(0, str::len);
            if O::from_usize(size).is_none() {
                return Err(Error::TooLarge {
                    what: "the text of an array with 32-bit offsets (use large_string)".into(),
                    needed: size as u64,
                    limit: i32::MAX as u64,
                });
            }
            builder.append_option(text);
            Ok(())
        })?;
        Ok(Arc::new(builder.finish()))
    }

    fn views<'s>(&mut self, values: impl Iterator<Item = Option<&'s str>>) -> Result<ArrayRef> {
        let mut builder = StringViewBuilder::new();
        self.each(values, |text| {
            builder.append_option(text);
            Ok(())
        })?;
        Ok(Arc::new(builder.finish()))
    }

    /// Every row is drawn separately: a dictionary's value represents equal words, not one draw.
    fn dictionary(&mut self, array: &dyn Array) -> Result<ArrayRef> {
        let DataType::Dictionary(index, kind) = array.data_type() else {
            unreachable!("a dictionary")
        };
        let dictionary = array.as_any_dictionary();
        let values: Vec<Option<&str>> = match **kind {
            DataType::Utf8 => dictionary.values().as_string::<i32>().iter().collect(),
            DataType::LargeUtf8 => dictionary.values().as_string::<i64>().iter().collect(),
            _ => dictionary.values().as_string_view().iter().collect(),
        };
        let keys = match values.is_empty() {
            true => vec![0; array.len()],
            false => dictionary.normalized_keys(),
        };
        let rows = (0..array.len()).map(|row| match array.is_valid(row) {
            true => values[keys[row]],
            false => None,
        });
        let mut places: HashMap<String, u32> = HashMap::new();
        let mut found: Vec<Option<u32>> = Vec::with_capacity(array.len());
        self.each(rows, |text| {
            let next = places.len() as u32;
            found.push(text.map(|text| match places.get(text) {
                Some(&place) => place,
                None => *places.entry(text.to_owned()).or_insert(next),
            }));
            Ok(())
        })?;
        let mut distinct: Vec<(String, u32)> = places.into_iter().collect();
        distinct.sort_unstable_by_key(|(_, place)| *place);
        let distinct = distinct.iter().map(|(text, _)| Some(&**text));
        let values: ArrayRef = match **kind {
            DataType::Utf8 => {
                let mut builder = GenericStringBuilder::<i32>::new();
                distinct.for_each(|text| builder.append_option(text));
                Arc::new(builder.finish())
            }
            DataType::LargeUtf8 => {
                let mut builder = GenericStringBuilder::<i64>::new();
                distinct.for_each(|text| builder.append_option(text));
                Arc::new(builder.finish())
            }
            _ => {
                let mut builder = StringViewBuilder::new();
                distinct.for_each(|text| builder.append_option(text));
                Arc::new(builder.finish())
            }
        };
        macro_rules! with_index {
            ($kind:ty, $number:ty) => {{
                let keys = found.iter().map(|place| place.map(|p| p as $number));
                let keys: PrimitiveArray<$kind> = keys.collect();
                Arc::new(DictionaryArray::new(keys, values)) as ArrayRef
            }};
        }
        Ok(match **index {
            DataType::Int64 => with_index!(Int64Type, i64),
            DataType::UInt32 => with_index!(UInt32Type, u32),
            DataType::UInt64 => with_index!(UInt64Type, u64),
            _ => with_index!(Int32Type, i32),
        })
    }

    fn list<O: OffsetSizeTrait>(
        &mut self,
        list: &GenericListArray<O>,
        path: &[String],
    ) -> Result<ArrayRef> {
        // Of a slice, only the visible part.
        let offsets = list.value_offsets();
        let (first, last) = (offsets[0], offsets[list.len()]);
        let shown = list
            .values()
            .slice(first.as_usize(), (last - first).as_usize());
        let values = self.array(&shown, path)?;
        let offsets = offsets
            .iter()
            .map(|&offset| offset - first)
            .collect::<Vec<O>>();
        let offsets = arrow_buffer::OffsetBuffer::new(offsets.into());
        let field = item(list.data_type(), &values);
        let nulls = list.nulls().cloned();
        Ok(Arc::new(GenericListArray::new(
            field, offsets, values, nulls,
        )))
    }

    /// Processes a chunk in as many parts as 32-bit offsets require.
    fn chunk(&mut self, array: &ArrayRef, path: &[String], out: &mut Vec<ArrayRef>) -> Result<()> {
        let long = |array: &ArrayRef| {
            let strings = array.as_string_opt::<i32>();
            strings.is_some_and(|s| {
                let offsets = s.value_offsets();
                (offsets[s.len()] - offsets[0]) as usize > CHUNK && s.len() > 1
            })
        };
        let mut open = vec![array.clone()];
        while let Some(piece) = open.pop() {
            if long(&piece) {
                let half = piece.len() / 2;
                open.push(piece.slice(half, piece.len() - half));
                open.push(piece.slice(0, half));
            } else {
                out.push(self.array(&piece, path)?);
            }
        }
        Ok(())
    }
}

/// The field of a list's items, with the items' new type.
fn item(list: &DataType, values: &ArrayRef) -> FieldRef {
    let field: &Field = match list {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            field
        }
        _ => unreachable!("a list"),
    };
    Arc::new(field.clone().with_data_type(values.data_type().clone()))
}

/// Privatises a column of text: any object with Arrow's ``__arrow_c_array__`` or
/// ``__arrow_c_stream__``, of (large) strings, string views, dictionaries of them, or lists of
/// these; of structs the field that `path` names. Returns an object of the same kind of Arrow's
/// protocol, and the counts of `privatize_counted`.
#[pyfunction]
#[pyo3(signature = (mechanism, column, path = None))]
pub(super) fn privatize_arrow<'py>(
    py: Python<'py>,
    mechanism: PyRef<'py, PyMechanism>,
    column: &Bound<'py, PyAny>,
    path: Option<Vec<String>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let path = path.unwrap_or_default();
    let mechanism = &*mechanism;
    let text = mechanism.text();
    let new_field = |field: &FieldRef| -> PyResult<FieldRef> {
        let refused = |got| wrong_type(format!("text must be a column of text, not {got}"));
        field_becomes(field, &path).map_err(refused)
    };
    let (single, field, mut chunks): (_, _, Box<dyn Iterator<Item = PyResult<ArrayRef>> + Send>) =
        match InputColumn::of(column)? {
            InputColumn::Array(array, field) => (true, field, Box::new(std::iter::once(Ok(array)))),
            InputColumn::Stream(chunks) => (false, chunks.field.clone(), Box::new(chunks)),
        };
    let field = new_field(&field)?;
    let (mut out, mut counts, mut kept, mut done) =
        (Vec::new(), Counts::default(), Replacements::default(), 0);
    // Threads that want the interpreter may compute a stream (DuckDB with a Python function).
    while let Some(chunk) = py.detach(|| chunks.next()) {
        let chunk = chunk?;
        let long = chunk.get_array_memory_size() > 1 << 16;
        let before = std::mem::take(&mut kept);
        let (made, column) = mechanism.run(py, long, |control| {
            let mut column = Column {
                text,
                control,
                kept: before,
                counts: Counts::default(),
                done,
            };
            let mut made = Vec::new();
            match single {
                true => made.push(column.array(&chunk, &path)?),
                false => column.chunk(&chunk, &path, &mut made)?,
            }
            Ok((made, (column.kept, column.counts, column.done)))
        })?;
        out.extend(made);
        kept = column.0;
        counts += column.1;
        done = column.2;
    }
    mechanism.warn(py, counts)?;
    let counts = dict_of(py, counts)?;
    let column = match single {
        true => {
            let array = out.swap_remove(0);
            Bound::new(py, PyArrowArray { array, field })?.into_any()
        }
        false => Bound::new(py, PyArrowChunks { chunks: out, field })?.into_any(),
    };
    Ok((column, counts))
}
