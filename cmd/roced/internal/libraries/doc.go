// Package libraries says how programs find roced's C libraries: those for glibc in a folder, those for musl below it.
//
//	search.go   the list of folders for LD_LIBRARY_PATH; which of the two a program loads
package libraries
