// Package card opens a card on the interface that a command's flags name, or the service's device of
// that name, closes it when the command has ended or the card has failed, and gives its counters by name.
//
//	flags.go (interfaceflags.go, modeflags.go, daemonflags.go: whose card it is)
//	    │
//	    ▼
//	device.go ──┬─ health.go     failing, and what an MTU change means
//	            ├─ gid.go        which address to send from
//	            ├─ counters.go   where packets ended
//	            ├─ endpoint.go   package ud's, which explains its errors
//	            └─ stream.go     messages over a connection, made as connection.go has it
//
// There are no locks here.
package card
