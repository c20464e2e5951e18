// Package cli is what a command line needs, whatever the subcommand: carrying it out and its exit
// code (run.go), mistakes in it (usage.go), signals, privileges, a line of progress, and
// numbers as people read them. It knows nothing of RDMA.
package cli
