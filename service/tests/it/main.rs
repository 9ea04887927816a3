//! Tests of the service as a process: one program, so that it is linked once.

#![allow(missing_docs)]

mod common;
mod connections;
mod hostile;
mod ledger;
mod policies;
mod service;
