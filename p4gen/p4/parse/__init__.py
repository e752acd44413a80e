"""From text to syntax: preprocessor, lexer, recursive-descent parser. Start at ``parser``."""
