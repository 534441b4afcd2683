//! The repository against itself: its shape, its events, its API document.

mod events;
mod openapi;
mod pages;
mod structure;
