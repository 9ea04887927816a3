//! fastdx as a service: privatises texts over HTTP under the operator's named policies.
//!
//! | idea | here |
//! |---|---|
//! | the file of policies | [`fastdx::spec::Policies`] |
//! | a policy: a mechanism, and how it is applied to text | [`policy`] |
//! | what a client sends, and what it gets | [`body`] |
//! | the most that requests and connections may ask for | [`limits`] |
//! | a request's work: checked, priced, drawn | [`work`] |
//! | the threads that draw batches | [`drawing`] |
//! | the state that all requests share | [`service`] |
//! | the paths and what they answer | [`routes`] |
//! | what is sent back | [`reply`] |
//! | the page, and the laws that it shows | [`page`] |
//! | long batches, line by line | [`lines`] |
//! | who may ask | [`keys`] |
//! | what is charged before a draw | [`ledger`] |
//! | answers kept for those who ask again | [`answers`] |
//! | counts and times | [`metrics`] |
//! | sockets, TLS, time limits, draining | [`listen`] |
//!
//! No message, log line or metric contains a text, word or key. Errors state only positions, and a
//! panic's own message is never printed.

#![forbid(unsafe_code)]

pub mod answers;
pub mod body;
pub mod drawing;
pub mod keys;
pub mod ledger;
pub mod limits;
pub mod lines;
pub mod listen;
pub mod metrics;
pub mod page;
pub mod policy;
pub mod reply;
pub mod routes;
pub mod service;
pub mod work;
