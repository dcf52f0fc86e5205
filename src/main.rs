//! The `latchfs` command.

fn main() {}
