// SPDX-License-Identifier: Apache-2.0

// Package libraries locates roced's C libraries: those for glibc are in a directory, those for musl in a
// subdirectory.
//
//	search.go   the value of LD_LIBRARY_PATH; the C library of a program
package libraries
