"""Names and types: scopes and what is declared in them, conversions, operators; nothing here walks the syntax tree."""
