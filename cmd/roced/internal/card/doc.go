// Package card is a card as the subcommands use one: an interface named by flags, opened, closed
// when the work is done or the device has failed, and its counters by name.
//
//	flags.go (interfaceflags.go, modeflags.go) ──► device.go ──┬─ health.go     failing, and what an MTU change means
//	                                                           ├─ gid.go        which address to send from
//	                                                           ├─ counters.go   where packets ended
//	                                                           └─ endpoint.go   package ud's, that explains its errors
//
// There are no locks here.
package card
