//! An operator's invocation: the catalogue, organizations and budgets.

shared::main!(shared::direct_invocation::serve, operator::Deps::new, operator::handle);
