//! The functions of the roles.

use vere_cli::{Roles, Run};

/// The functions, in the order of the table of roles (`vere_supervisor::roles`).
pub(crate) const ROLES: Roles = Roles {
    run: &[
        (
            "otlp",
            Run::Supervised(|start| {
                vere_role_otlp::run(&start.settings, &start.config, &start.level)
            }),
        ),
        (
            "spool",
            Run::Supervised(|start| {
                let reload = (start.config, start.level);
                let node = start.instance.unwrap_or_default();
                vere_role_node::run(&start.settings, &node, Some(reload))
            }),
        ),
        (
            "signer",
            Run::Supervised(|start| {
                vere_role_signer::run(&start.settings, &start.config, start.level)
            }),
        ),
        (
            "store",
            Run::Supervised(|start| {
                vere_role_store::run(start.settings, &start.config, start.level)
            }),
        ),
        (
            vere_parsing::child::ROLE,
            Run::Alone(|| Ok(vere_parsing::child::run()?)),
        ),
        (
            "broker",
            Run::Supervised(|start| {
                vere_role_broker::run(start.settings, &start.config, start.level)
            }),
        ),
        (
            "courier",
            Run::Supervised(|start| {
                let name = start.instance.unwrap_or_default();
                vere_role_courier::run(start.settings, &name, &start.config, start.level)
            }),
        ),
        (
            "gateway",
            Run::Supervised(|start| {
                vere_role_gateway::run(start.settings, &start.config, start.level)
            }),
        ),
        (
            "workers",
            Run::Supervised(|start| {
                vere_role_worker::run_keeper(start.settings, &start.config, start.level)
            }),
        ),
        (
            "worker",
            Run::Supervised(|start| vere_role_worker::run_worker(start.settings)),
        ),
        (
            "front",
            Run::Supervised(|start| {
                vere_role_front::run(start.settings, &start.config, start.level)
            }),
        ),
        (
            "dnsbl",
            Run::Supervised(|start| {
                let reload = Some((start.config, start.level));
                vere_role_dnsbl::run(&start.settings, reload)
            }),
        ),
        (
            "web",
            Run::Supervised(|start| {
                vere_role_web::run(&start.settings, &start.config, start.level)
            }),
        ),
        (
            "x400",
            Run::Supervised(|start| {
                vere_role_x400::run(start.settings, &start.config, start.level)
            }),
        ),
    ],
    node: |settings, name| vere_role_node::run(settings, name, None),
    dnsbl: |settings, reload| vere_role_dnsbl::run(settings, reload),
    drain: |settings, names, force, out| Ok(vere_role_gateway::drain(settings, names, force, out)?),
    drain_x400: |settings, names, force, out| {
        Ok(vere_role_x400::drain(settings, names, force, out)?)
    },
};

#[cfg(test)]
mod tests {
    use super::ROLES;

    #[test]
    fn each_role_of_the_table_has_its_function() {
        let table = vere_supervisor::roles::ROLES.iter().map(|spec| spec.name);
        assert!(ROLES.run.iter().map(|(name, _)| *name).eq(table));
    }
}
