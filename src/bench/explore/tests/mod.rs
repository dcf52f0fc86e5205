//! The search against every order, on random programs; the phases of a plan.

mod model;

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{OPS, Op, Outcome, Program, Row, World, names};

use super::*;

fn options(clients: usize, (drops, advance): (usize, Vec<u64>)) -> PlanOptions {
    PlanOptions {
        clients: names(clients),
        budget: 1_000_000,
        drops,
        advance,
        max_steps: 60,
        seed: 1,
        replay: None,
    }
}

/// Runs a program as the plan says. False if it polls for ever.
fn run(plan: &mut Plan, world: &mut World<'_>) -> Result<(), Halt> {
    loop {
        let ready = world.ready();
        if ready.is_empty() {
            return plan.check_digits();
        }
        let choice = plan.choose(ready)?;
        let status = world.step(&choice);
        plan.answered(&choice, status);
    }
}

type Faults = (usize, Vec<u64>);

/// What a program can come to under the orders that the search picks, and how many they are.
fn searched(program: &Program, faults: &Faults, without: Option<Row>) -> (BTreeSet<Outcome>, u64) {
    let mut plan = Plan::new(options(program.len(), faults.clone()));
    let mut outcomes = BTreeSet::new();
    while plan.begin() == Phase::Explore {
        let mut world = World::new(program, without);
        if run(&mut plan, &mut world).is_ok() {
            outcomes.insert(world.outcome());
        }
        plan.end(Verdict::default());
    }
    assert_eq!(plan.search.divergences, 0, "{program:?}");
    (outcomes, plan.runs)
}

/// What a program can come to under every order.
fn unpruned(program: &Program, faults: &Faults) -> (BTreeSet<Outcome>, u64) {
    let (mut outcomes, mut runs) = (BTreeSet::new(), 0);
    // The choices that are left at each step, the present one last.
    let mut left: Vec<Vec<Choice>> = Vec::new();
    loop {
        let mut plan = Plan::new(options(program.len(), faults.clone()));
        plan.phase = Phase::Confirm;
        let mut world = World::new(program, None);
        runs += 1;
        let mut depth = 0;
        let ended = loop {
            let ready = world.ready();
            if ready.is_empty() {
                break true;
            }
            if depth == left.len() {
                let offers = plan.offers(&ready).into_iter();
                left.push(offers.map(|offer| offer.choice).collect());
            }
            plan.script = (left[depth].last().cloned().into_iter().collect(), 0);
            let Ok(choice) = plan.choose(ready) else { break false };
            let status = world.step(&choice);
            plan.answered(&choice, status);
            depth += 1;
        };
        if ended {
            outcomes.insert(world.outcome());
        }
        left.truncate(depth);
        while let Some(choices) = left.last_mut() {
            choices.pop();
            if !choices.is_empty() {
                break;
            }
            left.pop();
        }
        if left.is_empty() {
            return (outcomes, runs);
        }
    }
}

/// A random program, small enough to be run under every order.
fn random_program(draw: &mut impl FnMut(usize) -> usize) -> (Program, Faults) {
    let clients = 2 + draw(2);
    let longest = if clients == 2 { 4 } else { 3 };
    let program: Program = (0..clients)
        .map(|_| (0..=draw(longest - 1)).map(|_| OPS[draw(OPS.len())](draw(2))).collect())
        .collect();
    let faults = match draw(3) {
        0 => (1, Vec::new()),
        1 => (0, vec![16_000]),
        _ => (0, Vec::new()),
    };
    (program, faults)
}

fn generator(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |end| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % end
    }
}

/// How many random programs are tried.
fn programs() -> usize {
    if std::env::var_os("LATCHFS_FULL").is_some() { 1_000 } else { 30 }
}

#[test]
fn random_programs_come_to_the_same_under_the_orders_that_are_searched_as_under_all() {
    let mut draw = generator(7);
    let (mut searched_runs, mut all_runs) = (0, 0);
    for number in 0..programs() {
        let (program, faults) = random_program(&mut draw);
        let (found, runs) = searched(&program, &faults, None);
        let (all, every) = unpruned(&program, &faults);
        assert_eq!(found, all, "program {number}: {program:?} {faults:?}");
        (searched_runs, all_runs) = (searched_runs + runs, all_runs + every);
    }
    assert!(searched_runs * 2 < all_runs, "{searched_runs} of {all_runs} orders were run");
}

#[test]
fn without_a_row_of_the_relation_the_search_misses_what_a_program_can_come_to() {
    let rows = [Row::Delete, Row::List, Row::Lease, Row::Head, Row::Entity, Row::Queue, Row::Clock];
    for row in rows {
        let mut draw = generator(7);
        let misses = (0..1_000).any(|_| {
            let (program, faults) = random_program(&mut draw);
            searched(&program, &faults, Some(row)).0 != unpruned(&program, &faults).0
        });
        assert!(misses, "{row:?}");
    }
}

/// Runs an exploration until it is done; a run fails if `fails`, as the signature says.
fn explore(options: PlanOptions, program: &Program, fails: impl Fn(&Outcome) -> bool) -> Plan {
    let mut plan = Plan::new(options);
    while plan.begin() != Phase::Done {
        let mut world = World::new(program, None);
        let halt = run(&mut plan, &mut world).err();
        let failed = halt.is_none() && fails(&world.outcome());
        let failed = failed.then(|| "AssertionError".to_owned());
        let mismatched = matches!(halt, Some(Halt::Mismatch(_)));
        plan.end(Verdict { failed, mismatched, ..Verdict::default() });
    }
    plan
}

/// Two clients that read, then write; a run fails if both have written over the same version.
fn counter(conditional: bool) -> Program {
    let write = if conditional { Op::Cas } else { Op::Put };
    vec![vec![Op::Get(0), write(0)]; 2]
}

fn lost_update((answers, _): &Outcome) -> bool {
    answers[0][0] == answers[1][0] && answers.iter().all(|of| of[1].contains(" 200"))
}

#[test]
fn a_lost_update_is_found_made_short_confirmed_and_replayed() {
    let program = counter(false);
    let plan = explore(options(2, (0, vec![])), &program, lost_update);
    let failure = plan.failure.as_ref().unwrap();
    let token = failure.token.to_string();
    assert!(token.starts_with("A.B2.A~"), "{token}");
    assert!(failure.confirmed && failure.run <= 3 && failure.order.len() == 4);
    assert!(plan.notes().is_empty(), "{:?}", plan.notes());
    let replay = Some(Token::read(&token, &names(2)).unwrap());
    let plan = explore(PlanOptions { replay, ..plan.options }, &program, lost_update);
    assert_eq!((plan.runs, plan.failure.unwrap().token.to_string()), (1, token));
}

#[test]
fn a_program_without_a_race_is_explored_to_the_end() {
    let plan = explore(options(2, (0, vec![])), &counter(true), lost_update);
    assert_eq!((plan.incomplete(), plan.failure.is_none()), (vec![], true));
    assert!((2..=4).contains(&plan.runs), "{}", plan.runs);
    let apart = vec![vec![Op::Put(0), Op::Get(0)], vec![Op::Put(1), Op::Get(1)]];
    assert_eq!(explore(options(2, (0, vec![])), &apart, |_| false).runs, 1);
}

#[test]
fn a_budget_that_ends_goes_on_at_random_and_says_so() {
    // Of a small one no run is left for chance.
    for (budget, random) in [(4, 1), (3, 0)] {
        let options = PlanOptions { budget, ..options(3, (0, vec![])) };
        let clients = vec![vec![Op::Get(0), Op::Put(0), Op::Get(0)]; 3];
        let plan = explore(options, &clients, |_| false);
        assert_eq!((plan.runs, plan.random_runs), (budget, random));
        let said = format!("budget of {budget} runs");
        assert!(plan.incomplete()[0].contains(&said), "{:?}", plan.incomplete());
    }
}

#[test]
fn a_client_that_polls_is_asked_again_only_when_something_has_changed() {
    let client = vec![Op::Acquire(0), Op::Get(0), Op::PutLeased(0), Op::Release(0)];
    let plan = explore(options(2, (0, vec![])), &vec![client; 2], |_| false);
    assert!(plan.runs <= 20 && plan.incomplete().is_empty(), "{} runs", plan.runs);
}

#[test]
fn a_token_of_another_test_says_which_step_differs() {
    let read = |text: &str| Some(Token::read(text, &names(2)).unwrap());
    let other = explore(options(2, (0, vec![])), &counter(false), lost_update);
    let token = other.failure.unwrap().token.to_string();
    let halt = |program: Program, token: &str| {
        let options = PlanOptions { replay: read(token), ..options(2, (0, vec![])) };
        let mut plan = Plan::new(options);
        plan.begin();
        let Err(Halt::Mismatch(why)) = run(&mut plan, &mut World::new(&program, None)) else {
            panic!("{token} was run")
        };
        why
    };
    let why = halt(vec![vec![Op::Get(0)], vec![Op::Get(0), Op::Put(0)]], &token);
    assert!(why.starts_with("step 4 of the token is A") || why.contains("after 3 steps"), "{why}");
    let why = halt(vec![vec![Op::Head(0), Op::Put(0)], vec![Op::Get(0), Op::Put(0)]], &token);
    assert!(why.contains("1. A Head(0)"), "{why}");
    let why = halt(counter(false), "B3~0000");
    assert!(why.starts_with("step 3 of the token is B, but what can be done there is A"), "{why}");
}

#[test]
fn a_test_that_fails_in_every_order_says_that_it_needs_no_race() {
    let plan = explore(options(2, (0, vec![])), &counter(false), |_| true);
    assert!(plan.notes()[0].contains("needs no race"), "{:?}", plan.notes());
    assert_eq!(plan.failure.unwrap().token.to_string().split('~').next(), Some("A2.B2"));
    let nothing = vec![Vec::new(); 2];
    let plan = explore(options(2, (0, vec![])), &nothing, |_| true);
    assert!(plan.notes()[0].contains("its set-up fails"), "{:?}", plan.notes());
}

#[test]
fn clients_that_do_not_follow_an_order_are_told() {
    // The second client does something else in all runs but the first.
    let get_and_put = vec![Op::Get(0), Op::Put(0)];
    let programs = [counter(false), vec![get_and_put, vec![Op::Head(0), Op::Put(0)]]];
    let mut plan = Plan::new(PlanOptions { budget: 40, ..options(2, (0, vec![])) });
    while plan.begin() != Phase::Done {
        let program = &programs[usize::from(plan.runs > 1)];
        drop(run(&mut plan, &mut World::new(program, None)));
        plan.end(Verdict::default());
    }
    assert!(plan.search.divergences > 0);
    let why = plan.incomplete();
    assert!(why.iter().any(|why| why.contains("did not always do the same")), "{why:?}");
}

#[test]
fn once_a_client_was_blocked_the_order_of_starts_is_a_choice() {
    let mut plan = Plan::new(options(2, (0, vec![])));
    plan.begin();
    run(&mut plan, &mut World::new(&counter(true), None)).unwrap();
    assert!(plan.end(Verdict { blocked: true, ..Verdict::default() }));
    assert!(plan.orders_starts);
    let start = |name: &Arc<str>| {
        let footprint = Footprint::of([], [Resource::new(["start"])]);
        let (operation, object) = ("start".to_owned(), String::new());
        let step = Step { operation, object, fingerprint: 0, footprint, can_drop: false };
        (Choice::Start(Arc::clone(name)), step)
    };
    let mut orders = BTreeSet::new();
    while plan.begin() == Phase::Explore {
        let mut left: Vec<_> = names(2).iter().map(start).collect();
        let mut order = String::new();
        while !left.is_empty() {
            let choice = plan.choose(left.clone()).unwrap();
            order.push_str(&choice.to_string());
            left.retain(|(other, _)| *other != choice);
        }
        plan.end(Verdict { blocked: true, ..Verdict::default() });
        orders.insert(order);
    }
    assert_eq!(orders.into_iter().collect::<Vec<_>>(), ["^A^B", "^B^A"]);
    assert!(plan.incomplete()[0].contains("blocked outside storage"));
}
