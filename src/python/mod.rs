//! The Python face: a thin layer that checks arguments, leaves the interpreter, calls the core.

mod arguments;
mod embedding;
mod errors;
mod guarantee;
mod mechanism;
mod multivariate_laplace;
mod noise;
mod quality;
mod run;
mod tem;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<embedding::PyEmbedding>()?;
    m.add_class::<mechanism::PyMechanism>()?;
    m.add_class::<tem::PyTem>()?;
    m.add_class::<multivariate_laplace::PyMultivariateLaplace>()?;
    m.add_class::<guarantee::PyGuarantee>()?;
    m.add_class::<quality::PySearchQuality>()?;
    m.add_function(wrap_pyfunction!(noise::multivariate_laplace, m)?)
}
