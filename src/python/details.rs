//! The properties of each mechanism besides its ε, for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::mechanisms::tem_within;
use crate::distance::search::Search;
use crate::mechanism::finite_law::FiniteLaw;
use crate::mechanism::mahalanobis::Mahalanobis;
use crate::mechanism::tem::Truncation;
use crate::mechanism::vickrey::{EllipticalVickrey, Vickrey};
use crate::policy::Kind;
use crate::{HyperbolicLaplace, Mechanism, MultivariateLaplace, NeighborLists, NeighborResponse};

/// The properties of a mechanism of one kind.
pub(super) fn mechanism_details(
    kind: Kind,
    mechanism: &dyn Mechanism,
    details: &Bound<'_, PyDict>,
) -> PyResult<()> {
    match kind {
        Kind::Tem => tem(mechanism, details),
        Kind::MultivariateLaplace => multivariate_laplace(mechanism, details),
        Kind::HyperbolicLaplace => hyperbolic_laplace(mechanism, details),
        Kind::FiniteLaw => finite_law(mechanism, details),
        Kind::Mahalanobis => mahalanobis(mechanism, details),
        Kind::NeighborResponse => neighbor_response(mechanism, details),
        Kind::Vickrey => vickrey(mechanism, details),
    }
}

/// nominal, gamma, beta (None where γ was given), sampler, language (its source, or None), cached_bytes, certified (the ε, or None), lists_k, lists_radius.
fn tem(mechanism: &dyn Mechanism, details: &Bound<'_, PyDict>) -> PyResult<()> {
    let Some(tem) = tem_within(mechanism) else {
        return Ok(());
    };
    details.set_item("nominal", tem.nominal())?;
    details.set_item("gamma", tem.gamma())?;
    let beta = match tem.truncation() {
        Truncation::Gamma(_) => None,
        Truncation::Beta(beta) => Some(beta),
    };
    details.set_item("beta", beta)?;
    details.set_item("sampler", tem.sampler().name())?;
    let after = match mechanism.in_order() {
        Some(_) => ", given what was released before",
        None => "",
    };
    let source = tem
        .language()
        .map(|base| format!("{}{after}", base.source()));
    details.set_item("language", source)?;
    details.set_item("cached_bytes", tem.cache_bytes().1)?;
    details.set_item("certified", tem.certificate().map(|c| c.epsilon))?;
    let lists = tem.lists();
    details.set_item("lists_k", lists.and_then(NeighborLists::k))?;
    details.set_item("lists_radius", lists.and_then(NeighborLists::radius))
}

/// search, ef (None where it is exact).
fn multivariate_laplace(mechanism: &dyn Mechanism, details: &Bound<'_, PyDict>) -> PyResult<()> {
    let search = mechanism
        .downcast_ref::<MultivariateLaplace>()
        .map(|m| m.search());
    let (name, ef) = match search {
        Some(Search::Hnsw { ef }) => ("hnsw", Some(ef)),
        _ => ("exact", None),
    };
    details.set_item("search", name)?;
    details.set_item("ef", ef)
}

/// nominal (the parameter of the noise), base, sampler.
fn hyperbolic_laplace(mechanism: &dyn Mechanism, details: &Bound<'_, PyDict>) -> PyResult<()> {
    let Some(laplace) = mechanism.downcast_ref::<HyperbolicLaplace>() else {
        return Ok(());
    };
    let noise = laplace.noise();
    details.set_item("nominal", noise.law().epsilon())?;
    details.set_item("base", noise.law().base().name())?;
    details.set_item("sampler", noise.sampler().name())
}

/// local: the ε of local differential privacy, None if it was not computed.
fn finite_law(mechanism: &dyn Mechanism, details: &Bound<'_, PyDict>) -> PyResult<()> {
    let law = mechanism.downcast_ref::<FiniteLaw>();
    details.set_item(
        "local",
        law.and_then(FiniteLaw::loss).map(|loss| loss.local),
    )
}

/// nominal (per unit of the Mahalanobis norm), mixing.
fn mahalanobis(mechanism: &dyn Mechanism, details: &Bound<'_, PyDict>) -> PyResult<()> {
    let Some(mahalanobis) = mechanism.downcast_ref::<Mahalanobis>() else {
        return Ok(());
    };
    details.set_item("nominal", mahalanobis.noise().nominal())?;
    details.set_item("mixing", mahalanobis.noise().mixing())
}

/// score: the log-ratio between a likely output and another.
fn neighbor_response(mechanism: &dyn Mechanism, details: &Bound<'_, PyDict>) -> PyResult<()> {
    match mechanism.downcast_ref::<NeighborResponse>() {
        Some(response) => details.set_item("score", response.score()),
        None => Ok(()),
    }
}

/// tuning, mixing.
fn vickrey(mechanism: &dyn Mechanism, details: &Bound<'_, PyDict>) -> PyResult<()> {
    let (tuning, mixing) = match mechanism.downcast_ref::<EllipticalVickrey>() {
        Some(elliptical) => (elliptical.choice().tuning(), elliptical.noise().mixing()),
        None => match mechanism.downcast_ref::<Vickrey>() {
            Some(round) => (round.choice().tuning(), 0.0),
            None => return Ok(()),
        },
    };
    details.set_item("tuning", tuning)?;
    details.set_item("mixing", mixing)
}
