"""Names and types: scopes and declared entities, conversions, operators. Nothing here walks the syntax tree."""
