// SPDX-License-Identifier: Apache-2.0

// Package exec implements roced exec, which runs an unmodified program that uses libibverbs or librdmacm over
// roced.
//
//	command.go     the command line
//	libraries.go   location of the C libraries, and the program's environment
//	service.go     the existing service, or a private one
//	network.go     network of a private service: in memory, or an interface
//	private.go     the in-memory network: addresses, detection of a program that waits alone
//	folder.go      temporary directory of the socket
//	guard.go       removal of that directory if the command is killed
//	report.go      report of --report
//	program.go     the program: signals and exit code
//	sysfs.go       --sysfs: contents of /sys/class
//	mounts.go      --sysfs: the program's mount namespace
//
//	roced exec ──┬─ with an existing service: becomes the program (execve)
//	             └─ otherwise: private service ◄── socket ── the program, a child
//
// With a private service the command keeps running, forwards signals, and ends with the program's status. If
// the command is killed, the program is killed too and a guard removes the directory. Processes that the
// program started continue; their device has failed, as when any service ends.
package exec
