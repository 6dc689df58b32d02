//! Costs of a reduction along a row of a message-passing mesh, from its description: what
//! [`row_trees`](lineweave_core::algorithm::row_trees) generate trees for.

use lineweave_core::algorithm::row_trees::RowCosts;
use lineweave_core::machine::Machine;

/// Returns the costs in picoseconds and lines, for partial results that climb in chunks of `chunk_lines`; `None` where `machine` is no mesh
/// or does not know a value.
///
/// A line received is read from a child's buffer and the sum written to the own one (Petrovic et al. 2012, Eq. 3 and 1);
/// a message that needs the one before costs raising a flag, seeing it, and a chunk that is stored before it is passed
/// on. All distances are 1: hops are counted apart.
pub fn mesh_costs(machine: &Machine, chunk_lines: u64) -> Option<RowCosts> {
    let mesh = machine.mesh.as_ref()?;
    let line = machine.line_bytes.value?;
    let ps = |ns: f64| (ns * 1e3).round() as u64;
    let hop = ps(mesh.hop_ns.value?);
    let across = ps(mesh.box_ns.value?) + 2 * hop;
    let network = &mesh.network;
    let flits = network.header_flits.value? + (line / network.link_bytes.value?).ceil();
    let link = ps(flits * 1e3 / network.mesh_mhz.value?);
    let receive = 2 * across;
    let told = ps(mesh.put_box_ns.value?) + 2 * across + ps(mesh.get_box_ns.value?) + across;
    Some(RowCosts { receive, link, hop: 2 * hop, depth: told + chunk_lines * receive })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::machine::shipped;

    #[test]
    fn the_scc_s_costs_follow_from_table_1() {
        let scc = shipped().iter().find(|m| m.name == "intel-scc").unwrap();
        let costs = mesh_costs(scc, 96).unwrap();
        assert_eq!(costs.receive, 272_000);
        assert_eq!((costs.link, costs.hop), (3750, 10_000));
        assert_eq!(costs.depth, 69_000 + 330_000 + 3 * 136_000 + 96 * 272_000);
        let phi = shipped().iter().find(|m| m.name == "xeon-phi-5110p").unwrap();
        assert_eq!(mesh_costs(phi, 96), None);
    }
}
