"""Which IncTree, addresses, contexts and slots each group gets. Pure data: nothing here speaks to a switch."""
