"""Places groups: IncTree, addresses, contexts and slots. Pure data: nothing here communicates with a switch."""
