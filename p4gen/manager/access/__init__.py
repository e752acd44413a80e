"""Who may ask the manager for what: tenants, their quotas, and what each of them sees."""
