"""ARO: plans for aggregation in switches (``p4gen.plan.route``), which have programs of other papers run them."""
