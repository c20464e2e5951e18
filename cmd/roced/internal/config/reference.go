package config

import _ "embed" // the reference

// Reference is the commented file with every key.
//
//go:embed roced.toml
var Reference string
