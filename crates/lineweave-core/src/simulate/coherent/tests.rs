use super::*;
use crate::algorithm::{self, Problem};
use crate::collective::Collective;
use crate::machine::shipped;
use crate::plan::Params;

fn machine(name: &str) -> &'static Machine {
    shipped().iter().find(|m| m.name == name).unwrap()
}

fn barrier(shape: &Shape, name: &str, params: &str) -> Plan {
    let mut p = Params::new();
    for part in params.split_whitespace() {
        let (k, v) = part.split_once('=').unwrap();
        p = p.with(k, v);
    }
    let problem = Problem { shape: shape.clone(), ..Problem::flat(Collective::Barrier, shape.ranks(), 0) };
    algorithm::find(Collective::Barrier, name).unwrap().plan(&problem, &p).unwrap()
}

#[test]
fn explore() {
    let m = machine("power8-8247-42l");
    let mut off = m.clone();
    off.coherent.as_mut().unwrap().prefetch_lines.value = Some(0.0);
    let run = |m: &Machine, ranks: usize, name: &str, params: &str| {
        let shape = placed(m, ranks).unwrap();
        let plan = barrier(&shape, name, params);
        let o = simulate(m, &shape, &plan, &Options { runs: 50, ..Options::default() }).unwrap();
        o.each.nanos() / 1e3
    };
    let mut wide = m.clone();
    wide.line_bytes.value = Some(512.0);
    println!("one line: {:.3}", run(&wide, 24, "tree", "k=5 home=root layout=packed"));
    for f in [1.0, 2.0, 4.0, 5.0, 8.0, 16.0] {
        let mut m = m.clone();
        m.coherent.as_mut().unwrap().accesses_in_flight.value = Some(f);
        wide.coherent.as_mut().unwrap().accesses_in_flight.value = Some(f);
        let mut off = m.clone();
        off.coherent.as_mut().unwrap().prefetch_lines.value = Some(0.0);
        print!("f={f} packed {:.3} on {:.3} off {:.3} diss {:.3};", run(&wide, 24, "tree", "k=5 home=root layout=packed"), run(&m, 24, "tree", "k=5 home=root layout=paired"), run(&off, 24, "tree", "k=5 home=root layout=paired"), run(&off, 24, "dissemination", "layout=packed"));
        for k in 2..=9 { print!(" {:.3}", run(&m, 24, "tree", &format!("k={k} home=root layout=paired"))); }
        print!(";");
        for p in 2..=9 { print!(" {:.3}", run(&off, p, "tree", "k=5 home=root layout=paired")); }
        println!();
    }
    for (what, m) in [("on", m), ("off", &off)] {
        println!("prefetch {what}");
        println!("2: {:.3}", run(m, 2, "tree", "k=5 home=root layout=paired"));
        println!("6: {:.3}", run(m, 6, "tree", "k=5 home=root layout=paired"));
        println!("7: {:.3}", run(m, 7, "tree", "k=5 home=root layout=paired"));
        for l in ["packed", "paired", "spread5"] {
            println!("24 k=5 {l}: {:.3}", run(m, 24, "tree", &format!("k=5 home=root layout={l}")));
        }
        for k in [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 23] {
            print!("k={k}: {:.3} ", run(m, 24, "tree", &format!("k={k} home=root layout=paired")));
        }
        println!();
        for (n, p) in [("dissemination", "layout=packed"), ("dissemination", "layout=alone"), ("binomial", "home=root layout=paired"), ("tournament", "home=root layout=paired release=kary k=2"), ("tournament", "home=root layout=paired release=tree"), ("tournament", "home=root layout=paired release=kary k=5"), ("centralized", "home=root layout=paired release=each")] {
            println!("{n} {p}: {:.3}", run(m, 24, n, p));
        }
        for p in 2..=12 { print!("P={p}: {:.3} ", run(m, p, "tree", "k=5 home=root layout=paired")); }
        println!();
        for s in 1..=8 { print!("smt {s}: {:.3} {:.3} {:.3} ", run(m, 24*s, "tree", "k=5 home=root layout=paired"), run(m, 24*s, "binomial", "home=root layout=paired"), run(m, 24*s, "centralized", "home=root layout=paired release=each")); }
        println!();
    }
}
