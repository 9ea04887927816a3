//! Arrow's C data and stream interfaces in PyCapsules: arrays of any library are read and returned
//! without a copy. <https://arrow.apache.org/docs/format/CDataInterface.html>

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, Field, FieldRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::errors::wrong_type;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A column as the caller passed it.
pub(super) enum InputColumn {
    Array(ArrayRef, FieldRef),
    Stream(Chunks),
}

/// The chunks of a stream, requested one by one. Each request runs code of the library that made
/// the stream.
pub(super) struct Chunks {
    stream: FFI_ArrowArrayStream,
    pub(super) field: FieldRef,
}

impl InputColumn {
    pub(super) fn of(column: &Bound<'_, PyAny>) -> PyResult<Self> {
        if column.hasattr("__arrow_c_array__")? {
            let capsules = column.call_method0("__arrow_c_array__")?;
            let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
                capsules.extract()?;
            let schema = schema.pointer_checked(Some(SCHEMA))?.cast();
            let array = array.pointer_checked(Some(ARRAY))?.cast();
            // SAFETY: the capsules' names state what they point to. A schema lives as long as its
            // capsule, and an array is moved out, which leaves a released one behind.
            let (schema, array) = unsafe {
                let schema: &FFI_ArrowSchema = schema.as_ref();
                (schema, FFI_ArrowArray::from_raw(array.as_ptr()))
            };
            let field = Field::try_from(schema).map_err(refused)?;
            // SAFETY: by the protocol the array has its schema's type.
            let data = unsafe { from_ffi(array, schema) }.map_err(refused)?;
            return Ok(Self::Array(checked(data)?, Arc::new(field)));
        }
        if column.hasattr("__arrow_c_stream__")? {
            let capsule = column.call_method0("__arrow_c_stream__")?;
            let capsule = capsule.extract::<Bound<'_, PyCapsule>>()?;
            let stream = capsule.pointer_checked(Some(STREAM))?.cast();
            // SAFETY: as above: the stream is moved out of its capsule.
            let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
            return Ok(Self::Stream(Chunks::new(stream)?));
        }
        Err(wrong_type(format!(
            "text must be a column with Arrow's protocol, not {}",
            column.get_type().name()?
        )))
    }
}

/// Checks a library's data before it is read: the offsets, and that text is UTF-8.
fn checked(data: ArrayData) -> PyResult<ArrayRef> {
    data.validate_full().map_err(refused)?;
    Ok(make_array(data))
}

/// A library's own message may quote data: report only its kind.
fn refused(error: ArrowError) -> PyErr {
    let kind = match error {
        ArrowError::CDataInterface(_) | ArrowError::SchemaError(_) => "a broken Arrow column",
        ArrowError::NotYetImplemented(_) => "a type of Arrow that is not known here",
        _ => "an Arrow column that is damaged: offsets out of order, or bytes that are not UTF-8",
    };
    wrong_type(format!("text is {kind}"))
}

impl Chunks {
    fn new(mut stream: FFI_ArrowArrayStream) -> PyResult<Self> {
        let broken = || PyValueError::new_err("text is an Arrow stream without a schema");
        let get_schema = stream.get_schema.ok_or_else(broken)?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: a live stream's own function, given the stream and a place for the schema.
        if unsafe { get_schema(&raw mut stream, &raw mut schema) } != 0 {
            return Err(broken());
        }
        let field = Arc::new(Field::try_from(&schema).map_err(refused)?);
        Ok(Self { stream, field })
    }
}

impl Iterator for Chunks {
    type Item = PyResult<ArrayRef>;

    fn next(&mut self) -> Option<Self::Item> {
        let get_next = self.stream.get_next?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as for the schema.
        let code = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        if code != 0 {
            return Some(Err(PyValueError::new_err(format!(
                "text is an Arrow stream that failed (code {code})"
            ))));
        }
        if array.is_released() {
            return None;
        }
        // SAFETY: by the protocol every chunk has the stream's type.
        let data = unsafe { from_ffi_and_data_type(array, self.field.data_type().clone()) };
        Some(data.map_err(refused).and_then(checked))
    }
}

fn schema_of<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(field).map_err(refused)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// An array for any reader of Arrow's protocol.
#[pyclass(frozen, module = "fastdx._core", name = "ArrowArray")]
pub(super) struct PyArrowArray {
    pub(super) array: ArrayRef,
    pub(super) field: FieldRef,
}

#[pymethods]
impl PyArrowArray {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &self.field)
    }

    /// The protocol allows ignoring the requested type.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let array = FFI_ArrowArray::new(&self.array.to_data());
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        Ok((schema_of(py, &self.field)?, array))
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }
}

/// Chunks of one type for any reader of Arrow's protocol.
#[pyclass(frozen, module = "fastdx._core", name = "ArrowChunks")]
pub(super) struct PyArrowChunks {
    pub(super) chunks: Vec<ArrayRef>,
    pub(super) field: FieldRef,
}

#[pymethods]
impl PyArrowChunks {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &self.field)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let exported = Box::new(Exported {
            field: self.field.clone(),
            chunks: self.chunks.clone().into_iter(),
            error: CString::default(),
        });
        let stream = FFI_ArrowArrayStream {
            get_schema: Some(Exported::get_schema),
            get_next: Some(Exported::get_next),
            get_last_error: Some(Exported::get_last_error),
            release: Some(Exported::release),
            private_data: Box::into_raw(exported).cast::<c_void>(),
        };
        PyCapsule::new_with_value(py, stream, STREAM)
    }

    fn __len__(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }
}

/// The private data of a stream that was passed on.
struct Exported {
    field: FieldRef,
    chunks: std::vec::IntoIter<ArrayRef>,
    error: CString,
}

impl Exported {
    /// # Safety
    /// `stream` is one of ours and not released; no one else uses it at the same time.
    unsafe fn behind<'a>(stream: *mut FFI_ArrowArrayStream) -> &'a mut Self {
        // SAFETY: private_data is the box made with the stream.
        unsafe { &mut *(*stream).private_data.cast::<Self>() }
    }

    unsafe extern "C" fn get_schema(
        stream: *mut FFI_ArrowArrayStream,
        out: *mut FFI_ArrowSchema,
    ) -> c_int {
        const EINVAL: c_int = 22;
        // SAFETY: the consumer passes our stream.
        let exported = unsafe { Self::behind(stream) };
        match FFI_ArrowSchema::try_from(exported.field.as_ref()) {
            Ok(schema) => {
                // SAFETY: the consumer's place for a schema.
                unsafe { out.write(schema) };
                0
            }
            Err(_) => {
                exported.error = c"a type that Arrow's C interface cannot say".into();
                EINVAL
            }
        }
    }

    unsafe extern "C" fn get_next(
        stream: *mut FFI_ArrowArrayStream,
        out: *mut FFI_ArrowArray,
    ) -> c_int {
        // SAFETY: the consumer passes our stream.
        let next = unsafe { Self::behind(stream) }.chunks.next();
        // A released array marks the end.
        let array = next.map_or_else(FFI_ArrowArray::empty, |chunk| {
            FFI_ArrowArray::new(&chunk.to_data())
        });
        // SAFETY: the consumer's place for an array.
        unsafe { out.write(array) };
        0
    }

    unsafe extern "C" fn get_last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
        // SAFETY: the consumer passes our stream; the text lives until the stream's next call.
        unsafe { Self::behind(stream) }.error.as_ptr()
    }

    unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
        // SAFETY: called once for a live stream of ours, as `release = None` marks it.
        unsafe {
            drop(Box::from_raw((*stream).private_data.cast::<Self>()));
            (*stream).private_data = std::ptr::null_mut();
            (*stream).release = None;
        }
    }
}
