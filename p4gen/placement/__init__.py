"""Who gets which tree, addresses, contexts and slots. Pure data: nothing here speaks to a switch."""
