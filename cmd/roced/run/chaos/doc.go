// Package chaos is a test of the whole service: two hosts in namespaces, a service in a process on each,
// and ten programs in processes of as many users, which have no privilege.
//
//	programs 0, 2, 4 …                 programs 1, 3, 5 …        users of their own
//	     │ unix socket                      │
//	┌────┴──────────────┐          ┌────────┴──────────┐
//	│ roced run         │   veth   │         roced run │
//	│ eth0 10.77.0.1 ───┼──────────┼─── 10.77.0.2 eth0 │
//	└───────────────────┘          └───────────────────┘
//
// Every message says who sent it, to whom, and its number; receivers check every byte and the order.
//
//	message_test.go  a message, and who checks it
//	program_test.go  a program: what its process does
//	session_test.go  what it has of the service, until that is gone
//	wild_test.go     what it does in the chaos
//	child_test.go    a process, as the test sees it
//	host_test.go     a namespace and its service
//	world_test.go    all of them, and rounds in which nothing may be lost
//	calm_test.go     rounds while nobody disturbs
//	killed_test.go   a program that is killed, and one that is stopped
//	ends_test.go     a service that ends while its programs are busy
//	chaos_test.go    programs and services are killed and stopped, links change, limits are reached
//	faults_test.go   docs/FAULTS.md names tests that there are
//	left_test.go     what must not be left: descriptors, memory, goroutines, memberships, XDP programs
//
// Nothing of it is shipped.
package chaos
