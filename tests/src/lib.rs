//! The tests of the whole: journeys over the real handlers.
