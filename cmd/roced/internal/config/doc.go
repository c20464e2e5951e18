// SPDX-License-Identifier: Apache-2.0

// Package config reads the service's configuration: strict TOML.
//
//	roced.toml    the reference: every key, its default and description
//	config.go     the configuration and its defaults
//	keys.go       the table of keys: permitted values and destination
//	value.go      strings, numbers, sizes, durations, modes
//	document.go   the file as a list of keys and values with their lines
//	parse.go      applies the table; reports all errors, not only the first
//	check.go      checks of several keys
//	error.go      an error: file, line, column, key and remedy
//	nearest.go    suggestions for unknown keys
//
// An unknown key, a duplicate key, and a value of another type are errors; values are not converted.
// Interfaces are not looked up, because they may appear later.
package config
