//! One entity: conditions, ETags, limits, the last writer.

use super::*;

#[test]
fn a_refused_condition_names_the_last_writer() {
    let mut fixture = Fixture::with_table("tab");
    let first = fixture.insert("tab", ("p", "r"), 1).unwrap();
    let mut context = fixture.context();
    context.caller.request_id = Some("5f00".into());
    context.caller.user_agent = Some("azsdk-python".into());
    context.caller.address = Some("127.0.0.1:9".parse().unwrap());
    let write = Write {
        change: with(How::Merge, IfMatch::Any),
        key: EntityKey::new("p", "r"),
        properties: int(2),
    };
    fixture.wait(fixture.service().write(&context, &name("tab"), write)).unwrap();
    fixture.advance(Duration::from_millis(800));
    fixture.restart();
    let refused = fixture.write("tab", with(How::Replace, tag_of(&first)), ("p", "r"), int(3));
    let TableDenial::UpdateConditionNotSatisfied(Some(by)) = denied(refused) else { panic!() };
    assert_eq!(
        by.told_at(fixture.now),
        "changed 0.8 s ago by Merge Entity, client request 5f00, azsdk-python, from 127.0.0.1:9"
    );
    let TableDenial::EntityAlreadyExists(by) = denied(fixture.insert("tab", ("p", "r"), 4)) else {
        panic!()
    };
    assert_eq!(by.unwrap().operation, "Merge Entity");
}

#[test]
fn etags_rise_though_the_clock_is_set_back_and_over_restarts_t83() {
    let mut fixture = Fixture::with_table("tab");
    let mut last = fixture.insert("tab", ("p", "r"), 1).unwrap().ticks;
    for step in 0..6 {
        if step % 2 == 1 {
            fixture.restart();
        }
        fixture.now = Timestamp(START.0 - 3_600_000_000_000 * i64::from(step));
        let written = fixture.write("tab", with(How::Merge, IfMatch::Any), ("p", "r"), int(step));
        let ticks = written.unwrap().ticks;
        assert!(ticks > last, "{step}");
        last = ticks;
    }
    assert!(last.unwrap().0 - Ticks::of(START).0 < 100, "an orderly end leaves no gap");
}

#[test]
fn what_is_known_of_an_entity_is_told_with_its_changes() {
    let mut fixture = Fixture::with_table("Tab");
    let key = EntityKey::new("p", "r");
    fixture.insert("tab", ("p", "r"), 1).unwrap();
    fixture.advance(Duration::from_secs(1));
    let written = fixture.write("TAB", with(How::Merge, IfMatch::Any), ("p", "r"), int(2)).unwrap();
    fixture.insert("tab", ("p", "other"), 1).unwrap();
    let standing = fixture.service().why(&name("tab"), &key).unwrap();
    assert_eq!((standing.ticks, standing.properties), (written.ticks, 1));
    assert_eq!(standing.last_writer.unwrap().operation, "Merge Entity");
    let operations: Vec<_> = standing.changes.iter().map(|change| &*change.by.operation).collect();
    assert_eq!(operations, ["Merge Entity", "Insert Entity"]);
    let missing = fixture.service().why(&name("other"), &key);
    assert_eq!(denied(missing), TableDenial::TableNotFound);
}
