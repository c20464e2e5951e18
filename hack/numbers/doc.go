// SPDX-License-Identifier: Apache-2.0

// Command numbers writes what follows from the table of numbers, verbs/ib/numbers.txt (whose first lines describe it):
// constants and their names in Go, aliases in the packages that programs use, and the same for C. It is run by
//
//	go generate ./verbs/ib
package main
