// SPDX-License-Identifier: Apache-2.0

// Package chaos tests the whole service: two hosts in namespaces, a service process on each, and ten
// unprivileged programs of as many users.
//
//	programs 0, 2, 4 …                 programs 1, 3, 5 …        users of their own
//	     │ unix socket                      │
//	┌────┴──────────────┐          ┌────────┴──────────┐
//	│ roced run         │   veth   │         roced run │
//	│ eth0 10.77.0.1 ───┼──────────┼─── 10.77.0.2 eth0 │
//	└───────────────────┘          └───────────────────┘
//
// Every message contains its sender, its receiver and its number; receivers check every byte and the order.
//
//	message_test.go  a message and its checks
//	program_test.go  a program: its process
//	session_test.go  a program's session, until the service ends
//	wild_test.go     a program's random actions
//	child_test.go    the test's handle of a process
//	host_test.go     a namespace and its service
//	world_test.go    all hosts and programs; rounds without losses
//	calm_test.go     rounds without faults
//	killed_test.go   a program that is killed, and one that is stopped
//	ends_test.go     a service that ends while its programs are busy
//	chaos_test.go    kill and stop programs and services, change links, reach limits
//	faults_test.go   docs/FAULTS.md names existing tests
//	left_test.go     leak checks: descriptors, memory, goroutines, memberships, XDP programs
//
// The package contains tests only.
package chaos
