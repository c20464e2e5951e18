// Package config is the service's configuration: strict TOML.
//
//	roced.toml    the reference: every key, its default, and what it is for
//	config.go     what a configuration says, and its defaults
//	keys.go       the table of keys: what may stand behind each, and where it goes
//	value.go      strings, numbers, sizes, durations, modes
//	document.go   the file as a list of keys and values with their lines
//	parse.go      each of these through the table; every mistake is reported, not the first alone
//	check.go      what concerns several keys
//	mistake.go    a mistake: file, line, column, key, and what to write instead
//	nearest.go    the known key that an unknown one resembles
//
// A key that is not known, or is there twice, is a mistake. So is a value of another type: nothing is
// converted. Interfaces are not looked for: a device's may come later.
package config
