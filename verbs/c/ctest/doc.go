// Package ctest builds the libraries for programs in C, and runs programs against a service on the network in memory.
//
//	abi, exports    structures, numbers, names and versions, beside those of Debian's packages
//	queue           the program's half of the queues in C, the card's in Go, over one memory
//	programs        the programs of ../tests, ibverbs-utils and perftest
//	cm              librdmacm, likewise
//
// What is not installed is skipped. Where the tests may, they run all as nobody.
package ctest
