//! On a schedule: settles the changes that a crash left open.

shared::main!(shared::direct_invocation::serve, settle::Deps::new, |deps, _event, deadline| settle::handle(
    deps, deadline
));
