//! The article behind the project, statement by statement: "Managing Concurrency in Microsoft
//! Azure Storage". A test is named after its statement, `s107_` after S107, and goes through a
//! real mount and real HTTP. `README.md` beside it lists them all; [`page`] keeps it true.

/// Statements of one shape: each name is a test, which checks the request of its row.
macro_rules! statements {
    ($($check:ident { $($name:ident = $request:literal;)* })*) => {
        $($(
            #[test]
            fn $name() {
                $check($request);
            }
        )*)*
    };
}

mod blob_leases;
mod blobs;
mod files;
mod general;
mod page;
mod queues;
mod tables;
