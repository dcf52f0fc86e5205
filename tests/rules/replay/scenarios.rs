//! The recorded scenarios: each step's status and output, compared with the recording, but for the
//! departures that are listed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::departures::{Departure, Out, RULES, Rule};
use super::oracle::{groups, play};
use super::player::{FreshShare, NO_STATUS, PlayAnswer};

/// The recordings, with the number of scenarios and steps in each.
const RECORDINGS: [(&str, usize, usize); 4] = [
    ("delete_pending", 65, 541),
    ("byte_range", 52, 412),
    ("dispositions", 45, 261),
    ("directories", 16, 122),
];

/// A step by its scenario and number.
type Place = (String, usize);

/// What may be answered in place of the recording: the departure, and the rule behind it.
fn listed() -> BTreeMap<Place, (&'static Departure, &'static Rule)> {
    let mut listed = BTreeMap::new();
    for rule in RULES {
        for departure in rule.steps {
            let Departure(scenario, step, ..) = departure;
            let twice = listed.insert(((*scenario).to_owned(), *step), (departure, rule));
            assert!(twice.is_none(), "{scenario}, step {step} is listed twice");
        }
    }
    listed
}

/// What a departing step answers here, given the output in the recording.
fn departing(departure: &Departure, recorded: Option<&Value>) -> (String, Option<Value>) {
    let Departure(scenario, step, status, out) = departure;
    let out = match out {
        Out::Same => recorded.cloned(),
        Out::Nothing => None,
        Out::Is(json) => Some(
            serde_json::from_str(json)
                .unwrap_or_else(|error| panic!("{scenario}, step {step}: {error}")),
        ),
    };
    ((*status).to_owned(), out)
}

fn given(answer: &PlayAnswer) -> (String, Option<Value>) {
    (answer.status.to_owned(), answer.out.clone())
}

/// Replays a recording; takes the departures that occurred from `left`.
fn replay(
    (name, scenarios, steps): (&str, usize, usize),
    left: &mut BTreeMap<Place, (&'static Departure, &'static Rule)>,
) -> Vec<String> {
    let fresh = FreshShare::new();
    let groups = groups(name);
    assert_eq!(groups.len(), scenarios, "scenarios of {name}");
    assert_eq!(groups.iter().map(|group| group.steps.len()).sum::<usize>(), steps, "of {name}");
    let mut wrong = Vec::new();
    for group in groups {
        for (number, (step, answer)) in (1..).zip(group.steps.iter().zip(play(&fresh, &group))) {
            let status = step.status.clone().unwrap_or_else(|| NO_STATUS.to_owned());
            let recorded = (status, step.out.clone());
            let departure = left.remove(&(group.id.clone(), number));
            let expected = departure
                .map_or(recorded.clone(), |(departure, _)| departing(departure, step.out.as_ref()));
            let rule = departure.map_or("the recording", |(_, rule)| rule.id);
            let place = format!("{}, step {number} ({:?})", group.id, step.op);
            if departure.is_some() && expected == recorded {
                wrong.push(format!("{place}: listed under {rule}, but as recorded"));
            }
            if given(&answer) != expected {
                wrong.push(format!("{place}: {answer:?}, but {rule} says {expected:?}"));
            }
        }
    }
    wrong
}

#[test]
fn every_scenario_is_answered_as_recorded_but_for_the_departures_listed() {
    let mut left = listed();
    let mut wrong: Vec<String> =
        RECORDINGS.into_iter().flat_map(|recording| replay(recording, &mut left)).collect();
    let unmet = left.into_iter().map(|((scenario, step), (_, rule))| {
        format!("{scenario}, step {step}: listed under {}, but there is no such step", rule.id)
    });
    wrong.extend(unmet);
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
