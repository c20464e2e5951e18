// Package exec is roced exec: a program that uses libibverbs or librdmacm runs over roced, unchanged.
//
//	command.go     the command line
//	libraries.go   where the C libraries are, and how the program finds them
//	service.go     the service: one that is there, else one of its own
//	network.go     what its devices are on: an in-memory network, or an interface
//	private.go     the in-memory network: its addresses, and a program that waits there alone
//	folder.go      where its socket is
//	guard.go       what removes that if the command is killed
//	report.go      what it says at the end
//	program.go     the program: this process, or a child; its signals, its exit code
//	sysfs.go       --sysfs: what /sys/class says of the devices
//	mounts.go      and how the program sees it: a mount namespace
//
//	roced exec ──┬─ a service is there: becomes the program (execve)
//	             └─ none: its own service ◄── socket ── the program, a child
//
// With a service of its own the command stays, passes signals on, and ends as the program ends. If the command is
// killed, the program is too, and a guard removes the folder. What the program has started goes on, and finds that its
// device has failed, as with any service that ends.
package exec
