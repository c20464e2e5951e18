// Command numbers writes what follows from the table of numbers, datapath/ring/numbers.txt (whose first lines
// describe it): constants and their names in Go, aliases in package verbs, and the same for C. It is run by
//
//	go generate ./datapath/ring
package main
