// Package manual writes the manual pages, in roff (man(7)):
//
//	command.go   a command's, from what its --help says
//	overview.go  roced(8): what the commands have in common, files, signals, the units; overview.man
//	toml.go      roced.toml(5), from the reference file of package config
//	write.go     all of them, into a folder
//	roff.go      text as roff
//
// A page says what the command says, so it cannot be behind. Left out: the commands that cobra adds
// (help, completion).
package manual
