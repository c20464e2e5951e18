// Package ping is roced ping: datagrams there and back one by one, with roced ping or with
// ibv_ud_pingpong of rdma-core at the other end.
//
//	command.go ── run.go      meets the peer over TCP (package meet), has package pingpong exchange
//	                id.go         meets it by connection ids instead (verbs/cm)
//	                totals.go     what is printed at the end
package ping
