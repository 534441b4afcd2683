//! Tests the repository itself: its structure, its events, its API document.

mod deployment;
mod events;
mod generated;
mod openapi;
mod pages;
mod sentences;
mod services;
mod structure;
mod watching;
