// SPDX-License-Identifier: Apache-2.0

// Package ctest builds the libraries for programs in C, and runs programs against a service on an in-memory network.
//
//	abi, exports    structures, numbers, names and versions, beside those of Debian's packages
//	queue           the program's half of the queues in C, the card's in Go, over one memory
//	programs        the programs of ../tests, ibverbs-utils and perftest
//	cm              librdmacm, likewise
//
// Programs that are not installed are skipped. If possible, the tests run everything as user nobody.
package ctest
