// SPDX-License-Identifier: Apache-2.0

// Package show implements roced show, which lists objects of the service and the GID table of an interface.
//
//	show.go      the subcommands, one per noun
//	list.go      common parts: query, columns or JSON, --watch
//	device.go    dev, port                      devices as programs see them
//	object.go    pd, cq, qp, srq, mr, ah, mcast of all clients, or of the user's own
//	client.go    client                         clients and their resources
//	stat.go      stat                           counters
//	gid.go       gid                            the GID table, also of an interface without a service
package show
