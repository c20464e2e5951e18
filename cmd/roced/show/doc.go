// Package show is roced show: what the service has, and the GID table of an interface.
//
//	show.go      the subcommands, one a noun
//	list.go      what they have in common: ask, columns or JSON, again and again (--watch)
//	device.go    dev, port                      as a program sees them
//	object.go    pd, cq, qp, srq, mr, ah, mcast of all clients, or of the user's own
//	client.go    client                         what each has
//	stat.go      stat                           counters
//	gid.go       gid                            also without a service, of an interface
package show
