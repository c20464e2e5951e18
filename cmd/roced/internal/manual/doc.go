// SPDX-License-Identifier: Apache-2.0

// Package manual writes the manual pages, in roff (man(7)):
//
//	command.go   pages of commands, from their help
//	overview.go  roced(8): commands, files, signals, units; from overview.man
//	toml.go      roced.toml(5), from the reference file of package config
//	write.go     writes all pages to a directory
//	roff.go      conversion of text to roff
//
// Pages of commands are generated from their help, so they are always up to date. Commands added by cobra
// (help, completion) have no pages.
package manual
